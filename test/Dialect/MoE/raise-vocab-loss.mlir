// RUN: plateau-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(moe-raise-vocab-loss))' | FileCheck %s
// RUN: plateau-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(moe-raise-vocab-loss))' --remarks-filter-missed=moe-raise-vocab-loss -o /dev/null 2>&1 | FileCheck %s --check-prefix=MISSED --implicit-check-not=not-raised

// Softmax, logarithm, and a sum over columns of which all but the label's are 0.
// CHECK-LABEL: func.func @one_hot(
// CHECK-SAME: %[[X:.*]]: tensor<5x4xf32>, %[[T:.*]]: tensor<9x4xf32>, %[[L:.*]]: tensor<5xi32>, %[[B:.*]]: tensor<9xf32>
// CHECK-NEXT: %[[LOSSES:.*]], %{{.*}} = moe.vocab_loss %[[X]], %[[T]], %[[L]] bias %[[B]] vocabulary<size = 9>
// CHECK-NEXT: return %[[LOSSES]]
#m_k = affine_map<(m, n, k) -> (m, k)>
#n_k = affine_map<(m, n, k) -> (n, k)>
#m_n = affine_map<(m, n, k) -> (m, n)>
#rows_columns = affine_map<(i, v) -> (i, v)>
#rows = affine_map<(i, v) -> (i)>
#columns = affine_map<(i, v) -> (v)>
func.func @one_hot(%x: tensor<5x4xf32>, %t: tensor<9x4xf32>, %labels: tensor<5xi32>, %b: tensor<9xf32>) -> tensor<5xf32> {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<5x9xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x9xf32>) -> tensor<5x9xf32>
  %r = tensor.empty() : tensor<5xf32>
  %rz = linalg.fill ins(%zero : f32) outs(%r : tensor<5xf32>) -> tensor<5xf32>
  %rm = linalg.fill ins(%least : f32) outs(%r : tensor<5xf32>) -> tensor<5xf32>
  %p = linalg.matmul indexing_maps = [#m_k, #n_k, #m_n] ins(%x, %t : tensor<5x4xf32>, tensor<9x4xf32>) outs(%z : tensor<5x9xf32>) -> tensor<5x9xf32>
  %y = linalg.generic {indexing_maps = [#rows_columns, #columns, #rows_columns], iterator_types = ["parallel", "parallel"]} ins(%p, %b : tensor<5x9xf32>, tensor<9xf32>) outs(%e : tensor<5x9xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  } -> tensor<5x9xf32>
  %max = linalg.generic {indexing_maps = [#rows_columns, #rows], iterator_types = ["parallel", "reduction"]} ins(%y : tensor<5x9xf32>) outs(%rm : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  %exp = linalg.generic {indexing_maps = [#rows_columns, #rows, #rows_columns], iterator_types = ["parallel", "parallel"]} ins(%y, %max : tensor<5x9xf32>, tensor<5xf32>) outs(%e : tensor<5x9xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %d = arith.subf %a, %m : f32
    %s = math.exp %d : f32
    linalg.yield %s : f32
  } -> tensor<5x9xf32>
  %sum = linalg.generic {indexing_maps = [#rows_columns, #rows], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<5x9xf32>) outs(%rz : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  %log = linalg.generic {indexing_maps = [#rows_columns, #rows, #rows_columns], iterator_types = ["parallel", "parallel"]} ins(%exp, %sum : tensor<5x9xf32>, tensor<5xf32>) outs(%e : tensor<5x9xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %q = arith.divf %a, %m : f32
    %s = math.log %q : f32
    linalg.yield %s : f32
  } -> tensor<5x9xf32>
  %picked = linalg.generic {indexing_maps = [#rows_columns, #rows, #rows], iterator_types = ["parallel", "reduction"]} ins(%log, %labels : tensor<5x9xf32>, tensor<5xi32>) outs(%rz : tensor<5xf32>) {
  ^bb0(%a: f32, %l: i32, %o: f32):
    %v = linalg.index 1 : index
    %i = arith.index_cast %l : i32 to index
    %is = arith.cmpi eq, %v, %i : index
    %c = arith.select %is, %a, %zero : f32
    %s = arith.addf %o, %c : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  %losses = arith.negf %picked : tensor<5xf32>
  return %losses : tensor<5xf32>
}

// -----

// As torch-mlir writes log_softmax and nll_loss with mean: dimensions of 1 are kept, a transposed weight, labels of 64
// bits, and the count of those that are not -100.
// CHECK-LABEL: func.func @torch(
// CHECK-SAME: %[[X:.*]]: tensor<5x4xf32>, %[[T:.*]]: tensor<9x4xf32>, %[[L:.*]]: tensor<5xi64>
// CHECK: %[[L32:.*]] = arith.trunci %[[L]] : tensor<5xi64> to tensor<5xi32>
// CHECK-NEXT: %[[LOSSES:.*]], %{{.*}} = moe.vocab_loss %[[X]], %[[T]], %[[L32]] vocabulary<size = 9>
// CHECK-NEXT: %[[COUNT:.*]] = moe.count_labels %[[L32]] ignore_index(-100)
// CHECK-NEXT: %[[MEAN:.*]] = moe.mean_loss %[[LOSSES]] over %[[COUNT]]
// CHECK-NEXT: return %[[MEAN]]
#both = affine_map<(d0, d1) -> (d0, d1)>
#kept = affine_map<(d0, d1) -> (d0, 0)>
#one = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
func.func @torch(%x: tensor<5x4xf32>, %w: tensor<9x4xf32>, %target: tensor<5xi64>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %zero_i32 = arith.constant 0 : i32
  %ignore = arith.constant -100 : index
  %least = arith.constant 0xFF800000 : f32
  %zero_i64 = arith.constant 0 : i64
  %te = tensor.empty() : tensor<4x9xf32>
  %wt = linalg.transpose ins(%w : tensor<9x4xf32>) outs(%te : tensor<4x9xf32>) permutation = [1, 0]
  %e = tensor.empty() : tensor<5x9xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x9xf32>) -> tensor<5x9xf32>
  %y = linalg.matmul ins(%x, %wt : tensor<5x4xf32>, tensor<4x9xf32>) outs(%z : tensor<5x9xf32>) -> tensor<5x9xf32>
  %r = tensor.empty() : tensor<5x1xf32>
  %ri = tensor.empty() : tensor<5x1xi64>
  %rm = linalg.fill ins(%least : f32) outs(%r : tensor<5x1xf32>) -> tensor<5x1xf32>
  %rz = linalg.fill ins(%zero : f32) outs(%r : tensor<5x1xf32>) -> tensor<5x1xf32>
  %riz = linalg.fill ins(%zero_i64 : i64) outs(%ri : tensor<5x1xi64>) -> tensor<5x1xi64>
  %max:2 = linalg.generic {indexing_maps = [#both, #kept, #kept], iterator_types = ["parallel", "reduction"]} ins(%y : tensor<5x9xf32>) outs(%rm, %riz : tensor<5x1xf32>, tensor<5x1xi64>) {
  ^bb0(%a: f32, %m: f32, %mi: i64):
    %i = linalg.index 1 : index
    %i64 = arith.index_cast %i : index to i64
    %new = arith.maximumf %a, %m : f32
    %is = arith.cmpf ogt, %a, %m : f32
    %ni = arith.select %is, %i64, %mi : i64
    linalg.yield %new, %ni : f32, i64
  } -> (tensor<5x1xf32>, tensor<5x1xi64>)
  %shifted = linalg.generic {indexing_maps = [#both, #kept, #both], iterator_types = ["parallel", "parallel"]} ins(%y, %max#0 : tensor<5x9xf32>, tensor<5x1xf32>) outs(%e : tensor<5x9xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %s = arith.subf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x9xf32>
  %exp = linalg.generic {indexing_maps = [#both, #both], iterator_types = ["parallel", "parallel"]} ins(%shifted : tensor<5x9xf32>) outs(%e : tensor<5x9xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32
  } -> tensor<5x9xf32>
  %sum = linalg.generic {indexing_maps = [#both, #kept], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<5x9xf32>) outs(%rz : tensor<5x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<5x1xf32>
  %log = linalg.generic {indexing_maps = [#kept, #both], iterator_types = ["parallel", "parallel"]} ins(%sum : tensor<5x1xf32>) outs(%r : tensor<5x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.log %a : f32
    linalg.yield %s : f32
  } -> tensor<5x1xf32>
  %logp = linalg.generic {indexing_maps = [#both, #kept, #both], iterator_types = ["parallel", "parallel"]} ins(%shifted, %log : tensor<5x9xf32>, tensor<5x1xf32>) outs(%e : tensor<5x9xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %s = arith.subf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<5x9xf32>
  %n = tensor.empty() : tensor<5xf32>
  %picked = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%target : tensor<5xi64>) outs(%n : tensor<5xf32>) {
  ^bb0(%l: i64, %o: f32):
    %i = arith.index_cast %l : i64 to index
    %is = arith.cmpi eq, %i, %ignore : index
    %row = linalg.index 0 : index
    %p = tensor.extract %logp[%row, %i] : tensor<5x9xf32>
    %m = arith.negf %p : f32
    %s = arith.select %is, %zero, %m : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  %ce = tensor.empty() : tensor<i32>
  %cz = linalg.fill ins(%zero_i32 : i32) outs(%ce : tensor<i32>) -> tensor<i32>
  %counted = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]} ins(%target : tensor<5xi64>) outs(%cz : tensor<i32>) {
  ^bb0(%l: i64, %o: i32):
    %i = arith.index_cast %l : i64 to index
    %is = arith.cmpi ne, %i, %ignore : index
    %w32 = arith.extui %is : i1 to i32
    %s = arith.addi %o, %w32 : i32
    linalg.yield %s : i32
  } -> tensor<i32>
  %count = tensor.extract %counted[] : tensor<i32>
  %divisor = arith.sitofp %count : i32 to f32
  %se = tensor.empty() : tensor<f32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<f32>) -> tensor<f32>
  %mean = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]} ins(%picked : tensor<5xf32>) outs(%sz : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %q = arith.divf %a, %divisor : f32
    %s = arith.addf %q, %o : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %mean : tensor<f32>
}

// -----

// CHECK-LABEL: func.func @named(
// CHECK-SAME: %[[X:.*]]: tensor<5x4xbf16>, %[[T:.*]]: tensor<9x4xbf16>, %[[L:.*]]: tensor<5xi32>
// CHECK-NEXT: %[[LOSSES:.*]], %{{.*}} = moe.vocab_loss %[[X]], %[[T]], %[[L]] vocabulary<size = 9, ignore_index = 3>
// CHECK-NEXT: %[[FIVE:.*]] = arith.constant dense<5.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[MEAN:.*]] = moe.mean_loss %[[LOSSES]] over %[[FIVE]]
// CHECK-NEXT: return %[[MEAN]]
#m_k = affine_map<(m, n, k) -> (m, k)>
#n_k = affine_map<(m, n, k) -> (n, k)>
#m_n = affine_map<(m, n, k) -> (m, n)>
#one = affine_map<(d0) -> (d0)>
func.func @named(%x: tensor<5x4xbf16>, %t: tensor<9x4xbf16>, %labels: tensor<5xi32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %three = arith.constant 3 : i32
  %five = arith.constant dense<5.0> : tensor<f32>
  %e = tensor.empty() : tensor<5x9xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x9xf32>) -> tensor<5x9xf32>
  %y = linalg.matmul indexing_maps = [#m_k, #n_k, #m_n] ins(%x, %t : tensor<5x4xbf16>, tensor<9x4xbf16>) outs(%z : tensor<5x9xf32>) -> tensor<5x9xf32>
  %p = linalg.softmax dimension(1) ins(%y : tensor<5x9xf32>) outs(%e : tensor<5x9xf32>) -> tensor<5x9xf32>
  %log = math.log %p : tensor<5x9xf32>
  %n = tensor.empty() : tensor<5xf32>
  %losses = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%labels : tensor<5xi32>) outs(%n : tensor<5xf32>) {
  ^bb0(%l: i32, %o: f32):
    %i = arith.index_cast %l : i32 to index
    %row = linalg.index 0 : index
    %q = tensor.extract %log[%row, %i] : tensor<5x9xf32>
    %m = arith.subf %zero, %q : f32
    %is = arith.cmpi ne, %l, %three : i32
    %s = arith.select %is, %m, %zero : f32
    linalg.yield %s : f32
  } -> tensor<5xf32>
  %se = tensor.empty() : tensor<f32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<f32>) -> tensor<f32>
  %sum = linalg.reduce ins(%losses : tensor<5xf32>) outs(%sz : tensor<f32>) dimensions = [0]
    (%a: f32, %o: f32) {
      %s = arith.addf %a, %o : f32
      linalg.yield %s : f32
    }
  %mean = arith.divf %sum, %five : tensor<f32>
  return %mean : tensor<f32>
}

// -----

// All options of the standard form stay.
// CHECK-LABEL: func.func @standard(
// CHECK: moe.vocab_loss %{{.*}}, %{{.*}}, %{{.*}} bias %{{.*}} vocabulary<size = 8, label_smoothing = {{.*}}, z_loss = {{.*}}, softcap = {{.*}}>
// CHECK-NEXT: return
#m_k = affine_map<(m, n, k) -> (m, k)>
#n_k = affine_map<(m, n, k) -> (n, k)>
#m_n = affine_map<(m, n, k) -> (m, n)>
func.func @standard(%x: tensor<5x4xf32>, %t: tensor<9x4xf32>, %labels: tensor<5xi32>, %b: tensor<9xf32>) -> tensor<5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x9xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x9xf32>) -> tensor<5x9xf32>
  %y = linalg.matmul indexing_maps = [#m_k, #n_k, #m_n] ins(%x, %t : tensor<5x4xf32>, tensor<9x4xf32>) outs(%z : tensor<5x9xf32>) -> tensor<5x9xf32>
  %p, %lse = moe.log_softmax %y bias %b vocabulary<size = 8, label_smoothing = 0.5, z_loss = 0.25, softcap = 4.0> : (tensor<5x9xf32>, tensor<9xf32>) -> (tensor<5x9xf32>, tensor<5xf32>)
  %losses = moe.nll %p, %lse, %labels vocabulary<size = 8, label_smoothing = 0.5, z_loss = 0.25, softcap = 4.0> : (tensor<5x9xf32>, tensor<5xf32>, tensor<5xi32>) -> tensor<5xf32>
  return %losses : tensor<5xf32>
}

// -----

// lse - y[label], without a maximum, with a cap.
// CHECK-LABEL: func.func @capped(
// CHECK: moe.vocab_loss %{{.*}}, %{{.*}}, %{{.*}} vocabulary<size = 9, softcap = {{3.*}}>
#m_k = affine_map<(m, n, k) -> (m, k)>
#n_k = affine_map<(m, n, k) -> (n, k)>
#m_n = affine_map<(m, n, k) -> (m, n)>
#rows_columns = affine_map<(i, v) -> (i, v)>
#rows = affine_map<(i, v) -> (i)>
#one = affine_map<(d0) -> (d0)>
func.func @capped(%x: tensor<5x4xf32>, %t: tensor<9x4xf32>, %labels: tensor<5xi32>) -> tensor<5xf32> {
  %zero = arith.constant 0.0 : f32
  %cap = arith.constant dense<3.0> : tensor<5x9xf32>
  %e = tensor.empty() : tensor<5x9xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x9xf32>) -> tensor<5x9xf32>
  %p = linalg.matmul indexing_maps = [#m_k, #n_k, #m_n] ins(%x, %t : tensor<5x4xf32>, tensor<9x4xf32>) outs(%z : tensor<5x9xf32>) -> tensor<5x9xf32>
  %q = arith.divf %p, %cap : tensor<5x9xf32>
  %h = math.tanh %q : tensor<5x9xf32>
  %y = arith.mulf %h, %cap : tensor<5x9xf32>
  %exp = math.exp %y : tensor<5x9xf32>
  %r = tensor.empty() : tensor<5xf32>
  %rz = linalg.fill ins(%zero : f32) outs(%r : tensor<5xf32>) -> tensor<5xf32>
  %sum = linalg.reduce ins(%exp : tensor<5x9xf32>) outs(%rz : tensor<5xf32>) dimensions = [1]
    (%a: f32, %o: f32) {
      %s = arith.addf %a, %o : f32
      linalg.yield %s : f32
    }
  %lse = math.log %sum : tensor<5xf32>
  %picked = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%labels : tensor<5xi32>) outs(%r : tensor<5xf32>) {
  ^bb0(%l: i32, %o: f32):
    %i = arith.index_cast %l : i32 to index
    %row = linalg.index 0 : index
    %g = tensor.extract %y[%row, %i] : tensor<5x9xf32>
    linalg.yield %g : f32
  } -> tensor<5xf32>
  %losses = arith.subf %lse, %picked : tensor<5xf32>
  return %losses : tensor<5xf32>
}

// -----

// A softmax that is not a loss is none of ours, and has no remark.
// CHECK-LABEL: func.func @attention(
// CHECK: linalg.softmax
func.func @attention(%x: tensor<5x4xf32>, %t: tensor<4x9xf32>) -> tensor<5x9xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x9xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x9xf32>) -> tensor<5x9xf32>
  %y = linalg.matmul ins(%x, %t : tensor<5x4xf32>, tensor<4x9xf32>) outs(%z : tensor<5x9xf32>) -> tensor<5x9xf32>
  %p = linalg.softmax dimension(1) ins(%y : tensor<5x9xf32>) outs(%e : tensor<5x9xf32>) -> tensor<5x9xf32>
  return %p : tensor<5x9xf32>
}

// -----

// MISSED: remark: [Missed] not-raised | Category:moe-raise-vocab-loss | {{.*}}the table is [4, 9], a row for each column of x: it must be [9, 4], or a transpose of that
// CHECK-LABEL: func.func @untransposed(
// CHECK-NOT: moe.vocab_loss
#one = affine_map<(d0) -> (d0)>
func.func @untransposed(%x: tensor<5x4xf32>, %t: tensor<4x9xf32>, %labels: tensor<5xi32>) -> tensor<5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x9xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x9xf32>) -> tensor<5x9xf32>
  %y = linalg.matmul ins(%x, %t : tensor<5x4xf32>, tensor<4x9xf32>) outs(%z : tensor<5x9xf32>) -> tensor<5x9xf32>
  %p = linalg.softmax dimension(1) ins(%y : tensor<5x9xf32>) outs(%e : tensor<5x9xf32>) -> tensor<5x9xf32>
  %log = math.log %p : tensor<5x9xf32>
  %n = tensor.empty() : tensor<5xf32>
  %picked = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%labels : tensor<5xi32>) outs(%n : tensor<5xf32>) {
  ^bb0(%l: i32, %o: f32):
    %i = arith.index_cast %l : i32 to index
    %row = linalg.index 0 : index
    %g = tensor.extract %log[%row, %i] : tensor<5x9xf32>
    linalg.yield %g : f32
  } -> tensor<5xf32>
  %losses = arith.negf %picked : tensor<5xf32>
  return %losses : tensor<5xf32>
}

// -----

// MISSED: remark: [Missed] not-raised | Category:moe-raise-vocab-loss | {{.*}}the loss has, beside the logarithm and the label's logit, -1 linalg.matmul[row, argument #2[row]]
// CHECK-LABEL: func.func @doubled_pick(
// CHECK-NOT: moe.vocab_loss
#m_k = affine_map<(m, n, k) -> (m, k)>
#n_k = affine_map<(m, n, k) -> (n, k)>
#m_n = affine_map<(m, n, k) -> (m, n)>
#one = affine_map<(d0) -> (d0)>
func.func @doubled_pick(%x: tensor<5x4xf32>, %t: tensor<9x4xf32>, %labels: tensor<5xi32>) -> tensor<5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x9xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x9xf32>) -> tensor<5x9xf32>
  %y = linalg.matmul indexing_maps = [#m_k, #n_k, #m_n] ins(%x, %t : tensor<5x4xf32>, tensor<9x4xf32>) outs(%z : tensor<5x9xf32>) -> tensor<5x9xf32>
  %exp = math.exp %y : tensor<5x9xf32>
  %r = tensor.empty() : tensor<5xf32>
  %rz = linalg.fill ins(%zero : f32) outs(%r : tensor<5xf32>) -> tensor<5xf32>
  %sum = linalg.reduce ins(%exp : tensor<5x9xf32>) outs(%rz : tensor<5xf32>) dimensions = [1]
    (%a: f32, %o: f32) {
      %s = arith.addf %a, %o : f32
      linalg.yield %s : f32
    }
  %lse = math.log %sum : tensor<5xf32>
  %losses = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]} ins(%labels, %lse : tensor<5xi32>, tensor<5xf32>) outs(%r : tensor<5xf32>) {
  ^bb0(%l: i32, %s: f32, %o: f32):
    %i = arith.index_cast %l : i32 to index
    %row = linalg.index 0 : index
    %g = tensor.extract %y[%row, %i] : tensor<5x9xf32>
    %h = arith.addf %g, %g : f32
    %m = arith.subf %s, %h : f32
    linalg.yield %m : f32
  } -> tensor<5xf32>
  return %losses : tensor<5xf32>
}

// -----

// MISSED: remark: [Missed] not-raised | Category:moe-raise-vocab-loss | {{.*}}logits or log probabilities are read by func.return too
// CHECK-LABEL: func.func @read_twice(
// CHECK-NOT: moe.vocab_loss
#m_k = affine_map<(m, n, k) -> (m, k)>
#n_k = affine_map<(m, n, k) -> (n, k)>
#m_n = affine_map<(m, n, k) -> (m, n)>
func.func @read_twice(%x: tensor<5x4xf32>, %t: tensor<9x4xf32>, %labels: tensor<5xi32>) -> (tensor<5xf32>, tensor<5x9xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x9xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<5x9xf32>) -> tensor<5x9xf32>
  %y = linalg.matmul indexing_maps = [#m_k, #n_k, #m_n] ins(%x, %t : tensor<5x4xf32>, tensor<9x4xf32>) outs(%z : tensor<5x9xf32>) -> tensor<5x9xf32>
  %p, %lse = moe.log_softmax %y vocabulary<size = 9> : (tensor<5x9xf32>) -> (tensor<5x9xf32>, tensor<5xf32>)
  %losses = moe.nll %p, %lse, %labels vocabulary<size = 9> : (tensor<5x9xf32>, tensor<5xf32>, tensor<5xi32>) -> tensor<5xf32>
  return %losses, %y : tensor<5xf32>, tensor<5x9xf32>
}

// -----

// MISSED: remark: [Missed] not-raised | Category:moe-raise-vocab-loss | {{.*}}logits are an argument and not by linalg.matmul
// CHECK-LABEL: func.func @no_product(
// CHECK-NOT: moe.vocab_loss
func.func @no_product(%y: tensor<5x9xf32>, %labels: tensor<5xi32>) -> tensor<5xf32> {
  %p, %lse = moe.log_softmax %y vocabulary<size = 9> : (tensor<5x9xf32>) -> (tensor<5x9xf32>, tensor<5xf32>)
  %losses = moe.nll %p, %lse, %labels vocabulary<size = 9> : (tensor<5x9xf32>, tensor<5xf32>, tensor<5xi32>) -> tensor<5xf32>
  return %losses : tensor<5xf32>
}

// Losses that are written out, and what moe-raise-vocab-loss makes of them: the interpreter in float64 where it knows all
// ops, else plain numbers; and compiled code. With logits 0..7, log Σ exp is 7.458340.
// RUN: plateau-opt %s --pass-pipeline='builtin.module(func.func(moe-raise-vocab-loss))' -o %t.mlir
// RUN: not grep linalg %t.mlir
// RUN: plateau-run %s --entry one_hot --interpret > %t.plain
// RUN: plateau-run %t.mlir --entry one_hot --interpret > %t.raised
// RUN: diff %t.plain %t.raised
// RUN: plateau-run %t.mlir --entry one_hot --compare 1e-5
// RUN: plateau-run %t.mlir --entry torch --compare 1e-5
// RUN: plateau-run %t.mlir --entry named --compare 1e-5
// RUN: plateau-run %t.mlir --entry torch --interpret | FileCheck %s --check-prefix=TORCH
// RUN: plateau-run %t.mlir --entry named --interpret | FileCheck %s --check-prefix=NAMED

#m_k = affine_map<(m, n, k) -> (m, k)>
#n_k = affine_map<(m, n, k) -> (n, k)>
#m_n = affine_map<(m, n, k) -> (m, n)>
#rows_columns = affine_map<(i, v) -> (i, v)>
#rows = affine_map<(i, v) -> (i)>
#columns = affine_map<(i, v) -> (v)>
#both = affine_map<(d0, d1) -> (d0, d1)>
#kept = affine_map<(d0, d1) -> (d0, 0)>
#one = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>

func.func @one_hot(%x: tensor<5x4xf32>, %t: tensor<9x4xf32>, %labels: tensor<5xi32> {plateau.below = 9 : i64}, %b: tensor<9xf32>) -> tensor<5xf32> {
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

// (7.458340 - 3 + 7.458340 - 5) / 2: the second label does not count.
// TORCH: torch/0: tensor<f32> = [3.45833
func.func @torch(%x: tensor<3x1xf32> {plateau.values = dense<[[1.0], [1.0], [1.0]]> : tensor<3x1xf32>}, %w: tensor<8x1xf32> {plateau.values = dense<[[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0]]> : tensor<8x1xf32>}, %labels: tensor<3xi32> {plateau.values = dense<[3, -100, 5]> : tensor<3xi32>}) -> tensor<f32> {
  %target = arith.extsi %labels : tensor<3xi32> to tensor<3xi64>
  %zero = arith.constant 0.0 : f32
  %zero_i32 = arith.constant 0 : i32
  %ignore = arith.constant -100 : index
  %least = arith.constant 0xFF800000 : f32
  %zero_i64 = arith.constant 0 : i64
  %te = tensor.empty() : tensor<1x8xf32>
  %wt = linalg.transpose ins(%w : tensor<8x1xf32>) outs(%te : tensor<1x8xf32>) permutation = [1, 0]
  %e = tensor.empty() : tensor<3x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x8xf32>) -> tensor<3x8xf32>
  %y = linalg.matmul ins(%x, %wt : tensor<3x1xf32>, tensor<1x8xf32>) outs(%z : tensor<3x8xf32>) -> tensor<3x8xf32>
  %r = tensor.empty() : tensor<3x1xf32>
  %ri = tensor.empty() : tensor<3x1xi64>
  %rm = linalg.fill ins(%least : f32) outs(%r : tensor<3x1xf32>) -> tensor<3x1xf32>
  %rz = linalg.fill ins(%zero : f32) outs(%r : tensor<3x1xf32>) -> tensor<3x1xf32>
  %riz = linalg.fill ins(%zero_i64 : i64) outs(%ri : tensor<3x1xi64>) -> tensor<3x1xi64>
  %max:2 = linalg.generic {indexing_maps = [#both, #kept, #kept], iterator_types = ["parallel", "reduction"]} ins(%y : tensor<3x8xf32>) outs(%rm, %riz : tensor<3x1xf32>, tensor<3x1xi64>) {
  ^bb0(%a: f32, %m: f32, %mi: i64):
    %i = linalg.index 1 : index
    %i64 = arith.index_cast %i : index to i64
    %new = arith.maximumf %a, %m : f32
    %is = arith.cmpf ogt, %a, %m : f32
    %ni = arith.select %is, %i64, %mi : i64
    linalg.yield %new, %ni : f32, i64
  } -> (tensor<3x1xf32>, tensor<3x1xi64>)
  %shifted = linalg.generic {indexing_maps = [#both, #kept, #both], iterator_types = ["parallel", "parallel"]} ins(%y, %max#0 : tensor<3x8xf32>, tensor<3x1xf32>) outs(%e : tensor<3x8xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %s = arith.subf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x8xf32>
  %exp = linalg.generic {indexing_maps = [#both, #both], iterator_types = ["parallel", "parallel"]} ins(%shifted : tensor<3x8xf32>) outs(%e : tensor<3x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32
  } -> tensor<3x8xf32>
  %sum = linalg.generic {indexing_maps = [#both, #kept], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<3x8xf32>) outs(%rz : tensor<3x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<3x1xf32>
  %log = linalg.generic {indexing_maps = [#kept, #both], iterator_types = ["parallel", "parallel"]} ins(%sum : tensor<3x1xf32>) outs(%r : tensor<3x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.log %a : f32
    linalg.yield %s : f32
  } -> tensor<3x1xf32>
  %logp = linalg.generic {indexing_maps = [#both, #kept, #both], iterator_types = ["parallel", "parallel"]} ins(%shifted, %log : tensor<3x8xf32>, tensor<3x1xf32>) outs(%e : tensor<3x8xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %s = arith.subf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<3x8xf32>
  %n = tensor.empty() : tensor<3xf32>
  %picked = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%target : tensor<3xi64>) outs(%n : tensor<3xf32>) {
  ^bb0(%l: i64, %o: f32):
    %i = arith.index_cast %l : i64 to index
    %is = arith.cmpi eq, %i, %ignore : index
    %row = linalg.index 0 : index
    %p = tensor.extract %logp[%row, %i] : tensor<3x8xf32>
    %m = arith.negf %p : f32
    %s = arith.select %is, %zero, %m : f32
    linalg.yield %s : f32
  } -> tensor<3xf32>
  %ce = tensor.empty() : tensor<i32>
  %cz = linalg.fill ins(%zero_i32 : i32) outs(%ce : tensor<i32>) -> tensor<i32>
  %counted = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]} ins(%target : tensor<3xi64>) outs(%cz : tensor<i32>) {
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
  %mean = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]} ins(%picked : tensor<3xf32>) outs(%sz : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %q = arith.divf %a, %divisor : f32
    %s = arith.addf %q, %o : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %mean : tensor<f32>
}

// (7.458340 - 5 + 7000 - 6000) / 2
// NAMED: named/0: tensor<f32> = [501.22915
func.func @named(%x: tensor<2x1xbf16> {plateau.values = dense<[[1.0], [1000.0]]> : tensor<2x1xbf16>}, %t: tensor<8x1xbf16> {plateau.values = dense<[[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0]]> : tensor<8x1xbf16>}, %labels: tensor<2xi32> {plateau.values = dense<[5, 6]> : tensor<2xi32>}) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %three = arith.constant 3 : i32
  %two = arith.constant dense<2.0> : tensor<f32>
  %e = tensor.empty() : tensor<2x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8xf32>) -> tensor<2x8xf32>
  %y = linalg.matmul indexing_maps = [#m_k, #n_k, #m_n] ins(%x, %t : tensor<2x1xbf16>, tensor<8x1xbf16>) outs(%z : tensor<2x8xf32>) -> tensor<2x8xf32>
  %p = linalg.softmax dimension(1) ins(%y : tensor<2x8xf32>) outs(%e : tensor<2x8xf32>) -> tensor<2x8xf32>
  %log = math.log %p : tensor<2x8xf32>
  %n = tensor.empty() : tensor<2xf32>
  %losses = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%labels : tensor<2xi32>) outs(%n : tensor<2xf32>) {
  ^bb0(%l: i32, %o: f32):
    %i = arith.index_cast %l : i32 to index
    %row = linalg.index 0 : index
    %q = tensor.extract %log[%row, %i] : tensor<2x8xf32>
    %m = arith.subf %zero, %q : f32
    %is = arith.cmpi ne, %l, %three : i32
    %s = arith.select %is, %m, %zero : f32
    linalg.yield %s : f32
  } -> tensor<2xf32>
  %se = tensor.empty() : tensor<f32>
  %sz = linalg.fill ins(%zero : f32) outs(%se : tensor<f32>) -> tensor<f32>
  %sum = linalg.reduce ins(%losses : tensor<2xf32>) outs(%sz : tensor<f32>) dimensions = [0]
    (%a: f32, %o: f32) {
      %s = arith.addf %a, %o : f32
      linalg.yield %s : f32
    }
  %mean = arith.divf %sum, %two : tensor<f32>
  return %mean : tensor<f32>
}

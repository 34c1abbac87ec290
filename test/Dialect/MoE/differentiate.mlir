// RUN: plateau-opt %s -split-input-file -moe-differentiate -canonicalize | FileCheck %s

// The loss is kept; the gradients stand beside it, in the order of the parameters.
// CHECK-LABEL: func.func @loss(
// CHECK-LABEL: func.func private @loss_and_gradients(
// CHECK-SAME: -> (tensor<f32> {moe.role = #moe.role<loss>}, tensor<16x4xf32>, tensor<4xf32>)
// CHECK: %[[X:.*]] = moe.embedding
// CHECK: %[[N:.*]], %[[INVERSE:.*]] = moe.rms_norm %[[X]]
// CHECK: %[[P:.*]], %[[LSE:.*]] = moe.log_softmax %[[N]]
// CHECK: moe.nll %[[P]], %[[LSE]]
// CHECK: moe.mean_loss
// CHECK: %[[G:.*]] = moe.mean_loss_grad
// CHECK: %[[DP:.*]], %{{.*}} = moe.nll_grad %[[G]], %[[LSE]]
// CHECK: %[[DN:.*]] = moe.log_softmax_grad %[[DP]], %[[P]], %[[LSE]] vocabulary
// CHECK: %[[DX:.*]], %[[DW:.*]] = moe.rms_norm_grad %[[DN]], %[[X]], %{{.*}}, %[[INVERSE]]
// CHECK: %[[DE:.*]] = moe.embedding_grad %[[DX]]
// CHECK: return %{{.*}}, %[[DE]], %[[DW]]
func.func @loss(%tokens: tensor<8xi32>, %labels: tensor<8xi32>,
    %table: tensor<16x4xf32> {moe.parameter = #moe.parameter<"table", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>},
    %weight: tensor<4xf32> {moe.parameter = #moe.parameter<"weight", decay = false, mean = 1.0 : f64, deviation = 0.0 : f64>})
    -> (tensor<f32> {moe.role = #moe.role<loss>}) {
  %x = moe.embedding %table, %tokens : (tensor<16x4xf32>, tensor<8xi32>) -> tensor<8x4xf32>
  %n, %inverse = moe.rms_norm %x, %weight epsilon(1.0e-06) : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>)
  %p, %p_lse = moe.log_softmax %n vocabulary<size = 4>
    : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<8xi32>
  %l_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 4>
    : (tensor<8x4xf32>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<8xf32>
  return %l : tensor<f32>
}

// -----

// Between forward and backward only the region's inputs live; the second evaluation stands in one region with its adjoint, and
// what it computes in vain (the sum) is gone.
// CHECK-LABEL: func.func private @loss_and_gradients(
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>
// CHECK: %[[Y:.*]] = moe.checkpoint (%{{.*}} = %[[X]] : tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK: %[[DY:.*]] = moe.log_softmax_grad
// CHECK: %[[DX:.*]] = moe.checkpoint recompute (%[[A:.*]] = %[[X]] : tensor<8x4xf32>, %[[D:.*]] = %[[DY]] : tensor<8x4xf32>) -> tensor<8x4xf32> {
// CHECK-NEXT: %[[E:.*]] = math.exp %[[A]]
// CHECK-NEXT: %[[G:.*]] = arith.mulf %[[D]], %[[E]]
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[D]], %[[G]]
// CHECK-NEXT: moe.yield %[[S]]
// CHECK: return %{{.*}}, %[[DX]]
func.func @loss(%x: tensor<8x4xf32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %labels: tensor<8xi32>) -> tensor<f32> {
  %y = moe.checkpoint (%a = %x : tensor<8x4xf32>) -> tensor<8x4xf32> {
    %e = math.exp %a : tensor<8x4xf32>
    %s = arith.addf %e, %a : tensor<8x4xf32>
    moe.yield %s : tensor<8x4xf32>
  }
  %p, %p_lse = moe.log_softmax %y vocabulary<size = 4>
    : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<8xi32>
  %l_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 4>
    : (tensor<8x4xf32>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<8xf32>
  return %l : tensor<f32>
}

// -----

// Both operands are stored transposed. With c = op(a)·op(b): d op(a) = dc·op(b)ᵀ, d op(b) = op(a)ᵀ·dc.
// CHECK: #[[AT:.*]] = affine_map<(d0, d1, d2) -> (d2, d0)>
// CHECK: #[[BT:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK: #[[C:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
#at = affine_map<(d0, d1, d2) -> (d2, d0)>
#bt = affine_map<(d0, d1, d2) -> (d1, d2)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-LABEL: func.func private @loss_and_gradients(
// CHECK-SAME: %[[A:[^:]*]]: tensor<6x8xf32> {{.*}}, %[[B:[^:]*]]: tensor<4x6xf32>
// CHECK: %[[DC:.*]] = moe.log_softmax_grad
// CHECK: %[[DA:.*]] = linalg.matmul indexing_maps = [#[[AT]], #[[BT]], #[[C]]] ins(%[[B]], %[[DC]] :
// CHECK: %[[DB:.*]] = linalg.matmul indexing_maps = [#[[AT]], #[[BT]], #[[C]]] ins(%[[DC]], %[[A]] :
// CHECK: return %{{.*}}, %[[DA]], %[[DB]]
func.func @loss(%a: tensor<6x8xf32> {moe.parameter = #moe.parameter<"a", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %b: tensor<4x6xf32> {moe.parameter = #moe.parameter<"b", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %labels: tensor<8xi32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x4xf32>) -> tensor<8x4xf32>
  %y = linalg.matmul indexing_maps = [#at, #bt, #c] ins(%a, %b : tensor<6x8xf32>, tensor<4x6xf32>) outs(%init : tensor<8x4xf32>) -> tensor<8x4xf32>
  %p, %p_lse = moe.log_softmax %y vocabulary<size = 4>
    : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<8xi32>
  %l_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 4>
    : (tensor<8x4xf32>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<8xf32>
  return %l : tensor<f32>
}

// -----

// A bf16 value used twice sums its cotangents in f32; products are summed in f32 and rounded once.
// CHECK-LABEL: func.func private @loss_and_gradients(
// CHECK: %[[DC:.*]] = arith.truncf %{{.*}} : tensor<8x8xf32> to tensor<8x8xbf16>
// CHECK: %[[DA32:.*]] = linalg.matmul {{.*}} outs(%{{.*}} : tensor<8x4xf32>)
// CHECK: %[[DB32:.*]] = linalg.matmul {{.*}} outs(%{{.*}} : tensor<8x4xf32>)
// CHECK: %[[DA:.*]] = arith.truncf %[[DA32]]
// CHECK: %[[DB:.*]] = arith.truncf %[[DB32]]
// CHECK: %[[A:.*]] = arith.extf %[[DA]]
// CHECK: %[[B:.*]] = arith.extf %[[DB]]
// CHECK: %[[S:.*]] = arith.addf %[[A]], %[[B]] : tensor<8x4xf32>
// CHECK: %[[DX:.*]] = arith.truncf %[[S]]
// CHECK: return %{{.*}}, %[[DX]] : tensor<f32>, tensor<8x4xbf16>
#an = affine_map<(d0, d1, d2) -> (d0, d2)>
#bt = affine_map<(d0, d1, d2) -> (d1, d2)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @loss(%x: tensor<8x4xbf16> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %labels: tensor<8xi32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = linalg.matmul indexing_maps = [#an, #bt, #c] ins(%x, %x : tensor<8x4xbf16>, tensor<8x4xbf16>) outs(%init : tensor<8x8xf32>) -> tensor<8x8xf32>
  %p, %p_lse = moe.log_softmax %y vocabulary<size = 8>
    : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<8xi32>
  %l_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 8>
    : (tensor<8x8xf32>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<8xf32>
  return %l : tensor<f32>
}

// -----

// A parameter that the loss does not read has a gradient of zeros.
// CHECK-LABEL: func.func private @loss_and_gradients(
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<3xf32>
// CHECK: return %{{.*}}, %{{.*}}, %[[ZERO]]
func.func @loss(%x: tensor<8x4xf32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %unused: tensor<3xf32> {moe.parameter = #moe.parameter<"unused", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %labels: tensor<8xi32>) -> tensor<f32> {
  %p, %p_lse = moe.log_softmax %x vocabulary<size = 4>
    : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<8xi32>
  %l_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 4>
    : (tensor<8x4xf32>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<8xf32>
  return %l : tensor<f32>
}

// RUN: plateau-opt %s -split-input-file -moe-differentiate -canonicalize | FileCheck %s

// A table in shards that is looked up and projected on: both gradients are of this rank's shard.
// CHECK-LABEL: func.func private @loss_and_gradients(
// CHECK-SAME: %[[TOKENS:[^:]*]]: tensor<8xi32>, %[[LABELS:[^:]*]]: tensor<8xi32>, %[[COUNT:[^:]*]]: tensor<f32>
// CHECK-SAME: %[[TABLE:[^:]*]]: tensor<4x3xbf16> {{.*}}, %[[BIAS:[^:]*]]: tensor<4xf32>
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[X:.*]] = moe.embedding %[[TABLE]], %[[TOKENS]] on @vocab size(7)
// CHECK: %[[LOSSES:.*]], %[[LSE:.*]] = moe.vocab_loss %[[X]], %[[TABLE]], %[[LABELS]] bias %[[BIAS]] on @vocab vocabulary<size = 7, z_loss = 5.000000e-01>
// CHECK: moe.mean_loss %[[LOSSES]] over %[[COUNT]]
// CHECK: %[[G:.*]] = moe.mean_loss_grad %[[ONE]] over %[[COUNT]]
// CHECK: %[[DX:.*]], %[[DT:.*]], %[[DB:.*]] = moe.vocab_loss_grad %[[G]], %[[X]], %[[TABLE]], %[[LABELS]], %[[LSE]] bias %[[BIAS]] on @vocab vocabulary<size = 7, z_loss = 5.000000e-01>
// CHECK-SAME: -> (tensor<8x3xbf16>, tensor<4x3xbf16>, tensor<4xf32>)
// CHECK: %[[DE:.*]] = moe.embedding_grad %[[DX]], %[[TOKENS]] on @vocab size(7)
// CHECK-DAG: %[[A:.*]] = arith.extf %[[DT]]
// CHECK-DAG: %[[B:.*]] = arith.extf %[[DE]]
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK: %[[D:.*]] = arith.truncf %[[SUM]]
// CHECK: return %{{.*}}, %[[D]], %[[DB]]
shard.grid @vocab(shape = 2)
func.func @loss(%tokens: tensor<8xi32>, %labels: tensor<8xi32>, %count: tensor<f32>,
    %table: tensor<4x3xbf16> {moe.parameter = #moe.parameter<"table", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>},
    %bias: tensor<4xf32> {moe.parameter = #moe.parameter<"bias", decay = false, mean = 0.0 : f64, deviation = 0.0 : f64>})
    -> (tensor<f32> {moe.role = #moe.role<loss>}) {
  %x = moe.embedding %table, %tokens on @vocab size(7) : (tensor<4x3xbf16>, tensor<8xi32>) -> tensor<8x3xbf16>
  %losses, %lse = moe.vocab_loss %x, %table, %labels bias %bias on @vocab vocabulary<size = 7, z_loss = 0.5>
    : (tensor<8x3xbf16>, tensor<4x3xbf16>, tensor<8xi32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %l = moe.mean_loss %losses over %count : tensor<8xf32>
  return %l : tensor<f32>
}

// -----

// Without a bias there is no gradient of it; weights take no cotangent.
// CHECK-LABEL: func.func private @loss_and_gradients(
// CHECK-SAME: %[[W:[^:]*]]: tensor<8xf32>
// CHECK: %[[G:.*]] = moe.mean_loss_grad %{{.*}} weights(%[[W]] : tensor<8xf32>) over
// CHECK: %[[DX:.*]], %[[DT:.*]] = moe.vocab_loss_grad %[[G]], {{.*}} vocabulary<size = 7> : {{.*}} -> (tensor<8x3xf32>, tensor<7x3xf32>)
// CHECK: return %{{.*}}, %[[DX]], %[[DT]]
func.func @loss(%w: tensor<8xf32>, %labels: tensor<8xi32>, %count: tensor<f32>,
    %x: tensor<8x3xf32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %table: tensor<7x3xf32> {moe.parameter = #moe.parameter<"table", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>})
    -> (tensor<f32> {moe.role = #moe.role<loss>}) {
  %losses, %lse = moe.vocab_loss %x, %table, %labels vocabulary<size = 7>
    : (tensor<8x3xf32>, tensor<7x3xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  %l = moe.mean_loss %losses weights(%w : tensor<8xf32>) over %count : tensor<8xf32>
  return %l : tensor<f32>
}

// -----

// The standard form: z_loss gives lse a cotangent.
// CHECK-LABEL: func.func private @loss_and_gradients(
// CHECK: %[[P:.*]], %[[LSE:.*]] = moe.log_softmax
// CHECK: %[[DP:.*]], %[[DLSE:.*]] = moe.nll_grad %{{.*}}, %[[LSE]], %{{.*}} vocabulary<size = 7, z_loss = 5.000000e-01>
// CHECK: %[[DY:.*]], %[[DB:.*]] = moe.log_softmax_grad %[[DP]], %[[P]], %[[LSE]] lse_cotangent %[[DLSE]] vocabulary<size = 7, softcap = 3.000000e+01>
// CHECK: return %{{.*}}, %[[DY]], %[[DB]]
func.func @loss(%labels: tensor<8xi32>, %count: tensor<f32>,
    %y: tensor<8x7xf32> {moe.parameter = #moe.parameter<"y", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %bias: tensor<7xf32> {moe.parameter = #moe.parameter<"bias", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>})
    -> (tensor<f32> {moe.role = #moe.role<loss>}) {
  %p, %lse = moe.log_softmax %y bias %bias vocabulary<size = 7, softcap = 30.0>
    : (tensor<8x7xf32>, tensor<7xf32>) -> (tensor<8x7xf32>, tensor<8xf32>)
  %losses = moe.nll %p, %lse, %labels vocabulary<size = 7, z_loss = 0.5>
    : (tensor<8x7xf32>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  %l = moe.mean_loss %losses over %count : tensor<8xf32>
  return %l : tensor<f32>
}

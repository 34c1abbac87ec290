// RUN: plateau-opt %s -split-input-file -pass-pipeline='builtin.module(moe-differentiate,moe-attach-optimizer{shard-elements=8 clip-norm=0.5 weight-decay=0.01})' | FileCheck %s

// Offsets follow declaration order; 19 elements are padded to 24. Each group is donated to the result of its role.
// CHECK: #[[LAYOUT:.*]] = #moe.layout<[<<"x", decay = true, {{.*}}>, offset = 0, shape = [4, 4]>, <<"unused", decay = false, {{.*}}>, offset = 16, shape = [3]>]>
// CHECK-NOT: func.func @loss
// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[LABELS:[^:]*]]: tensor<4xi32> {moe.role = #moe.role<labels>}
// CHECK-SAME: %[[LR:[^:]*]]: tensor<f32> {moe.role = #moe.role<learning_rate>}
// CHECK-SAME: %[[T:[^:]*]]: tensor<i32> {moe.role = #moe.role<step>}
// CHECK-SAME: %[[P:[^:]*]]: tensor<24xf32> {moe.donated = 2 : i64, moe.layout = #[[LAYOUT]], moe.role = #moe.role<parameters>}
// CHECK-SAME: %[[G:[^:]*]]: tensor<24xf32> {moe.donated = 3 : i64
// CHECK-SAME: %[[M:[^:]*]]: tensor<24xf32> {moe.donated = 4 : i64
// CHECK-SAME: %[[V:[^:]*]]: tensor<24xf32> {moe.donated = 5 : i64
// CHECK-SAME: -> (tensor<f32> {moe.role = #moe.role<loss>}, tensor<f32> {moe.role = #moe.role<gradient_norm>}
// CHECK: %[[X:.*]]:2 = moe.unpack %[[P]]
// CHECK: moe.log_softmax %[[X]]#0
// CHECK: %[[NEW:.*]] = moe.pack %{{.*}}, %{{.*}} into %[[G]]
// CHECK: %[[SQUARES:.*]] = moe.sum_squares %[[NEW]] layout #[[LAYOUT]]
// CHECK: %[[NORM:.*]] = moe.grad_norm %[[SQUARES]] : tensor<f64>
// CHECK: %[[FACTOR:.*]] = moe.clip_factor %[[NORM]] max_norm(5.000000e-01)
// CHECK: moe.adamw %[[P]], %[[NEW]], %[[M]], %[[V]] scale %[[FACTOR]] learning_rate %[[LR]] step %[[T]] {{.*}} weight_decay(1.000000e-02)
// CHECK: return %{{.*}}, %[[NORM]], %{{.*}}, %[[NEW]]
func.func @loss(%labels: tensor<4xi32> {moe.role = #moe.role<labels>},
    %x: tensor<4x4xf32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %unused: tensor<3xf32> {moe.parameter = #moe.parameter<"unused", decay = false, mean = 0.0 : f64, deviation = 1.0 : f64>})
    -> (tensor<f32> {moe.role = #moe.role<loss>}) {
  %p, %p_lse = moe.log_softmax %x vocabulary<size = 4>
    : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<4xi32>
  %l_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 4>
    : (tensor<4x4xf32>, tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<4xf32>
  return %l : tensor<f32>
}

// -----

// bf16 parameters have an f32 master copy.
// CHECK-LABEL: func.func @step(
// CHECK-SAME: tensor<16xbf16> {moe.donated = 2 : i64, moe.layout = #{{[a-z0-9]+}}, moe.role = #moe.role<parameters>}
// CHECK-SAME: tensor<16xbf16> {moe.donated = 3 : i64, moe.layout = #{{[a-z0-9]+}}, moe.role = #moe.role<gradients>}
// CHECK-SAME: %[[MASTER:[^:]*]]: tensor<16xf32> {moe.donated = 6 : i64, moe.layout = #{{[a-z0-9]+}}, moe.role = #moe.role<master>}
// CHECK: moe.adamw {{.*}} master %[[MASTER]]
func.func @loss(%labels: tensor<4xi32> {moe.role = #moe.role<labels>},
    %x: tensor<4x4xbf16> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>})
    -> (tensor<f32> {moe.role = #moe.role<loss>}) {
  %y = arith.extf %x : tensor<4x4xbf16> to tensor<4x4xf32>
  %p, %p_lse = moe.log_softmax %y vocabulary<size = 4>
    : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<4xi32>
  %l_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 4>
    : (tensor<4x4xf32>, tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<4xf32>
  return %l : tensor<f32>
}

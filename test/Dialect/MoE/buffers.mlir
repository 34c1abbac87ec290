// RUN: plateau-opt %s -moe-differentiate | FileCheck %s --check-prefix=GRADIENTS
// RUN: plateau-opt %s -moe-differentiate -moe-attach-optimizer="bias-update-rate=0.25" -canonicalize -cse | FileCheck %s
// RUN: plateau-opt %s -moe-differentiate -moe-attach-optimizer="micro-batches=3" -canonicalize -cse | FileCheck %s --check-prefix=MICRO

// State with a rule of its own: the counts that move it stand after the loss, and after the gradients of the loss.
// GRADIENTS: func.func private @loss_and_gradients(
// GRADIENTS-SAME: %[[B:[^ ]*]]: tensor<4xf32> {moe.buffer = "bias"}
// GRADIENTS-SAME: -> (tensor<f32> {moe.role = #moe.role<loss>}, tensor<8x4xf32>, tensor<4xi32> {moe.role = #moe.role<expert_counts>})
// GRADIENTS: %{{.*}}, %{{.*}}, %[[COUNTS:.*]] = moe.route %{{.*}} bias(%[[B]])
// GRADIENTS: moe.route_grad
// GRADIENTS: return %{{.*}}, %{{.*}}, %[[COUNTS]]

// It is an argument and a result of the step, donated, and moves by the counts of all ranks, once, unless the step is skipped.
// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[B:[^ ]*]]: tensor<4xf32> {moe.buffer = "bias", moe.donated = 6 : i64})
// CHECK-SAME: tensor<32xf32> {moe.role = #moe.role<second_moment>}, tensor<4xf32>)
// CHECK: %{{.*}}, %{{.*}}, %[[COUNTS:.*]] = moe.route %{{.*}} bias(%[[B]])
// CHECK: %[[FACTOR:.*]] = moe.clip_factor
// CHECK: moe.adamw
// CHECK: %[[ALL:.*]] = shard.all_reduce %[[COUNTS]] on @world {{.*}} : tensor<4xi32> -> tensor<4xi32>
// CHECK: %[[NEW:.*]] = moe.update_bias %[[B]], %[[ALL]] scale %[[FACTOR]] rate(2.500000e-01)
// CHECK-NOT: moe.update_bias
// CHECK: return {{.*}}, %[[NEW]]

// The counts of micro-batches are added.
// MICRO: %[[ZERO:.*]] = arith.constant dense<0> : tensor<4xi32>
// MICRO: %[[SUMS:.*]]:3 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[SUM:.*]] = %[[ZERO]])
// MICRO: %{{.*}}, %{{.*}}, %[[COUNTS:.*]] = moe.route %{{.*}} bias(%[[B:.*]]) routing
// MICRO: %[[NEXT:.*]] = arith.addi %[[SUM]], %[[COUNTS]]
// MICRO: scf.yield %{{.*}}, %{{.*}}, %[[NEXT]]
// MICRO: %[[ALL:.*]] = shard.all_reduce %[[SUMS]]#2
// MICRO: moe.update_bias %[[B]], %[[ALL]] scale %{{.*}} rate(1.000000e-03)
func.func @loss(%labels: tensor<8xi32> {moe.role = #moe.role<labels>},
    %x: tensor<8x4xf32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %bias: tensor<4xf32> {moe.buffer = "bias"}, %count: tensor<f32> {moe.role = #moe.role<label_count>})
    -> (tensor<f32> {moe.role = #moe.role<loss>}, tensor<4xi32> {moe.role = #moe.role<expert_counts>})
    attributes {moe.batch = #moe.batch<ranks = 2, tokens = 8, sequence = 8>} {
  %ids, %weights, %counts = moe.route %x bias(%bias) routing <top_k = 2, score = sigmoid, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<4xi32>)
  %p, %p_lse = moe.log_softmax %weights vocabulary<size = 2>
    : (tensor<8x2xf32>) -> (tensor<8x2xf32>, tensor<8xf32>)
  %l_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 2>
    : (tensor<8x2xf32>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<8xf32>
  return %l, %counts : tensor<f32>, tensor<4xi32>
}

// RUN: plateau-opt %s -split-input-file -moe-differentiate -canonicalize -cse | FileCheck %s

// Losses of a router's logits: the gradients of both, added; none for counts.
// CHECK-LABEL: func.func private @loss_and_gradients(
// CHECK-SAME: %[[X:[^:]*]]: tensor<8x4xf32>
// CHECK: %[[ONE:.*]] = arith.constant dense<1.0
// CHECK: %{{.*}}, %{{.*}}, %[[C:.*]] = moe.route %[[X]]
// CHECK: moe.balance_loss %[[X]] counts(%[[C]])
// CHECK: %[[DZ:.*]] = moe.z_loss_grad %[[ONE]], %[[X]] tokens(16) coefficient(1.000000e-03)
// CHECK: %[[DB:.*]] = moe.balance_loss_grad %[[ONE]], %[[X]] counts(%[[C]]) coefficient(5.000000e-01) routing <top_k = 2,
// CHECK: %[[D:.*]] = arith.addf %[[DZ]], %[[DB]]
// CHECK: return %{{.*}}, %[[D]]
func.func @loss(%x: tensor<8x4xf32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>}) -> tensor<f32> {
  %ids, %weights, %counts = moe.route %x routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<4xi32>)
  %b = moe.balance_loss %x counts(%counts) coefficient(0.5) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<4xi32>) -> tensor<f32>
  %z = moe.z_loss %x tokens(16) coefficient(0.001) : tensor<8x4xf32>
  %l = arith.addf %b, %z : tensor<f32>
  return %l : tensor<f32>
}

// -----

// In a checkpoint region the ids are kept with the routing, and the logits computed again.
// CHECK-LABEL: func.func private @loss_and_gradients(
// CHECK: %[[F:.*]]:2 = moe.checkpoint (%{{.*}} = %[[P:.*]] : tensor<8x4xf32>) -> (tensor<f32>, tensor<8x2xi32>) {
// CHECK: moe.checkpoint recompute (%[[A:.*]] = %[[P]] : tensor<8x4xf32>, %[[I:.*]] = %[[F]]#1 : tensor<8x2xi32>, %[[ONE:.*]] = %{{.*}} : tensor<f32>) -> tensor<8x4xf32> {
// CHECK-NOT: moe.route
// CHECK: %[[X:.*]] = math.exp %[[A]]
// CHECK: moe.balance_loss_grad %[[ONE]], %[[X]] ids(%[[I]]) sequence(4) sequences(2)
func.func @loss(%p: tensor<8x4xf32> {moe.parameter = #moe.parameter<"p", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>}) -> tensor<f32> {
  %l = moe.checkpoint (%a = %p : tensor<8x4xf32>) -> tensor<f32> {
    %x = math.exp %a : tensor<8x4xf32>
    %ids, %weights, %counts = moe.route %x routing <top_k = 2, score = sigmoid, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<4xi32>)
    %b = moe.balance_loss %x ids(%ids) sequence(4) sequences(2) coefficient(0.5) routing <top_k = 2, score = sigmoid, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<f32>
    moe.yield %b : tensor<f32>
  }
  return %l : tensor<f32>
}

// -----

// So are counts that ranks have summed: the backward pass asks no other rank for them.
// CHECK-LABEL: func.func private @loss_and_gradients(
// CHECK: %[[F:.*]]:2 = moe.checkpoint {{.*}} -> (tensor<f32>, tensor<4xi32>) {
// CHECK: %[[S:.*]] = shard.all_reduce
// CHECK: moe.yield %{{.*}}, %[[S]]
// CHECK: moe.checkpoint recompute ({{.*}}, %[[C:.*]] = %[[F]]#1 : tensor<4xi32>, {{.*}}
// CHECK-NOT: shard.all_reduce
// CHECK: moe.balance_loss_grad %{{.*}}, %{{.*}} counts(%[[C]])
shard.grid @world(shape = 2)
func.func @loss(%p: tensor<8x4xf32> {moe.parameter = #moe.parameter<"p", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>}) -> tensor<f32> {
  %l = moe.checkpoint (%a = %p : tensor<8x4xf32>) -> tensor<f32> {
    %x = math.exp %a : tensor<8x4xf32>
    %ids, %weights, %counts = moe.route %x routing <top_k = 2, score = sigmoid, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<4xi32>)
    %all = shard.all_reduce %counts on @world grid_axes = [0] reduction = sum : tensor<4xi32> -> tensor<4xi32>
    %b = moe.balance_loss %x counts(%all) coefficient(0.5) routing <top_k = 2, score = sigmoid, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<4xi32>) -> tensor<f32>
    moe.yield %b : tensor<f32>
  }
  return %l : tensor<f32>
}

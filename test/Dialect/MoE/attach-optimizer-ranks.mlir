// RUN: plateau-opt %s -split-input-file -moe-attach-optimizer --mlir-print-local-scope | FileCheck %s

// Four ranks; @experts has two of them with each half of the experts, @vocab one with each quarter of the table. The gradient of
// what all hold is summed over all; that of a half over the two that hold it; that of a quarter over nobody. Each part's squares
// are summed over the ranks that hold different parts, so that every element counts once.
// CHECK-DAG: shard.grid @world(shape = 4)
// CHECK-DAG: shard.grid @experts(shape = 2x2)
// CHECK-DAG: shard.grid @vocab(shape = 4)
// CHECK-LABEL: func.func @step(
// CHECK: %[[P:.*]]:4 = moe.unpack %{{.*}} layout <[<<"norm", {{.*}}>, offset = 0, shape = [3]>, <<"w2", {{.*}} shard = @experts>, offset = 3, shape = [2, 3, 5]>, <<"head", {{.*}} shard = @vocab>, offset = 33, shape = [4, 3]>, <<"bias", {{.*}}>, offset = 45, shape = [2]>]>
// CHECK: %[[L:.*]] = math.absf %{{.*}} : tensor<f32>
// CHECK: %[[DNORM:.*]] = math.exp %[[P]]#0
// CHECK: %[[DW2:.*]] = math.exp %[[P]]#1
// CHECK: %[[DHEAD:.*]] = math.exp %[[P]]#2
// CHECK: %[[DBIAS:.*]] = math.exp %[[P]]#3
// CHECK-NEXT: %[[NORM:.*]] = shard.all_reduce %[[DNORM]] on @world grid_axes = [0] : tensor<3xf32> -> tensor<3xf32>
// CHECK-NEXT: %[[W2:.*]] = shard.all_reduce %[[DW2]] on @experts grid_axes = [0] : tensor<2x3x5xf32> -> tensor<2x3x5xf32>
// CHECK-NEXT: %[[BIAS:.*]] = shard.all_reduce %[[DBIAS]] on @world grid_axes = [0] : tensor<2xf32> -> tensor<2xf32>
// CHECK-NEXT: %[[LOSS:.*]] = shard.all_reduce %[[L]] on @world grid_axes = [0] : tensor<f32> -> tensor<f32>
// CHECK-NEXT: %[[G:.*]] = moe.pack %[[NORM]], %[[W2]], %[[DHEAD]], %[[BIAS]] into
// CHECK-NEXT: %[[S0:.*]] = moe.sum_squares %[[G]] layout <[<<"norm", {{.*}}>, offset = 0, shape = [3]>, <<"bias", {{.*}}>, offset = 45, shape = [2]>]>
// CHECK-NEXT: %[[S1:.*]] = moe.sum_squares %[[G]] layout <[<<"w2", {{.*}}>, offset = 3, shape = [2, 3, 5]>]>
// CHECK-NEXT: %[[S1ALL:.*]] = shard.all_reduce %[[S1]] on @experts grid_axes = [1] : tensor<f64> -> tensor<f64>
// CHECK-NEXT: %[[S2:.*]] = moe.sum_squares %[[G]] layout <[<<"head", {{.*}}>, offset = 33, shape = [4, 3]>]>
// CHECK-NEXT: %[[S2ALL:.*]] = shard.all_reduce %[[S2]] on @vocab grid_axes = [0] : tensor<f64> -> tensor<f64>
// CHECK-NEXT: moe.grad_norm %[[S0]], %[[S1ALL]], %[[S2ALL]] : tensor<f64>, tensor<f64>, tensor<f64>
// CHECK-NOT: shard.all_reduce
// CHECK: return %[[LOSS]],
module {
  shard.grid @experts(shape = 2x2)
  shard.grid @vocab(shape = 4)
  func.func private @loss_and_gradients(%x: tensor<f32>,
      %norm: tensor<3xf32> {moe.parameter = #moe.parameter<"norm", decay = false, mean = 1.0 : f64, deviation = 0.0 : f64>},
      %w2: tensor<2x3x5xf32> {moe.parameter = #moe.parameter<"w2", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64, shard = @experts>},
      %head: tensor<4x3xf32> {moe.parameter = #moe.parameter<"head", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64, shard = @vocab>},
      %bias: tensor<2xf32> {moe.parameter = #moe.parameter<"bias", decay = false, mean = 0.0 : f64, deviation = 0.0 : f64>})
      -> (tensor<f32>, tensor<3xf32>, tensor<2x3x5xf32>, tensor<4x3xf32>, tensor<2xf32>) attributes {moe.batch = #moe.batch<ranks = 4, tokens = 8, sequence = 8>} {
    %l = math.absf %x : tensor<f32>
    %dnorm = math.exp %norm : tensor<3xf32>
    %dw2 = math.exp %w2 : tensor<2x3x5xf32>
    %dhead = math.exp %head : tensor<4x3xf32>
    %dbias = math.exp %bias : tensor<2xf32>
    return %l, %dnorm, %dw2, %dhead, %dbias : tensor<f32>, tensor<3xf32>, tensor<2x3x5xf32>, tensor<4x3xf32>, tensor<2xf32>
  }
}

// -----

// One rank sums nothing over ranks, and needs no @world; a grid of one rank divides nothing.
// CHECK-NOT: shard.grid @world
// CHECK: shard.grid @experts(shape = 1)
// CHECK-LABEL: func.func @step(
// CHECK-NOT: shard.all_reduce
// CHECK: %[[S0:.*]] = moe.sum_squares
// CHECK-NEXT: %[[S1:.*]] = moe.sum_squares
// CHECK-NEXT: moe.grad_norm %[[S0]], %[[S1]] : tensor<f64>, tensor<f64>
// CHECK-NOT: shard.all_reduce
// CHECK: return
module {
  shard.grid @experts(shape = 1)
  func.func private @loss_and_gradients(%x: tensor<f32>,
      %a: tensor<3xf32> {moe.parameter = #moe.parameter<"a", decay = false, mean = 1.0 : f64, deviation = 0.0 : f64>},
      %b: tensor<2xf32> {moe.parameter = #moe.parameter<"b", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64, shard = @experts>})
      -> (tensor<f32>, tensor<3xf32>, tensor<2xf32>) attributes {moe.batch = #moe.batch<ranks = 1, tokens = 8, sequence = 8>} {
    %da = math.exp %a : tensor<3xf32>
    %db = math.exp %b : tensor<2xf32>
    return %x, %da, %db : tensor<f32>, tensor<3xf32>, tensor<2xf32>
  }
}

// -----

// A @world of the right shape is taken as it is. Experts whose grid has one rank in its last axis are on every rank. Gradients
// travel in the type of the parameters.
// CHECK: shard.grid @world(shape = 2)
// CHECK-NOT: shard.grid @world
// CHECK-LABEL: func.func @step(
// CHECK: shard.all_reduce %{{.*}} on @world grid_axes = [0] : tensor<3xbf16> -> tensor<3xbf16>
// CHECK: shard.all_reduce %{{.*}} on @experts grid_axes = [0] : tensor<2xbf16> -> tensor<2xbf16>
// CHECK: moe.pack
// CHECK-NOT: shard.all_reduce
// CHECK: return
module {
  shard.grid @experts(shape = 2x1)
  shard.grid @world(shape = 2)
  func.func private @loss_and_gradients(%x: tensor<f32>,
      %a: tensor<3xbf16> {moe.parameter = #moe.parameter<"a", decay = false, mean = 1.0 : f64, deviation = 0.0 : f64>},
      %b: tensor<2xbf16> {moe.parameter = #moe.parameter<"b", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64, shard = @experts>})
      -> (tensor<f32>, tensor<3xbf16>, tensor<2xbf16>) attributes {moe.batch = #moe.batch<ranks = 2, tokens = 8, sequence = 8>} {
    %da = math.exp %a : tensor<3xbf16>
    %db = math.exp %b : tensor<2xbf16>
    return %x, %da, %db : tensor<f32>, tensor<3xbf16>, tensor<2xbf16>
  }
}

// -----

// A gradient that is zero on every rank needs no sum.
// CHECK-LABEL: func.func @step(
// CHECK: shard.all_reduce %{{.*}} on @world grid_axes = [0] : tensor<3xf32>
// CHECK-NOT: shard.all_reduce {{.*}} tensor<2xf32>
// CHECK: moe.pack
module {
  func.func private @loss_and_gradients(%x: tensor<f32>,
      %a: tensor<3xf32> {moe.parameter = #moe.parameter<"a", decay = false, mean = 1.0 : f64, deviation = 0.0 : f64>},
      %b: tensor<2xf32> {moe.parameter = #moe.parameter<"b", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>})
      -> (tensor<f32>, tensor<3xf32>, tensor<2xf32>) attributes {moe.batch = #moe.batch<ranks = 2, tokens = 8, sequence = 8>} {
    %da = math.exp %a : tensor<3xf32>
    %zero = arith.constant dense<0.0> : tensor<2xf32>
    return %x, %da, %zero : tensor<f32>, tensor<3xf32>, tensor<2xf32>
  }
}

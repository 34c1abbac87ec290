// RUN: plateau-opt %s -moe-hoist-sums | FileCheck %s

shard.grid @world(shape = 2)

// Each sum stands behind what it sums, in the order in which they stood; one of an argument stays.
// CHECK-LABEL: func.func @sums(
// CHECK: %[[A:.*]] = math.exp
// CHECK-NEXT: %[[SA:.*]] = shard.all_reduce %[[A]]
// CHECK-NEXT: %[[SA2:.*]] = shard.all_reduce %[[SA]]
// CHECK-NEXT: %[[B:.*]] = math.sin
// CHECK-NEXT: shard.all_reduce %[[B]]
// CHECK-NEXT: math.cos
// CHECK-NEXT: shard.all_reduce %arg0
func.func @sums(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = math.exp %x : tensor<4xf32>
  %b = math.sin %x : tensor<4xf32>
  %c = math.cos %x : tensor<4xf32>
  %sx = shard.all_reduce %x on @world grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  %sb = shard.all_reduce %b on @world grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  %sa = shard.all_reduce %a on @world grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  %sa2 = shard.all_reduce %sa on @world grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  return %sa2, %sb, %c, %sx : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

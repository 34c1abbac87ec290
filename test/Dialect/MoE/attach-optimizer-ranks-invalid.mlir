// RUN: plateau-opt %s -split-input-file -verify-diagnostics -moe-attach-optimizer

// expected-error @below {{parameter 'w' is divided by grid @experts, and there is none with static sizes: add shard.grid @experts}}
func.func private @loss_and_gradients(%w: tensor<4xf32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64, shard = @experts>}, %l: tensor<f32>)
    -> (tensor<f32>, tensor<4xf32>) attributes {moe.batch = #moe.batch<ranks = 2, tokens = 8, sequence = 8>} {
  return %l, %w : tensor<f32>, tensor<4xf32>
}

// -----

shard.grid @experts(shape = ?)
// expected-error @below {{parameter 'w' is divided by grid @experts, and there is none with static sizes: add shard.grid @experts}}
func.func private @loss_and_gradients(%w: tensor<4xf32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64, shard = @experts>}, %l: tensor<f32>)
    -> (tensor<f32>, tensor<4xf32>) attributes {moe.batch = #moe.batch<ranks = 2, tokens = 8, sequence = 8>} {
  return %l, %w : tensor<f32>, tensor<4xf32>
}

// -----

shard.grid @experts(shape = 2x4)
// expected-error @below {{parameter 'w' is divided by grid @experts of 8 ranks, and moe.batch says 4}}
func.func private @loss_and_gradients(%w: tensor<4xf32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64, shard = @experts>}, %l: tensor<f32>)
    -> (tensor<f32>, tensor<4xf32>) attributes {moe.batch = #moe.batch<ranks = 4, tokens = 8, sequence = 8>} {
  return %l, %w : tensor<f32>, tensor<4xf32>
}

// -----

// Without a batch there is one rank.
shard.grid @experts(shape = 2)
// expected-error @below {{parameter 'w' is divided by grid @experts of 2 ranks, and moe.batch says 1}}
func.func private @loss_and_gradients(%w: tensor<4xf32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64, shard = @experts>}, %l: tensor<f32>)
    -> (tensor<f32>, tensor<4xf32>) {
  return %l, %w : tensor<f32>, tensor<4xf32>
}

// -----

shard.grid @world(shape = 3)
// expected-error @below {{shard.grid @world must have the shape 4, the ranks of moe.batch}}
func.func private @loss_and_gradients(%w: tensor<4xf32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>}, %l: tensor<f32>)
    -> (tensor<f32>, tensor<4xf32>) attributes {moe.batch = #moe.batch<ranks = 4, tokens = 8, sequence = 8>} {
  return %l, %w : tensor<f32>, tensor<4xf32>
}

// -----

shard.grid @world(shape = 2x2)
// expected-error @below {{shard.grid @world must have the shape 4, the ranks of moe.batch}}
func.func private @loss_and_gradients(%w: tensor<4xf32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>}, %l: tensor<f32>)
    -> (tensor<f32>, tensor<4xf32>) attributes {moe.batch = #moe.batch<ranks = 4, tokens = 8, sequence = 8>} {
  return %l, %w : tensor<f32>, tensor<4xf32>
}

// -----

shard.grid @vocab(shape = 4)
// expected-error @below {{parameter 'w' has 9 rows, and 4 parts of 2 do not hold them}}
func.func private @loss_and_gradients(%w: tensor<2xf32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64, shard = @vocab, rows = 9>}, %l: tensor<f32>)
    -> (tensor<f32>, tensor<2xf32>) attributes {moe.batch = #moe.batch<ranks = 4, tokens = 8, sequence = 8>} {
  return %l, %w : tensor<f32>, tensor<2xf32>
}

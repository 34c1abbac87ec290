// RUN: plateau-opt %s -split-input-file -verify-diagnostics -moe-differentiate

// expected-error @below {{there is no function @loss to differentiate}}
module {}

// -----

// expected-error @below {{@loss must have one block and one result of type 'tensor<f32>'}}
func.func @loss(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @loss(%x: tensor<f32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>}) -> tensor<f32> {
  // expected-error @below {{has no adjoint: it does not implement DifferentiableOpInterface}}
  %y = math.cos %x : tensor<f32>
  return %y : tensor<f32>
}

// -----

// expected-error @below {{@loss_and_gradients exists already}}
func.func @loss(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
func.func private @loss_and_gradients() {
  return
}

// -----

#a = affine_map<(d0, d1, d2) -> (d2)>
#b = affine_map<(d0, d1, d2) -> (d2, d1)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>
func.func @loss(%x: tensor<4xf32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %w: tensor<4x8xf32>, %init: tensor<2x8xf32>, %labels: tensor<2xi32>) -> tensor<f32> {
  // expected-error @below {{has no adjoint for these indexing maps: only transposed operands are known}}
  %y = linalg.matmul indexing_maps = [#a, #b, #c] ins(%x, %w : tensor<4xf32>, tensor<4x8xf32>) outs(%init : tensor<2x8xf32>) -> tensor<2x8xf32>
  %p = moe.log_softmax %y : tensor<2x8xf32>
  %count = moe.count_labels %labels ignore_index(-100) : tensor<2xi32>
  %l = moe.nll %p, %labels, %count ignore_index(-100) : tensor<2x8xf32>, tensor<2xi32>
  return %l : tensor<f32>
}

// -----

shard.grid @grid(shape = 2)
func.func @loss(%x: tensor<f32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>}) -> tensor<f32> {
  // expected-error @below {{has no adjoint: only sums have one}}
  %y = shard.all_reduce %x on @grid grid_axes = [0] reduction = max : tensor<f32> -> tensor<f32>
  return %y : tensor<f32>
}

// -----

shard.grid @grid(shape = 2)
func.func @loss(%x: tensor<4x3xf32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>}, %labels: tensor<2xi32>) -> tensor<f32> {
  // expected-error @below {{has no adjoint: only sums have one}}
  %y = shard.reduce_scatter %x on @grid grid_axes = [0] reduction = max scatter_axis = 0 : tensor<4x3xf32> -> tensor<2x3xf32>
  %p = moe.log_softmax %y : tensor<2x3xf32>
  %count = moe.count_labels %labels ignore_index(-100) : tensor<2xi32>
  %l = moe.nll %p, %labels, %count ignore_index(-100) : tensor<2x3xf32>, tensor<2xi32>
  return %l : tensor<f32>
}

// -----

// A parameter that a region reads from outside is not an operand, and counts all the same.
func.func @loss(%x: tensor<f32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>}) -> tensor<f32> {
  // expected-error @below {{has no adjoint: it does not implement DifferentiableOpInterface}}
  %y = scf.execute_region -> tensor<f32> {
    scf.yield %x : tensor<f32>
  }
  return %y : tensor<f32>
}

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
  %p, %p_lse = moe.log_softmax %y vocabulary<size = 8>
    : (tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<2xi32>
  %l_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 8>
    : (tensor<2x8xf32>, tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<2xf32>
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
  %p, %p_lse = moe.log_softmax %y vocabulary<size = 3>
    : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<2xi32>
  %l_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 3>
    : (tensor<2x3xf32>, tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<2xf32>
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

// -----

func.func @loss(%labels: tensor<1xi32>, %x: tensor<1x3xf32>,
    %table: tensor<7x3xf32> {moe.parameter = #moe.parameter<"table", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>}) -> tensor<f32> {
  // expected-error @+1 {{takes no cotangent of lse: the loss may depend on it through z_loss alone}}
  %losses, %lse = moe.vocab_loss %x, %table, %labels vocabulary<size = 7>
    : (tensor<1x3xf32>, tensor<7x3xf32>, tensor<1xi32>) -> (tensor<1xf32>, tensor<1xf32>)
  %l = tensor.collapse_shape %lse [] : tensor<1xf32> into tensor<f32>
  return %l : tensor<f32>
}

// -----

func.func @loss(%y: tensor<1x3xf32> {moe.parameter = #moe.parameter<"y", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>}) -> tensor<f32> {
  // expected-error @+1 {{has an adjoint only where its result is used, beside lse}}
  %p, %lse = moe.log_softmax %y vocabulary<size = 3> : (tensor<1x3xf32>) -> (tensor<1x3xf32>, tensor<1xf32>)
  %l = tensor.collapse_shape %lse [] : tensor<1xf32> into tensor<f32>
  return %l : tensor<f32>
}

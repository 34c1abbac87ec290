// Compiled code on poisoned memory, three runs, against the interpreter: sums over ranks in f32, and in f64 for sums of squares. Each
// rank draws its own numbers.
// RUN: plateau-run %s --entry two --ranks 2 --compare 1e-6
// RUN: plateau-run %s --entry two_bf16 --ranks 2 --compare 4e-3
// RUN: plateau-run %s --entry integers --ranks 2 --compare 0
// RUN: plateau-run %s --entry four --ranks 4 --compare 1e-6
// RUN: plateau-run %s --entry rows_and_columns --ranks 4 --compare 1e-6
// RUN: plateau-run %s --entry cube --ranks 8 --compare 1e-6
// RUN: plateau-run %s --entry in_place --ranks 2 --compare 1e-6
// RUN: plateau-run %s --entry nothing --ranks 2 --compare 0
// RUN: plateau-run %s --entry alone --compare 0
// RUN: plateau-run %s --entry norm --ranks 4 --compare 1e-6
// RUN: plateau-run %s --entry placed --ranks 2 | FileCheck %s --check-prefix=PLACED
// RUN: plateau-run %s --entry placed --ranks 2 --interpret | FileCheck %s --check-prefix=PLACED

shard.grid @pair(shape = 2)
shard.grid @line(shape = 4)
shard.grid @square(shape = 2x2)
shard.grid @block(shape = 2x2x2)
shard.grid @one(shape = 1)

func.func @two(%x: tensor<6x5xf32>, %s: tensor<f32>) -> (tensor<6x5xf32>, tensor<12x5xf32>, tensor<3x5xf32>, tensor<f32>) {
  %r = shard.all_reduce %x on @pair grid_axes = [0] : tensor<6x5xf32> -> tensor<6x5xf32>
  %g = shard.all_gather %x on @pair grid_axes = [0] gather_axis = 0 : tensor<6x5xf32> -> tensor<12x5xf32>
  %c = shard.reduce_scatter %x on @pair grid_axes = [0] scatter_axis = 0 : tensor<6x5xf32> -> tensor<3x5xf32>
  %t = shard.all_reduce %s on @pair grid_axes = [0] : tensor<f32> -> tensor<f32>
  return %r, %g, %c, %t : tensor<6x5xf32>, tensor<12x5xf32>, tensor<3x5xf32>, tensor<f32>
}

// A sum is rounded once.
func.func @two_bf16(%x: tensor<6x5xbf16>) -> (tensor<6x5xbf16>, tensor<12x5xbf16>, tensor<3x5xbf16>) {
  %r = shard.all_reduce %x on @pair grid_axes = [0] : tensor<6x5xbf16> -> tensor<6x5xbf16>
  %g = shard.all_gather %x on @pair grid_axes = [0] gather_axis = 0 : tensor<6x5xbf16> -> tensor<12x5xbf16>
  %c = shard.reduce_scatter %x on @pair grid_axes = [0] scatter_axis = 0 : tensor<6x5xbf16> -> tensor<3x5xbf16>
  return %r, %g, %c : tensor<6x5xbf16>, tensor<12x5xbf16>, tensor<3x5xbf16>
}

func.func @integers(%x: tensor<4x5xi32> {plateau.below = 1000 : i64}) -> (tensor<4x5xi32>, tensor<8x5xi32>) {
  %r = shard.all_reduce %x on @pair grid_axes = [0] : tensor<4x5xi32> -> tensor<4x5xi32>
  %g = shard.all_gather %x on @pair grid_axes = [0] gather_axis = 0 : tensor<4x5xi32> -> tensor<8x5xi32>
  return %r, %g : tensor<4x5xi32>, tensor<8x5xi32>
}

func.func @four(%x: tensor<4x7xf32>) -> (tensor<4x7xf32>, tensor<16x7xf32>, tensor<1x7xf32>) {
  %r = shard.all_reduce %x on @line grid_axes = [0] : tensor<4x7xf32> -> tensor<4x7xf32>
  %g = shard.all_gather %x on @line grid_axes = [0] gather_axis = 0 : tensor<4x7xf32> -> tensor<16x7xf32>
  %c = shard.reduce_scatter %x on @line grid_axes = [0] scatter_axis = 0 : tensor<4x7xf32> -> tensor<1x7xf32>
  return %r, %g, %c : tensor<4x7xf32>, tensor<16x7xf32>, tensor<1x7xf32>
}

// Along the rows, the columns and both; grids overlap.
func.func @rows_and_columns(%x: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<8x3xf32>, tensor<2x3xf32>, tensor<1x3xf32>) {
  %a = shard.all_reduce %x on @square grid_axes = [0] : tensor<4x3xf32> -> tensor<4x3xf32>
  %b = shard.all_reduce %x on @square grid_axes = [1] : tensor<4x3xf32> -> tensor<4x3xf32>
  %c = shard.all_reduce %x on @square grid_axes = [0, 1] : tensor<4x3xf32> -> tensor<4x3xf32>
  %d = shard.all_gather %x on @square grid_axes = [1] gather_axis = 0 : tensor<4x3xf32> -> tensor<8x3xf32>
  %e = shard.reduce_scatter %x on @square grid_axes = [0] scatter_axis = 0 : tensor<4x3xf32> -> tensor<2x3xf32>
  %f = shard.reduce_scatter %x on @line grid_axes = [0] scatter_axis = 0 : tensor<4x3xf32> -> tensor<1x3xf32>
  return %a, %b, %c, %d, %e, %f : tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<8x3xf32>, tensor<2x3xf32>, tensor<1x3xf32>
}

// A group along two axes that are not neighbours.
func.func @cube(%x: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<16x3xf32>, tensor<4x3xf32>) {
  %a = shard.all_reduce %x on @block grid_axes = [0, 2] : tensor<4x3xf32> -> tensor<4x3xf32>
  %b = shard.all_gather %x on @block grid_axes = [0, 2] gather_axis = 0 : tensor<4x3xf32> -> tensor<16x3xf32>
  %c = shard.all_reduce %x on @block grid_axes = [1] : tensor<4x3xf32> -> tensor<4x3xf32>
  return %a, %b, %c : tensor<4x3xf32>, tensor<16x3xf32>, tensor<4x3xf32>
}

// A sum takes the buffer of what nobody reads again, and leaves alone what somebody does.
func.func @in_place(%x: tensor<33x5xf32>) -> (tensor<33x5xf32>, tensor<33x5xf32>, tensor<33x5xf32>) {
  %p, %p_lse = moe.log_softmax %x vocabulary<size = 5>
    : (tensor<33x5xf32>) -> (tensor<33x5xf32>, tensor<33xf32>)
  %r = shard.all_reduce %p on @pair grid_axes = [0] : tensor<33x5xf32> -> tensor<33x5xf32>
  %q, %q_lse = moe.log_softmax %r vocabulary<size = 5>
    : (tensor<33x5xf32>) -> (tensor<33x5xf32>, tensor<33xf32>)
  %s = shard.all_reduce %q on @pair grid_axes = [0] : tensor<33x5xf32> -> tensor<33x5xf32>
  return %q, %s, %p : tensor<33x5xf32>, tensor<33x5xf32>, tensor<33x5xf32>
}

func.func @nothing(%x: tensor<0x5xf32>) -> (tensor<0x5xf32>, tensor<0x5xf32>, tensor<0x5xf32>) {
  %r = shard.all_reduce %x on @pair grid_axes = [0] : tensor<0x5xf32> -> tensor<0x5xf32>
  %g = shard.all_gather %x on @pair grid_axes = [0] gather_axis = 0 : tensor<0x5xf32> -> tensor<0x5xf32>
  %c = shard.reduce_scatter %x on @pair grid_axes = [0] scatter_axis = 0 : tensor<0x5xf32> -> tensor<0x5xf32>
  return %r, %g, %c : tensor<0x5xf32>, tensor<0x5xf32>, tensor<0x5xf32>
}

func.func @alone(%x: tensor<6x5xf32>) -> (tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>) {
  %r = shard.all_reduce %x on @one grid_axes = [0] : tensor<6x5xf32> -> tensor<6x5xf32>
  %g = shard.all_gather %x on @one grid_axes = [0] gather_axis = 0 : tensor<6x5xf32> -> tensor<6x5xf32>
  %c = shard.reduce_scatter %x on @one grid_axes = [0] scatter_axis = 0 : tensor<6x5xf32> -> tensor<6x5xf32>
  return %r, %g, %c : tensor<6x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>
}

#layout = #moe.layout<[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [20]>]>
func.func @norm(%g: tensor<24xf32>) -> (tensor<f32>, tensor<f32>) {
  %own = moe.sum_squares %g layout #layout : tensor<24xf32>
  %columns = shard.all_reduce %own on @square grid_axes = [1] : tensor<f64> -> tensor<f64>
  %one = moe.grad_norm %columns : tensor<f64>
  %two = moe.grad_norm %columns, %own : tensor<f64>, tensor<f64>
  return %one, %two : tensor<f32>, tensor<f32>
}

// Rank 0 has 1 2 3 4 and rank 1 10 20 30 40.
// PLACED: rank 0 placed/0: tensor<4xi32> = [11, 22, 33, 44]
// PLACED: rank 0 placed/1: tensor<8xi32> = [1, 2, 3, 4, 10, 20, 30, 40]
// PLACED: rank 0 placed/2: tensor<2xf32> = [11, 22]
// PLACED: rank 1 placed/0: tensor<4xi32> = [11, 22, 33, 44]
// PLACED: rank 1 placed/1: tensor<8xi32> = [1, 2, 3, 4, 10, 20, 30, 40]
// PLACED: rank 1 placed/2: tensor<2xf32> = [33, 44]
func.func @placed(%x: tensor<4xi32> {plateau.values = dense<[[1, 2, 3, 4], [10, 20, 30, 40]]> : tensor<2x4xi32>},
    %y: tensor<4xf32> {plateau.values = dense<[[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]]> : tensor<2x4xf32>})
    -> (tensor<4xi32>, tensor<8xi32>, tensor<2xf32>) {
  %r = shard.all_reduce %x on @pair grid_axes = [0] : tensor<4xi32> -> tensor<4xi32>
  %g = shard.all_gather %x on @pair grid_axes = [0] gather_axis = 0 : tensor<4xi32> -> tensor<8xi32>
  %c = shard.reduce_scatter %y on @pair grid_axes = [0] scatter_axis = 0 : tensor<4xf32> -> tensor<2xf32>
  return %r, %g, %c : tensor<4xi32>, tensor<8xi32>, tensor<2xf32>
}

// RUN: plateau-opt %s -split-input-file -verify-diagnostics -moe-attach-optimizer
// RUN: not plateau-opt %S/Inputs/gradients.mlir -moe-attach-optimizer='clip-norm=0' 2>&1 | FileCheck %s --check-prefix=CLIP
// RUN: not plateau-opt %S/Inputs/gradients.mlir -moe-attach-optimizer='clip-norm=1e-50' 2>&1 | FileCheck %s --check-prefix=CLIP
// RUN: not plateau-opt %S/Inputs/gradients.mlir -moe-attach-optimizer='clip-norm=1e50' 2>&1 | FileCheck %s --check-prefix=CLIP
// RUN: not plateau-opt %S/Inputs/gradients.mlir -moe-attach-optimizer='weight-decay=-1' 2>&1 | FileCheck %s --check-prefix=DECAY
// RUN: not plateau-opt %S/Inputs/gradients.mlir -moe-attach-optimizer='beta2=1' 2>&1 | FileCheck %s --check-prefix=BETA
// RUN: not plateau-opt %S/Inputs/gradients.mlir -moe-attach-optimizer='epsilon=0' 2>&1 | FileCheck %s --check-prefix=EPSILON
// RUN: not plateau-opt %S/Inputs/gradients.mlir -moe-attach-optimizer='epsilon=1e-50' 2>&1 | FileCheck %s --check-prefix=EPSILON
// RUN: not plateau-opt %S/Inputs/gradients.mlir -moe-attach-optimizer='shard-elements=0' 2>&1 | FileCheck %s --check-prefix=SHARD

// CLIP: clip-norm is {{.*}}: it must be positive in f32, or inf for no clipping
// DECAY: weight-decay is -1.000000e+00: it must be at least 0
// BETA: beta1 and beta2 are 9.000000e-01 and 1.000000e+00: they must be in [0, 1)
// EPSILON: epsilon is {{.*}}: it must be more than 0, and finite, in f32
// SHARD: shard-elements is 0: it must be in 1 ... 2^60

// expected-error @below {{there is no function @loss_and_gradients: run moe-differentiate first}}
module {}

// -----

// expected-error @below {{no argument carries moe.parameter: there is nothing to train}}
func.func private @loss_and_gradients(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// expected-error @below {{parameter 'b' is 'bf16' and others are 'f32': a group has one element type}}
func.func private @loss_and_gradients(%a: tensor<f32> {moe.parameter = #moe.parameter<"a", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %b: tensor<bf16> {moe.parameter = #moe.parameter<"b", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>}) -> tensor<f32> {
  return %a : tensor<f32>
}

// -----

// expected-error @below {{there is a @step already}}
module {
  func.func private @loss_and_gradients(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
  func.func @step() {
    return
  }
}

// -----

// expected-error @below {{parameter 'b' ends beyond 2^60 elements of the group}}
func.func private @loss_and_gradients(%a: tensor<8xf32> {moe.parameter = #moe.parameter<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>},
    %b: tensor<2147483648x4611686018427387904xf32> {moe.parameter = #moe.parameter<"b", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>}, %l: tensor<f32>) -> tensor<f32> {
  return %l : tensor<f32>
}

// -----

// expected-error @below {{the parameters make no group: two tensors have the name 'a'}}
func.func private @loss_and_gradients(%a: tensor<8xf32> {moe.parameter = #moe.parameter<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>},
    %b: tensor<8xf32> {moe.parameter = #moe.parameter<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>}, %l: tensor<f32>) -> tensor<f32> {
  return %l : tensor<f32>
}

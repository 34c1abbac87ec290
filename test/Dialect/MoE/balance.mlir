// RUN: plateau-opt %s --mlir-print-local-scope | FileCheck %s
// RUN: plateau-opt %s | plateau-opt --mlir-print-local-scope | FileCheck %s
// RUN: plateau-opt %s --mlir-print-op-generic | plateau-opt --mlir-print-local-scope | FileCheck %s
// RUN: plateau-opt %s --emit-bytecode -o %t.mlirbc && plateau-opt %t.mlirbc --mlir-print-local-scope | FileCheck %s

// CHECK-LABEL: func.func @counts
func.func @counts(%x: tensor<8x4xf32>, %c: tensor<4xi32>) -> tensor<8x4xf32> {
  // CHECK: %[[L:.*]] = moe.balance_loss %[[X:.*]] counts(%[[C:.*]]) coefficient(0.00999999977) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.000000e+00 : f32> : (tensor<8x4xf32>, tensor<4xi32>) -> tensor<f32>
  %l = moe.balance_loss %x counts(%c) coefficient(0.01) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<4xi32>) -> tensor<f32>
  // CHECK: moe.balance_loss_grad %[[L]], %[[X]] counts(%[[C]]) coefficient(0.00999999977) routing <top_k = 2, {{.*}}> : (tensor<f32>, tensor<8x4xf32>, tensor<4xi32>) -> tensor<8x4xf32>
  %d = moe.balance_loss_grad %l, %x counts(%c) coefficient(0.01) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<f32>, tensor<8x4xf32>, tensor<4xi32>) -> tensor<8x4xf32>
  return %d : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @sequences
func.func @sequences(%x: tensor<8x4xf32>, %ids: tensor<8x2xi32>) -> tensor<8x4xf32> {
  // CHECK: %[[L:.*]] = moe.balance_loss %[[X:.*]] ids(%[[I:.*]]) sequence(4) sequences(6) coefficient(0.000000e+00) routing <top_k = 2, score = sigmoid, {{.*}}> : (tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<f32>
  %l = moe.balance_loss %x ids(%ids) sequence(4) sequences(6) coefficient(0.0) routing <top_k = 2, score = sigmoid, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<f32>
  // CHECK: moe.balance_loss_grad %[[L]], %[[X]] ids(%[[I]]) sequence(4) sequences(6) coefficient(0.000000e+00) routing <top_k = 2, {{.*}}> : (tensor<f32>, tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8x4xf32>
  %d = moe.balance_loss_grad %l, %x ids(%ids) sequence(4) sequences(6) coefficient(0.0) routing <top_k = 2, score = sigmoid, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<f32>, tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8x4xf32>
  return %d : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @no_tokens
func.func @no_tokens(%x: tensor<0x4xf32>, %ids: tensor<0x2xi32>) -> (tensor<f32>, tensor<f32>) {
  // CHECK: moe.balance_loss %{{.*}} ids(%{{.*}}) sequence(4) sequences(1)
  %l = moe.balance_loss %x ids(%ids) sequence(4) sequences(1) coefficient(1.0) routing <top_k = 2, score = top_k_softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<0x4xf32>, tensor<0x2xi32>) -> tensor<f32>
  // CHECK: moe.z_loss %{{.*}} tokens(1) coefficient(1.000000e+00) : tensor<0x4xf32>
  %z = moe.z_loss %x tokens(1) coefficient(1.0) : tensor<0x4xf32>
  return %l, %z : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @z
func.func @z(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK: %[[L:.*]] = moe.z_loss %[[X:.*]] tokens(16) coefficient(1.000000e-03) : tensor<8x4xf32>
  %l = moe.z_loss %x tokens(16) coefficient(0.001) : tensor<8x4xf32>
  // CHECK: moe.z_loss_grad %[[L]], %[[X]] tokens(16) coefficient(1.000000e-03) : tensor<8x4xf32>
  %d = moe.z_loss_grad %l, %x tokens(16) coefficient(0.001) : tensor<8x4xf32>
  return %d : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @bias
func.func @bias(%b: tensor<4xf32>, %c: tensor<4xi32>, %f: tensor<f32>) -> tensor<4xf32> {
  // CHECK: moe.update_bias %{{.*}}, %{{.*}} scale %{{.*}} rate(1.000000e-03) : tensor<4xf32>, tensor<4xi32>
  %n = moe.update_bias %b, %c scale %f rate(0.001) : tensor<4xf32>, tensor<4xi32>
  return %n : tensor<4xf32>
}

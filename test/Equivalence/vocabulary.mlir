// Compiled code on poisoned memory, three runs, against the interpreter in float64.
// RUN: plateau-run %s --entry loss --compare 1e-5
// RUN: plateau-run %s --entry ignored --compare 1e-5
// RUN: plateau-run %s --entry none_counts --compare 0
// RUN: plateau-run %s --entry minus_infinity | FileCheck %s --check-prefix=INFINITY
// RUN: plateau-run %s --entry large --compare 1e-5
// RUN: not plateau-run %s --entry outside 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// RUN: not plateau-run %s --entry outside --interpret 2>&1 | FileCheck %s --check-prefix=OUTSIDE

func.func @loss(%x: tensor<21x33xf32>, %labels: tensor<21xi32> {plateau.below = 33 : i64}, %dl: tensor<f32>)
    -> (tensor<21x33xf32>, tensor<f32>, tensor<f32>, tensor<21x33xf32>, tensor<21x33xf32>) {
  %p = moe.log_softmax %x : tensor<21x33xf32>
  %count = moe.count_labels %labels ignore_index(-100) : tensor<21xi32>
  %l = moe.nll %p, %labels, %count ignore_index(-100) : tensor<21x33xf32>, tensor<21xi32>
  %dp = moe.nll_grad %dl, %labels, %count ignore_index(-100) : tensor<21xi32> -> tensor<21x33xf32>
  %dx = moe.log_softmax_grad %dp, %p : tensor<21x33xf32>
  return %p, %count, %l, %dp, %dx : tensor<21x33xf32>, tensor<f32>, tensor<f32>, tensor<21x33xf32>, tensor<21x33xf32>
}

func.func @ignored(%x: tensor<4x3xf32>, %labels: tensor<4xi32> {plateau.values = dense<[2, -100, -100, 0]> : tensor<4xi32>}, %dl: tensor<f32>)
    -> (tensor<f32>, tensor<4x3xf32>) {
  %p = moe.log_softmax %x : tensor<4x3xf32>
  %count = moe.count_labels %labels ignore_index(-100) : tensor<4xi32>
  %l = moe.nll %p, %labels, %count ignore_index(-100) : tensor<4x3xf32>, tensor<4xi32>
  %dp = moe.nll_grad %dl, %labels, %count ignore_index(-100) : tensor<4xi32> -> tensor<4x3xf32>
  %dx = moe.log_softmax_grad %dp, %p : tensor<4x3xf32>
  return %l, %dx : tensor<f32>, tensor<4x3xf32>
}

// A loss over no labels is 0, and so is its gradient.
func.func @none_counts(%x: tensor<2x3xf32>, %labels: tensor<2xi32> {plateau.values = dense<-100> : tensor<2xi32>}, %dl: tensor<f32>)
    -> (tensor<f32>, tensor<2x3xf32>) {
  %p = moe.log_softmax %x : tensor<2x3xf32>
  %count = moe.count_labels %labels ignore_index(-100) : tensor<2xi32>
  %l = moe.nll %p, %labels, %count ignore_index(-100) : tensor<2x3xf32>, tensor<2xi32>
  %dp = moe.nll_grad %dl, %labels, %count ignore_index(-100) : tensor<2xi32> -> tensor<2x3xf32>
  return %l, %dp : tensor<f32>, tensor<2x3xf32>
}

// Logits [-inf, 0, 0], label 1: the loss is ln 2, the gradient [0, -0.5, 0.5].
// INFINITY: minus_infinity/0: tensor<f32> = [0.69314718
// INFINITY: minus_infinity/1: tensor<1x3xf32> = [{{-?}}0, -0.5, 0.5]
func.func @minus_infinity(%x: tensor<1x3xf32> {plateau.values = dense<[[0xFF800000, 0.0, 0.0]]> : tensor<1x3xf32>},
    %labels: tensor<1xi32> {plateau.values = dense<1> : tensor<1xi32>}, %dl: tensor<f32> {plateau.values = dense<1.0> : tensor<f32>})
    -> (tensor<f32>, tensor<1x3xf32>) {
  %p = moe.log_softmax %x : tensor<1x3xf32>
  %count = moe.count_labels %labels ignore_index(-100) : tensor<1xi32>
  %l = moe.nll %p, %labels, %count ignore_index(-100) : tensor<1x3xf32>, tensor<1xi32>
  %dp = moe.nll_grad %dl, %labels, %count ignore_index(-100) : tensor<1xi32> -> tensor<1x3xf32>
  %dx = moe.log_softmax_grad %dp, %p : tensor<1x3xf32>
  return %l, %dx : tensor<f32>, tensor<1x3xf32>
}

// Logits a thousand times larger stay finite.
func.func @large(%x: tensor<1x8xf32> {plateau.values = dense<[[0.0, 1.0e+03, 2.0e+03, 3.0e+03, 4.0e+03, 5.0e+03, 6.0e+03, 7.0e+03]]> : tensor<1x8xf32>},
    %labels: tensor<1xi32> {plateau.values = dense<3> : tensor<1xi32>}) -> tensor<f32> {
  %p = moe.log_softmax %x : tensor<1x8xf32>
  %count = moe.count_labels %labels ignore_index(-100) : tensor<1xi32>
  %l = moe.nll %p, %labels, %count ignore_index(-100) : tensor<1x8xf32>, tensor<1xi32>
  return %l : tensor<f32>
}

// OUTSIDE: row 1 has label 1000
func.func @outside(%x: tensor<2x3xf32>, %labels: tensor<2xi32> {plateau.values = dense<[0, 1000]> : tensor<2xi32>}) -> tensor<f32> {
  %p = moe.log_softmax %x : tensor<2x3xf32>
  %count = moe.count_labels %labels ignore_index(-100) : tensor<2xi32>
  %l = moe.nll %p, %labels, %count ignore_index(-100) : tensor<2x3xf32>, tensor<2xi32>
  return %l : tensor<f32>
}

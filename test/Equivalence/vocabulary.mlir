// Compiled code on poisoned memory, three runs, against the interpreter in float64.
// RUN: plateau-run %s --entry loss --compare 1e-5
// RUN: plateau-run %s --entry ignored --compare 1e-5
// RUN: plateau-run %s --entry none_counts --compare 0
// RUN: plateau-run %s --entry minus_infinity | FileCheck %s --check-prefix=INFINITY
// RUN: plateau-run %s --entry large --compare 1e-5
// RUN: plateau-run %s --entry options --compare 1e-5
// RUN: plateau-run %s --entry weights --compare 1e-6
// RUN: plateau-run %s --entry tiles --compare 1e-5
// RUN: not plateau-run %s --entry outside 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// RUN: not plateau-run %s --entry outside --interpret 2>&1 | FileCheck %s --check-prefix=OUTSIDE

func.func @loss(%x: tensor<21x33xf32>, %labels: tensor<21xi32> {plateau.below = 33 : i64}, %dl: tensor<f32>)
    -> (tensor<21x33xf32>, tensor<f32>, tensor<f32>, tensor<21x33xf32>, tensor<21x33xf32>) {
  %p, %p_lse = moe.log_softmax %x vocabulary<size = 33>
    : (tensor<21x33xf32>) -> (tensor<21x33xf32>, tensor<21xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<21xi32>
  %l_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 33>
    : (tensor<21x33xf32>, tensor<21xf32>, tensor<21xi32>) -> tensor<21xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<21xf32>
  %dl_rows = moe.mean_loss_grad %dl over %count : tensor<21xf32>
  %dp, %dp_lse = moe.nll_grad %dl_rows, %p_lse, %labels vocabulary<size = 33>
    : (tensor<21xf32>, tensor<21xf32>, tensor<21xi32>) -> (tensor<21x33xf32>, tensor<21xf32>)
  %dx = moe.log_softmax_grad %dp, %p, %p_lse vocabulary<size = 33>
    : (tensor<21x33xf32>, tensor<21x33xf32>, tensor<21xf32>) -> tensor<21x33xf32>
  return %p, %count, %l, %dp, %dx : tensor<21x33xf32>, tensor<f32>, tensor<f32>, tensor<21x33xf32>, tensor<21x33xf32>
}

func.func @ignored(%x: tensor<4x3xf32>, %labels: tensor<4xi32> {plateau.values = dense<[2, -100, -100, 0]> : tensor<4xi32>}, %dl: tensor<f32>)
    -> (tensor<f32>, tensor<4x3xf32>) {
  %p, %p_lse = moe.log_softmax %x vocabulary<size = 3>
    : (tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<4xi32>
  %l_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 3>
    : (tensor<4x3xf32>, tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<4xf32>
  %dl_rows = moe.mean_loss_grad %dl over %count : tensor<4xf32>
  %dp, %dp_lse = moe.nll_grad %dl_rows, %p_lse, %labels vocabulary<size = 3>
    : (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>) -> (tensor<4x3xf32>, tensor<4xf32>)
  %dx = moe.log_softmax_grad %dp, %p, %p_lse vocabulary<size = 3>
    : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4xf32>) -> tensor<4x3xf32>
  return %l, %dx : tensor<f32>, tensor<4x3xf32>
}

// A loss over no labels is 0, and so is its gradient.
func.func @none_counts(%x: tensor<2x3xf32>, %labels: tensor<2xi32> {plateau.values = dense<-100> : tensor<2xi32>}, %dl: tensor<f32>)
    -> (tensor<f32>, tensor<2x3xf32>) {
  %p, %p_lse = moe.log_softmax %x vocabulary<size = 3>
    : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<2xi32>
  %l_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 3>
    : (tensor<2x3xf32>, tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<2xf32>
  %dl_rows = moe.mean_loss_grad %dl over %count : tensor<2xf32>
  %dp, %dp_lse = moe.nll_grad %dl_rows, %p_lse, %labels vocabulary<size = 3>
    : (tensor<2xf32>, tensor<2xf32>, tensor<2xi32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  return %l, %dp : tensor<f32>, tensor<2x3xf32>
}

// Logits [-inf, 0, 0], label 1: the loss is ln 2, the gradient [0, -0.5, 0.5].
// INFINITY: minus_infinity/0: tensor<f32> = [0.69314718
// INFINITY: minus_infinity/1: tensor<1x3xf32> = [{{-?}}0, -0.5, 0.5]
func.func @minus_infinity(%x: tensor<1x3xf32> {plateau.values = dense<[[0xFF800000, 0.0, 0.0]]> : tensor<1x3xf32>},
    %labels: tensor<1xi32> {plateau.values = dense<1> : tensor<1xi32>}, %dl: tensor<f32> {plateau.values = dense<1.0> : tensor<f32>})
    -> (tensor<f32>, tensor<1x3xf32>) {
  %p, %p_lse = moe.log_softmax %x vocabulary<size = 3>
    : (tensor<1x3xf32>) -> (tensor<1x3xf32>, tensor<1xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<1xi32>
  %l_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 3>
    : (tensor<1x3xf32>, tensor<1xf32>, tensor<1xi32>) -> tensor<1xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<1xf32>
  %dl_rows = moe.mean_loss_grad %dl over %count : tensor<1xf32>
  %dp, %dp_lse = moe.nll_grad %dl_rows, %p_lse, %labels vocabulary<size = 3>
    : (tensor<1xf32>, tensor<1xf32>, tensor<1xi32>) -> (tensor<1x3xf32>, tensor<1xf32>)
  %dx = moe.log_softmax_grad %dp, %p, %p_lse vocabulary<size = 3>
    : (tensor<1x3xf32>, tensor<1x3xf32>, tensor<1xf32>) -> tensor<1x3xf32>
  return %l, %dx : tensor<f32>, tensor<1x3xf32>
}

// Logits a thousand times larger stay finite.
func.func @large(%x: tensor<1x8xf32> {plateau.values = dense<[[0.0, 1.0e+03, 2.0e+03, 3.0e+03, 4.0e+03, 5.0e+03, 6.0e+03, 7.0e+03]]> : tensor<1x8xf32>},
    %labels: tensor<1xi32> {plateau.values = dense<3> : tensor<1xi32>}) -> tensor<f32> {
  %p, %p_lse = moe.log_softmax %x vocabulary<size = 8>
    : (tensor<1x8xf32>) -> (tensor<1x8xf32>, tensor<1xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<1xi32>
  %l_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 8>
    : (tensor<1x8xf32>, tensor<1xf32>, tensor<1xi32>) -> tensor<1xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<1xf32>
  return %l : tensor<f32>
}

// OUTSIDE: row 1 has label 1000
func.func @outside(%x: tensor<2x3xf32>, %labels: tensor<2xi32> {plateau.values = dense<[0, 1000]> : tensor<2xi32>}) -> tensor<f32> {
  %p, %p_lse = moe.log_softmax %x vocabulary<size = 3>
    : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<2xi32>
  %l_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 3>
    : (tensor<2x3xf32>, tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<2xf32>
  return %l : tensor<f32>
}

// A bias, a cap, columns that do not exist, smoothed labels and the square of lse, forward and backward.
func.func @options(%x: tensor<21x33xf32>, %b: tensor<33xf32>, %labels: tensor<21xi32> {plateau.below = 31 : i64}, %g: tensor<21xf32>)
    -> (tensor<21xf32>, tensor<21xf32>, tensor<21x33xf32>, tensor<21x33xf32>, tensor<33xf32>) {
  %p, %lse = moe.log_softmax %x bias %b vocabulary<size = 31, softcap = 1.5>
    : (tensor<21x33xf32>, tensor<33xf32>) -> (tensor<21x33xf32>, tensor<21xf32>)
  %losses = moe.nll %p, %lse, %labels vocabulary<size = 31, ignore_index = 7, label_smoothing = 0.1, z_loss = 0.01>
    : (tensor<21x33xf32>, tensor<21xf32>, tensor<21xi32>) -> tensor<21xf32>
  %dp, %dlse = moe.nll_grad %g, %lse, %labels vocabulary<size = 31, ignore_index = 7, label_smoothing = 0.1, z_loss = 0.01>
    : (tensor<21xf32>, tensor<21xf32>, tensor<21xi32>) -> (tensor<21x33xf32>, tensor<21xf32>)
  %dx, %db = moe.log_softmax_grad %dp, %p, %lse lse_cotangent %dlse vocabulary<size = 31, softcap = 1.5>
    : (tensor<21x33xf32>, tensor<21x33xf32>, tensor<21xf32>, tensor<21xf32>) -> (tensor<21x33xf32>, tensor<33xf32>)
  return %losses, %lse, %dp, %dx, %db : tensor<21xf32>, tensor<21xf32>, tensor<21x33xf32>, tensor<21x33xf32>, tensor<33xf32>
}

func.func @weights(%losses: tensor<21xf32>, %w: tensor<21xf32>, %labels: tensor<21xi32> {plateau.below = 31 : i64}, %d: tensor<f32>)
    -> (tensor<f32>, tensor<21xf32>, tensor<f32>) {
  %count = moe.count_labels %labels ignore_index(7) : tensor<21xi32>
  %l = moe.mean_loss %losses weights(%w : tensor<21xf32>) over %count : tensor<21xf32>
  %g = moe.mean_loss_grad %d weights(%w : tensor<21xf32>) over %count : tensor<21xf32>
  %none = moe.count_labels %labels ignore_index(7) : tensor<21xi32>
  %zero = arith.subf %none, %none : tensor<f32>
  %n = moe.mean_loss %losses over %zero : tensor<21xf32>
  return %l, %g, %n : tensor<f32>, tensor<21xf32>, tensor<f32>
}

// Three tiles of 33 columns folded in one after the other, the last of which has three that exist; then their derivatives.
func.func @tiles(%x: tensor<5x33xf32>, %y: tensor<5x33xf32>, %z: tensor<5x33xf32>, %b: tensor<33xf32>,
    %labels: tensor<5xi32> {plateau.below = 69 : i64}, %g: tensor<5xf32>)
    -> (tensor<5xf32>, tensor<5xf32>, tensor<5x33xf32>, tensor<5x33xf32>, tensor<5x33xf32>, tensor<33xf32>) {
  %c0 = arith.constant 0 : index
  %c33 = arith.constant 33 : index
  %first = arith.constant dense<33> : tensor<i32>
  %start = arith.constant dense<0> : tensor<i32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x4xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%e : tensor<5x4xf32>) -> tensor<5x4xf32>
  %s1 = moe.fold_logits %x, %labels first(%start) column(%c0) into %s0 vocabulary<size = 69, label_smoothing = 0.25, softcap = 2.0>
    : (tensor<5x33xf32>, tensor<5xi32>, tensor<i32>, index, tensor<5x4xf32>) -> tensor<5x4xf32>
  %s2 = moe.fold_logits %y, %labels first(%first) column(%c0) bias %b into %s1 vocabulary<size = 69, label_smoothing = 0.25, softcap = 2.0>
    : (tensor<5x33xf32>, tensor<5xi32>, tensor<i32>, index, tensor<33xf32>, tensor<5x4xf32>) -> tensor<5x4xf32>
  %s3 = moe.fold_logits %z, %labels first(%first) column(%c33) into %s2 vocabulary<size = 69, label_smoothing = 0.25, softcap = 2.0>
    : (tensor<5x33xf32>, tensor<5xi32>, tensor<i32>, index, tensor<5x4xf32>) -> tensor<5x4xf32>
  %losses, %lse = moe.finish_losses %s3, %labels vocabulary<size = 69, label_smoothing = 0.25, softcap = 2.0>
    : (tensor<5x4xf32>, tensor<5xi32>) -> (tensor<5xf32>, tensor<5xf32>)
  %dx = moe.logits_grad %x, %labels, %lse, %g first(%start) column(%c0) vocabulary<size = 69, label_smoothing = 0.25, softcap = 2.0>
    : (tensor<5x33xf32>, tensor<5xi32>, tensor<5xf32>, tensor<5xf32>, tensor<i32>, index) -> tensor<5x33xf32>
  %dy = moe.logits_grad %y, %labels, %lse, %g first(%first) column(%c0) bias %b vocabulary<size = 69, label_smoothing = 0.25, softcap = 2.0>
    : (tensor<5x33xf32>, tensor<5xi32>, tensor<5xf32>, tensor<5xf32>, tensor<i32>, index, tensor<33xf32>) -> tensor<5x33xf32>
  %dz = moe.logits_grad %z, %labels, %lse, %g first(%first) column(%c33) vocabulary<size = 69, label_smoothing = 0.25, softcap = 2.0>
    : (tensor<5x33xf32>, tensor<5xi32>, tensor<5xf32>, tensor<5xf32>, tensor<i32>, index) -> tensor<5x33xf32>
  %f = tensor.empty() : tensor<33xf32>
  %b0 = linalg.fill ins(%zero : f32) outs(%f : tensor<33xf32>) -> tensor<33xf32>
  %db = moe.column_sums %dy into %b0 : tensor<5x33xf32>, tensor<33xf32>
  return %losses, %lse, %dx, %dy, %dz, %db
    : tensor<5xf32>, tensor<5xf32>, tensor<5x33xf32>, tensor<5x33xf32>, tensor<5x33xf32>, tensor<33xf32>
}

// Compiled code on poisoned memory, three runs, against the interpreter in float64.
// RUN: plateau-run %s --entry update --compare 1e-6
// RUN: plateau-run %s --entry master --compare 4e-3
// RUN: plateau-run %s --entry skipped | FileCheck %s --check-prefix=SKIPPED
// RUN: plateau-run %s --entry norms | FileCheck %s --check-prefix=NORMS
// RUN: plateau-run %s --entry sums | FileCheck %s --check-prefix=SUMS
// RUN: plateau-run %s --entry sums --interpret | FileCheck %s --check-prefix=SUMS
// RUN: plateau-run %s --entry padded --compare 1e-6
// RUN: plateau-run %s --entry one_value --compare 1e-6
// RUN: plateau-run %s --entry swapped --compare 0

#layout = #moe.layout<[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [7, 5]>, <<"b", decay = false, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 35, shape = [20]>]>

// 55 elements and 9 of padding, which keep what they hold.
func.func @update(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>,
    %v: tensor<64xf32> {plateau.values = dense<0.25> : tensor<64xf32>}, %old: tensor<64xf32>,
    %lr: tensor<f32> {plateau.values = dense<0.01> : tensor<f32>}, %t: tensor<i32> {plateau.values = dense<3> : tensor<i32>})
    -> (tensor<f32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %w, %b = moe.unpack %g layout #layout : tensor<64xf32> -> tensor<7x5xf32>, tensor<20xf32>
  %e = math.exp %w : tensor<7x5xf32>
  %packed = moe.pack %e, %b into %old layout #layout : tensor<7x5xf32>, tensor<20xf32> into tensor<64xf32>
  %squares = moe.sum_squares %packed layout #layout : tensor<64xf32>
  %norm = moe.grad_norm %squares : tensor<f64>
  %factor = moe.clip_factor %norm max_norm(1.0)
  %p1, %m1, %v1 = moe.adamw %p, %packed, %m, %v scale %factor learning_rate %lr step %t beta1(9.0e-01) beta2(9.5e-01)
    epsilon(1.0e-08) weight_decay(1.0e-01) layout #layout
    : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  return %norm, %packed, %p1, %m1, %v1 : tensor<f32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

func.func @master(%p: tensor<55xbf16>, %g: tensor<55xbf16>, %m: tensor<55xf32>,
    %v: tensor<55xf32> {plateau.values = dense<0.25> : tensor<55xf32>}, %w: tensor<55xf32>,
    %lr: tensor<f32> {plateau.values = dense<0.01> : tensor<f32>}, %t: tensor<i32> {plateau.values = dense<3> : tensor<i32>})
    -> (tensor<55xbf16>, tensor<55xf32>, tensor<55xf32>, tensor<55xf32>) {
  %factor = arith.constant dense<1.0> : tensor<f32>
  %p1, %m1, %v1, %w1 = moe.adamw %p, %g, %m, %v master %w scale %factor learning_rate %lr step %t beta1(9.0e-01) beta2(9.5e-01)
    epsilon(1.0e-08) weight_decay(1.0e-01) layout #layout
    : tensor<55xbf16>, tensor<55xbf16>, tensor<55xf32>, tensor<55xf32>, tensor<55xf32> -> tensor<55xbf16>, tensor<55xf32>, tensor<55xf32>, tensor<55xf32>
  return %p1, %m1, %v1, %w1 : tensor<55xbf16>, tensor<55xf32>, tensor<55xf32>, tensor<55xf32>
}

// One gradient is infinite: parameters and moments stay as they were.
// SKIPPED: skipped/0: tensor<f32> = [inf]
// SKIPPED: skipped/1: tensor<2xf32> = [1, 2]
// SKIPPED: skipped/2: tensor<2xf32> = [0.5, 0.25]
// SKIPPED: skipped/3: tensor<2xf32> = [3, 4]
#two = #moe.layout<[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [2]>]>
func.func @skipped(%p: tensor<2xf32> {plateau.values = dense<[1.0, 2.0]> : tensor<2xf32>},
    %g: tensor<2xf32> {plateau.values = dense<[1.0, 0x7F800000]> : tensor<2xf32>},
    %m: tensor<2xf32> {plateau.values = dense<[0.5, 0.25]> : tensor<2xf32>}, %v: tensor<2xf32> {plateau.values = dense<[3.0, 4.0]> : tensor<2xf32>},
    %lr: tensor<f32> {plateau.values = dense<0.01> : tensor<f32>}, %t: tensor<i32> {plateau.values = dense<1> : tensor<i32>})
    -> (tensor<f32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %squares = moe.sum_squares %g layout #two : tensor<2xf32>
  %norm = moe.grad_norm %squares : tensor<f64>
  %factor = moe.clip_factor %norm max_norm(1.0)
  %p1, %m1, %v1 = moe.adamw %p, %g, %m, %v scale %factor learning_rate %lr step %t beta1(9.0e-01) beta2(9.5e-01)
    epsilon(1.0e-08) weight_decay(1.0e-01) layout #two
    : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  return %norm, %p1, %m1, %v1 : tensor<f32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// |(3, 4)| = 5 clips to 2 by 0.4; a norm of 0 clips nothing; no limit clips nothing.
// NORMS: norms/0: tensor<f32> = [5]
// NORMS: norms/1: tensor<f32> = [0.400000006]
// NORMS: norms/2: tensor<f32> = [1]
// NORMS: norms/3: tensor<f32> = [1]
func.func @norms(%g: tensor<2xf32> {plateau.values = dense<[3.0, 4.0]> : tensor<2xf32>}, %z: tensor<f32> {plateau.values = dense<0.0> : tensor<f32>})
    -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) {
  %squares = moe.sum_squares %g layout #two : tensor<2xf32>
  %norm = moe.grad_norm %squares : tensor<f64>
  %a = moe.clip_factor %norm max_norm(2.0)
  %b = moe.clip_factor %z max_norm(2.0)
  %c = moe.clip_factor %norm max_norm(0x7F800000)
  return %norm, %a, %b, %c : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
}

// (3, 4) and (5, 12) are in two sums: |(3, 4, 5, 12)|² = 25 + 169, and |(3, 4)|² twice is 50. 1e30² is beyond f32.
// SUMS: sums/0: tensor<f32> = [13.9283886]
// SUMS: sums/1: tensor<f32> = [7.07106781]
// SUMS: sums/2: tensor<f32> = [1.00000002e+30]
#first = #moe.layout<[<<"a", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [2]>]>
#second = #moe.layout<[<<"b", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 2, shape = [2]>]>
func.func @sums(%g: tensor<4xf32> {plateau.values = dense<[3.0, 4.0, 5.0, 12.0]> : tensor<4xf32>}, %h: tensor<2xf32> {plateau.values = dense<[1.0e+30, 0.0]> : tensor<2xf32>})
    -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %a = moe.sum_squares %g layout #first : tensor<4xf32>
  %b = moe.sum_squares %g layout #second : tensor<4xf32>
  %both = moe.grad_norm %a, %b : tensor<f64>, tensor<f64>
  %twice = moe.grad_norm %a, %a : tensor<f64>, tensor<f64>
  %c = moe.sum_squares %h layout #first : tensor<2xf32>
  %large = moe.grad_norm %c : tensor<f64>
  return %both, %twice, %large : tensor<f32>, tensor<f32>, tensor<f32>
}

// Neither padding nor the tensors that a layout leaves out count; bf16 squares are exact.
func.func @padded(%g: tensor<64xf32>, %h: tensor<64xbf16>) -> (tensor<f32>, tensor<f32>) {
  %a = moe.sum_squares %g layout #second : tensor<64xf32>
  %b = moe.sum_squares %h layout #layout : tensor<64xbf16>
  %one = moe.grad_norm %a : tensor<f64>
  %two = moe.grad_norm %b, %a : tensor<f64>, tensor<f64>
  return %one, %two : tensor<f32>, tensor<f32>
}

// One value in every role: each result has a buffer of its own.
func.func @one_value(%x: tensor<2xf32> {plateau.values = dense<[3.0, 4.0]> : tensor<2xf32>}, %one: tensor<f32> {plateau.values = dense<1.0> : tensor<f32>},
    %t: tensor<i32> {plateau.values = dense<2> : tensor<i32>}) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %e = math.exp %x : tensor<2xf32>
  %p, %m, %v = moe.adamw %e, %e, %e, %e scale %one learning_rate %one step %t beta1(9.0e-01) beta2(9.5e-01)
    epsilon(1.0e-08) weight_decay(1.0e-01) layout #two
    : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  return %p, %m, %v : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// The tensors of a group stored back into it in the other order.
#halves = #moe.layout<[<<"a", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [3]>, <<"b", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 3, shape = [3]>]>
func.func @swapped(%x: tensor<6xf32>) -> tensor<6xf32> {
  %g = arith.negf %x : tensor<6xf32>
  %a, %b = moe.unpack %g layout #halves : tensor<6xf32> -> tensor<3xf32>, tensor<3xf32>
  %s = moe.pack %b, %a into %g layout #halves : tensor<3xf32>, tensor<3xf32> into tensor<6xf32>
  return %s : tensor<6xf32>
}

// Compiled kernels on poisoned memory, three runs, against the interpreter in float64: vectors of 16 and a scalar tail.
// RUN: plateau-run %s --entry swiglu --compare 1e-6
// RUN: plateau-run %s --entry swiglu_bf16 --compare 4e-3
// RUN: plateau-run %s --entry extremes | FileCheck %s --check-prefix=EXTREMES
// RUN: plateau-run %s --entry same_bits | FileCheck %s --check-prefix=BITS
// RUN: plateau-run %s --entry one --compare 1e-6
// RUN: plateau-run %s --entry in_place --compare 1e-6
// RUN: plateau-run %s --entry root --compare 1e-6
// RUN: plateau-run %s --entry captured --compare 1e-6

func.func @swiglu(%g: tensor<7x13xf32>, %u: tensor<7x13xf32>) -> tensor<7x13xf32> {
  %one = arith.constant dense<1.0> : tensor<7x13xf32>
  %bound = arith.constant dense<80.0> : tensor<7x13xf32>
  %n = arith.negf %g : tensor<7x13xf32>
  %b = arith.minimumf %n, %bound : tensor<7x13xf32>
  %e = math.exp %b : tensor<7x13xf32>
  %d = arith.addf %one, %e : tensor<7x13xf32>
  %s = arith.divf %g, %d : tensor<7x13xf32>
  %h = arith.mulf %s, %u : tensor<7x13xf32>
  return %h : tensor<7x13xf32>
}

func.func @swiglu_bf16(%g: tensor<7x13xbf16>, %u: tensor<7x13xbf16>) -> tensor<7x13xbf16> {
  %one = arith.constant dense<1.0> : tensor<7x13xf32>
  %gw = arith.extf %g : tensor<7x13xbf16> to tensor<7x13xf32>
  %uw = arith.extf %u : tensor<7x13xbf16> to tensor<7x13xf32>
  %n = arith.negf %gw : tensor<7x13xf32>
  %e = math.exp %n : tensor<7x13xf32>
  %d = arith.addf %one, %e : tensor<7x13xf32>
  %s = arith.divf %gw, %d : tensor<7x13xf32>
  %h = arith.mulf %s, %uw : tensor<7x13xf32>
  %r = arith.truncf %h : tensor<7x13xf32> to tensor<7x13xbf16>
  return %r : tensor<7x13xbf16>
}

// exp(-inf) = 0, exp(-200) = 0, exp(0) = 1, exp(inf) = inf, exp(200) = inf, exp(nan) = nan.
// EXTREMES: extremes/0: tensor<6xf32> = [0, 0, 1, inf, inf, nan]
func.func @extremes(%x: tensor<6xf32> {plateau.values = dense<[0xFF800000, -200.0, 0.0, 0x7F800000, 200.0, 0x7FC00000]> : tensor<6xf32>}) -> tensor<6xf32> {
  %e = math.exp %x : tensor<6xf32>
  return %e : tensor<6xf32>
}

// The same number in the vector body and in the tail gives the same bits: the row's softmax is exactly uniform, 17 equal values
// of -ln 17 = -2.83321334.
// BITS: same_bits/0: tensor<1x17xf32> = [-2.83321333, -2.83321333, -2.83321333, -2.83321333, -2.83321333, -2.83321333, -2.83321333, -2.83321333, -2.83321333, -2.83321333, -2.83321333, -2.83321333, -2.83321333, -2.83321333, -2.83321333, -2.83321333, -2.83321333]
func.func @same_bits(%x: tensor<1x17xf32> {plateau.values = dense<0.3712> : tensor<1x17xf32>}) -> tensor<1x17xf32> {
  %e = math.exp %x : tensor<1x17xf32>
  %p, %p_lse = moe.log_softmax %e vocabulary<size = 17>
    : (tensor<1x17xf32>) -> (tensor<1x17xf32>, tensor<1xf32>)
  return %p : tensor<1x17xf32>
}

func.func @one(%x: tensor<f32>) -> tensor<f32> {
  %e = math.exp %x : tensor<f32>
  return %e : tensor<f32>
}

// A kernel takes the buffer of an input that dies in it, and of no other.
func.func @in_place(%x: tensor<5x7xf32>) -> (tensor<5x7xf32>, tensor<5x7xf32>) {
  %a, %a_lse = moe.log_softmax %x vocabulary<size = 7>
    : (tensor<5x7xf32>) -> (tensor<5x7xf32>, tensor<5xf32>)
  %b = math.exp %a : tensor<5x7xf32>
  %c, %c_lse = moe.log_softmax %b vocabulary<size = 7>
    : (tensor<5x7xf32>) -> (tensor<5x7xf32>, tensor<5xf32>)
  %d = arith.addf %c, %b : tensor<5x7xf32>
  %e = arith.mulf %d, %x : tensor<5x7xf32>
  return %e, %x : tensor<5x7xf32>, tensor<5x7xf32>
}

func.func @root(%x: tensor<17xf32> {plateau.values = dense<[0.0, 1.0e-30, 1.0e-3, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1.0e3, 1.0e30, 2.5e-1, 1.0e2]> : tensor<17xf32>}) -> (tensor<17xf32>, tensor<17xf32>) {
  %r = math.rsqrt %x : tensor<17xf32>
  %s = math.sqrt %x : tensor<17xf32>
  return %r, %s : tensor<17xf32>, tensor<17xf32>
}

// Constants outside of the kernels, where canonicalization moves them. Two kernels that differ in nothing else are two.
#id = affine_map<(d0) -> (d0)>
func.func @captured(%x: tensor<17xf32>) -> (tensor<17xf32>, tensor<17xf32>) {
  %two = arith.constant 2.0 : f32
  %three = arith.constant 3.0 : f32
  %empty = tensor.empty() : tensor<17xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<17xf32>) outs(%empty : tensor<17xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.mulf %in, %two : f32
    linalg.yield %m : f32
  } -> tensor<17xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<17xf32>) outs(%empty : tensor<17xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.mulf %in, %three : f32
    linalg.yield %m : f32
  } -> tensor<17xf32>
  return %a, %b : tensor<17xf32>, tensor<17xf32>
}

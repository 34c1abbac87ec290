// One function on drawn arguments: printed, repeated, compared with the interpreter.
// RUN: plateau-run %s --entry constants | FileCheck %s --check-prefix=CONSTANTS
// RUN: plateau-run %s --entry constants --interpret | FileCheck %s --check-prefix=CONSTANTS
// RUN: plateau-run %s --entry given --repeat 3 | FileCheck %s --check-prefix=GIVEN
// RUN: plateau-run %s --entry given --exact | FileCheck %s --check-prefix=EXACT
// RUN: plateau-run %s --entry large --seed 3 | FileCheck %s --check-prefix=LARGE
// RUN: plateau-run %s --entry large --compare 1e-6 | FileCheck %s --check-prefix=COMPARE
// RUN: plateau-run %s --entry large --compare 1e-6 --gemm reference | FileCheck %s --check-prefix=COMPARE
// RUN: plateau-run %s --entry bf16 --compare 0.01 | FileCheck %s --check-prefix=BF16
// RUN: not plateau-run %s --entry bf16 --compare 1e-6 2>&1 | FileCheck %s --check-prefix=DIFFERS
// RUN: not plateau-run %s --entry dynamic 2>&1 | FileCheck %s --check-prefix=DYNAMIC

// CONSTANTS: constants/0: tensor<2x2xf32> = [1, -2.5, 9.99999994e-09, 0.100000001]
func.func @constants() -> tensor<2x2xf32> {
  %0 = arith.constant dense<[[1.0, -2.5], [1.0e-8, 0.1]]> : tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// 5 = 1·3 + 2·1, 11 = 3·3 + 2·1
// GIVEN: given/0: tensor<2x1xf32> = [5, 11]
// EXACT: given/0: tensor<2x1xf32> digest {{[0-9a-f]+$}}
func.func @given(%a: tensor<2x2xf32> {plateau.values = dense<[[1.0, 2.0], [3.0, 2.0]]> : tensor<2x2xf32>},
                 %b: tensor<2x1xf32> {plateau.values = dense<[[3.0], [1.0]]> : tensor<2x1xf32>}) -> tensor<2x1xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x1xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x1xf32>) -> tensor<2x1xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<2x2xf32>, tensor<2x1xf32>) outs(%init : tensor<2x1xf32>) -> tensor<2x1xf32>
  return %0 : tensor<2x1xf32>
}

// LARGE: large/0: tensor<33x17xf32> checksum {{[0-9a-f]+}} max-abs {{[0-9.]+$}}
// COMPARE: large/0: tensor<33x17xf32> max|a-b|/max|b| {{[0-9.]+e-0[789]$}}
func.func @large(%a: tensor<33x65xf32>, %b: tensor<65x17xf32>) -> tensor<33x17xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<33x17xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<33x17xf32>) -> tensor<33x17xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<33x65xf32>, tensor<65x17xf32>) outs(%init : tensor<33x17xf32>) -> tensor<33x17xf32>
  return %0 : tensor<33x17xf32>
}

// The result is rounded to 8 bits, so it is not within 1e-6 of the float64 sum.
// BF16: bf16/0: tensor<8x3xbf16> max|a-b|/max|b| 0.00{{[0-9]+$}}
// DIFFERS: plateau-run: error: bf16/0: element [{{[0-7]}}, {{[0-2]}}] is {{.*}} compiled and {{.*}} interpreted: max|a-b|/max|b| is 0.00{{[0-9]+}}, more than 1e-06
func.func @bf16(%a: tensor<8x3xbf16>, %b: tensor<8x3xbf16>) -> tensor<8x3xbf16> {
  %0 = arith.extf %a : tensor<8x3xbf16> to tensor<8x3xf32>
  %1 = arith.extf %b : tensor<8x3xbf16> to tensor<8x3xf32>
  %2 = arith.addf %0, %1 : tensor<8x3xf32>
  %3 = arith.truncf %2 : tensor<8x3xf32> to tensor<8x3xbf16>
  return %3 : tensor<8x3xbf16>
}

// DYNAMIC: plateau-run: error: @dynamic: argument 0 is tensor<?xf32>; only static tensors of f32, bf16 and i32, of at most 2^60 elements, can be passed
func.func @dynamic(%a: tensor<?xf32>) -> tensor<?xf32> {
  return %a : tensor<?xf32>
}

// RUN: plateau-opt %s -pass-pipeline='builtin.module(func.func(moe-fold-matmul))' | FileCheck %s

// CHECK-LABEL: func.func @rounding(
// CHECK: %[[C:.*]] = linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<8x4xbf16>, tensor<4x6xbf16>) outs(%{{.*}} : tensor<8x6xbf16>)
// CHECK-NOT: arith.truncf
// CHECK: return %[[C]]
func.func @rounding(%a: tensor<8x4xbf16>, %b: tensor<4x6xbf16>) -> tensor<8x6xbf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x6xf32>) -> tensor<8x6xf32>
  %c = linalg.matmul ins(%a, %b : tensor<8x4xbf16>, tensor<4x6xbf16>) outs(%init : tensor<8x6xf32>) -> tensor<8x6xf32>
  %r = arith.truncf %c : tensor<8x6xf32> to tensor<8x6xbf16>
  return %r : tensor<8x6xbf16>
}

// The sum of two products: the second accumulates onto the first.
// CHECK-LABEL: func.func @sum(
// CHECK: %[[C:.*]] = linalg.matmul
// CHECK: %[[D:.*]] = linalg.matmul {{.*}} outs(%[[C]] : tensor<8x6xf32>)
// CHECK-NOT: arith.addf
// CHECK: return %[[D]]
func.func @sum(%a: tensor<8x4xf32>, %b: tensor<4x6xf32>) -> tensor<8x6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x6xf32>) -> tensor<8x6xf32>
  %c = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x6xf32>) outs(%init : tensor<8x6xf32>) -> tensor<8x6xf32>
  %d = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x6xf32>) outs(%init : tensor<8x6xf32>) -> tensor<8x6xf32>
  %s = arith.addf %c, %d : tensor<8x6xf32>
  return %s : tensor<8x6xf32>
}

// A value that is read again, or that belongs to the caller, is not accumulated onto.
// CHECK-LABEL: func.func @read_again(
// CHECK: arith.addf
// CHECK: arith.addf
func.func @read_again(%a: tensor<8x4xf32>, %b: tensor<4x6xf32>, %x: tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x6xf32>) -> tensor<8x6xf32>
  %e = math.exp %x : tensor<8x6xf32>
  %c = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x6xf32>) outs(%init : tensor<8x6xf32>) -> tensor<8x6xf32>
  %s = arith.addf %e, %c : tensor<8x6xf32>
  %d = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x6xf32>) outs(%init : tensor<8x6xf32>) -> tensor<8x6xf32>
  %t = arith.addf %x, %d : tensor<8x6xf32>
  return %s, %e, %t : tensor<8x6xf32>, tensor<8x6xf32>, tensor<8x6xf32>
}

// The sum's other operand is computed after the product: folded, the product would have to wait for it, and its operands with it.
// CHECK-LABEL: func.func @later(
// CHECK: linalg.matmul
// CHECK: math.exp
// CHECK: arith.addf
func.func @later(%a: tensor<8x4xf32>, %b: tensor<4x6xf32>, %x: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x6xf32>) -> tensor<8x6xf32>
  %c = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x6xf32>) outs(%init : tensor<8x6xf32>) -> tensor<8x6xf32>
  %e = math.exp %x : tensor<8x6xf32>
  %s = arith.addf %c, %e : tensor<8x6xf32>
  return %s : tensor<8x6xf32>
}

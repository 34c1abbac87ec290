// RUN: plateau-opt %s -pass-pipeline='builtin.module(func.func(moe-fuse-elementwise))' | FileCheck %s

// One run, one kernel; constants are inside it.
// CHECK-LABEL: func.func @run(
// CHECK-SAME: %[[G:.*]]: tensor<8x6xf32>, %[[U:.*]]: tensor<8x6xf32>
// CHECK: %[[K:.*]] = linalg.generic {{.*}} ins(%[[G]], %[[U]] : tensor<8x6xf32>, tensor<8x6xf32>)
// CHECK: arith.negf
// CHECK-NEXT: math.exp
// CHECK-NEXT: arith.constant 1.0
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.divf
// CHECK-NEXT: %[[R:.*]] = arith.mulf
// CHECK-NEXT: linalg.yield %[[R]] : f32
// CHECK: return %[[K]]
func.func @run(%g: tensor<8x6xf32>, %u: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %one = arith.constant dense<1.0> : tensor<8x6xf32>
  %n = arith.negf %g : tensor<8x6xf32>
  %e = math.exp %n : tensor<8x6xf32>
  %d = arith.addf %e, %one : tensor<8x6xf32>
  %s = arith.divf %g, %d : tensor<8x6xf32>
  %h = arith.mulf %s, %u : tensor<8x6xf32>
  return %h : tensor<8x6xf32>
}

// The second run reads the exponential and its operand's cotangent: it computes the exponential again from the operand, which it
// can read instead, so nothing is kept in between.
// CHECK-LABEL: func.func @again(
// CHECK-SAME: %[[X:.*]]: tensor<8x6xf32>
// CHECK: %[[E:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<8x6xf32>)
// CHECK: %[[P:.*]], %{{.*}} = moe.log_softmax %[[E]]
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[P]] : tensor<8x6xf32>, tensor<8x6xf32>)
// CHECK: math.exp
// CHECK: arith.mulf
func.func @again(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %e = math.exp %x : tensor<8x6xf32>
  %p, %p_lse = moe.log_softmax %e vocabulary<size = 6>
    : (tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<8xf32>)
  %m = arith.mulf %p, %e : tensor<8x6xf32>
  return %m : tensor<8x6xf32>
}

// Computing the sum again would read two tensors instead of one: it is kept.
// CHECK-LABEL: func.func @kept(
// CHECK: %[[S:.*]] = linalg.generic
// CHECK: %[[P:.*]], %{{.*}} = moe.log_softmax %[[S]]
// CHECK: linalg.generic {{.*}} ins(%[[P]], %[[S]] : tensor<8x6xf32>, tensor<8x6xf32>)
func.func @kept(%x: tensor<8x6xf32>, %y: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %s = arith.addf %x, %y : tensor<8x6xf32>
  %p, %p_lse = moe.log_softmax %s vocabulary<size = 6>
    : (tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<8xf32>)
  %m = arith.mulf %p, %s : tensor<8x6xf32>
  return %m : tensor<8x6xf32>
}

// Another shape is another run; a view of the run's own value ends it.
// CHECK-LABEL: func.func @shapes(
// CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<8x6xf32>)
// CHECK: %[[V:.*]] = tensor.collapse_shape %[[A]]
// CHECK: %[[B:.*]] = linalg.generic {{.*}} ins(%[[V]] : tensor<48xf32>)
// CHECK: return %[[A]], %[[B]]
func.func @shapes(%x: tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<48xf32>) {
  %a = math.exp %x : tensor<8x6xf32>
  %v = tensor.collapse_shape %a [[0, 1]] : tensor<8x6xf32> into tensor<48xf32>
  %b = arith.negf %v : tensor<48xf32>
  return %a, %b : tensor<8x6xf32>, tensor<48xf32>
}

// A run may have several results, of several types; zero rows are a legal shape.
// CHECK-LABEL: func.func @results(
// CHECK: %[[K:.*]]:2 = linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<0x6xf32>, tensor<0x6xbf16>)
// CHECK: return %[[K]]#0, %[[K]]#1
func.func @results(%x: tensor<0x6xf32>) -> (tensor<0x6xf32>, tensor<0x6xbf16>) {
  %a = math.exp %x : tensor<0x6xf32>
  %b = arith.truncf %a : tensor<0x6xf32> to tensor<0x6xbf16>
  return %a, %b : tensor<0x6xf32>, tensor<0x6xbf16>
}

// RUN: plateau-opt %s --canonicalize --cse | FileCheck %s

// A result that nobody uses goes, and with it the input that only it read.
// CHECK-LABEL: func.func @checkpoint_unused_result
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %{{.*}}: tensor<4xf32>)
// CHECK-NEXT: %[[R:.*]] = moe.checkpoint (%[[A:.*]] = %[[X]] : tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:   %[[E:.*]] = math.exp %[[A]] : tensor<4xf32>
// CHECK-NEXT:   moe.yield %[[E]] : tensor<4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[R]]
func.func @checkpoint_unused_result(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %r:2 = moe.checkpoint (%a = %x : tensor<4xf32>, %b = %y : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %e = math.exp %a : tensor<4xf32>
    %l = math.log %b : tensor<4xf32>
    moe.yield %l, %e : tensor<4xf32>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @checkpoint_unused_input
// CHECK-SAME: (%{{.*}}: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>)
// CHECK-NEXT: moe.checkpoint recompute (%{{.*}} = %[[Y]] : tensor<4xf32>) -> tensor<4xf32> {
func.func @checkpoint_unused_input(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %r = moe.checkpoint recompute (%a = %x : tensor<4xf32>, %b = %y : tensor<4xf32>) -> tensor<4xf32> {
    %e = math.exp %b : tensor<4xf32>
    moe.yield %e : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @checkpoint_unused
// CHECK-NEXT: return
func.func @checkpoint_unused(%x: tensor<4xf32>) {
  %r = moe.checkpoint (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    %e = math.exp %a : tensor<4xf32>
    moe.yield %e : tensor<4xf32>
  }
  return
}

// All of it is used: nothing changes.
// CHECK-LABEL: func.func @checkpoint_used
// CHECK: moe.checkpoint (%{{.*}} = %{{.*}} : tensor<4xf32>, %{{.*}} = %{{.*}} : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
func.func @checkpoint_used(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = moe.checkpoint (%a = %x : tensor<4xf32>, %b = %y : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %e = arith.addf %a, %b : tensor<4xf32>
    moe.yield %e, %b : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// Common subexpressions are not shared between the evaluation of a body and its recomputation.
// CHECK-LABEL: func.func @checkpoint_isolated
// CHECK: math.exp
// CHECK: math.exp
func.func @checkpoint_isolated(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r = moe.checkpoint (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    %e = math.exp %a : tensor<4xf32>
    moe.yield %e : tensor<4xf32>
  }
  %s = moe.checkpoint recompute (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    %e = math.exp %a : tensor<4xf32>
    moe.yield %e : tensor<4xf32>
  }
  return %r, %s : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @rotary_empty
// CHECK-SAME: (%[[X:.*]]: tensor<0x2x4xf32>
// CHECK-NEXT: return %[[X]]
func.func @rotary_empty(%x: tensor<0x2x4xf32>, %cos: tensor<0x2xf32>, %sin: tensor<0x2xf32>) -> tensor<0x2x4xf32> {
  %r = moe.rotary %x, %cos, %sin : (tensor<0x2x4xf32>, tensor<0x2xf32>, tensor<0x2xf32>) -> tensor<0x2x4xf32>
  return %r : tensor<0x2x4xf32>
}

// There and back is the input only up to rounding.
// CHECK-LABEL: func.func @rotary_inverse
// CHECK: moe.rotary
// CHECK: moe.rotary {{.*}} inverse
func.func @rotary_inverse(%x: tensor<1x2x4xf32>, %cos: tensor<1x2xf32>, %sin: tensor<1x2xf32>) -> tensor<1x2x4xf32> {
  %r = moe.rotary %x, %cos, %sin : (tensor<1x2x4xf32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2x4xf32>
  %b = moe.rotary %r, %cos, %sin inverse : (tensor<1x2x4xf32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2x4xf32>
  return %b : tensor<1x2x4xf32>
}

// RUN: plateau-opt %s -pass-pipeline='builtin.module(func.func(moe-inline-checkpoints))' | FileCheck %s

// Bodies open where they stand, inner ones too, and equal ops stay apart.
// CHECK-LABEL: func.func @nested(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-NEXT: %[[E:.*]] = math.exp %[[X]]
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[E]], %[[X]]
// CHECK-NEXT: %[[R:.*]] = math.exp %[[X]]
// CHECK-NEXT: return %[[S]], %[[R]]
func.func @nested(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y = moe.checkpoint (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    %e = moe.checkpoint (%b = %a : tensor<4xf32>) -> tensor<4xf32> {
      %inner = math.exp %b : tensor<4xf32>
      moe.yield %inner : tensor<4xf32>
    }
    %s = arith.addf %e, %a : tensor<4xf32>
    moe.yield %s : tensor<4xf32>
  }
  %z = moe.checkpoint recompute (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    %r = math.exp %a : tensor<4xf32>
    moe.yield %r : tensor<4xf32>
  }
  return %y, %z : tensor<4xf32>, tensor<4xf32>
}

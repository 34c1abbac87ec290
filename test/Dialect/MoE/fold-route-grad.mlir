// RUN: plateau-opt %s -split-input-file -moe-fold-route-grad --mlir-print-local-scope | FileCheck %s

// The inner product with u = a · W2ᵀ becomes one with a, on the other side of the product that is needed anyway; nothing reads u.
// CHECK-LABEL: func.func @fold(
// CHECK-SAME: %[[PLAN:[^:]*]]: !moe.plan{{.*}}, %[[D:[^:]*]]: tensor<?x4xf32>, %[[A:[^:]*]]: tensor<?x3xf32>, %[[P:[^:]*]]: tensor<?xf32>, %[[W:[^:]*]]: tensor<2x4x3xf32>
// CHECK-NEXT: %[[DU:.*]] = moe.scale_rows %[[D]], %[[P]] : tensor<?x4xf32>, tensor<?xf32>
// CHECK-NEXT: %[[G:.*]] = moe.grouped_matmul %[[D]], %[[W]] by %[[PLAN]] : {{.*}} -> tensor<?x3xf32>
// CHECK-NEXT: %[[DP:.*]] = moe.row_dot %[[G]], %[[A]] : tensor<?x3xf32> -> tensor<?xf32>
// CHECK-NEXT: %[[DA:.*]] = moe.scale_rows %[[G]], %[[P]] : tensor<?x3xf32>, tensor<?xf32>
// CHECK-NEXT: %[[DW:.*]] = moe.grouped_matmul_grad %[[DU]], %[[A]] by %[[PLAN]]
// CHECK-NEXT: return %[[DP]], %[[DA]], %[[DW]]
!plan = !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 2>
func.func @fold(%plan: !plan, %d: tensor<?x4xf32>, %a: tensor<?x3xf32>, %p: tensor<?xf32>, %w: tensor<2x4x3xf32>)
    -> (tensor<?xf32>, tensor<?x3xf32>, tensor<2x4x3xf32>) {
  %u = moe.grouped_matmul %a, %w transpose by %plan : (tensor<?x3xf32>, tensor<2x4x3xf32>, !plan) -> tensor<?x4xf32>
  %du = moe.scale_rows %d, %p : tensor<?x4xf32>, tensor<?xf32>
  %dp = moe.row_dot %d, %u : tensor<?x4xf32> -> tensor<?xf32>
  %da = moe.grouped_matmul %du, %w by %plan : (tensor<?x4xf32>, tensor<2x4x3xf32>, !plan) -> tensor<?x3xf32>
  %dw = moe.grouped_matmul_grad %du, %a by %plan : (tensor<?x4xf32>, tensor<?x3xf32>, !plan) -> tensor<2x4x3xf32>
  return %dp, %da, %dw : tensor<?xf32>, tensor<?x3xf32>, tensor<2x4x3xf32>
}

// -----

// The operands of the inner product either way round, the inner product after the product, bf16, and weights as they are.
// CHECK-LABEL: func.func @turned(
// CHECK-SAME: %[[PLAN:[^:]*]]: !moe.plan{{.*}}, %[[D:[^:]*]]: tensor<?x4xbf16>, %[[A:[^:]*]]: tensor<?x3xbf16>, %[[P:[^:]*]]: tensor<?xf32>, %[[W:[^:]*]]: tensor<2x3x4xbf16>
// CHECK-NEXT: %[[G:.*]] = moe.grouped_matmul %[[D]], %[[W]] transpose by %[[PLAN]] : {{.*}} -> tensor<?x3xbf16>
// CHECK-NEXT: %[[DA:.*]] = moe.scale_rows %[[G]], %[[P]] : tensor<?x3xbf16>, tensor<?xf32>
// CHECK-NEXT: %[[DP:.*]] = moe.row_dot %[[G]], %[[A]] : tensor<?x3xbf16> -> tensor<?xf32>
// CHECK-NEXT: return %[[DP]], %[[DA]]
!plan = !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 2>
func.func @turned(%plan: !plan, %d: tensor<?x4xbf16>, %a: tensor<?x3xbf16>, %p: tensor<?xf32>, %w: tensor<2x3x4xbf16>)
    -> (tensor<?xf32>, tensor<?x3xbf16>) {
  %du = moe.scale_rows %d, %p : tensor<?x4xbf16>, tensor<?xf32>
  %u = moe.grouped_matmul %a, %w by %plan : (tensor<?x3xbf16>, tensor<2x3x4xbf16>, !plan) -> tensor<?x4xbf16>
  %da = moe.grouped_matmul %du, %w transpose by %plan : (tensor<?x4xbf16>, tensor<2x3x4xbf16>, !plan) -> tensor<?x3xbf16>
  %dp = moe.row_dot %u, %d : tensor<?x4xbf16> -> tensor<?xf32>
  return %dp, %da : tensor<?xf32>, tensor<?x3xbf16>
}

// -----

// Rows that are computed between the two products are read where they are there.
// CHECK-LABEL: func.func @late_rows(
// CHECK-NEXT: %[[G:.*]] = moe.grouped_matmul
// CHECK-NEXT: moe.scale_rows %[[G]]
// CHECK-NEXT: %[[A:.*]] = moe.swiglu
// CHECK-NEXT: moe.row_dot %[[G]], %[[A]]
// CHECK-NEXT: return
!plan = !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 2>
func.func @late_rows(%plan: !plan, %d: tensor<?x4xf32>, %h: tensor<?x6xf32>, %p: tensor<?xf32>, %w: tensor<2x4x3xf32>)
    -> (tensor<?xf32>, tensor<?x3xf32>) {
  %du = moe.scale_rows %d, %p : tensor<?x4xf32>, tensor<?xf32>
  %da = moe.grouped_matmul %du, %w by %plan : (tensor<?x4xf32>, tensor<2x4x3xf32>, !plan) -> tensor<?x3xf32>
  %a = moe.swiglu %h : tensor<?x6xf32> -> tensor<?x3xf32>
  %u = moe.grouped_matmul %a, %w transpose by %plan : (tensor<?x3xf32>, tensor<2x4x3xf32>, !plan) -> tensor<?x4xf32>
  %dp = moe.row_dot %d, %u : tensor<?x4xf32> -> tensor<?xf32>
  return %dp, %da : tensor<?xf32>, tensor<?x3xf32>
}

// -----

// Without the second product, there is nothing to share: the inner product stays where it is.
// CHECK-LABEL: func.func @no_second_product(
// CHECK: %[[U:.*]] = moe.grouped_matmul %{{.*}} transpose
// CHECK: moe.scale_rows
// CHECK: moe.row_dot %{{.*}}, %[[U]] : tensor<?x4xf32>
// CHECK-NOT: moe.grouped_matmul
!plan = !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 2>
func.func @no_second_product(%plan: !plan, %d: tensor<?x4xf32>, %a: tensor<?x3xf32>, %p: tensor<?xf32>, %w: tensor<2x4x3xf32>)
    -> (tensor<?xf32>, tensor<?x4xf32>) {
  %u = moe.grouped_matmul %a, %w transpose by %plan : (tensor<?x3xf32>, tensor<2x4x3xf32>, !plan) -> tensor<?x4xf32>
  %du = moe.scale_rows %d, %p : tensor<?x4xf32>, tensor<?xf32>
  %dp = moe.row_dot %d, %u : tensor<?x4xf32> -> tensor<?xf32>
  return %dp, %du : tensor<?xf32>, tensor<?x4xf32>
}

// -----

// A second product with other weights is another product.
// CHECK-LABEL: func.func @other_weights(
// CHECK: %[[U:.*]] = moe.grouped_matmul %{{.*}} transpose
// CHECK: moe.row_dot %{{.*}}, %[[U]] : tensor<?x4xf32>
// CHECK: moe.grouped_matmul
!plan = !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 2>
func.func @other_weights(%plan: !plan, %d: tensor<?x4xf32>, %a: tensor<?x3xf32>, %p: tensor<?xf32>, %w: tensor<2x4x3xf32>, %v: tensor<2x4x3xf32>)
    -> (tensor<?xf32>, tensor<?x3xf32>) {
  %u = moe.grouped_matmul %a, %w transpose by %plan : (tensor<?x3xf32>, tensor<2x4x3xf32>, !plan) -> tensor<?x4xf32>
  %du = moe.scale_rows %d, %p : tensor<?x4xf32>, tensor<?xf32>
  %dp = moe.row_dot %d, %u : tensor<?x4xf32> -> tensor<?xf32>
  %da = moe.grouped_matmul %du, %v by %plan : (tensor<?x4xf32>, tensor<2x4x3xf32>, !plan) -> tensor<?x3xf32>
  return %dp, %da : tensor<?xf32>, tensor<?x3xf32>
}

// -----

// So is one by another plan, and one that is not turned round (here square).
// CHECK-LABEL: func.func @other_plan(
// CHECK: %[[U:.*]] = moe.grouped_matmul
// CHECK: moe.row_dot %{{.*}}, %[[U]]
!plan = !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 2>
func.func @other_plan(%plan: !plan, %other: !plan, %d: tensor<?x4xf32>, %a: tensor<?x4xf32>, %p: tensor<?xf32>, %w: tensor<2x4x4xf32>)
    -> (tensor<?xf32>, tensor<?x4xf32>, tensor<?x4xf32>) {
  %u = moe.grouped_matmul %a, %w transpose by %plan : (tensor<?x4xf32>, tensor<2x4x4xf32>, !plan) -> tensor<?x4xf32>
  %du = moe.scale_rows %d, %p : tensor<?x4xf32>, tensor<?xf32>
  %dp = moe.row_dot %d, %u : tensor<?x4xf32> -> tensor<?xf32>
  %x = moe.grouped_matmul %du, %w by %other : (tensor<?x4xf32>, tensor<2x4x4xf32>, !plan) -> tensor<?x4xf32>
  %y = moe.grouped_matmul %du, %w transpose by %plan : (tensor<?x4xf32>, tensor<2x4x4xf32>, !plan) -> tensor<?x4xf32>
  return %dp, %x, %y : tensor<?xf32>, tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// The rows that are scaled must be those of the inner product.
// CHECK-LABEL: func.func @other_rows(
// CHECK: %[[U:.*]] = moe.grouped_matmul
// CHECK: moe.row_dot %{{.*}}, %[[U]]
!plan = !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 2>
func.func @other_rows(%plan: !plan, %d: tensor<?x4xf32>, %e: tensor<?x4xf32>, %a: tensor<?x3xf32>, %p: tensor<?xf32>, %w: tensor<2x4x3xf32>)
    -> (tensor<?xf32>, tensor<?x3xf32>) {
  %u = moe.grouped_matmul %a, %w transpose by %plan : (tensor<?x3xf32>, tensor<2x4x3xf32>, !plan) -> tensor<?x4xf32>
  %du = moe.scale_rows %e, %p : tensor<?x4xf32>, tensor<?xf32>
  %dp = moe.row_dot %d, %u : tensor<?x4xf32> -> tensor<?xf32>
  %da = moe.grouped_matmul %du, %w by %plan : (tensor<?x4xf32>, tensor<2x4x3xf32>, !plan) -> tensor<?x3xf32>
  return %dp, %da : tensor<?xf32>, tensor<?x3xf32>
}

// -----

// An output of the experts that something else reads is computed for that all the same.
// CHECK-LABEL: func.func @output_is_read(
// CHECK: %[[U:.*]] = moe.grouped_matmul %{{.*}} transpose
// CHECK: %[[G:.*]] = moe.grouped_matmul
// CHECK: moe.row_dot %[[G]], %{{.*}} : tensor<?x3xf32>
// CHECK: return %[[U]]
!plan = !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 2>
func.func @output_is_read(%plan: !plan, %d: tensor<?x4xf32>, %a: tensor<?x3xf32>, %p: tensor<?xf32>, %w: tensor<2x4x3xf32>)
    -> (tensor<?x4xf32>, tensor<?xf32>, tensor<?x3xf32>) {
  %u = moe.grouped_matmul %a, %w transpose by %plan : (tensor<?x3xf32>, tensor<2x4x3xf32>, !plan) -> tensor<?x4xf32>
  %du = moe.scale_rows %d, %p : tensor<?x4xf32>, tensor<?xf32>
  %dp = moe.row_dot %d, %u : tensor<?x4xf32> -> tensor<?xf32>
  %da = moe.grouped_matmul %du, %w by %plan : (tensor<?x4xf32>, tensor<2x4x3xf32>, !plan) -> tensor<?x3xf32>
  return %u, %dp, %da : tensor<?x4xf32>, tensor<?xf32>, tensor<?x3xf32>
}

// -----

// The inner product of a product with itself is left alone, and so is one of plain rows.
// CHECK-LABEL: func.func @nothing(
// CHECK: moe.row_dot %[[U:.*]], %[[U]]
// CHECK: moe.row_dot %[[D:.*]], %[[D]]
!plan = !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 2>
func.func @nothing(%plan: !plan, %d: tensor<?x4xf32>, %a: tensor<?x3xf32>, %w: tensor<2x4x3xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %u = moe.grouped_matmul %a, %w transpose by %plan : (tensor<?x3xf32>, tensor<2x4x3xf32>, !plan) -> tensor<?x4xf32>
  %x = moe.row_dot %u, %u : tensor<?x4xf32> -> tensor<?xf32>
  %y = moe.row_dot %d, %d : tensor<?x4xf32> -> tensor<?xf32>
  return %x, %y : tensor<?xf32>, tensor<?xf32>
}

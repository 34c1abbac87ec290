// RUN: plateau-opt %s --mlir-print-local-scope | FileCheck %s
// RUN: plateau-opt %s | plateau-opt --mlir-print-local-scope | FileCheck %s
// RUN: plateau-opt %s --mlir-print-op-generic | plateau-opt --mlir-print-local-scope | FileCheck %s
// RUN: plateau-opt %s --emit-bytecode -o %t.mlirbc && plateau-opt %t.mlirbc --mlir-print-local-scope | FileCheck %s

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
!all = !moe.plan<experts = 6, ranks = 1, tokens = 8, top_k = 3>
!empty = !moe.plan<experts = 4, ranks = 2, tokens = 0, top_k = 1>

// CHECK: shard.grid @experts(shape = 3x2)
shard.grid @experts(shape = 3x2)
shard.grid @alone(shape = 1)

// CHECK-LABEL: func.func @route
func.func @route(%logits: tensor<8x4xf32>, %dweights: tensor<8x2xf32>) -> (tensor<8x4xf32>, tensor<4xi32>) {
  // CHECK: %[[IDS:[^ ,:]*]], %{{.*}}, %{{.*}} = moe.route %[[L:[^ ,:]*]] routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.000000e+00 : f32> : (tensor<8x4xf32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<4xi32>)
  %ids, %weights, %counts = moe.route %logits routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<4xi32>)
  // CHECK: moe.route_grad %{{.*}}, %[[L]], %[[IDS]] routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.000000e+00 : f32> : (tensor<8x2xf32>, tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8x4xf32>
  %d = moe.route_grad %dweights, %logits, %ids routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x2xf32>, tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8x4xf32>
  return %d, %counts : tensor<8x4xf32>, tensor<4xi32>
}

// CHECK-LABEL: func.func @route_bias
func.func @route_bias(%logits: tensor<8x6xf32>, %bias: tensor<6xf32>) -> (tensor<8x3xi32>, tensor<8x3xf32>) {
  // CHECK: moe.route %{{.*}} bias(%{{.*}}) routing <top_k = 3, score = sigmoid, groups = 3, kept_groups = 2, normalize = true, scale = 2.500000e+00 : f32> : (tensor<8x6xf32>, tensor<6xf32>) -> (tensor<8x3xi32>, tensor<8x3xf32>, tensor<6xi32>)
  %ids, %weights, %counts = moe.route %logits bias(%bias) routing <top_k = 3, score = sigmoid, groups = 3, kept_groups = 2, normalize = true, scale = 2.5 : f32> : (tensor<8x6xf32>, tensor<6xf32>) -> (tensor<8x3xi32>, tensor<8x3xf32>, tensor<6xi32>)
  return %ids, %weights : tensor<8x3xi32>, tensor<8x3xf32>
}

// CHECK-LABEL: func.func @route_all
func.func @route_all(%logits: tensor<8x4xf32>) -> tensor<8x4xi32> {
  // CHECK: moe.route %{{.*}} routing <top_k = 4, score = top_k_softmax, groups = 1, kept_groups = 1, normalize = false, scale = 1.000000e+00 : f32>
  %ids, %weights, %counts = moe.route %logits routing <top_k = 4, score = top_k_softmax, groups = 1, kept_groups = 1, normalize = false, scale = 1.0 : f32> : (tensor<8x4xf32>) -> (tensor<8x4xi32>, tensor<8x4xf32>, tensor<4xi32>)
  return %ids : tensor<8x4xi32>
}

// CHECK-LABEL: func.func @route_padded
func.func @route_padded(%logits: tensor<8x4xf32>, %bias: tensor<4xf32>, %n: tensor<i32>) -> (tensor<8x2xi32>, tensor<8x2xi32>) {
  // CHECK: moe.route %{{.*}} token_count(%{{.*}}) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.000000e+00 : f32> : (tensor<8x4xf32>, tensor<i32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<4xi32>)
  %ids, %weights, %counts = moe.route %logits token_count(%n) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<i32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<4xi32>)
  // CHECK: moe.route %{{.*}} bias(%{{.*}}) token_count(%{{.*}}) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.000000e+00 : f32> : (tensor<8x4xf32>, tensor<4xf32>, tensor<i32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<4xi32>)
  %biased, %others, %loads = moe.route %logits bias(%bias) token_count(%n) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<4xf32>, tensor<i32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<4xi32>)
  return %ids, %biased : tensor<8x2xi32>, tensor<8x2xi32>
}

// CHECK-LABEL: func.func @dispatch
func.func @dispatch(%ids: tensor<8x2xi32>, %x: tensor<8x5xf32>, %p: tensor<8x2xf32>) -> (tensor<8x5xf32>, tensor<8x2xf32>) {
  // CHECK: %[[PLAN:[^ ,:]*]] = moe.plan %{{.*}} on @experts : tensor<8x2xi32> -> !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
  %plan = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
  // CHECK: %[[R:[^ ,:]*]], %[[V:[^ ,:]*]] = moe.dispatch rows(%[[X:[^ ,:]*]] : tensor<8x5xf32> -> tensor<?x5xf32>) values(%[[P:[^ ,:]*]] : tensor<8x2xf32> -> tensor<?xf32>) by %[[PLAN]] on @experts : !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
  %rows, %values = moe.dispatch rows(%x : tensor<8x5xf32> -> tensor<?x5xf32>) values(%p : tensor<8x2xf32> -> tensor<?xf32>) by %plan on @experts : !plan
  // CHECK: moe.dispatch rows(%[[X]] : tensor<8x5xf32> -> tensor<?x5xf32>) by %[[PLAN]] on @experts : !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
  %only_rows = moe.dispatch rows(%x : tensor<8x5xf32> -> tensor<?x5xf32>) by %plan on @experts : !plan
  // CHECK: moe.dispatch values(%[[P]] : tensor<8x2xf32> -> tensor<?xf32>) by %[[PLAN]] on @experts : !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
  %only_values = moe.dispatch values(%p : tensor<8x2xf32> -> tensor<?xf32>) by %plan on @experts : !plan
  // CHECK: %[[Y:[^ ,:]*]], %[[Q:[^ ,:]*]] = moe.combine rows(%[[R]] : tensor<?x5xf32> -> tensor<8x5xf32>) values(%[[V]] : tensor<?xf32> -> tensor<8x2xf32>) by %[[PLAN]] on @experts : !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
  %y, %q = moe.combine rows(%rows : tensor<?x5xf32> -> tensor<8x5xf32>) values(%values : tensor<?xf32> -> tensor<8x2xf32>) by %plan on @experts : !plan
  // CHECK: moe.combine rows(%[[R]] : tensor<?x5xf32> -> tensor<8x5xf32>) by %[[PLAN]] on @experts : !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
  %only_y = moe.combine rows(%rows : tensor<?x5xf32> -> tensor<8x5xf32>) by %plan on @experts : !plan
  // CHECK: moe.combine values(%[[V]] : tensor<?xf32> -> tensor<8x2xf32>) by %[[PLAN]] on @experts : !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
  %only_q = moe.combine values(%values : tensor<?xf32> -> tensor<8x2xf32>) by %plan on @experts : !plan
  return %y, %q : tensor<8x5xf32>, tensor<8x2xf32>
}

// CHECK-LABEL: func.func @dispatch_bf16
func.func @dispatch_bf16(%ids: tensor<8x3xi32>, %x: tensor<8x5xbf16>) -> tensor<8x5xbf16> {
  %plan = moe.plan %ids on @alone : tensor<8x3xi32> -> !all
  // CHECK: moe.dispatch rows(%{{.*}} : tensor<8x5xbf16> -> tensor<?x5xbf16>)
  %rows = moe.dispatch rows(%x : tensor<8x5xbf16> -> tensor<?x5xbf16>) by %plan on @alone : !all
  // CHECK: moe.combine rows(%{{.*}} : tensor<?x5xbf16> -> tensor<8x5xbf16>)
  %y = moe.combine rows(%rows : tensor<?x5xbf16> -> tensor<8x5xbf16>) by %plan on @alone : !all
  return %y : tensor<8x5xbf16>
}

// CHECK-LABEL: func.func @expert_products
func.func @expert_products(%plan: !plan, %rows: tensor<?x5xf32>, %factors: tensor<?xf32>, %w13: tensor<2x6x5xf32>, %w2: tensor<2x5x3xf32>)
    -> (tensor<?x5xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<?xf32>) {
  // CHECK: %[[H:[^ ,:]*]] = moe.grouped_matmul %{{.*}}, %{{.*}} transpose by %[[PLAN:[^ ,:]*]] : (tensor<?x5xf32>, tensor<2x6x5xf32>, !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>) -> tensor<?x6xf32>
  %h = moe.grouped_matmul %rows, %w13 transpose by %plan : (tensor<?x5xf32>, tensor<2x6x5xf32>, !plan) -> tensor<?x6xf32>
  // CHECK: %[[A:[^ ,:]*]] = moe.swiglu %[[H]] : tensor<?x6xf32> -> tensor<?x3xf32>
  %a = moe.swiglu %h : tensor<?x6xf32> -> tensor<?x3xf32>
  // CHECK: %[[U:[^ ,:]*]] = moe.grouped_matmul %[[A]], %{{.*}} transpose by %[[PLAN]] : (tensor<?x3xf32>, tensor<2x5x3xf32>, !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>) -> tensor<?x5xf32>
  %u = moe.grouped_matmul %a, %w2 transpose by %plan : (tensor<?x3xf32>, tensor<2x5x3xf32>, !plan) -> tensor<?x5xf32>
  // CHECK: %[[Z:[^ ,:]*]] = moe.scale_rows %[[U]], %{{.*}} : tensor<?x5xf32>, tensor<?xf32>
  %z = moe.scale_rows %u, %factors : tensor<?x5xf32>, tensor<?xf32>
  // CHECK: %[[DA:[^ ,:]*]] = moe.grouped_matmul %[[Z]], %{{.*}} by %[[PLAN]] : (tensor<?x5xf32>, tensor<2x5x3xf32>, !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>) -> tensor<?x3xf32>
  %da = moe.grouped_matmul %z, %w2 by %plan : (tensor<?x5xf32>, tensor<2x5x3xf32>, !plan) -> tensor<?x3xf32>
  // CHECK: %[[DP:[^ ,:]*]] = moe.row_dot %[[DA]], %[[A]] : tensor<?x3xf32> -> tensor<?xf32>
  %dp = moe.row_dot %da, %a : tensor<?x3xf32> -> tensor<?xf32>
  // CHECK: %[[DW:[^ ,:]*]] = moe.grouped_matmul_grad %[[Z]], %[[A]] by %[[PLAN]] : (tensor<?x5xf32>, tensor<?x3xf32>, !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>) -> tensor<2x5x3xf32>
  %dw = moe.grouped_matmul_grad %z, %a by %plan : (tensor<?x5xf32>, tensor<?x3xf32>, !plan) -> tensor<2x5x3xf32>
  // CHECK: moe.grouped_matmul_grad %[[Z]], %[[A]] by %[[PLAN]] onto %[[DW]] : (tensor<?x5xf32>, tensor<?x3xf32>, !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %sum = moe.grouped_matmul_grad %z, %a by %plan onto %dw : (tensor<?x5xf32>, tensor<?x3xf32>, !plan, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  // CHECK: moe.swiglu_grad %[[DA]], %[[H]] : tensor<?x3xf32>, tensor<?x6xf32>
  %dh = moe.swiglu_grad %da, %h : tensor<?x3xf32>, tensor<?x6xf32>
  return %z, %dw, %sum, %dp : tensor<?x5xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<?xf32>
}

// CHECK-LABEL: func.func @expert_products_bf16
func.func @expert_products_bf16(%plan: !all, %rows: tensor<?x5xbf16>, %factors: tensor<?xf32>, %w: tensor<6x8x5xbf16>) -> (tensor<?x5xbf16>, tensor<?xf32>) {
  // CHECK: moe.grouped_matmul {{.*}} : (tensor<?x5xbf16>, tensor<6x8x5xbf16>, !moe.plan<experts = 6, ranks = 1, tokens = 8, top_k = 3>) -> tensor<?x8xbf16>
  %h = moe.grouped_matmul %rows, %w transpose by %plan : (tensor<?x5xbf16>, tensor<6x8x5xbf16>, !all) -> tensor<?x8xbf16>
  // CHECK: moe.swiglu {{.*}} : tensor<?x8xbf16> -> tensor<?x4xbf16>
  %a = moe.swiglu %h : tensor<?x8xbf16> -> tensor<?x4xbf16>
  // CHECK: moe.swiglu_grad {{.*}} : tensor<?x4xbf16>, tensor<?x8xbf16>
  %dh = moe.swiglu_grad %a, %h : tensor<?x4xbf16>, tensor<?x8xbf16>
  // The gradient of bf16 weights is theirs, or f32.
  // CHECK: moe.grouped_matmul_grad {{.*}} -> tensor<6x8x5xbf16>
  %dw = moe.grouped_matmul_grad %dh, %rows by %plan : (tensor<?x8xbf16>, tensor<?x5xbf16>, !all) -> tensor<6x8x5xbf16>
  // CHECK: moe.grouped_matmul_grad {{.*}} -> tensor<6x8x5xf32>
  %wide = moe.grouped_matmul_grad %dh, %rows by %plan : (tensor<?x8xbf16>, tensor<?x5xbf16>, !all) -> tensor<6x8x5xf32>
  // CHECK: moe.scale_rows {{.*}} : tensor<?x5xbf16>, tensor<?xf32>
  %z = moe.scale_rows %rows, %factors : tensor<?x5xbf16>, tensor<?xf32>
  // CHECK: moe.row_dot {{.*}} : tensor<?x5xbf16> -> tensor<?xf32>
  %dot = moe.row_dot %z, %rows : tensor<?x5xbf16> -> tensor<?xf32>
  return %z, %dot : tensor<?x5xbf16>, tensor<?xf32>
}

// What works row by row takes rows of a known number too, and there may be none.
// CHECK-LABEL: func.func @static_rows
func.func @static_rows(%x: tensor<8x6xf32>, %f: tensor<8xf32>, %none: tensor<0x6xf32>, %nothing: tensor<0xf32>) -> tensor<8xf32> {
  // CHECK: moe.scale_rows {{.*}} : tensor<8x6xf32>, tensor<8xf32>
  %y = moe.scale_rows %x, %f : tensor<8x6xf32>, tensor<8xf32>
  // CHECK: moe.row_dot {{.*}} : tensor<8x6xf32> -> tensor<8xf32>
  %d = moe.row_dot %x, %y : tensor<8x6xf32> -> tensor<8xf32>
  // CHECK: moe.swiglu {{.*}} : tensor<8x6xf32> -> tensor<8x3xf32>
  %a = moe.swiglu %x : tensor<8x6xf32> -> tensor<8x3xf32>
  // CHECK: moe.scale_rows {{.*}} : tensor<0x6xf32>, tensor<0xf32>
  %z = moe.scale_rows %none, %nothing : tensor<0x6xf32>, tensor<0xf32>
  // CHECK: moe.swiglu {{.*}} : tensor<0x6xf32> -> tensor<0x3xf32>
  %e = moe.swiglu %none : tensor<0x6xf32> -> tensor<0x3xf32>
  return %d : tensor<8xf32>
}

// CHECK-LABEL: func.func @no_tokens
func.func @no_tokens(%logits: tensor<0x4xf32>, %x: tensor<0x5xf32>) -> tensor<0x5xf32> {
  // CHECK: moe.route {{.*}} -> (tensor<0x1xi32>, tensor<0x1xf32>, tensor<4xi32>)
  %ids, %weights, %counts = moe.route %logits routing <top_k = 1, score = softmax, groups = 1, kept_groups = 1, normalize = false, scale = 1.0 : f32> : (tensor<0x4xf32>) -> (tensor<0x1xi32>, tensor<0x1xf32>, tensor<4xi32>)
  // CHECK: moe.route_grad {{.*}} -> tensor<0x4xf32>
  %d = moe.route_grad %weights, %logits, %ids routing <top_k = 1, score = softmax, groups = 1, kept_groups = 1, normalize = false, scale = 1.0 : f32> : (tensor<0x1xf32>, tensor<0x4xf32>, tensor<0x1xi32>) -> tensor<0x4xf32>
  // CHECK: moe.plan {{.*}} -> !moe.plan<experts = 4, ranks = 2, tokens = 0, top_k = 1>
  %plan = moe.plan %ids on @experts : tensor<0x1xi32> -> !empty
  // CHECK: moe.dispatch rows(%{{.*}} : tensor<0x5xf32> -> tensor<?x5xf32>)
  %rows = moe.dispatch rows(%x : tensor<0x5xf32> -> tensor<?x5xf32>) by %plan on @experts : !empty
  // CHECK: moe.combine rows(%{{.*}} : tensor<?x5xf32> -> tensor<0x5xf32>)
  %y = moe.combine rows(%rows : tensor<?x5xf32> -> tensor<0x5xf32>) by %plan on @experts : !empty
  return %y : tensor<0x5xf32>
}

// A plan passes through a checkpoint region.
// CHECK-LABEL: func.func @plan_in_checkpoint
func.func @plan_in_checkpoint(%ids: tensor<8x2xi32>, %p: tensor<8x2xf32>) -> tensor<8x2xf32> {
  // CHECK: moe.checkpoint (%{{.*}} = %{{.*}} : tensor<8x2xi32>) -> !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2> {
  %plan = moe.checkpoint (%i = %ids : tensor<8x2xi32>) -> !plan {
    %own = moe.plan %i on @experts : tensor<8x2xi32> -> !plan
    // CHECK: moe.yield %{{.*}} : !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
    moe.yield %own : !plan
  }
  %v = moe.dispatch values(%p : tensor<8x2xf32> -> tensor<?xf32>) by %plan on @experts : !plan
  %q = moe.combine values(%v : tensor<?xf32> -> tensor<8x2xf32>) by %plan on @experts : !plan
  return %q : tensor<8x2xf32>
}

// A plan of several iterations with helpers: ops name an iteration, combine writes its tokens into what is there, and weights and gradients come
// in two parts.
!chunked = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1, chunks = 2, leaves = 4, capacity = 6>
// CHECK-LABEL: func.func @iterations
func.func @iterations(%ids: tensor<8x2xi32>, %x: tensor<8x4xf32>, %p: tensor<8x2xf32>, %w: tensor<2x6x4xf32>, %i: index)
    -> (tensor<8x4xf32>, tensor<8x2xf32>, tensor<2x6x4xf32>) {
  // CHECK: %[[PLAN:.*]] = moe.plan %{{.*}} balance <alpha = 11 over 10, min_rows = 2, threshold = 13 over 10> on @experts : tensor<8x2xi32> -> !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1, chunks = 2, leaves = 4, capacity = 6>
  %plan = moe.plan %ids balance <alpha = 11 over 10, min_rows = 2, threshold = 13 over 10> on @experts : tensor<8x2xi32> -> !chunked
  // CHECK: %[[WH:.*]] = moe.migrate_experts %{{.*}} by %[[PLAN]] on @experts : (tensor<2x6x4xf32>, {{.*}}) -> tensor<1x6x4xf32>
  %wh = moe.migrate_experts %w by %plan on @experts : (tensor<2x6x4xf32>, !chunked) -> tensor<1x6x4xf32>
  // CHECK: moe.dispatch rows({{.*}}) values({{.*}}) by %[[PLAN]] at %[[I:.*]] on @experts
  %rows, %v = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) values(%p : tensor<8x2xf32> -> tensor<?xf32>) by %plan at %i on @experts : !chunked
  // CHECK: moe.grouped_matmul %{{.*}}, %{{.*}} helpers(%[[WH]]) transpose by %[[PLAN]] at %[[I]] :
  %h = moe.grouped_matmul %rows, %w helpers(%wh) transpose by %plan at %i : (tensor<?x4xf32>, tensor<2x6x4xf32>, !chunked, tensor<1x6x4xf32>, index) -> tensor<?x6xf32>
  // CHECK: %[[DW:.*]], %[[DWH:.*]] = moe.grouped_matmul_grad %{{.*}}, %{{.*}} by %[[PLAN]] at %[[I]] onto %{{.*}}, %[[WH]] :
  %dw, %dwh = moe.grouped_matmul_grad %h, %rows by %plan at %i onto %w, %wh : (tensor<?x6xf32>, tensor<?x4xf32>, !chunked, tensor<2x6x4xf32>, tensor<1x6x4xf32>, index) -> (tensor<2x6x4xf32>, tensor<1x6x4xf32>)
  // CHECK: moe.combine rows({{.*}}) values({{.*}}) by %[[PLAN]] at %[[I]] into(%{{.*}} : tensor<8x4xf32>) values_into(%{{.*}} : tensor<8x2xf32>) on @experts
  %y, %q = moe.combine rows(%rows : tensor<?x4xf32> -> tensor<8x4xf32>) values(%v : tensor<?xf32> -> tensor<8x2xf32>) by %plan at %i into(%x : tensor<8x4xf32>) values_into(%p : tensor<8x2xf32>) on @experts : !chunked
  // CHECK: moe.return_expert_grads %[[DW]], %[[DWH]] by %[[PLAN]] on @experts : tensor<2x6x4xf32>, tensor<1x6x4xf32>, !moe.plan<
  %sum = moe.return_expert_grads %dw, %dwh by %plan on @experts : tensor<2x6x4xf32>, tensor<1x6x4xf32>, !chunked
  return %y, %q, %sum : tensor<8x4xf32>, tensor<8x2xf32>, tensor<2x6x4xf32>
}

// Helpers without iterations.
!helped = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 2>
// CHECK-LABEL: func.func @helpers
func.func @helpers(%x: tensor<?x6xf32>, %y: tensor<?x4xf32>, %plan: !helped) -> (tensor<2x6x4xf32>, tensor<2x6x4xf32>) {
  // CHECK: moe.grouped_matmul_grad %{{.*}}, %{{.*}} by %{{.*}} : (tensor<?x6xf32>, tensor<?x4xf32>, !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 2>) -> (tensor<2x6x4xf32>, tensor<2x6x4xf32>)
  %dw, %dwh = moe.grouped_matmul_grad %x, %y by %plan : (tensor<?x6xf32>, tensor<?x4xf32>, !helped) -> (tensor<2x6x4xf32>, tensor<2x6x4xf32>)
  return %dw, %dwh : tensor<2x6x4xf32>, tensor<2x6x4xf32>
}

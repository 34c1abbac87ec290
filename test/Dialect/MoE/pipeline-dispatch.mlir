// RUN: plateau-opt %s --split-input-file --moe-pipeline-dispatch="max-chunks=2 helper-slots=1" | FileCheck %s
// RUN: plateau-opt %s --split-input-file --moe-pipeline-dispatch="max-chunks=2 balance=none" | FileCheck %s --check-prefix=NONE
// RUN: plateau-opt %s --split-input-file --moe-pipeline-dispatch="helper-slots=1 alpha=1.25 min-rows=3 imbalance-threshold=3/2" | FileCheck %s --check-prefix=WHOLE
// RUN: plateau-opt %s --split-input-file --moe-pipeline-dispatch="max-chunks=2 helper-slots=1 in-flight=3" | FileCheck %s --check-prefix=FLIGHT
// RUN: plateau-opt %s --split-input-file --moe-pipeline-dispatch="balance=none" | FileCheck %s --check-prefix=PLAIN

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
#routing = #moe.routing<top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32>
shard.grid @experts(shape = 2)

// A layer with checkpoints: one loop forward, and one for its repetition and the backward pass together. Of 2 · min(2, 2 + 1) rows for
// the four tokens of a chunk, none is too many: 16 rows.
// CHECK-LABEL: func.func @layer
// CHECK: %[[FORWARD:.*]]:2 = moe.checkpoint (%[[X:.*]] = %{{.*}}, %[[LOGITS:.*]] = %{{.*}}, %[[W13:.*]] = %{{.*}}, %[[W2:.*]] = %{{.*}}) -> (tensor<8x4xf32>, !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1, chunks = 2, capacity = 16>)
// CHECK:   %[[IDS:.*]], %[[WEIGHTS:.*]], %{{.*}} = moe.route
// CHECK:   %[[PLAN:.*]] = moe.plan %[[IDS]] balance <alpha = 1 over 1, min_rows = 1024, threshold = 13 over 10> on @experts
// CHECK-SAME: -> !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1, chunks = 2, capacity = 16>
// CHECK:   %[[H13:.*]] = moe.migrate_experts %[[W13]] by %[[PLAN]] on @experts {{.*}} -> tensor<1x6x4xf32>
// CHECK:   %[[H2:.*]] = moe.migrate_experts %[[W2]] by %[[PLAN]] on @experts {{.*}} -> tensor<1x4x3xf32>
// CHECK:   %[[ZERO:.*]] = linalg.fill {{.*}} -> tensor<8x4xf32>
// CHECK:   %[[Y:.*]] = scf.for %[[I:.*]] = %c0{{.*}} to %c2{{.*}} step %c1{{.*}} iter_args(%[[INTO:.*]] = %[[ZERO]]) -> (tensor<8x4xf32>)
// CHECK-NEXT: %[[ROWS:.*]], %[[P:.*]] = moe.dispatch rows(%[[X]] {{.*}} values(%[[WEIGHTS]] {{.*}} by %[[PLAN]] at %[[I]] on @experts {moe.stage = 0 : i64}
// CHECK-NEXT: %[[H:.*]] = moe.grouped_matmul %[[ROWS]], %[[W13]] helpers(%[[H13]]) transpose by %[[PLAN]] at %[[I]] {moe.stage = 1 : i64}
// CHECK-NEXT: %[[A:.*]] = moe.swiglu %[[H]] {moe.stage = 1 : i64}
// CHECK-NEXT: %[[Z:.*]] = moe.grouped_matmul %[[A]], %[[W2]] helpers(%[[H2]]) transpose by %[[PLAN]] at %[[I]] {moe.stage = 1 : i64}
// CHECK-NEXT: %[[S:.*]] = moe.scale_rows %[[Z]], %[[P]] {moe.stage = 1 : i64}
// CHECK-NEXT: %[[R:.*]] = moe.combine rows(%[[S]] {{.*}} by %[[PLAN]] at %[[I]] into(%[[INTO]] : tensor<8x4xf32>) on @experts {moe.stage = 2 : i64}
// CHECK-NEXT: scf.yield %[[R]]
// CHECK-NEXT: } {moe.in_flight = 2 : i64}
// CHECK-NEXT: moe.yield %[[Y]], %[[PLAN]]

// CHECK: moe.checkpoint recompute (%[[X:.*]] = %{{.*}}, %[[P0:.*]] = %{{.*}}, %[[W13:.*]] = %{{.*}}, %[[W2:.*]] = %{{.*}}, %[[PLAN:.*]] = %[[FORWARD]]#1 : !moe.plan<{{.*}}capacity = 16>, %[[DY:.*]] = %{{.*}})
// CHECK-COUNT-2: moe.migrate_experts
// CHECK-NOT: moe.migrate_experts
// CHECK: %[[LOOP:.*]]:6 = scf.for %[[I:.*]] = {{.*}} iter_args(%[[D2:.*]] = %{{.*}}, %[[E2:.*]] = %{{.*}}, %[[D13:.*]] = %{{.*}}, %[[E13:.*]] = %{{.*}}, %[[DX:.*]] = %{{.*}}, %[[DP:.*]] = %{{.*}}) -> (tensor<2x4x3xf32>, tensor<1x4x3xf32>, tensor<2x6x4xf32>, tensor<1x6x4xf32>, tensor<8x4xf32>, tensor<8x2xf32>)
// CHECK-NEXT: %[[ROWS:.*]], %[[P:.*]] = moe.dispatch rows(%[[X]] {{.*}} values(%[[P0]]
// CHECK-NEXT: %[[G:.*]] = moe.dispatch rows(%[[DY]]
// CHECK-NEXT: %[[H:.*]] = moe.grouped_matmul %[[ROWS]], %[[W13]] {{.*}} transpose
// CHECK-NEXT: %[[A:.*]] = moe.swiglu %[[H]]
// CHECK-NEXT: %[[SG:.*]] = moe.scale_rows %[[G]], %[[P]]
// CHECK-NEXT: %[[U:.*]] = moe.grouped_matmul %[[G]], %[[W2]]
// CHECK-NEXT: %[[DOT:.*]] = moe.row_dot %[[U]], %[[A]]
// CHECK-NEXT: %[[DA:.*]] = moe.scale_rows %[[U]], %[[P]]
// CHECK-NEXT: %[[R2:.*]], %[[S2:.*]] = moe.grouped_matmul_grad %[[SG]], %[[A]] by %[[PLAN]] at %[[I]] onto %[[D2]], %[[E2]] {moe.stage = 1 : i64}
// CHECK-NEXT: %[[DH:.*]] = moe.swiglu_grad %[[DA]], %[[H]]
// CHECK-NEXT: %[[DR:.*]] = moe.grouped_matmul %[[DH]], %[[W13]]
// CHECK-NEXT: %[[R13:.*]], %[[S13:.*]] = moe.grouped_matmul_grad %[[DH]], %[[ROWS]] by %[[PLAN]] at %[[I]] onto %[[D13]], %[[E13]]
// CHECK-NEXT: %[[RX:.*]], %[[RP:.*]] = moe.combine rows(%[[DR]] {{.*}} values(%[[DOT]] {{.*}} at %[[I]] into(%[[DX]] {{.*}} values_into(%[[DP]]
// CHECK-NEXT: scf.yield %[[R2]], %[[S2]], %[[R13]], %[[S13]], %[[RX]], %[[RP]]
// CHECK: %[[B2:.*]] = moe.return_expert_grads %[[LOOP]]#0, %[[LOOP]]#1 by %[[PLAN]] on @experts
// CHECK: %[[B13:.*]] = moe.return_expert_grads %[[LOOP]]#2, %[[LOOP]]#3 by %[[PLAN]] on @experts
// CHECK-NEXT: moe.yield %[[LOOP]]#4, %[[LOOP]]#5, %[[B13]], %[[B2]]
// CHECK-NOT: moe.dispatch

// Without helpers there is nothing to bring or to give back.
// NONE-LABEL: func.func @layer
// NONE-NOT: helper
// NONE-NOT: migrate
// NONE: moe.plan %{{.*}} on @experts : tensor<8x2xi32> -> !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, chunks = 2, capacity = 16>
// NONE: %[[LOOP:.*]]:4 = scf.for
// NONE: moe.yield %[[LOOP]]#2, %[[LOOP]]#3, %[[LOOP]]#1, %[[LOOP]]#0

// One iteration needs no loop.
// WHOLE-LABEL: func.func @layer
// WHOLE-NOT: scf.for
// WHOLE: moe.plan %{{.*}} balance <alpha = 5 over 4, min_rows = 3, threshold = 3 over 2> on @experts : tensor<8x2xi32> -> !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1>
// WHOLE: moe.checkpoint recompute
// WHOLE: moe.dispatch
// WHOLE: %[[H13:.*]] = moe.migrate_experts
// WHOLE-NEXT: moe.grouped_matmul {{.*}} helpers(%[[H13]]) transpose
// WHOLE: %[[H2:.*]] = moe.migrate_experts
// WHOLE-NEXT: moe.grouped_matmul {{.*}} helpers(%[[H2]]) by
// WHOLE: %[[D2:.*]], %[[E2:.*]] = moe.grouped_matmul_grad {{.*}} -> (tensor<2x4x3xf32>, tensor<1x4x3xf32>)
// WHOLE-NEXT: %[[B2:.*]] = moe.return_expert_grads %[[D2]], %[[E2]]
// WHOLE: moe.grouped_matmul {{.*}} helpers(%[[H13]]) by
// WHOLE: %[[D13:.*]], %[[E13:.*]] = moe.grouped_matmul_grad
// WHOLE-NEXT: %[[B13:.*]] = moe.return_expert_grads %[[D13]], %[[E13]]
// WHOLE: moe.yield %{{.*}}, %{{.*}}, %[[B13]], %[[B2]]
// WHOLE-NOT: moe.grouped_matmul_grad

// FLIGHT: {moe.in_flight = 3 : i64}

// One iteration and no balance: what was there.
// PLAIN-LABEL: func.func @layer
// PLAIN: moe.plan %{{.*}} on @experts : tensor<8x2xi32> -> !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
// PLAIN-NOT: scf.for
// PLAIN: moe.checkpoint recompute
// PLAIN: moe.grouped_matmul_grad {{.*}} -> tensor<2x4x3xf32>
func.func @layer(%x: tensor<8x4xf32>, %logits: tensor<8x4xf32>, %p: tensor<8x2xf32>, %w13: tensor<2x6x4xf32>,
                 %w2: tensor<2x4x3xf32>) -> (tensor<8x4xf32>, tensor<8x2xf32>, tensor<2x6x4xf32>, tensor<2x4x3xf32>) {
  %y:2 = moe.checkpoint (%a = %x : tensor<8x4xf32>, %b = %logits : tensor<8x4xf32>, %c = %w13 : tensor<2x6x4xf32>, %d = %w2 : tensor<2x4x3xf32>)
      -> (tensor<8x4xf32>, !plan) {
    %ids, %weights, %counts = moe.route %b routing #routing : (tensor<8x4xf32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<4xi32>)
    %plan = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
    %rows, %rp = moe.dispatch rows(%a : tensor<8x4xf32> -> tensor<?x4xf32>) values(%weights : tensor<8x2xf32> -> tensor<?xf32>) by %plan on @experts : !plan
    %h = moe.grouped_matmul %rows, %c transpose by %plan : (tensor<?x4xf32>, tensor<2x6x4xf32>, !plan) -> tensor<?x6xf32>
    %s = moe.swiglu %h : tensor<?x6xf32> -> tensor<?x3xf32>
    %z = moe.grouped_matmul %s, %d transpose by %plan : (tensor<?x3xf32>, tensor<2x4x3xf32>, !plan) -> tensor<?x4xf32>
    %u = moe.scale_rows %z, %rp : tensor<?x4xf32>, tensor<?xf32>
    %r = moe.combine rows(%u : tensor<?x4xf32> -> tensor<8x4xf32>) by %plan on @experts : !plan
    moe.yield %r, %plan : tensor<8x4xf32>, !plan
  }
  %g:4 = moe.checkpoint recompute (%a = %x : tensor<8x4xf32>, %b = %p : tensor<8x2xf32>, %c = %w13 : tensor<2x6x4xf32>, %d = %w2 : tensor<2x4x3xf32>, %plan = %y#1 : !plan, %dy = %y#0 : tensor<8x4xf32>)
      -> (tensor<8x4xf32>, tensor<8x2xf32>, tensor<2x6x4xf32>, tensor<2x4x3xf32>) {
    %rows, %rp = moe.dispatch rows(%a : tensor<8x4xf32> -> tensor<?x4xf32>) values(%b : tensor<8x2xf32> -> tensor<?xf32>) by %plan on @experts : !plan
    %h = moe.grouped_matmul %rows, %c transpose by %plan : (tensor<?x4xf32>, tensor<2x6x4xf32>, !plan) -> tensor<?x6xf32>
    %s = moe.swiglu %h : tensor<?x6xf32> -> tensor<?x3xf32>
    %rg = moe.dispatch rows(%dy : tensor<8x4xf32> -> tensor<?x4xf32>) by %plan on @experts : !plan
    %sg = moe.scale_rows %rg, %rp : tensor<?x4xf32>, tensor<?xf32>
    %u = moe.grouped_matmul %rg, %d by %plan : (tensor<?x4xf32>, tensor<2x4x3xf32>, !plan) -> tensor<?x3xf32>
    %dot = moe.row_dot %u, %s : tensor<?x3xf32> -> tensor<?xf32>
    %da = moe.scale_rows %u, %rp : tensor<?x3xf32>, tensor<?xf32>
    %d2 = moe.grouped_matmul_grad %sg, %s by %plan : (tensor<?x4xf32>, tensor<?x3xf32>, !plan) -> tensor<2x4x3xf32>
    %dh = moe.swiglu_grad %da, %h : tensor<?x3xf32>, tensor<?x6xf32>
    %dr = moe.grouped_matmul %dh, %c by %plan : (tensor<?x6xf32>, tensor<2x6x4xf32>, !plan) -> tensor<?x4xf32>
    %d13 = moe.grouped_matmul_grad %dh, %rows by %plan : (tensor<?x6xf32>, tensor<?x4xf32>, !plan) -> tensor<2x6x4xf32>
    %dx, %dp = moe.combine rows(%dr : tensor<?x4xf32> -> tensor<8x4xf32>) values(%dot : tensor<?xf32> -> tensor<8x2xf32>) by %plan on @experts : !plan
    moe.yield %dx, %dp, %d13, %d2 : tensor<8x4xf32>, tensor<8x2xf32>, tensor<2x6x4xf32>, tensor<2x4x3xf32>
  }
  return %g#0, %g#1, %g#2, %g#3 : tensor<8x4xf32>, tensor<8x2xf32>, tensor<2x6x4xf32>, tensor<2x4x3xf32>
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 3>
shard.grid @experts(shape = 2)

// Without a region the backward pass is a loop of its own, which sends the rows and multiplies them again. Ids that are not known to
// be distinct may send a token three times to one rank: 2 · 3 · 4 rows. In bf16 sums are f32 until they are complete, and start from
// what they are added to.
// CHECK-LABEL: func.func @apart
// CHECK: !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 3, helper_slots = 1, chunks = 2, capacity = 24>
// CHECK: %[[Y:.*]] = scf.for
// CHECK:   moe.dispatch rows(%arg0
// CHECK:   moe.grouped_matmul
// CHECK:   moe.combine
// CHECK: } {moe.in_flight = 2 : i64}
// CHECK: %[[T:.*]] = math.tanh %[[Y]]
// CHECK: %[[INIT:.*]] = arith.extf %arg3 : tensor<2x4x4xbf16> to tensor<2x4x4xf32>
// CHECK: %[[HELPER:.*]] = linalg.fill {{.*}} -> tensor<1x4x4xf32>
// CHECK: %[[LOOP:.*]]:3 = scf.for {{.*}} iter_args(%{{.*}} = %[[INIT]], %{{.*}} = %[[HELPER]], %{{.*}} = %{{.*}}) -> (tensor<2x4x4xf32>, tensor<1x4x4xf32>, tensor<8x4xbf16>)
// CHECK-DAG: moe.dispatch rows(%arg0 {{.*}} {moe.stage = 0 : i64}
// CHECK-DAG: moe.dispatch rows(%[[T]] {{.*}} {moe.stage = 0 : i64}
// CHECK:   moe.grouped_matmul_grad {{.*}} -> (tensor<2x4x4xf32>, tensor<1x4x4xf32>)
// CHECK: %[[SUM:.*]] = moe.return_expert_grads %[[LOOP]]#0, %[[LOOP]]#1
// CHECK: %[[D:.*]] = arith.truncf %[[SUM]] : tensor<2x4x4xf32> to tensor<2x4x4xbf16>
// CHECK: return %[[LOOP]]#2, %[[D]]
// WHOLE-LABEL: func.func @apart
// WHOLE: moe.dispatch rows(%arg0
// WHOLE-NOT: moe.dispatch rows(%arg0
// WHOLE: %[[H:.*]] = moe.migrate_experts %arg2
// WHOLE: moe.grouped_matmul {{.*}} helpers(%[[H]])
// The helpers come again for the backward pass: in between their places are for other layers.
// WHOLE: math.tanh
// WHOLE: %[[H:.*]] = moe.migrate_experts %arg2
// WHOLE-NEXT: moe.grouped_matmul {{.*}} helpers(%[[H]])
// WHOLE: %[[INIT:.*]] = arith.extf %arg3
// WHOLE: %[[D:.*]], %[[E:.*]] = moe.grouped_matmul_grad {{.*}} onto %[[INIT]], %{{.*}} : {{.*}} -> (tensor<2x4x4xf32>, tensor<1x4x4xf32>)
// WHOLE: moe.return_expert_grads %[[D]], %[[E]]
// WHOLE: arith.truncf
func.func @apart(%x: tensor<8x4xbf16>, %ids: tensor<8x3xi32>, %w: tensor<2x4x4xbf16>, %init: tensor<2x4x4xbf16>)
    -> (tensor<8x4xbf16>, tensor<2x4x4xbf16>) {
  %plan = moe.plan %ids on @experts : tensor<8x3xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<8x4xbf16> -> tensor<?x4xbf16>) by %plan on @experts : !plan
  %h = moe.grouped_matmul %rows, %w transpose by %plan : (tensor<?x4xbf16>, tensor<2x4x4xbf16>, !plan) -> tensor<?x4xbf16>
  %y = moe.combine rows(%h : tensor<?x4xbf16> -> tensor<8x4xbf16>) by %plan on @experts : !plan
  %dy = math.tanh %y : tensor<8x4xbf16>
  %rg = moe.dispatch rows(%dy : tensor<8x4xbf16> -> tensor<?x4xbf16>) by %plan on @experts : !plan
  %dr = moe.grouped_matmul %rg, %w by %plan : (tensor<?x4xbf16>, tensor<2x4x4xbf16>, !plan) -> tensor<?x4xbf16>
  %d = moe.grouped_matmul_grad %rg, %rows by %plan onto %init : (tensor<?x4xbf16>, tensor<?x4xbf16>, !plan, tensor<2x4x4xbf16>) -> tensor<2x4x4xbf16>
  %dx = moe.combine rows(%dr : tensor<?x4xbf16> -> tensor<8x4xbf16>) by %plan on @experts : !plan
  return %dx, %d : tensor<8x4xbf16>, tensor<2x4x4xbf16>
}

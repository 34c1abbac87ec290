// RUN: plateau-opt %s --split-input-file --moe-pipeline-dispatch="max-chunks=2 balance=none" --remarks-filter=moe-pipeline-dispatch > %t.out 2> %t.remarks
// RUN: FileCheck %s < %t.out
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// Two layers in one region, as their second evaluation and backward pass: the first one's output is needed by the second, so its
// forward pass is a loop, and its backward pass another. The second layer's output is not needed, and its two passes are one loop.
// CHECK-LABEL: func.func @nested
// CHECK: %[[Y:.*]] = scf.for
// CHECK: moe.dispatch rows(%arg0
// CHECK: moe.grouped_matmul {{.*}} transpose by %[[FIRST:.*]] at
// CHECK: moe.combine
// CHECK: scf.yield
// CHECK: %[[T:.*]] = math.tanh %[[Y]]
// CHECK: %[[SECOND:.*]]:2 = scf.for
// CHECK: moe.dispatch rows(%[[T]]
// CHECK-NEXT: moe.dispatch rows(%arg2
// CHECK-NEXT: moe.grouped_matmul {{.*}} by %[[LAST:.*]] at
// CHECK-NEXT: moe.grouped_matmul_grad {{.*}} by %[[LAST]] at
// CHECK-NEXT: moe.combine
// CHECK-NEXT: scf.yield
// CHECK: %[[FIRSTS:.*]]:2 = scf.for
// CHECK-NEXT: moe.dispatch rows(%arg0
// CHECK-NEXT: moe.dispatch rows(%[[SECOND]]#1
// CHECK-NEXT: moe.grouped_matmul {{.*}} by %[[FIRST]] at
// CHECK-NEXT: moe.grouped_matmul_grad
// CHECK-NEXT: moe.combine
// CHECK-NEXT: scf.yield
// CHECK: return %[[FIRSTS]]#1, %[[FIRSTS]]#0, %[[SECOND]]#0
// CHECK-NOT: moe.dispatch
// A loop that sends again says so: one row more to each expert, and no product.
// REMARK: Passed] plan | {{.*}} Loops=2,
// REMARK: Analysis] repeated | Category:moe-pipeline-dispatch | Dispatches=1, MeanFlops=0, Ops=1
// REMARK: Passed] plan | {{.*}} Loops=1,
!plan = !moe.plan<experts = 2, ranks = 2, tokens = 4, top_k = 1>
shard.grid @experts(shape = 2)
func.func @nested(%x: tensor<4x2xf32>, %ids: tensor<4x1xi32>, %dy: tensor<4x2xf32>, %v: tensor<1x2x2xf32>, %w: tensor<1x2x2xf32>)
    -> (tensor<4x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>) {
  %p = moe.plan %ids on @experts : tensor<4x1xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<4x2xf32> -> tensor<?x2xf32>) by %p on @experts : !plan
  %h = moe.grouped_matmul %rows, %v transpose by %p : (tensor<?x2xf32>, tensor<1x2x2xf32>, !plan) -> tensor<?x2xf32>
  %y = moe.combine rows(%h : tensor<?x2xf32> -> tensor<4x2xf32>) by %p on @experts : !plan
  %t = math.tanh %y : tensor<4x2xf32>
  %q = moe.plan %ids on @experts : tensor<4x1xi32> -> !plan
  %rows2 = moe.dispatch rows(%t : tensor<4x2xf32> -> tensor<?x2xf32>) by %q on @experts : !plan
  %g = moe.dispatch rows(%dy : tensor<4x2xf32> -> tensor<?x2xf32>) by %q on @experts : !plan
  %dr2 = moe.grouped_matmul %g, %w by %q : (tensor<?x2xf32>, tensor<1x2x2xf32>, !plan) -> tensor<?x2xf32>
  %d2 = moe.grouped_matmul_grad %g, %rows2 by %q : (tensor<?x2xf32>, tensor<?x2xf32>, !plan) -> tensor<1x2x2xf32>
  %dt = moe.combine rows(%dr2 : tensor<?x2xf32> -> tensor<4x2xf32>) by %q on @experts : !plan
  %g1 = moe.dispatch rows(%dt : tensor<4x2xf32> -> tensor<?x2xf32>) by %p on @experts : !plan
  %dr1 = moe.grouped_matmul %g1, %v by %p : (tensor<?x2xf32>, tensor<1x2x2xf32>, !plan) -> tensor<?x2xf32>
  %d1 = moe.grouped_matmul_grad %g1, %rows by %p : (tensor<?x2xf32>, tensor<?x2xf32>, !plan) -> tensor<1x2x2xf32>
  %dx = moe.combine rows(%dr1 : tensor<?x2xf32> -> tensor<4x2xf32>) by %p on @experts : !plan
  return %dx, %d1, %d2 : tensor<4x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>
}

// -----

// One loop for both sums: it stands behind what the second one reads, and what reads the first moves behind the loop.
// CHECK-LABEL: func.func @moves
// CHECK: math.exp %arg1
// CHECK: %[[LOOP:.*]]:2 = scf.for
// CHECK: } {moe.in_flight = 2 : i64}
// CHECK-NEXT: %[[A:.*]] = math.tanh %[[LOOP]]#0
// CHECK-NEXT: %[[B:.*]] = scf.if
// CHECK: math.sin %[[A]]
// CHECK: %[[C:.*]] = arith.addf %[[B]], %[[LOOP]]#1
// CHECK: return %[[C]]
// REMARK: Passed] plan | {{.*}} Loops=1,
!plan = !moe.plan<experts = 2, ranks = 2, tokens = 4, top_k = 1>
shard.grid @experts(shape = 2)
func.func @moves(%x: tensor<4x2xf32>, %z: tensor<4x2xf32>, %ids: tensor<4x1xi32>, %c: i1) -> tensor<4x2xf32> {
  %p = moe.plan %ids on @experts : tensor<4x1xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<4x2xf32> -> tensor<?x2xf32>) by %p on @experts : !plan
  %y = moe.combine rows(%rows : tensor<?x2xf32> -> tensor<4x2xf32>) by %p on @experts : !plan
  %a = math.tanh %y : tensor<4x2xf32>
  %b = scf.if %c -> tensor<4x2xf32> {
    %s = math.sin %a : tensor<4x2xf32>
    scf.yield %s : tensor<4x2xf32>
  } else {
    scf.yield %x : tensor<4x2xf32>
  }
  %e = math.exp %z : tensor<4x2xf32>
  %rows2 = moe.dispatch rows(%e : tensor<4x2xf32> -> tensor<?x2xf32>) by %p on @experts : !plan
  %sum = arith.addf %rows, %rows2 : tensor<?x2xf32>
  %y2 = moe.combine rows(%sum : tensor<?x2xf32> -> tensor<4x2xf32>) by %p on @experts : !plan
  %r = arith.addf %b, %y2 : tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// -----

// The second exchange of each plan waits for the first of the other. Both of one plan share a loop; were both of the other to share one too,
// the two loops would wait for each other.
// CHECK-LABEL: func.func @crossed
// CHECK: %[[P:.*]] = moe.plan
// CHECK: %[[Q:.*]] = moe.plan
// CHECK: %[[Z:.*]] = scf.for
// CHECK-NEXT: moe.dispatch rows(%arg0 {{.*}} by %[[Q]]
// CHECK-NEXT: moe.combine
// CHECK: %[[Y:.*]]:2 = scf.for
// CHECK-NEXT: moe.dispatch rows(%arg0 {{.*}} by %[[P]]
// CHECK-NEXT: moe.dispatch rows(%[[Z]] {{.*}} by %[[P]]
// CHECK-NEXT: arith.addf {{.*}} {moe.stage = 1 : i64}
// CHECK-NEXT: moe.combine
// CHECK-NEXT: moe.combine
// CHECK: scf.for
// CHECK-NEXT: moe.dispatch rows(%arg0 {{.*}} by %[[Q]]
// CHECK-NEXT: moe.dispatch rows(%[[Y]]#0 {{.*}} by %[[Q]]
// CHECK-NOT: scf.for
// REMARK: Passed] plan | {{.*}} Loops=1,
// REMARK: Passed] plan | {{.*}} Loops=2,
!plan = !moe.plan<experts = 2, ranks = 2, tokens = 4, top_k = 1>
shard.grid @experts(shape = 2)
func.func @crossed(%x: tensor<4x2xf32>, %ids: tensor<4x1xi32>) -> tensor<4x2xf32> {
  %p = moe.plan %ids on @experts : tensor<4x1xi32> -> !plan
  %q = moe.plan %ids on @experts : tensor<4x1xi32> -> !plan
  %r0 = moe.dispatch rows(%x : tensor<4x2xf32> -> tensor<?x2xf32>) by %p on @experts : !plan
  %s0 = moe.dispatch rows(%x : tensor<4x2xf32> -> tensor<?x2xf32>) by %q on @experts : !plan
  %y = moe.combine rows(%r0 : tensor<?x2xf32> -> tensor<4x2xf32>) by %p on @experts : !plan
  %z = moe.combine rows(%s0 : tensor<?x2xf32> -> tensor<4x2xf32>) by %q on @experts : !plan
  %r1 = moe.dispatch rows(%z : tensor<4x2xf32> -> tensor<?x2xf32>) by %p on @experts : !plan
  %r = arith.addf %r0, %r1 : tensor<?x2xf32>
  %y1 = moe.combine rows(%r : tensor<?x2xf32> -> tensor<4x2xf32>) by %p on @experts : !plan
  %s1 = moe.dispatch rows(%y : tensor<4x2xf32> -> tensor<?x2xf32>) by %q on @experts : !plan
  %s = arith.addf %s0, %s1 : tensor<?x2xf32>
  %z1 = moe.combine rows(%s : tensor<?x2xf32> -> tensor<4x2xf32>) by %q on @experts : !plan
  %sum = arith.addf %y1, %z1 : tensor<4x2xf32>
  return %sum : tensor<4x2xf32>
}

// -----

// A sum onto another of the same rows waits for it. What nothing reads is gone, rows and sums.
// CHECK-LABEL: func.func @onto
// CHECK-NOT: moe.swiglu
// CHECK: %[[ONE:.*]] = scf.for
// CHECK: moe.grouped_matmul_grad
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[ONE]])
// CHECK: moe.grouped_matmul_grad
// CHECK-NOT: moe.grouped_matmul_grad
!plan = !moe.plan<experts = 2, ranks = 2, tokens = 4, top_k = 1>
shard.grid @experts(shape = 2)
func.func @onto(%x: tensor<4x2xf32>, %ids: tensor<4x1xi32>) -> tensor<1x2x2xf32> {
  %p = moe.plan %ids on @experts : tensor<4x1xi32> -> !plan
  %r = moe.dispatch rows(%x : tensor<4x2xf32> -> tensor<?x2xf32>) by %p on @experts : !plan
  %unused = moe.swiglu %r : tensor<?x2xf32> -> tensor<?x1xf32>
  %a = moe.grouped_matmul_grad %r, %r by %p : (tensor<?x2xf32>, tensor<?x2xf32>, !plan) -> tensor<1x2x2xf32>
  %b = moe.grouped_matmul_grad %r, %r by %p onto %a : (tensor<?x2xf32>, tensor<?x2xf32>, !plan, tensor<1x2x2xf32>) -> tensor<1x2x2xf32>
  return %b : tensor<1x2x2xf32>
}

// -----

// Rows that something else reads cannot come in parts: that plan stays, and the other is taken.
// CHECK-LABEL: func.func @refused
// CHECK: moe.plan %arg1 on @experts : tensor<4x1xi32> -> !moe.plan<experts = 2, ranks = 2, tokens = 4, top_k = 1>
// CHECK: moe.plan %arg1 on @experts : tensor<4x1xi32> -> !moe.plan<experts = 2, ranks = 2, tokens = 4, top_k = 1, chunks = 2, capacity = 4>
// CHECK: scf.for
// REMARK: Missed] not-in-parts | Category:moe-pipeline-dispatch | Reason="tensor.dim is not known to take rows in parts"
!plan = !moe.plan<experts = 2, ranks = 2, tokens = 4, top_k = 1>
shard.grid @experts(shape = 2)
func.func @refused(%x: tensor<4x2xf32>, %ids: tensor<4x1xi32>) -> (tensor<4x2xf32>, tensor<4x2xf32>, index) {
  %p = moe.plan %ids on @experts : tensor<4x1xi32> -> !plan
  %q = moe.plan %ids on @experts : tensor<4x1xi32> -> !plan
  %r = moe.dispatch rows(%x : tensor<4x2xf32> -> tensor<?x2xf32>) by %p on @experts : !plan
  %y = moe.combine rows(%r : tensor<?x2xf32> -> tensor<4x2xf32>) by %p on @experts : !plan
  %s = moe.dispatch rows(%y : tensor<4x2xf32> -> tensor<?x2xf32>) by %q on @experts : !plan
  %z = moe.combine rows(%s : tensor<?x2xf32> -> tensor<4x2xf32>) by %q on @experts : !plan
  %c0 = arith.constant 0 : index
  %d = tensor.dim %r, %c0 : tensor<?x2xf32>
  return %y, %z, %d : tensor<4x2xf32>, tensor<4x2xf32>, index
}

// -----

// CHECK-LABEL: func.func @left
// CHECK-NOT: chunks
// REMARK: Missed] not-in-parts | Category:moe-pipeline-dispatch | Reason="moe.yield is not known to take rows in parts"
!plan = !moe.plan<experts = 2, ranks = 2, tokens = 4, top_k = 1>
shard.grid @experts(shape = 2)
func.func @left(%x: tensor<4x2xf32>, %ids: tensor<4x1xi32>) -> tensor<4x2xf32> {
  %c:2 = moe.checkpoint (%a = %x : tensor<4x2xf32>, %b = %ids : tensor<4x1xi32>) -> (tensor<?x2xf32>, !plan) {
    %p = moe.plan %b on @experts : tensor<4x1xi32> -> !plan
    %r = moe.dispatch rows(%a : tensor<4x2xf32> -> tensor<?x2xf32>) by %p on @experts : !plan
    moe.yield %r, %p : tensor<?x2xf32>, !plan
  }
  %y = moe.combine rows(%c#0 : tensor<?x2xf32> -> tensor<4x2xf32>) by %c#1 on @experts : !plan
  return %y : tensor<4x2xf32>
}

// -----

// CHECK-LABEL: func.func @given
// CHECK-NOT: chunks
// REMARK: Missed] not-in-parts | Category:moe-pipeline-dispatch | Reason="func.return takes the plan"
// REMARK: Missed] no-plan | Category:moe-pipeline-dispatch | Reason="the function makes no plan of routes"
!plan = !moe.plan<experts = 2, ranks = 2, tokens = 4, top_k = 1>
shard.grid @experts(shape = 2)
func.func @given(%ids: tensor<4x1xi32>) -> !plan {
  %p = moe.plan %ids on @experts : tensor<4x1xi32> -> !plan
  return %p : !plan
}
func.func @none(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  return %x : tensor<4x2xf32>
}

// -----

// Micro-batches: the loop over iterations stands in theirs. A sum that they carry, in f32, is where the iterations' sum starts.
// CHECK-LABEL: func.func @micro
// CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %arg2)
// CHECK: moe.plan {{.*}} chunks = 2, capacity = 4>
// CHECK: %[[LOOP:.*]] = scf.for {{.*}} iter_args(%[[PART:.*]] = %[[SUM]])
// CHECK: moe.grouped_matmul_grad {{.*}} onto %[[PART]]
// CHECK: } {moe.in_flight = 2 : i64}
// CHECK: scf.yield %[[LOOP]]
// REMARK: Passed] plan | {{.*}} Loops=1, {{.*}} Tokens=4
!plan = !moe.plan<experts = 2, ranks = 2, tokens = 4, top_k = 1>
shard.grid @experts(shape = 2)
func.func @micro(%x: tensor<8x2xf32>, %ids: tensor<8x1xi32>, %zero: tensor<1x2x2xf32>) -> tensor<1x2x2xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %d = scf.for %i = %c0 to %c8 step %c4 iter_args(%sum = %zero) -> (tensor<1x2x2xf32>) {
    %a = tensor.extract_slice %x[%i, 0] [4, 2] [1, 1] : tensor<8x2xf32> to tensor<4x2xf32>
    %b = tensor.extract_slice %ids[%i, 0] [4, 1] [1, 1] : tensor<8x1xi32> to tensor<4x1xi32>
    %p = moe.plan %b on @experts : tensor<4x1xi32> -> !plan
    %r = moe.dispatch rows(%a : tensor<4x2xf32> -> tensor<?x2xf32>) by %p on @experts : !plan
    %g = moe.grouped_matmul_grad %r, %r by %p onto %sum : (tensor<?x2xf32>, tensor<?x2xf32>, !plan, tensor<1x2x2xf32>) -> tensor<1x2x2xf32>
    scf.yield %g : tensor<1x2x2xf32>
  }
  return %d : tensor<1x2x2xf32>
}

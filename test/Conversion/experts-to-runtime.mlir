// RUN: plateau-opt %s -split-input-file -convert-moe-to-runtime | FileCheck %s

// A group is asked for once, at the start, by the grid's shape and the axes as bits; the grid itself is gone. A plan gives its rows when it is
// made, and goes back once, after the last op that reads it; rows are allocated by their number.
// CHECK-NOT: shard.grid
// CHECK-LABEL: llvm.func @lifetimes(
// CHECK-SAME: %[[CONTEXT:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr)
// CHECK: %[[LANE:.*]] = llvm.call @plr_get_lane(%[[CONTEXT]]
// CHECK: %[[DIMENSIONS:.*]] = llvm.mlir.constant(2 : i64) : i64
// CHECK: %[[AXES:.*]] = llvm.mlir.constant(2 : i64) : i64
// CHECK: %[[GROUP:.*]] = llvm.call @plr_get_group(%[[CONTEXT]], %{{.*}}, %[[DIMENSIONS]], %[[AXES]])
// CHECK: %[[IDS:.*]] = llvm.load
// CHECK: %[[X:.*]] = llvm.load
// CHECK: %[[W:.*]] = llvm.load
// CHECK: %[[PLAN:.*]] = llvm.call @plr_plan_create(%[[LANE]], %{{.*}}, %[[GROUP]], %{{.*}}, %{{.*}}, %{{.*}}, %[[IDS]])
// CHECK: %[[COUNT:.*]] = llvm.call @plr_plan_rows(%[[PLAN]])
// CHECK: %[[FIVE:.*]] = llvm.mlir.constant(20 : i64) : i64
// CHECK: %[[BYTES:.*]] = llvm.mul %[[COUNT]], %[[FIVE]]
// CHECK: %[[ROWS:.*]] = llvm.call @plr_allocate(%[[CONTEXT]], %{{.*}}, %[[BYTES]],
// CHECK: llvm.call @plr_dispatch(%[[LANE]], %{{.*}}, %[[PLAN]], %{{.*}}, %{{.*}}, %[[X]], %{{.*}}, %[[ROWS]], %{{.*}})
// CHECK: %[[SIX:.*]] = llvm.mlir.constant(24 : i64) : i64
// CHECK: llvm.mul %[[COUNT]], %[[SIX]]
// CHECK: %[[H:.*]] = llvm.call @plr_allocate
// CHECK: llvm.call @plr_grouped_gemm(%[[LANE]], %{{.*}}, %[[PLAN]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[ROWS]], %[[W]], %[[H]])
// CHECK: llvm.call @plr_release(%[[CONTEXT]], %{{.*}}, %[[ROWS]])
// CHECK: %[[TWELVE:.*]] = llvm.mlir.constant(12 : i64) : i64
// CHECK: llvm.mul %[[COUNT]], %[[TWELVE]]
// CHECK: llvm.call @plr_swiglu(%[[LANE]], %{{.*}}, %{{.*}}, %[[COUNT]], %{{.*}}, %[[H]],
// CHECK-NOT: plr_plan_release
// CHECK: llvm.call @plr_combine(%[[LANE]], %{{.*}}, %[[PLAN]]
// CHECK: llvm.call @plr_plan_release(%[[PLAN]])
// CHECK-NOT: plr_plan_release
// CHECK-NOT: plr_get_group
// CHECK: llvm.return
!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 3x2)
func.func @lifetimes(%ids: tensor<8x2xi32>, %x: tensor<8x5xf32>, %w: tensor<2x6x5xf32>) -> tensor<8x3xf32> {
  %plan = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<8x5xf32> -> tensor<?x5xf32>) by %plan on @experts : !plan
  %h = moe.grouped_matmul %rows, %w transpose by %plan : (tensor<?x5xf32>, tensor<2x6x5xf32>, !plan) -> tensor<?x6xf32>
  %a = moe.swiglu %h : tensor<?x6xf32> -> tensor<?x3xf32>
  %y = moe.combine rows(%a : tensor<?x3xf32> -> tensor<8x3xf32>) by %plan on @experts : !plan
  return %y : tensor<8x3xf32>
}

// -----

// Values travel beside rows: both have memory of their own, and bf16 rows take two bytes a number. What is not sent is null.
// CHECK-LABEL: llvm.func @pairs(
// CHECK: %[[COUNT:.*]] = llvm.call @plr_plan_rows
// CHECK: %[[TEN:.*]] = llvm.mlir.constant(10 : i64) : i64
// CHECK: llvm.mul %[[COUNT]], %[[TEN]]
// CHECK: %[[ROWS:.*]] = llvm.call @plr_allocate
// CHECK: %[[FOUR:.*]] = llvm.mlir.constant(4 : i64) : i64
// CHECK: llvm.mul %[[COUNT]], %[[FOUR]]
// CHECK: %[[VALUES:.*]] = llvm.call @plr_allocate
// CHECK: llvm.call @plr_dispatch({{.*}}, %[[ROWS]], %[[VALUES]])
// CHECK: %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK: llvm.call @plr_combine({{.*}}, %[[ROWS]], %{{.*}}, %{{.*}}, %{{.*}})
// CHECK: llvm.mlir.zero : !llvm.ptr
// CHECK: llvm.call @plr_combine({{.*}}, %[[VALUES]], %{{.*}}, %{{.*}})
!plan = !moe.plan<experts = 4, ranks = 1, tokens = 8, top_k = 2>
shard.grid @experts(shape = 1)
func.func @pairs(%ids: tensor<8x2xi32>, %x: tensor<8x5xbf16>, %p: tensor<8x2xf32>) -> (tensor<8x5xbf16>, tensor<8x2xf32>) {
  %plan = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
  %rows, %values = moe.dispatch rows(%x : tensor<8x5xbf16> -> tensor<?x5xbf16>) values(%p : tensor<8x2xf32> -> tensor<?xf32>) by %plan on @experts : !plan
  %y = moe.combine rows(%rows : tensor<?x5xbf16> -> tensor<8x5xbf16>) by %plan on @experts : !plan
  %q = moe.combine values(%values : tensor<?xf32> -> tensor<8x2xf32>) by %plan on @experts : !plan
  return %y, %q : tensor<8x5xbf16>, tensor<8x2xf32>
}

// -----

// Each plan goes back by itself; one that nobody reads goes back at once.
// CHECK-LABEL: llvm.func @plans(
// CHECK: %[[A:.*]] = llvm.call @plr_plan_create
// CHECK: %[[B:.*]] = llvm.call @plr_plan_create
// CHECK: llvm.call @plr_plan_release(%[[B]])
// CHECK: llvm.call @plr_combine(%{{.*}}, %{{.*}}, %[[A]]
// CHECK: llvm.call @plr_plan_release(%[[A]])
// CHECK-NOT: plr_plan_release
// CHECK: llvm.return
!plan = !moe.plan<experts = 4, ranks = 1, tokens = 8, top_k = 2>
shard.grid @experts(shape = 1)
func.func @plans(%ids: tensor<8x2xi32>, %p: tensor<8x2xf32>) -> tensor<8x2xf32> {
  %plan = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
  %other = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
  %v = moe.dispatch values(%p : tensor<8x2xf32> -> tensor<?xf32>) by %plan on @experts : !plan
  %q = moe.combine values(%v : tensor<?xf32> -> tensor<8x2xf32>) by %plan on @experts : !plan
  return %q : tensor<8x2xf32>
}

// -----

// Scaled rows take the buffer of rows that nobody reads again; otherwise they have their own.
// CHECK-LABEL: llvm.func @scale(
// CHECK: llvm.call @plr_dispatch({{.*}}, %[[ROWS:[^,]*]], %[[F:[^,]*]])
// CHECK: %[[Z:.*]] = llvm.call @plr_allocate
// CHECK: llvm.call @plr_scale_rows({{.*}}, %[[ROWS]], %[[F]], %[[Z]])
// CHECK: llvm.call @plr_scale_rows({{.*}}, %[[ROWS]], %[[F]], %[[ROWS]])
// CHECK: llvm.call @plr_combine({{.*}}, %[[Z]],
// CHECK: llvm.call @plr_combine({{.*}}, %[[ROWS]],
!plan = !moe.plan<experts = 4, ranks = 1, tokens = 8, top_k = 2>
shard.grid @experts(shape = 1)
func.func @scale(%ids: tensor<8x2xi32>, %x: tensor<8x5xf32>, %p: tensor<8x2xf32>) -> (tensor<8x5xf32>, tensor<8x5xf32>) {
  %plan = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
  %rows, %f = moe.dispatch rows(%x : tensor<8x5xf32> -> tensor<?x5xf32>) values(%p : tensor<8x2xf32> -> tensor<?xf32>) by %plan on @experts : !plan
  %z = moe.scale_rows %rows, %f : tensor<?x5xf32>, tensor<?xf32>
  %w = moe.scale_rows %rows, %f : tensor<?x5xf32>, tensor<?xf32>
  %y = moe.combine rows(%z : tensor<?x5xf32> -> tensor<8x5xf32>) by %plan on @experts : !plan
  %u = moe.combine rows(%w : tensor<?x5xf32> -> tensor<8x5xf32>) by %plan on @experts : !plan
  return %y, %u : tensor<8x5xf32>, tensor<8x5xf32>
}

// -----

// A gradient of experts is computed in its place in the group, and the sum over ranks is taken there.
// CHECK-LABEL: llvm.func @in_group(
// CHECK: llvm.getelementptr %{{.*}}[3]
// CHECK: %[[GROUP:.*]] = llvm.load
// CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(16 : i64) : i64
// CHECK-NEXT: %[[PLACE:.*]] = llvm.getelementptr %[[GROUP]][%[[OFFSET]]]
// CHECK: llvm.call @plr_grouped_gemm_grad({{.*}}, %[[PLACE]])
// CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(16 : i64) : i64
// CHECK-NEXT: %[[TO:.*]] = llvm.getelementptr %[[GROUP]][%[[OFFSET]]]
// CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(16 : i64) : i64
// CHECK-NEXT: %[[FROM:.*]] = llvm.getelementptr %[[GROUP]][%[[OFFSET]]]
// CHECK: llvm.call @plr_all_reduce({{.*}}, %[[FROM]], %[[TO]])
// CHECK-NOT: plr_copy
// CHECK: llvm.call @plr_zero(
// CHECK-NOT: plr_copy
// CHECK: llvm.return
!plan = !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2x1)
func.func @in_group(%ids: tensor<8x2xi32>, %x: tensor<8x5xf32>, %d: tensor<8x3xf32>, %group: tensor<34xf32> {moe.donated = 0 : i64}) -> tensor<34xf32> {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %plan = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<8x5xf32> -> tensor<?x5xf32>) by %plan on @experts : !plan
  %drows = moe.dispatch rows(%d : tensor<8x3xf32> -> tensor<?x3xf32>) by %plan on @experts : !plan
  %w = moe.grouped_matmul_grad %drows, %rows by %plan : (tensor<?x3xf32>, tensor<?x5xf32>, !plan) -> tensor<2x3x5xf32>
  %s = shard.all_reduce %w on @experts grid_axes = [0] : tensor<2x3x5xf32> -> tensor<2x3x5xf32>
  %g = moe.pack %zero, %s into %group layout <[<<"zero", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4]>, <<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 4, shape = [2, 3, 5]>]> : tensor<4xf32>, tensor<2x3x5xf32> into tensor<34xf32>
  return %g : tensor<34xf32>
}

// -----

// A sum takes the buffer of a value that dies, and a buffer of its own beside one that is read again or is the caller's. A gather and
// a scatter have their own: 4 parts from one, and one of 4.
// CHECK-LABEL: llvm.func @collectives(
// CHECK: %[[ROWS:.*]] = llvm.call @plr_get_group(
// CHECK: %[[GROUP:.*]] = llvm.call @plr_get_group(
// CHECK-NOT: plr_get_group
// CHECK: %[[X:.*]] = llvm.load
// CHECK: %[[A:.*]] = llvm.call @plr_allocate
// CHECK: llvm.call @plr_all_reduce(%[[LANE:.*]], %{{.*}}, %[[GROUP]], %{{.*}}, %{{.*}}, %[[X]], %[[A]])
// CHECK: llvm.call @plr_all_reduce(%[[LANE]], %{{.*}}, %[[GROUP]], %{{.*}}, %{{.*}}, %[[A]], %[[A]])
// CHECK: %[[B:.*]] = llvm.call @plr_allocate
// CHECK: llvm.call @plr_all_reduce(%[[LANE]], %{{.*}}, %[[ROWS]], %{{.*}}, %{{.*}}, %[[A]], %[[B]])
// CHECK: %[[MANY:.*]] = llvm.mlir.constant(128 : i64) : i64
// CHECK: %[[G:.*]] = llvm.call @plr_allocate(%{{.*}}, %{{.*}}, %[[MANY]],
// CHECK: %[[COUNT:.*]] = llvm.mlir.constant(8 : i64) : i64
// CHECK: llvm.call @plr_all_gather(%[[LANE]], %{{.*}}, %[[GROUP]], %{{.*}}, %[[COUNT]], %[[A]], %[[G]])
// CHECK: %[[S:.*]] = llvm.call @plr_allocate
// CHECK: %[[PART:.*]] = llvm.mlir.constant(2 : i64) : i64
// CHECK: llvm.call @plr_reduce_scatter(%[[LANE]], %{{.*}}, %[[GROUP]], %{{.*}}, %[[PART]], %[[B]], %[[S]])
// CHECK-NOT: plr_get_group
// CHECK: llvm.return
shard.grid @grid(shape = 2x2)
func.func @collectives(%x: tensor<4x2xf32>) -> (tensor<16x2xf32>, tensor<1x2xf32>) {
  %a = shard.all_reduce %x on @grid grid_axes = [0, 1] : tensor<4x2xf32> -> tensor<4x2xf32>
  %c = shard.all_reduce %a on @grid grid_axes = [0, 1] : tensor<4x2xf32> -> tensor<4x2xf32>
  %b = shard.all_reduce %c on @grid grid_axes = [0] : tensor<4x2xf32> -> tensor<4x2xf32>
  %g = shard.all_gather %c on @grid grid_axes = [0, 1] gather_axis = 0 : tensor<4x2xf32> -> tensor<16x2xf32>
  %s = shard.reduce_scatter %b on @grid grid_axes = [0, 1] scatter_axis = 0 : tensor<4x2xf32> -> tensor<1x2xf32>
  return %g, %s : tensor<16x2xf32>, tensor<1x2xf32>
}

// -----

// A gradient onto a value that dies takes its buffer; onto one that is read again, a copy.
// CHECK-LABEL: llvm.func @onto(
// CHECK: llvm.call @plr_dispatch
// CHECK: %[[W:.*]] = llvm.call @plr_allocate
// CHECK: llvm.call @plr_grouped_gemm_grad({{.*}}, %[[W]])
// CHECK: llvm.call @plr_grouped_gemm_grad({{.*}}, %[[W]])
// CHECK: %[[V:.*]] = llvm.call @plr_allocate
// CHECK: llvm.call @plr_copy({{.*}}, %[[V]], %[[W]],
// CHECK: llvm.call @plr_grouped_gemm_grad({{.*}}, %[[V]])
!plan = !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 2>
shard.grid @experts(shape = 1)
func.func @onto(%ids: tensor<8x2xi32>, %x: tensor<8x5xf32>) -> (tensor<2x5x5xf32>, tensor<2x5x5xf32>) {
  %plan = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<8x5xf32> -> tensor<?x5xf32>) by %plan on @experts : !plan
  %w = moe.grouped_matmul_grad %rows, %rows by %plan : (tensor<?x5xf32>, tensor<?x5xf32>, !plan) -> tensor<2x5x5xf32>
  %v = moe.grouped_matmul_grad %rows, %rows by %plan onto %w : (tensor<?x5xf32>, tensor<?x5xf32>, !plan, tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %u = moe.grouped_matmul_grad %rows, %rows by %plan onto %v : (tensor<?x5xf32>, tensor<?x5xf32>, !plan, tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %v, %u : tensor<2x5x5xf32>, tensor<2x5x5xf32>
}

// -----

// The fields of a routing go to the call on the stack, at the start of the function; the score is the runtime's number (sigmoid, 2).
// CHECK-LABEL: llvm.func @route(
// CHECK: llvm.alloca
// CHECK: %[[FIELDS:.*]] = llvm.alloca %{{.*}} x !llvm.struct<(i64, i64, i64, i64, i32, i32, f32)>
// CHECK: %[[E:.*]] = llvm.mlir.constant(6 : i64) : i64
// CHECK: %[[K:.*]] = llvm.mlir.constant(3 : i64) : i64
// CHECK: %[[SCORE:.*]] = llvm.mlir.constant(2 : i32) : i32
// CHECK: %[[SCALE:.*]] = llvm.mlir.constant(2.500000e+00 : f32) : f32
// CHECK: llvm.store %[[E]],
// CHECK: llvm.store %[[K]],
// CHECK: llvm.store %[[SCORE]],
// CHECK: llvm.store %[[SCALE]],
// CHECK: llvm.call @plr_route(%{{.*}}, %{{.*}}, %[[FIELDS]],
// CHECK: llvm.call @plr_route_grad(
func.func @route(%l: tensor<8x6xf32>, %b: tensor<6xf32>, %d: tensor<8x3xf32>) -> (tensor<6xi32>, tensor<8x6xf32>) {
  %ids, %w, %counts = moe.route %l bias(%b) routing <top_k = 3, score = sigmoid, groups = 3, kept_groups = 2, normalize = true, scale = 2.5 : f32> : (tensor<8x6xf32>, tensor<6xf32>) -> (tensor<8x3xi32>, tensor<8x3xf32>, tensor<6xi32>)
  %dl = moe.route_grad %d, %l, %ids routing <top_k = 3, score = sigmoid, groups = 3, kept_groups = 2, normalize = true, scale = 2.5 : f32> : (tensor<8x3xf32>, tensor<8x6xf32>, tensor<8x3xi32>) -> tensor<8x6xf32>
  return %counts, %dl : tensor<6xi32>, tensor<8x6xf32>
}

// -----

// Rows of padding: the number of tokens is read when the step runs.
// CHECK-LABEL: llvm.func @route_padded(
// CHECK: %[[L:.*]] = llvm.load
// CHECK: %[[N:.*]] = llvm.load
// CHECK: %[[NO_BIAS:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK: llvm.call @plr_route(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[L]], %[[NO_BIAS]], %[[N]], %
func.func @route_padded(%l: tensor<8x4xf32>, %n: tensor<i32>) -> tensor<4xi32> {
  %ids, %w, %counts = moe.route %l token_count(%n) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<i32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<4xi32>)
  return %counts : tensor<4xi32>
}

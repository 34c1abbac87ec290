// RUN: plateau-opt %s -split-input-file -verify-diagnostics -convert-moe-to-sched

!plan = !moe.plan<experts = 4, ranks = 1, tokens = 8, top_k = 2>
// expected-error @below {{has '!moe.plan<experts = 4, ranks = 1, tokens = 8, top_k = 2>' in its signature: only static tensors of numbers, of at most 2^60 elements, are lowered}}
func.func @plan_argument(%p: !plan) {
  return
}

// -----

// A plan lives in one step: it is not returned.
!plan = !moe.plan<experts = 4, ranks = 1, tokens = 8, top_k = 2>
shard.grid @grid(shape = 1)
// expected-error @below {{in its signature: only static tensors of numbers}}
func.func @plan_result(%ids: tensor<8x2xi32>) -> !plan {
  %p = moe.plan %ids on @grid : tensor<8x2xi32> -> !plan
  return %p : !plan
}

// -----

// Rows of one plan and of another.
!plan = !moe.plan<experts = 4, ranks = 1, tokens = 8, top_k = 2>
shard.grid @grid(shape = 1)
func.func @two_plans_matmul(%a: tensor<8x2xi32>, %b: tensor<8x2xi32>, %x: tensor<8x4xf32>, %w: tensor<4x6x4xf32>) {
  %p = moe.plan %a on @grid : tensor<8x2xi32> -> !plan
  %q = moe.plan %b on @grid : tensor<8x2xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) by %p on @grid : !plan
  // expected-error @below {{'moe.grouped_matmul' op has operands of two plans, whose numbers of rows are not the same when the step runs}}
  %h = moe.grouped_matmul %rows, %w transpose by %q : (tensor<?x4xf32>, tensor<4x6x4xf32>, !plan) -> tensor<?x6xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 1, tokens = 8, top_k = 2>
shard.grid @grid(shape = 1)
func.func @two_plans_combine(%a: tensor<8x2xi32>, %b: tensor<8x2xi32>, %x: tensor<8x4xf32>) {
  %p = moe.plan %a on @grid : tensor<8x2xi32> -> !plan
  %q = moe.plan %b on @grid : tensor<8x2xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) by %p on @grid : !plan
  // expected-error @below {{'moe.combine' op has operands of two plans}}
  %y = moe.combine rows(%rows : tensor<?x4xf32> -> tensor<8x4xf32>) by %q on @grid : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 1, tokens = 8, top_k = 2>
shard.grid @grid(shape = 1)
func.func @two_plans_rows(%a: tensor<8x2xi32>, %b: tensor<8x2xi32>, %x: tensor<8x4xf32>) {
  %p = moe.plan %a on @grid : tensor<8x2xi32> -> !plan
  %q = moe.plan %b on @grid : tensor<8x2xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) by %p on @grid : !plan
  %others = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) by %q on @grid : !plan
  // expected-error @below {{'moe.row_dot' op has operands of two plans}}
  %d = moe.row_dot %rows, %others : tensor<?x4xf32> -> tensor<?xf32>
  return
}

// -----

// What works row by row and is no op of experts has no number of rows.
!plan = !moe.plan<experts = 4, ranks = 1, tokens = 8, top_k = 2>
shard.grid @grid(shape = 1)
func.func @other_rows(%ids: tensor<8x2xi32>, %x: tensor<8x4xf32>) {
  %p = moe.plan %ids on @grid : tensor<8x2xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) by %p on @grid : !plan
  // expected-error @below {{has a result of type 'tensor<?x4xf32>': only static tensors of numbers, of at most 2^60 elements, are lowered}}
  %e = math.exp %rows : tensor<?x4xf32>
  return
}

// -----

shard.grid @grid(shape = 2)
func.func @maximum(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{is lowered only for sums}}
  %r = shard.all_reduce %x on @grid grid_axes = [0] reduction = max : tensor<4xf32> -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

shard.grid @grid(shape = 2)
func.func @element(%x: tensor<4xf16>) -> tensor<4xf16> {
  // expected-error @below {{is lowered only for f32, bf16, f64 and i32}}
  %r = shard.all_reduce %x on @grid grid_axes = [0] : tensor<4xf16> -> tensor<4xf16>
  return %r : tensor<4xf16>
}

// -----

shard.grid @grid(shape = 2)
func.func @gather_axis(%x: tensor<4x3xf32>) -> tensor<4x6xf32> {
  // expected-error @below {{is lowered only along dimension 0}}
  %r = shard.all_gather %x on @grid grid_axes = [0] gather_axis = 1 : tensor<4x3xf32> -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// -----

shard.grid @grid(shape = 2)
func.func @scatter_axis(%x: tensor<4x6xf32>) -> tensor<4x3xf32> {
  // expected-error @below {{is lowered only for sums, along dimension 0}}
  %r = shard.reduce_scatter %x on @grid grid_axes = [0] scatter_axis = 1 : tensor<4x6xf32> -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// -----

shard.grid @grid(shape = 2)
func.func @scatter_maximum(%x: tensor<4x6xf32>) -> tensor<2x6xf32> {
  // expected-error @below {{is lowered only for sums, along dimension 0}}
  %r = shard.reduce_scatter %x on @grid grid_axes = [0] reduction = max scatter_axis = 0 : tensor<4x6xf32> -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

// -----

shard.grid @grid(shape = ?)
func.func @dynamic_grid(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{is on grid @grid, and there is none with static sizes}}
  %r = shard.all_reduce %x on @grid grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

shard.grid @grid(shape = 2)
func.func @broadcast(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{is not lowered to the runtime}}
  %r = shard.broadcast %x on @grid grid_axes = [0] root = [0] : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

shard.grid @grid(shape = 2)
func.func @all_reduce_widens(%x: tensor<4xbf16>) -> tensor<4xf32> {
  // expected-error @below {{takes 'tensor<4xbf16>' to 'tensor<4xf32>': only results of the operand's element type are lowered}}
  %r = shard.all_reduce %x on @grid grid_axes = [0] : tensor<4xbf16> -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

shard.grid @grid(shape = 2)
func.func @reduce_scatter_widens(%x: tensor<4xbf16>) -> tensor<2xf32> {
  // expected-error @below {{only results of the operand's element type are lowered}}
  %r = shard.reduce_scatter %x on @grid grid_axes = [0] scatter_axis = 0 : tensor<4xbf16> -> tensor<2xf32>
  return %r : tensor<2xf32>
}

// -----

func.func @loop_without_end(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  // expected-error @below {{has a step of 0, which must be positive}}
  %r = scf.for %i = %c0 to %c4 step %c0 iter_args(%a = %x) -> tensor<4xf32> {
    scf.yield %a : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// The product of the sizes is 2 modulo 2^64.
shard.grid @grid(shape = 6x3074457345618258603)
func.func @ranks_beyond_numbers(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{is on grid @grid, and there is none with static sizes}}
  %r = shard.all_reduce %x on @grid grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// Rows of one iteration and of the one of another loop.
!chunked = !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 1, chunks = 2>
shard.grid @experts(shape = 1)
func.func @other_iteration(%x: tensor<8x4xf32>, %ids: tensor<8x1xi32>, %y: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %plan = moe.plan %ids on @experts : tensor<8x1xi32> -> !chunked
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %y) -> (tensor<8x4xf32>) {
    %j = arith.addi %i, %c1 : index
    %rows = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) by %plan at %i on @experts : !chunked
    // expected-error @+1 {{has rows of another iteration of the plan than its own}}
    %n = moe.combine rows(%rows : tensor<?x4xf32> -> tensor<8x4xf32>) by %plan at %j into(%a : tensor<8x4xf32>) on @experts : !chunked
    scf.yield %n : tensor<8x4xf32>
  }
  return %r : tensor<8x4xf32>
}

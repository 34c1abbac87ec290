// RUN: plateau-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{helper_slots is 3, and must be from 0 to the 2 experts of other ranks}}
func.func private @plan_helpers(!moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 3>)

// -----

// expected-error @+1 {{chunks (0) and leaves (1) must be at least 1, and their product at most 2^20}}
func.func private @plan_chunks(!moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, chunks = 0>)

// -----

// expected-error @+1 {{chunks (1048576) and leaves (2) must be at least 1, and their product at most 2^20}}
func.func private @plan_iterations(!moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, chunks = 1048576, leaves = 2, capacity = 4>)

// -----

// expected-error @+1 {{capacity is 0, and leaves need one}}
func.func private @plan_leaves(!moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, leaves = 2>)

// -----

// expected-error @+1 {{'capacity' is none of helper_slots, chunks, leaves and capacity, or not in this order}}
func.func private @plan_order(!moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, capacity = 4, capacity = 5>)

// -----

func.func private @balance_alpha() attributes {
  // expected-error @+1 {{alpha and threshold must be fractions of numbers from 1 to 10^6, and are 0 over 1 and 13 over 10}}
  b = #moe.least_loaded<alpha = 0 over 1, min_rows = 1, threshold = 13 over 10>
}

// -----

func.func private @balance_min_rows() attributes {
  // expected-error @+1 {{min_rows is 0, and must be at least 1}}
  b = #moe.least_loaded<alpha = 1 over 1, min_rows = 0, threshold = 13 over 10>
}

// -----

shard.grid @experts(shape = 2)
func.func @plan_p3(%i: tensor<8x2xi32>) {
  // expected-error @+1 {{P3: the plan has 1 helper slots and no balance: one needs the other}}
  %p = moe.plan %i on @experts : tensor<8x2xi32> -> !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1>
  return
}

// -----

shard.grid @experts(shape = 2)
func.func @plan_p3_balance(%i: tensor<8x2xi32>) {
  // expected-error @+1 {{P3: the plan has 0 helper slots and a balance: one needs the other}}
  %p = moe.plan %i balance <alpha = 1 over 1, min_rows = 1, threshold = 1 over 1> on @experts : tensor<8x2xi32> -> !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1, chunks = 2, leaves = 2, capacity = 16>
shard.grid @experts(shape = 2)
func.func @dispatch_ro1(%x: tensor<8x4xf32>, %p: !plan) {
  // expected-error @+1 {{RO1: the plan has 4 iterations, and the op names none: say which (at %i)}}
  %r = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) by %p on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2)
func.func @dispatch_ro1_one(%x: tensor<8x4xf32>, %p: !plan, %i: index) {
  // expected-error @+1 {{RO1: the plan has 1 iteration, and the op names one}}
  %r = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) by %p at %i on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1, chunks = 2, leaves = 2, capacity = 16>
shard.grid @experts(shape = 2)
func.func @combine_cb5(%r: tensor<?x4xf32>, %p: !plan, %i: index) {
  // expected-error @+1 {{CB5: a result that an iteration writes a part of needs what it is put into, and no other}}
  %y = moe.combine rows(%r : tensor<?x4xf32> -> tensor<8x4xf32>) by %p at %i on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1, chunks = 2, leaves = 2, capacity = 16>
shard.grid @experts(shape = 2)
func.func @combine_cb5_type(%r: tensor<?x4xf32>, %a: tensor<8x5xf32>, %p: !plan, %i: index) {
  // expected-error @+1 {{CB5: puts rows into 'tensor<8x5xf32>' and gives 'tensor<8x4xf32>'}}
  %y = moe.combine rows(%r : tensor<?x4xf32> -> tensor<8x4xf32>) by %p at %i into(%a : tensor<8x5xf32>) on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1, chunks = 2, leaves = 2, capacity = 16>
func.func @grouped_matmul_gm5(%x: tensor<?x4xf32>, %w: tensor<2x6x4xf32>, %p: !plan, %i: index) {
  // expected-error @+1 {{GM5: the plan has 1 helper slots, and the op nothing for them}}
  %r = moe.grouped_matmul %x, %w transpose by %p at %i : (tensor<?x4xf32>, tensor<2x6x4xf32>, !plan, index) -> tensor<?x6xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1, chunks = 2, leaves = 2, capacity = 16>
func.func @grouped_matmul_gm5_type(%x: tensor<?x4xf32>, %w: tensor<2x6x4xf32>, %p: !plan, %i: index) {
  // expected-error @+1 {{GM5: has 'tensor<2x6x4xf32>' for the helper slots, and it must be 'tensor<1x6x4xf32>'}}
  %r = moe.grouped_matmul %x, %w helpers(%w) transpose by %p at %i : (tensor<?x4xf32>, tensor<2x6x4xf32>, !plan, tensor<2x6x4xf32>, index) -> tensor<?x6xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1, chunks = 2, leaves = 2, capacity = 16>
func.func @grouped_matmul_grad_gmg5(%x: tensor<?x4xf32>, %w: tensor<2x4x4xf32>, %p: !plan, %i: index) {
  // expected-error @+1 {{GMG5: the plan has 1 helper slots, and the op nothing for them}}
  %r = moe.grouped_matmul_grad %x, %x by %p at %i onto %w : (tensor<?x4xf32>, tensor<?x4xf32>, !plan, tensor<2x4x4xf32>, index) -> tensor<2x4x4xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1, chunks = 2, leaves = 2, capacity = 16>
func.func @grouped_matmul_grad_gmg5_onto(%x: tensor<?x4xf32>, %w: tensor<2x4x4xf32>, %p: !plan, %i: index) {
  // expected-error @+1 {{GMG5: the gradients of helper slots are added onto something of their type exactly when the rank's own are}}
  %r, %h = moe.grouped_matmul_grad %x, %x by %p at %i onto %w : (tensor<?x4xf32>, tensor<?x4xf32>, !plan, tensor<2x4x4xf32>, index) -> (tensor<2x4x4xf32>, tensor<1x4x4xf32>)
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1, chunks = 2, leaves = 2, capacity = 16>
shard.grid @experts(shape = 2)
func.func @migrate_me1(%w: tensor<2x6x4xf32>, %p: !plan) {
  // expected-error @+1 {{ME1: 'tensor<2x6x4xf32>' and 'tensor<1x6x5xf32>' must be for the plan's 2 experts of a rank and its 1 helper slots, and otherwise alike}}
  %r = moe.migrate_experts %w by %p on @experts : (tensor<2x6x4xf32>, !plan) -> tensor<1x6x5xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1, chunks = 2, leaves = 2, capacity = 16>
shard.grid @experts(shape = 4)
func.func @migrate_me2(%w: tensor<2x6x4xf32>, %p: !plan) {
  // expected-error @+1 {{ME2: the last axis of grid @experts has 4 ranks, and the plan is for 2}}
  %r = moe.migrate_experts %w by %p on @experts : (tensor<2x6x4xf32>, !plan) -> tensor<1x6x4xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1, chunks = 2, leaves = 2, capacity = 16>
shard.grid @experts(shape = 2)
func.func @return_rg1(%w: tensor<2x6x4xbf16>, %h: tensor<1x6x4xbf16>, %p: !plan) {
  // expected-error @+1 {{RG1: gradients are 'tensor<2x6x4xbf16>', and must be f32}}
  %r = moe.return_expert_grads %w, %h by %p on @experts : tensor<2x6x4xbf16>, tensor<1x6x4xbf16>, !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1, chunks = 2, leaves = 2, capacity = 16>
shard.grid @experts(shape = 2x1)
func.func @return_rg2(%w: tensor<2x6x4xf32>, %h: tensor<1x6x4xf32>, %p: !plan) {
  // expected-error @+1 {{RG2: the last axis of grid @experts has 1 ranks, and the plan is for 2}}
  %r = moe.return_expert_grads %w, %h by %p on @experts : tensor<2x6x4xf32>, tensor<1x6x4xf32>, !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, chunks = 2>
func.func @grouped_matmul_grad_gmg6(%x: tensor<?x4xf32>, %p: !plan, %i: index) {
  // expected-error @+1 {{GMG6: takes the rows of an iteration, and there is nothing that it adds their gradient onto}}
  %r = moe.grouped_matmul_grad %x, %x by %p at %i : (tensor<?x4xf32>, tensor<?x4xf32>, !plan, index) -> tensor<2x4x4xf32>
  return
}

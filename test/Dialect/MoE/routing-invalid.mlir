// RUN: plateau-opt %s -split-input-file -verify-diagnostics

func.func @route_re1_ids(%l: tensor<8x4xf32>) {
  // expected-error @+1 {{RE1: for 8 tokens, 4 experts and top_k = 2, ids and weights must be [8, 2], counts and bias [4]}}
  %i, %w, %c = moe.route %l routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>) -> (tensor<8x3xi32>, tensor<8x2xf32>, tensor<4xi32>)
  return
}

// -----

func.func @route_re1_weights(%l: tensor<8x4xf32>) {
  // expected-error @+1 {{RE1: for 8 tokens, 4 experts and top_k = 2, ids and weights must be [8, 2], counts and bias [4]}}
  %i, %w, %c = moe.route %l routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>) -> (tensor<8x2xi32>, tensor<7x2xf32>, tensor<4xi32>)
  return
}

// -----

func.func @route_re1_counts(%l: tensor<8x4xf32>) {
  // expected-error @+1 {{RE1: for 8 tokens, 4 experts and top_k = 2, ids and weights must be [8, 2], counts and bias [4]}}
  %i, %w, %c = moe.route %l routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<5xi32>)
  return
}

// -----

func.func @route_token_count(%l: tensor<8x4xf32>, %n: tensor<1xi32>) {
  // expected-error @+1 {{operand #1 must be tensor without dimensions of 32-bit signless integer values, but got 'tensor<1xi32>'}}
  %i, %w, %c = moe.route %l token_count(%n) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<1xi32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<4xi32>)
  return
}

// -----

func.func @route_re1_bias(%l: tensor<8x4xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{RE1: for 8 tokens, 4 experts and top_k = 2, ids and weights must be [8, 2], counts and bias [4]}}
  %i, %w, %c = moe.route %l bias(%b) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<3xf32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<4xi32>)
  return
}

// -----

func.func @route_re2_groups(%l: tensor<8x4xf32>) {
  // expected-error @+1 {{RE2: 4 experts must divide into 3 groups, and the 2 kept hold at least top_k = 2 of them}}
  %i, %w, %c = moe.route %l routing <top_k = 2, score = softmax, groups = 3, kept_groups = 2, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<4xi32>)
  return
}

// -----

func.func @route_re2_kept(%l: tensor<8x4xf32>) {
  // expected-error @+1 {{RE2: 4 experts must divide into 4 groups, and the 1 kept hold at least top_k = 2 of them}}
  %i, %w, %c = moe.route %l routing <top_k = 2, score = softmax, groups = 4, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<4xi32>)
  return
}

// -----

func.func @route_re2_top_k(%l: tensor<8x4xf32>) {
  // expected-error @+1 {{RE2: 4 experts must divide into 1 groups, and the 1 kept hold at least top_k = 5 of them}}
  %i, %w, %c = moe.route %l routing <top_k = 5, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>) -> (tensor<8x5xi32>, tensor<8x5xf32>, tensor<4xi32>)
  return
}

// -----

func.func @route_re2_no_experts(%l: tensor<8x0xf32>) {
  // expected-error @+1 {{RE2: 0 experts must divide into 1 groups, and the 1 kept hold at least top_k = 1 of them}}
  %i, %w, %c = moe.route %l routing <top_k = 1, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x0xf32>) -> (tensor<8x1xi32>, tensor<8x1xf32>, tensor<0xi32>)
  return
}

// -----

func.func @route_grad_reg1_cotangent(%d: tensor<8x3xf32>, %l: tensor<8x4xf32>, %i: tensor<8x2xi32>) {
  // expected-error @+1 {{REG1: cotangent and ids must be [8, 2], and the result 'tensor<8x4xf32>' like the logits}}
  %r = moe.route_grad %d, %l, %i routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x3xf32>, tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @route_grad_reg1_ids(%d: tensor<8x2xf32>, %l: tensor<8x4xf32>, %i: tensor<7x2xi32>) {
  // expected-error @+1 {{REG1: cotangent and ids must be [8, 2], and the result 'tensor<8x4xf32>' like the logits}}
  %r = moe.route_grad %d, %l, %i routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x2xf32>, tensor<8x4xf32>, tensor<7x2xi32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @route_grad_reg1_result(%d: tensor<8x2xf32>, %l: tensor<8x4xf32>, %i: tensor<8x2xi32>) {
  // expected-error @+1 {{REG1: cotangent and ids must be [8, 2], and the result 'tensor<8x4xf32>' like the logits}}
  %r = moe.route_grad %d, %l, %i routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x2xf32>, tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8x5xf32>
  return
}

// -----

shard.grid @experts(shape = 2)
func.func @plan_p1_tokens(%i: tensor<7x2xi32>) {
  // expected-error @+1 {{P1: ids are 'tensor<7x2xi32>', and the plan is for 8 tokens with 2 slots}}
  %p = moe.plan %i on @experts : tensor<7x2xi32> -> !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
  return
}

// -----

shard.grid @experts(shape = 2)
func.func @plan_p1_slots(%i: tensor<8x3xi32>) {
  // expected-error @+1 {{P1: ids are 'tensor<8x3xi32>', and the plan is for 8 tokens with 2 slots}}
  %p = moe.plan %i on @experts : tensor<8x3xi32> -> !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
  return
}

// -----

func.func @plan_p2_missing(%i: tensor<8x2xi32>) {
  // expected-error @+1 {{P2: there is no grid @experts with static sizes: add shard.grid @experts(shape = ...)}}
  %p = moe.plan %i on @experts : tensor<8x2xi32> -> !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
  return
}

// -----

// The first axis has as many ranks as the plan; the last one counts.
shard.grid @experts(shape = 2x4)
func.func @plan_p2_size(%i: tensor<8x2xi32>) {
  // expected-error @+1 {{P2: the last axis of grid @experts has 4 ranks, and the plan is for 2}}
  %p = moe.plan %i on @experts : tensor<8x2xi32> -> !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
  return
}

// -----

shard.grid @experts(shape = ?x2)
func.func @plan_p2_dynamic(%i: tensor<8x2xi32>) {
  // expected-error @+1 {{P2: there is no grid @experts with static sizes}}
  %p = moe.plan %i on @experts : tensor<8x2xi32> -> !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
  return
}

// -----

func.func private @experts()
func.func @plan_p2_function(%i: tensor<8x2xi32>) {
  // expected-error @+1 {{P2: there is no grid @experts with static sizes}}
  %p = moe.plan %i on @experts : tensor<8x2xi32> -> !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2)
func.func @dispatch_d1_tokens(%x: tensor<7x4xf32>, %p: !plan) {
  // expected-error @+1 {{D1: 'tensor<7x4xf32>' and 'tensor<?x4xf32>' must have the same columns and element type, and the first the plan's 8 rows}}
  %r = moe.dispatch rows(%x : tensor<7x4xf32> -> tensor<?x4xf32>) by %p on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2)
func.func @dispatch_d1_columns(%x: tensor<8x4xf32>, %p: !plan) {
  // expected-error @+1 {{D1: 'tensor<8x4xf32>' and 'tensor<?x5xf32>' must have the same columns and element type}}
  %r = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x5xf32>) by %p on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2)
func.func @dispatch_d1_element(%x: tensor<8x4xf32>, %p: !plan) {
  // expected-error @+1 {{D1: 'tensor<8x4xf32>' and 'tensor<?x4xbf16>' must have the same columns and element type}}
  %r = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xbf16>) by %p on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2)
func.func @dispatch_d1_static(%x: tensor<8x4xf32>, %p: !plan) {
  // expected-error @+1 {{D1: the rows received are known when the step runs: 'tensor<16x4xf32>' must be [?, columns]}}
  %r = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<16x4xf32>) by %p on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2)
func.func @dispatch_d2_slots(%v: tensor<8x3xf32>, %p: !plan) {
  // expected-error @+1 {{D2: 'tensor<8x3xf32>' must have the plan's 8 tokens and 2 slots}}
  %r = moe.dispatch values(%v : tensor<8x3xf32> -> tensor<?xf32>) by %p on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2)
func.func @dispatch_d2_tokens(%v: tensor<9x2xf32>, %p: !plan) {
  // expected-error @+1 {{D2: 'tensor<9x2xf32>' must have the plan's 8 tokens and 2 slots}}
  %r = moe.dispatch values(%v : tensor<9x2xf32> -> tensor<?xf32>) by %p on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2)
func.func @dispatch_d2_static(%v: tensor<8x2xf32>, %p: !plan) {
  // expected-error @+1 {{D2: the rows received are known when the step runs: 'tensor<16xf32>' must be [?]}}
  %r = moe.dispatch values(%v : tensor<8x2xf32> -> tensor<16xf32>) by %p on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2)
func.func @dispatch_d3_rows(%x: tensor<8x4xf32>, %v: tensor<8x2xf32>, %p: !plan) {
  // expected-error @+1 {{D3: rows must have both an operand and a result, or neither}}
  %r = "moe.dispatch"(%x, %v, %p) <{grid = @experts, operandSegmentSizes = array<i32: 1, 1, 1, 0>, resultSegmentSizes = array<i32: 0, 1>}> : (tensor<8x4xf32>, tensor<8x2xf32>, !plan) -> tensor<?xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2)
func.func @dispatch_d3_values(%x: tensor<8x4xf32>, %p: !plan) {
  // expected-error @+1 {{D3: values must have both an operand and a result, or neither}}
  %r:2 = "moe.dispatch"(%x, %p) <{grid = @experts, operandSegmentSizes = array<i32: 1, 0, 1, 0>, resultSegmentSizes = array<i32: 1, 1>}> : (tensor<8x4xf32>, !plan) -> (tensor<?x4xf32>, tensor<?xf32>)
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2)
func.func @dispatch_d3_nothing(%p: !plan) {
  // expected-error @+1 {{D3: has neither rows nor values to send}}
  moe.dispatch by %p on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 4)
func.func @dispatch_d4_size(%x: tensor<8x4xf32>, %p: !plan) {
  // expected-error @+1 {{D4: the last axis of grid @experts has 4 ranks, and the plan is for 2}}
  %r = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) by %p on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
func.func @dispatch_d4_missing(%x: tensor<8x4xf32>, %p: !plan) {
  // expected-error @+1 {{D4: there is no grid @experts with static sizes: add shard.grid @experts(shape = ...)}}
  %r = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) by %p on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2)
func.func @combine_cb1_tokens(%x: tensor<?x4xf32>, %p: !plan) {
  // expected-error @+1 {{CB1: 'tensor<7x4xf32>' and 'tensor<?x4xf32>' must have the same columns and element type, and the first the plan's 8 rows}}
  %r = moe.combine rows(%x : tensor<?x4xf32> -> tensor<7x4xf32>) by %p on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2)
func.func @combine_cb1_element(%x: tensor<?x4xbf16>, %p: !plan) {
  // expected-error @+1 {{CB1: 'tensor<8x4xf32>' and 'tensor<?x4xbf16>' must have the same columns and element type}}
  %r = moe.combine rows(%x : tensor<?x4xbf16> -> tensor<8x4xf32>) by %p on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2)
func.func @combine_cb1_static(%x: tensor<16x4xf32>, %p: !plan) {
  // expected-error @+1 {{CB1: the rows received are known when the step runs: 'tensor<16x4xf32>' must be [?, columns]}}
  %r = moe.combine rows(%x : tensor<16x4xf32> -> tensor<8x4xf32>) by %p on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2)
func.func @combine_cb2_slots(%v: tensor<?xf32>, %p: !plan) {
  // expected-error @+1 {{CB2: 'tensor<8x1xf32>' must have the plan's 8 tokens and 2 slots}}
  %r = moe.combine values(%v : tensor<?xf32> -> tensor<8x1xf32>) by %p on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2)
func.func @combine_cb3_rows(%x: tensor<?x4xf32>, %v: tensor<?xf32>, %p: !plan) {
  // expected-error @+1 {{CB3: rows must have both an operand and a result, or neither}}
  %r = "moe.combine"(%x, %v, %p) <{grid = @experts, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 1>}> : (tensor<?x4xf32>, tensor<?xf32>, !plan) -> tensor<8x2xf32>
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2)
func.func @combine_cb3_nothing(%p: !plan) {
  // expected-error @+1 {{CB3: has neither rows nor values to bring home}}
  moe.combine by %p on @experts : !plan
  return
}

// -----

!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2x1)
func.func @combine_cb4_size(%v: tensor<?xf32>, %p: !plan) {
  // expected-error @+1 {{CB4: the last axis of grid @experts has 1 ranks, and the plan is for 2}}
  %r = moe.combine values(%v : tensor<?xf32> -> tensor<8x2xf32>) by %p on @experts : !plan
  return
}

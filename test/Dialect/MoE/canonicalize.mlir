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

// Every rank leaves out the same ops, so what nobody reads goes even where ranks would meet.
// CHECK-LABEL: func.func @dispatch_unused
// CHECK-NEXT: return
!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @grid(shape = 2)
func.func @dispatch_unused(%ids: tensor<8x2xi32>, %x: tensor<8x4xf32>) {
  %plan = moe.plan %ids on @grid : tensor<8x2xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) by %plan on @grid : !plan
  %y = moe.combine rows(%rows : tensor<?x4xf32> -> tensor<8x4xf32>) by %plan on @grid : !plan
  return
}

// Equal plans are one, and so is what they send.
// CHECK-LABEL: func.func @dispatch_twice
// CHECK-COUNT-1: moe.plan %
// CHECK-NEXT: %[[R:.*]] = moe.dispatch
// CHECK-NEXT: %[[D:.*]] = moe.row_dot %[[R]], %[[R]]
// CHECK-NEXT: moe.combine values(%[[D]]
// CHECK-NEXT: return
func.func @dispatch_twice(%ids: tensor<8x2xi32>, %x: tensor<8x4xf32>) -> tensor<8x2xf32> {
  %plan = moe.plan %ids on @grid : tensor<8x2xi32> -> !plan
  %other = moe.plan %ids on @grid : tensor<8x2xi32> -> !plan
  %a = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) by %plan on @grid : !plan
  %b = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) by %other on @grid : !plan
  %d = moe.row_dot %a, %b : tensor<?x4xf32> -> tensor<?xf32>
  %y = moe.combine values(%d : tensor<?xf32> -> tensor<8x2xf32>) by %plan on @grid : !plan
  return %y : tensor<8x2xf32>
}

// There and back is the sum over a token's slots, not the token.
// CHECK-LABEL: func.func @dispatch_and_back
// CHECK: moe.dispatch
// CHECK: moe.combine
func.func @dispatch_and_back(%ids: tensor<8x2xi32>, %x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %plan = moe.plan %ids on @grid : tensor<8x2xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) by %plan on @grid : !plan
  %y = moe.combine rows(%rows : tensor<?x4xf32> -> tensor<8x4xf32>) by %plan on @grid : !plan
  return %y : tensor<8x4xf32>
}

// A region that saves its routing keeps what is read of it: here the ids, not the weights nor the plan.
// CHECK-LABEL: func.func @checkpoint_saved_routing
// CHECK: %[[R:.*]]:2 = moe.checkpoint ({{.*}}) -> (tensor<8x4xf32>, tensor<8x2xi32>) {
// CHECK: %[[IDS:.*]], %[[WEIGHTS:.*]], %{{.*}} = moe.route
// CHECK: moe.plan %[[IDS]]
// CHECK: moe.yield %{{.*}}, %[[IDS]] :
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @checkpoint_saved_routing(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x2xi32>) {
  %r:4 = moe.checkpoint (%l = %x : tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x2xi32>, tensor<8x2xf32>, !plan) {
    %ids, %weights, %counts = moe.route %l routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<4xi32>)
    %plan = moe.plan %ids on @grid : tensor<8x2xi32> -> !plan
    %rows, %p = moe.dispatch rows(%l : tensor<8x4xf32> -> tensor<?x4xf32>) values(%weights : tensor<8x2xf32> -> tensor<?xf32>) by %plan on @grid : !plan
    %z = moe.scale_rows %rows, %p : tensor<?x4xf32>, tensor<?xf32>
    %y = moe.combine rows(%z : tensor<?x4xf32> -> tensor<8x4xf32>) by %plan on @grid : !plan
    moe.yield %y, %ids, %weights, %plan : tensor<8x4xf32>, tensor<8x2xi32>, tensor<8x2xf32>, !plan
  }
  return %r#0, %r#1 : tensor<8x4xf32>, tensor<8x2xi32>
}

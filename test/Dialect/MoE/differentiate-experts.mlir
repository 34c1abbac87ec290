// RUN: plateau-opt %s -split-input-file -moe-differentiate -canonicalize --mlir-print-local-scope | FileCheck %s

// A layer on one rank: each op has its adjoint, in reverse. The weights' own gradient comes from the rows of the output.
// CHECK-LABEL: func.func private @loss_and_gradients(
// CHECK-SAME: %[[X:[^:]*]]: tensor<8x4xf32> {{.*}}, %[[ROUTER:[^:]*]]: tensor<4x2xf32> {{.*}}, %[[W13:[^:]*]]: tensor<2x6x4xf32> {{.*}}, %[[W2:[^:]*]]: tensor<2x4x3xf32>
// CHECK: %[[LOGITS:.*]] = linalg.matmul ins(%[[X]], %[[ROUTER]]
// CHECK: %[[IDS:.*]], %[[WEIGHTS:.*]], %{{.*}} = moe.route %[[LOGITS]]
// CHECK: %[[PLAN:.*]] = moe.plan %[[IDS]]
// CHECK: %[[ROWS:.*]], %[[P:.*]] = moe.dispatch rows(%[[X]] {{.*}}) values(%[[WEIGHTS]]
// CHECK: %[[H:.*]] = moe.grouped_matmul %[[ROWS]], %[[W13]] transpose by %[[PLAN]]
// CHECK: %[[A:.*]] = moe.swiglu %[[H]]
// CHECK: %[[U:.*]] = moe.grouped_matmul %[[A]], %[[W2]] transpose by %[[PLAN]]
// CHECK: %[[Z:.*]] = moe.scale_rows %[[U]], %[[P]]
// CHECK: %[[Y:.*]] = moe.combine rows(%[[Z]]
// CHECK: %[[DY:.*]] = moe.log_softmax_grad
// CHECK: %[[DZ:.*]] = moe.dispatch rows(%[[DY]] : tensor<8x4xf32> -> tensor<?x4xf32>) by %[[PLAN]] on @experts
// CHECK: %[[DU:.*]] = moe.scale_rows %[[DZ]], %[[P]]
// CHECK: %[[DP:.*]] = moe.row_dot %[[DZ]], %[[U]]
// CHECK: %[[DA:.*]] = moe.grouped_matmul %[[DU]], %[[W2]] by %[[PLAN]]
// CHECK: %[[DW2:.*]] = moe.grouped_matmul_grad %[[DU]], %[[A]] by %[[PLAN]] : {{.*}} -> tensor<2x4x3xf32>
// CHECK: %[[DH:.*]] = moe.swiglu_grad %[[DA]], %[[H]]
// CHECK: %[[DROWS:.*]] = moe.grouped_matmul %[[DH]], %[[W13]] by %[[PLAN]]
// CHECK: %[[DW13:.*]] = moe.grouped_matmul_grad %[[DH]], %[[ROWS]] by %[[PLAN]] : {{.*}} -> tensor<2x6x4xf32>
// CHECK: %[[DX:.*]], %[[DWEIGHTS:.*]] = moe.combine rows(%[[DROWS]] : tensor<?x4xf32> -> tensor<8x4xf32>) values(%[[DP]] : tensor<?xf32> -> tensor<8x2xf32>) by %[[PLAN]] on @experts
// CHECK: %[[DLOGITS:.*]] = moe.route_grad %[[DWEIGHTS]], %[[LOGITS]], %[[IDS]] routing <top_k = 2,
// CHECK: %[[BYLOGITS:.*]] = linalg.matmul {{.*}} ins(%[[DLOGITS]], %[[ROUTER]]
// CHECK: %[[DROUTER:.*]] = linalg.matmul {{.*}} ins(%[[X]], %[[DLOGITS]]
// CHECK: %[[SUM:.*]] = arith.addf %[[DX]], %[[BYLOGITS]]
// CHECK: return %{{.*}}, %[[SUM]], %[[DROUTER]], %[[DW13]], %[[DW2]]
!plan = !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 2>
shard.grid @experts(shape = 1)
func.func @loss(%x: tensor<8x4xf32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %router: tensor<4x2xf32> {moe.parameter = #moe.parameter<"router", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %w13: tensor<2x6x4xf32> {moe.parameter = #moe.parameter<"w13", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %w2: tensor<2x4x3xf32> {moe.parameter = #moe.parameter<"w2", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %labels: tensor<8xi32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x2xf32>) -> tensor<8x2xf32>
  %logits = linalg.matmul ins(%x, %router : tensor<8x4xf32>, tensor<4x2xf32>) outs(%init : tensor<8x2xf32>) -> tensor<8x2xf32>
  %ids, %weights, %counts = moe.route %logits routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = false, scale = 1.0 : f32> : (tensor<8x2xf32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<2xi32>)
  %plan = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
  %rows, %p = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) values(%weights : tensor<8x2xf32> -> tensor<?xf32>) by %plan on @experts : !plan
  %h = moe.grouped_matmul %rows, %w13 transpose by %plan : (tensor<?x4xf32>, tensor<2x6x4xf32>, !plan) -> tensor<?x6xf32>
  %a = moe.swiglu %h : tensor<?x6xf32> -> tensor<?x3xf32>
  %u = moe.grouped_matmul %a, %w2 transpose by %plan : (tensor<?x3xf32>, tensor<2x4x3xf32>, !plan) -> tensor<?x4xf32>
  %z = moe.scale_rows %u, %p : tensor<?x4xf32>, tensor<?xf32>
  %y = moe.combine rows(%z : tensor<?x4xf32> -> tensor<8x4xf32>) by %plan on @experts : !plan
  %s, %s_lse = moe.log_softmax %y vocabulary<size = 4>
    : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<8xi32>
  %l_rows = moe.nll %s, %s_lse, %labels vocabulary<size = 4>
    : (tensor<8x4xf32>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<8xf32>
  return %l : tensor<f32>
}

// -----

// A product with the weights as they are: the rows' cotangent takes them turned round, and the gradient of the weights has
// the rows on the left.
// CHECK-LABEL: func.func private @loss_and_gradients(
// CHECK-SAME: %[[X:[^:]*]]: tensor<8x4xbf16> {{.*}}, %[[W:[^:]*]]: tensor<2x4x6xbf16>
// CHECK: %[[ROWS:.*]] = moe.dispatch
// CHECK: %[[DU:.*]] = moe.dispatch
// CHECK: %[[DROWS:.*]] = moe.grouped_matmul %[[DU]], %[[W]] transpose by %[[PLAN:.*]] :
// CHECK: %[[DW:.*]] = moe.grouped_matmul_grad %[[ROWS]], %[[DU]] by %[[PLAN]] : {{.*}} -> tensor<2x4x6xbf16>
// CHECK: %[[DX:.*]] = moe.combine rows(%[[DROWS]] : tensor<?x4xbf16> -> tensor<8x4xbf16>)
// CHECK: return %{{.*}}, %[[DX]], %[[DW]]
!plan = !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 2>
shard.grid @experts(shape = 1)
func.func @loss(%x: tensor<8x4xbf16> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %w: tensor<2x4x6xbf16> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %ids: tensor<8x2xi32>, %labels: tensor<8xi32>) -> tensor<f32> {
  %plan = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<8x4xbf16> -> tensor<?x4xbf16>) by %plan on @experts : !plan
  %u = moe.grouped_matmul %rows, %w by %plan : (tensor<?x4xbf16>, tensor<2x4x6xbf16>, !plan) -> tensor<?x6xbf16>
  %y = moe.combine rows(%u : tensor<?x6xbf16> -> tensor<8x6xbf16>) by %plan on @experts : !plan
  %wide = arith.extf %y : tensor<8x6xbf16> to tensor<8x6xf32>
  %s, %s_lse = moe.log_softmax %wide vocabulary<size = 6>
    : (tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<8xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<8xi32>
  %l_rows = moe.nll %s, %s_lse, %labels vocabulary<size = 6>
    : (tensor<8x6xf32>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<8xf32>
  return %l : tensor<f32>
}

// -----

// Values alone travel the same ways; and the inner product of rows has an adjoint for each of them.
// CHECK-LABEL: func.func private @loss_and_gradients(
// CHECK-SAME: %[[P:[^:]*]]: tensor<8x2xf32> {{.*}}, %[[A:[^:]*]]: tensor<8x3xf32> {{.*}}, %[[B:[^:]*]]: tensor<8x3xf32>
// CHECK: %[[DQ:.*]] = moe.log_softmax_grad
// CHECK: %[[DV:.*]] = moe.dispatch values(%[[DQ]] : tensor<8x2xf32> -> tensor<?xf32>) by %[[PLAN:.*]] on @experts
// CHECK: %[[DP:.*]] = moe.combine values(%[[DV]] : tensor<?xf32> -> tensor<8x2xf32>) by %[[PLAN]] on @experts
// CHECK: %[[DP2:.*]] = moe.scale_rows %[[DP]], %{{.*}} : tensor<8x2xf32>, tensor<8xf32>
// CHECK: %[[D:.*]] = moe.row_dot %[[DP]], %[[P]] : tensor<8x2xf32> -> tensor<8xf32>
// CHECK: %[[DA:.*]] = moe.scale_rows %[[B]], %[[D]] : tensor<8x3xf32>, tensor<8xf32>
// CHECK: %[[DB:.*]] = moe.scale_rows %[[A]], %[[D]] : tensor<8x3xf32>, tensor<8xf32>
// CHECK: return %{{.*}}, %[[DP2]], %[[DA]], %[[DB]]
!plan = !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 2>
shard.grid @experts(shape = 1)
func.func @loss(%p: tensor<8x2xf32> {moe.parameter = #moe.parameter<"p", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %a: tensor<8x3xf32> {moe.parameter = #moe.parameter<"a", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %b: tensor<8x3xf32> {moe.parameter = #moe.parameter<"b", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %ids: tensor<8x2xi32>, %labels: tensor<8xi32>) -> tensor<f32> {
  %dot = moe.row_dot %a, %b : tensor<8x3xf32> -> tensor<8xf32>
  %scaled = moe.scale_rows %p, %dot : tensor<8x2xf32>, tensor<8xf32>
  %plan = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
  %v = moe.dispatch values(%scaled : tensor<8x2xf32> -> tensor<?xf32>) by %plan on @experts : !plan
  %q = moe.combine values(%v : tensor<?xf32> -> tensor<8x2xf32>) by %plan on @experts : !plan
  %s, %s_lse = moe.log_softmax %q vocabulary<size = 2>
    : (tensor<8x2xf32>) -> (tensor<8x2xf32>, tensor<8xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<8xi32>
  %l_rows = moe.nll %s, %s_lse, %labels vocabulary<size = 2>
    : (tensor<8x2xf32>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<8xf32>
  return %l : tensor<f32>
}

// -----

// Routing in a checkpoint region is decided once: its results, and the plan, go to the region that computes the rest again.
// Counts, which the backward pass does not read, do not.
// CHECK-LABEL: func.func private @loss_and_gradients(
// CHECK: %[[Y:.*]]:4 = moe.checkpoint ({{.*}}) -> (tensor<8x4xf32>, tensor<8x2xi32>, tensor<8x2xf32>, !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 2>) {
// CHECK:   %[[IDS:.*]], %[[WEIGHTS:.*]], %{{.*}} = moe.route
// CHECK:   %[[PLAN:.*]] = moe.plan %[[IDS]]
// CHECK:   moe.yield %{{.*}}, %[[IDS]], %[[WEIGHTS]], %[[PLAN]]
// CHECK: }
// CHECK: moe.log_softmax %[[Y]]#0
// CHECK: moe.checkpoint recompute ({{.*}}%[[IDS2:[^ ]*]] = %[[Y]]#1 : tensor<8x2xi32>, %[[WEIGHTS2:[^ ]*]] = %[[Y]]#2 : tensor<8x2xf32>, %[[PLAN2:[^ ]*]] = %[[Y]]#3 : !moe.plan<{{[^>]*}}>, %[[DY:[^ ]*]] = %{{.*}} : tensor<8x4xf32>)
// CHECK-NOT: moe.route %
// CHECK-NOT: moe.plan %
// CHECK:   moe.dispatch rows({{.*}}) values(%[[WEIGHTS2]] {{.*}}) by %[[PLAN2]]
// CHECK:   moe.route_grad %{{.*}}, %{{.*}}, %[[IDS2]]
// CHECK-NOT: moe.route %
// CHECK-NOT: moe.plan %
// CHECK: return
!plan = !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 2>
shard.grid @experts(shape = 1)
func.func @loss(%x: tensor<8x4xf32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %logits: tensor<8x2xf32> {moe.parameter = #moe.parameter<"logits", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %labels: tensor<8xi32>) -> tensor<f32> {
  %y = moe.checkpoint (%xx = %x : tensor<8x4xf32>, %ll = %logits : tensor<8x2xf32>) -> tensor<8x4xf32> {
    %ids, %weights, %counts = moe.route %ll routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = false, scale = 1.0 : f32> : (tensor<8x2xf32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<2xi32>)
    %plan = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
    %rows, %p = moe.dispatch rows(%xx : tensor<8x4xf32> -> tensor<?x4xf32>) values(%weights : tensor<8x2xf32> -> tensor<?xf32>) by %plan on @experts : !plan
    %z = moe.scale_rows %rows, %p : tensor<?x4xf32>, tensor<?xf32>
    %own = moe.combine rows(%z : tensor<?x4xf32> -> tensor<8x4xf32>) by %plan on @experts : !plan
    moe.yield %own : tensor<8x4xf32>
  }
  %s, %s_lse = moe.log_softmax %y vocabulary<size = 4>
    : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<8xi32>
  %l_rows = moe.nll %s, %s_lse, %labels vocabulary<size = 4>
    : (tensor<8x4xf32>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<8xf32>
  return %l : tensor<f32>
}

// -----

// What a region yields already is not yielded again.
// CHECK-LABEL: func.func private @loss_and_gradients(
// CHECK: %[[Y:.*]]:2 = moe.checkpoint ({{.*}}) -> (tensor<8x2xf32>, tensor<8x2xi32>) {
// CHECK: moe.checkpoint recompute ({{.*}} = %[[Y]]#1 : tensor<8x2xi32>, {{.*}})
// CHECK-NOT: moe.route %
// CHECK: moe.route_grad
shard.grid @experts(shape = 1)
func.func @loss(%logits: tensor<8x2xf32> {moe.parameter = #moe.parameter<"logits", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %labels: tensor<8xi32>) -> tensor<f32> {
  %y = moe.checkpoint (%ll = %logits : tensor<8x2xf32>) -> tensor<8x2xf32> {
    %ids, %weights, %counts = moe.route %ll routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = false, scale = 1.0 : f32> : (tensor<8x2xf32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<2xi32>)
    moe.yield %weights : tensor<8x2xf32>
  }
  %s, %s_lse = moe.log_softmax %y vocabulary<size = 2>
    : (tensor<8x2xf32>) -> (tensor<8x2xf32>, tensor<8xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<8xi32>
  %l_rows = moe.nll %s, %s_lse, %labels vocabulary<size = 2>
    : (tensor<8x2xf32>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<8xf32>
  return %l : tensor<f32>
}

// -----

// Collectives: a sum's adjoint is the sum of the cotangents, a gather's adds and divides, a scatter's gathers.
// CHECK-LABEL: func.func private @loss_and_gradients(
// CHECK: shard.all_gather %{{.*}} on @grid grid_axes = [1] gather_axis = 0 : tensor<4x4xf32> -> tensor<8x4xf32>
// CHECK: shard.all_reduce %{{.*}} on @grid grid_axes = [0, 1]
// CHECK: shard.reduce_scatter %{{.*}} on @grid grid_axes = [0] scatter_axis = 0 : tensor<8x4xf32> -> tensor<4x4xf32>
// CHECK: %[[DS:.*]] = moe.log_softmax_grad
// CHECK: %[[DR:.*]] = shard.all_gather %[[DS]] on @grid grid_axes = [0] gather_axis = 0 : tensor<4x4xf32> -> tensor<8x4xf32>
// CHECK: %[[DG:.*]] = shard.all_reduce %[[DR]] on @grid grid_axes = [0, 1] : tensor<8x4xf32> -> tensor<8x4xf32>
// CHECK: %[[DX:.*]] = shard.reduce_scatter %[[DG]] on @grid grid_axes = [1] scatter_axis = 0 : tensor<8x4xf32> -> tensor<4x4xf32>
// CHECK: return %{{.*}}, %[[DX]]
shard.grid @grid(shape = 2x2)
func.func @loss(%x: tensor<4x4xf32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %labels: tensor<4xi32>) -> tensor<f32> {
  %g = shard.all_gather %x on @grid grid_axes = [1] gather_axis = 0 : tensor<4x4xf32> -> tensor<8x4xf32>
  %r = shard.all_reduce %g on @grid grid_axes = [0, 1] : tensor<8x4xf32> -> tensor<8x4xf32>
  %s = shard.reduce_scatter %r on @grid grid_axes = [0] scatter_axis = 0 : tensor<8x4xf32> -> tensor<4x4xf32>
  %p, %p_lse = moe.log_softmax %s vocabulary<size = 4>
    : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)
  %count = moe.count_labels %labels ignore_index(-100) : tensor<4xi32>
  %l_rows = moe.nll %p, %p_lse, %labels vocabulary<size = 4>
    : (tensor<4x4xf32>, tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  %l = moe.mean_loss %l_rows over %count : tensor<4xf32>
  return %l : tensor<f32>
}

// RUN: plateau-opt %s --split-input-file --moe-expand-vocab-loss | FileCheck %s --check-prefixes=CHECK,STANDARD
// RUN: plateau-opt %s --split-input-file --moe-expand-vocab-loss=form=in-place | FileCheck %s --check-prefixes=CHECK,PLACE
// RUN: plateau-opt %s --split-input-file --moe-expand-vocab-loss=form=vocab-parallel | FileCheck %s --check-prefixes=CHECK,PARALLEL
// RUN: plateau-opt %s --split-input-file --moe-expand-vocab-loss --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=SCOPE
// RUN: not plateau-opt %s --split-input-file --moe-expand-vocab-loss=form=dense 2>&1 | FileCheck %s --check-prefix=FORM
// FORM: error: moe-expand-vocab-loss: form is "dense": it must be standard, in-place or vocab-parallel

// CHECK-NOT: moe.vocab_loss

// Two shards of 6 columns hold 11; gradients reuse what the losses left.
// CHECK-LABEL: func.func @pair(
// CHECK-SAME: %[[X:.*]]: tensor<5x4xbf16>, %[[T:.*]]: tensor<6x4xbf16>, %[[L:.*]]: tensor<5xi32>, %[[B:.*]]: tensor<6xf32>, %[[G:.*]]: tensor<5xf32>)
// STANDARD: %[[TABLE:.*]] = shard.all_gather %[[T]] on @vocab grid_axes = [1] gather_axis = 0 : tensor<6x4xbf16> -> tensor<12x4xbf16>
// STANDARD: %[[BIAS:.*]] = shard.all_gather %[[B]] on @vocab grid_axes = [1] gather_axis = 0 : tensor<6xf32> -> tensor<12xf32>
// STANDARD: %[[Y:.*]] = linalg.matmul {{.*}} ins(%[[X]], %[[TABLE]] : {{.*}}) outs({{.*}} : tensor<5x12xf32>)
// STANDARD: %[[P:.*]], %[[LSE:.*]] = moe.log_softmax %[[Y]] bias %[[BIAS]] vocabulary<size = 11, z_loss = {{.*}}>
// STANDARD: %[[LOSSES:.*]] = moe.nll %[[P]], %[[LSE]], %[[L]] vocabulary<size = 11, z_loss = {{.*}}>
// STANDARD: %[[DP:.*]], %[[DLSE:.*]] = moe.nll_grad %[[G]], %[[LSE]], %[[L]]
// STANDARD: %[[DY:.*]], %[[DBIAS:.*]] = moe.log_softmax_grad %[[DP]], %[[P]], %[[LSE]] lse_cotangent %[[DLSE]]
// STANDARD: %[[ROUNDED:.*]] = arith.truncf %[[DY]] : tensor<5x12xf32> to tensor<5x12xbf16>
// STANDARD: %[[DX:.*]] = linalg.matmul ins(%[[ROUNDED]], %[[TABLE]] : {{.*}}) outs({{.*}} : tensor<5x4xf32>)
// STANDARD: %[[DTABLE:.*]] = linalg.matmul {{.*}} ins(%[[ROUNDED]], %[[X]] : {{.*}}) outs({{.*}} : tensor<12x4xf32>)
// STANDARD: %[[DX16:.*]] = arith.truncf %[[DX]]
// STANDARD: %[[DT:.*]] = shard.reduce_scatter %[[DTABLE]] on @vocab grid_axes = [1] scatter_axis = 0 : tensor<12x4xf32> -> tensor<6x4xf32>
// STANDARD: %[[DB:.*]] = shard.reduce_scatter %[[DBIAS]] on @vocab grid_axes = [1] scatter_axis = 0 : tensor<12xf32> -> tensor<6xf32>
// STANDARD: return %[[LOSSES]], %[[DX16]], %[[DT]], %[[DB]]

// PLACE: %[[TABLE:.*]] = shard.all_gather %[[T]]
// PLACE: %[[BIAS:.*]] = shard.all_gather %[[B]]
// PLACE: %[[Y:.*]] = linalg.matmul {{.*}} ins(%[[X]], %[[TABLE]] : {{.*}}) outs({{.*}} : tensor<5x12xf32>)
// PLACE: %[[FIRST:.*]] = moe.shard_start on @vocab hops(0) rows(0)
// PLACE: %[[STATE:.*]] = moe.fold_logits %[[Y]], %[[L]] first(%[[FIRST]]) column(%{{.*}}) bias %[[BIAS]] into %{{.*}} vocabulary<size = 11
// PLACE: %[[LOSSES:.*]], %[[LSE:.*]] = moe.finish_losses %[[STATE]], %[[L]]
// PLACE-NOT: linalg.matmul {{.*}}5x12xf32
// PLACE: %[[DY:.*]] = moe.logits_grad %[[Y]], %[[L]], %[[LSE]], %[[G]] first(%[[FIRST]]) column(%{{.*}}) bias %[[BIAS]] {{.*}} -> tensor<5x12xbf16>
// PLACE: %[[DBIAS:.*]] = moe.column_sums %[[DY]] into %{{.*}} : tensor<5x12xbf16>, tensor<12xf32>
// PLACE: linalg.matmul ins(%[[DY]], %[[TABLE]]
// PLACE: linalg.matmul {{.*}} ins(%[[DY]], %[[X]]
// PLACE: shard.reduce_scatter {{.*}} : tensor<12x4xf32> -> tensor<6x4xf32>
// PLACE: shard.reduce_scatter %[[DBIAS]]

// PARALLEL: %[[ALL:.*]] = shard.all_gather %[[X]] on @vocab grid_axes = [1] gather_axis = 0 : tensor<5x4xbf16> -> tensor<10x4xbf16>
// PARALLEL: %[[LABELS:.*]] = shard.all_gather %[[L]]
// PARALLEL: %[[Y:.*]] = linalg.matmul {{.*}} ins(%[[ALL]], %[[T]] : {{.*}}) outs({{.*}} : tensor<10x6xf32>)
// PARALLEL: %[[FIRST:.*]] = moe.shard_start on @vocab hops(0) rows(6)
// PARALLEL: %[[STATE:.*]] = moe.fold_logits %[[Y]], %[[LABELS]] first(%[[FIRST]]) column(%{{.*}}) bias %[[B]]
// PARALLEL: %[[STATES:.*]] = shard.all_gather %[[STATE]] {{.*}} : tensor<10x3xf32> -> tensor<20x3xf32>
// PARALLEL: %[[MERGED:.*]] = moe.merge_states %[[STATES]]
// PARALLEL: %[[OWN:.*]] = moe.embedding_shard_grad {{.*}} : (tensor<2x15xf32>, tensor<2xi32>, tensor<i32>, tensor<1x15xf32>) -> tensor<1x15xf32>
// PARALLEL: moe.finish_losses %{{.*}}, %[[L]] {{.*}} : (tensor<5x3xf32>, tensor<5xi32>)
// PARALLEL: %[[COTANGENTS:.*]] = shard.all_gather %[[G]]
// PARALLEL: moe.logits_grad %[[Y]], %[[LABELS]], %{{.*}}, %[[COTANGENTS]] first(%[[FIRST]])
// PARALLEL: %[[DX:.*]] = linalg.matmul
// PARALLEL: %[[DT:.*]] = linalg.matmul {{.*}} ins(%{{.*}}, %[[ALL]]
// PARALLEL: %[[SUM:.*]] = shard.reduce_scatter %[[DX]] {{.*}} : tensor<10x4xf32> -> tensor<5x4xf32>
// PARALLEL: arith.truncf %[[SUM]]

// A loss that is computed again keeps its phase.
// SCOPE: moe.nll %{{.*}} loc(fused<#moe.scope<backward, vocabulary>>["nll"])
// SCOPE: moe.nll_grad %{{.*}} loc(fused<#moe.scope<backward, vocabulary>>["nll"])
shard.grid @vocab(shape = 2x2)
func.func @pair(%x: tensor<5x4xbf16>, %t: tensor<6x4xbf16>, %l: tensor<5xi32>, %b: tensor<6xf32>, %g: tensor<5xf32>)
    -> (tensor<5xf32>, tensor<5x4xbf16>, tensor<6x4xf32>, tensor<6xf32>) {
  %losses, %lse = moe.vocab_loss %x, %t, %l bias %b on @vocab vocabulary<size = 11, z_loss = 0.5>
    : (tensor<5x4xbf16>, tensor<6x4xbf16>, tensor<5xi32>, tensor<6xf32>) -> (tensor<5xf32>, tensor<5xf32>) loc(fused<#moe.scope<backward, dense>>["lm_head"])
  %dx, %dt, %db = moe.vocab_loss_grad %g, %x, %t, %l, %lse bias %b on @vocab vocabulary<size = 11, z_loss = 0.5>
    : (tensor<5xf32>, tensor<5x4xbf16>, tensor<6x4xbf16>, tensor<5xi32>, tensor<5xf32>, tensor<6xf32>)
    -> (tensor<5x4xbf16>, tensor<6x4xf32>, tensor<6xf32>)
  return %losses, %dx, %dt, %db : tensor<5xf32>, tensor<5x4xbf16>, tensor<6x4xf32>, tensor<6xf32>
}

// -----

// One rank has nothing to gather. The table's gradient is rounded before it is summed, as that of a separate product is.
// CHECK-LABEL: func.func @alone(
// CHECK-NOT: shard.
// PLACE: arith.constant dense<0> : tensor<i32>
// PARALLEL-NOT: moe.merge_states
// CHECK: return
func.func @alone(%x: tensor<5x4xf32>, %t: tensor<12x4xf32>, %l: tensor<5xi32>, %g: tensor<5xf32>) -> (tensor<5xf32>, tensor<12x4xf32>) {
  %losses, %lse = moe.vocab_loss %x, %t, %l vocabulary<size = 11>
    : (tensor<5x4xf32>, tensor<12x4xf32>, tensor<5xi32>) -> (tensor<5xf32>, tensor<5xf32>)
  %dx, %dt = moe.vocab_loss_grad %g, %x, %t, %l, %lse vocabulary<size = 11>
    : (tensor<5xf32>, tensor<5x4xf32>, tensor<12x4xf32>, tensor<5xi32>, tensor<5xf32>) -> (tensor<5x4xf32>, tensor<12x4xf32>)
  return %losses, %dt : tensor<5xf32>, tensor<12x4xf32>
}

// -----

// Inside regions too: of loops, and of checkpoints, whose backward pass has a loss of its own.
// CHECK-LABEL: func.func @regions(
// STANDARD-COUNT-2: moe.nll %
// PLACE-COUNT-2: moe.finish_losses
// PARALLEL-COUNT-2: moe.finish_losses
// CHECK: return
func.func @regions(%x: tensor<5x4xf32>, %t: tensor<12x4xf32>, %l: tensor<5xi32>, %g: tensor<5xf32>) -> (tensor<5xf32>, tensor<12x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant dense<0.0> : tensor<12x4xf32>
  %losses = moe.checkpoint (%a = %x : tensor<5x4xf32>, %b = %t : tensor<12x4xf32>, %c = %l : tensor<5xi32>) -> tensor<5xf32> {
    %inner, %lse = moe.vocab_loss %a, %b, %c vocabulary<size = 11>
      : (tensor<5x4xf32>, tensor<12x4xf32>, tensor<5xi32>) -> (tensor<5xf32>, tensor<5xf32>)
    moe.yield %inner : tensor<5xf32>
  }
  %sum = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %zero) -> tensor<12x4xf32> {
    %inner, %lse = moe.vocab_loss %x, %t, %l vocabulary<size = 11>
      : (tensor<5x4xf32>, tensor<12x4xf32>, tensor<5xi32>) -> (tensor<5xf32>, tensor<5xf32>)
    %dx, %dt = moe.vocab_loss_grad %g, %x, %t, %l, %lse vocabulary<size = 11>
      : (tensor<5xf32>, tensor<5x4xf32>, tensor<12x4xf32>, tensor<5xi32>, tensor<5xf32>) -> (tensor<5x4xf32>, tensor<12x4xf32>)
    %next = arith.addf %s, %dt : tensor<12x4xf32>
    scf.yield %next : tensor<12x4xf32>
  }
  return %losses, %sum : tensor<5xf32>, tensor<12x4xf32>
}

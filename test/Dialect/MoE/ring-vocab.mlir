// RUN: plateau-opt %s --moe-ring-vocab="move=weights tile-bytes=64" | FileCheck %s --check-prefix=WEIGHTS
// RUN: plateau-opt %s --moe-ring-vocab="move=activations" | FileCheck %s --check-prefix=ACTIVATIONS
// RUN: plateau-opt %s --moe-ring-vocab="move=none tile-bytes=64" | FileCheck %s --check-prefix=NONE
// RUN: plateau-opt %s --moe-ring-vocab="move=weights hop=tile tile-bytes=32" | FileCheck %s --check-prefix=TILE
// RUN: plateau-opt %s --moe-ring-vocab="move=none tile-bytes=64" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=SCOPE

shard.grid @vocab(shape = 1x3)

// Nine tokens a rank, shards of four columns, the last of them with two that exist.
func.func @step(%x: tensor<9x4xf32>, %table: tensor<4x4xf32>, %labels: tensor<9xi32>, %count: tensor<f32>, %one: tensor<f32>)
    -> (tensor<f32>, tensor<9x4xf32>, tensor<4x4xf32>) {
  %losses, %lse = moe.vocab_loss %x, %table, %labels on @vocab vocabulary<size = 10>
    : (tensor<9x4xf32>, tensor<4x4xf32>, tensor<9xi32>) -> (tensor<9xf32>, tensor<9xf32>)
  %loss = moe.mean_loss %losses over %count : tensor<9xf32>
  %g = moe.mean_loss_grad %one over %count : tensor<9xf32>
  %dx, %dt = moe.vocab_loss_grad %g, %x, %table, %labels, %lse on @vocab vocabulary<size = 10>
    : (tensor<9xf32>, tensor<9x4xf32>, tensor<4x4xf32>, tensor<9xi32>, tensor<9xf32>) -> (tensor<9x4xf32>, tensor<4x4xf32>)
  return %loss, %dx, %dt : tensor<f32>, tensor<9x4xf32>, tensor<4x4xf32>
}

// Two hops of the table forward. The next shard is on its way before the work on this one. Nine tokens are three tiles of three, whose
// logits have 48 bytes.
// WEIGHTS-LABEL: func @step(%arg0: tensor<9x4xf32>, %arg1: tensor<4x4xf32>
// WEIGHTS: %[[EMPTY:.*]] = tensor.empty() : tensor<4x4xf32>
// WEIGHTS: %[[ONE:.*]] = moe.shift %arg1 into %[[EMPTY]] on @vocab hops(1)
// WEIGHTS: moe.shard_start on @vocab hops(0) rows(4)
// WEIGHTS: %[[S0:.*]] = scf.for %[[I:.*]] = %c0{{.*}} to %c9{{.*}} step %c3{{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (tensor<9x3xf32>)
// WEIGHTS-NEXT: %[[X:.*]] = tensor.extract_slice %arg0[%[[I]], 0] [3, 4] [1, 1]
// WEIGHTS: linalg.matmul {{.*}} ins(%[[X]], %arg1
// WEIGHTS: %[[ROWS:.*]] = tensor.extract_slice %[[S]][%[[I]], 0] [3, 3] [1, 1]
// WEIGHTS: %[[FOLDED:.*]] = moe.fold_logits {{.*}} column(%c0{{[_0-9]*}}) into %[[ROWS]]
// WEIGHTS: tensor.insert_slice %[[FOLDED]] into %[[S]][%[[I]], 0] [3, 3] [1, 1]
// WEIGHTS: %[[TWO:.*]] = moe.shift %[[ONE]] into %{{.*}} on @vocab hops(1)
// WEIGHTS: moe.shard_start on @vocab hops(1) rows(4)
// WEIGHTS: linalg.matmul {{.*}} ins(%{{.*}}, %[[ONE]]
// WEIGHTS-NOT: moe.shift
// WEIGHTS: moe.shard_start on @vocab hops(2) rows(4)
// WEIGHTS: linalg.matmul {{.*}} ins(%{{.*}}, %[[TWO]]
// WEIGHTS: moe.finish_losses
// Backward the table takes two hops and its gradient three, between two places.
// WEIGHTS: %[[ONE:.*]] = moe.shift %arg1 into
// WEIGHTS: %[[G0:.*]]:2 = scf.for
// WEIGHTS: moe.logits_grad
// WEIGHTS-NOT: moe.shift
// WEIGHTS: %[[H1:.*]] = moe.shift %[[G0]]#1 into %{{.*}} on @vocab hops(1)
// WEIGHTS: moe.shift %[[ONE]] into
// WEIGHTS: %[[G1:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %[[G0]]#0, %{{.*}} = %[[H1]])
// WEIGHTS: %[[H2:.*]] = moe.shift %[[G1]]#1 into %[[G0]]#1 on @vocab hops(1)
// WEIGHTS: %[[G2:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %[[G1]]#0, %{{.*}} = %[[H2]])
// WEIGHTS: %[[HOME:.*]] = moe.shift %[[G2]]#1 into %[[G1]]#1 on @vocab hops(1)
// WEIGHTS: return %{{.*}}, %[[G2]]#0, %[[HOME]]

// Labels move with rows, states until they are home; everything fits one tile.
// ACTIVATIONS-LABEL: func @step(%arg0: tensor<9x4xf32>, %arg1: tensor<4x4xf32>, %arg2: tensor<9xi32>
// ACTIVATIONS: %[[FIRST:.*]] = moe.shard_start on @vocab hops(0) rows(4)
// ACTIVATIONS-NOT: moe.shard_start
// ACTIVATIONS: %[[X1:.*]] = moe.shift %arg0 into
// ACTIVATIONS: %[[L1:.*]] = moe.shift %arg2 into
// ACTIVATIONS: linalg.matmul {{.*}} ins(%arg0, %arg1
// ACTIVATIONS: %[[F0:.*]] = moe.fold_logits %{{.*}}, %arg2 first(%[[FIRST]])
// ACTIVATIONS: %[[S1:.*]] = moe.shift %[[F0]] into
// ACTIVATIONS: moe.shift %[[X1]] into
// ACTIVATIONS: moe.shift %[[L1]] into
// ACTIVATIONS: %[[F1:.*]] = moe.fold_logits %{{.*}}, %[[L1]] first(%[[FIRST]]) {{.*}} into %[[S1]]
// ACTIVATIONS: %[[S2:.*]] = moe.shift %[[F1]] into %[[F0]]
// ACTIVATIONS: %[[F2:.*]] = moe.fold_logits {{.*}} into %[[S2]]
// ACTIVATIONS: %[[S3:.*]] = moe.shift %[[F2]] into %[[F1]]
// ACTIVATIONS: moe.finish_losses %[[S3]], %arg2
// ACTIVATIONS-COUNT-4: moe.shift
// ACTIVATIONS: moe.logits_grad
// ACTIVATIONS-COUNT-5: moe.shift
// ACTIVATIONS: moe.logits_grad
// ACTIVATIONS-COUNT-1: moe.shift
// ACTIVATIONS: moe.logits_grad
// ACTIVATIONS: moe.shift
// ACTIVATIONS-NOT: moe.shift

// Cotangents come first. A tile has one token of each rank: 3 · 4 logits are 48 bytes.
// NONE-LABEL: func @step(
// NONE: %[[G:.*]] = moe.mean_loss_grad
// NONE: %[[OWN:.*]] = moe.shard_start on @vocab hops(0) rows(1)
// NONE-DAG: %[[NUMBERS:.*]] = arith.constant dense<[0, 1, 2]>
// NONE-DAG: %[[IGNORED:.*]] = arith.constant dense<-100>
// NONE: %[[FIRST:.*]] = moe.shard_start on @vocab hops(0) rows(4)
// NONE: %[[LOOP:.*]]:3 = scf.for %[[I:.*]] = %c0{{.*}} to %c9{{.*}} step %c1{{.*}} iter_args(%[[S:.*]] = %{{.*}}, %[[DX:.*]] = %{{.*}}, %[[DT:.*]] = %{{.*}})
// NONE: %[[X:.*]] = shard.all_gather {{.*}} on @vocab grid_axes = [1] gather_axis = 0 {moe.stage = 0 : i64} : tensor<1x4xf32> -> tensor<3x4xf32>
// NONE: %[[L:.*]] = shard.all_gather {{.*}} {moe.stage = 0 : i64} : tensor<1xi32> -> tensor<3xi32>
// NONE: tensor.extract_slice %[[G]][%[[I]]]
// NONE: %[[C:.*]] = shard.all_gather {{.*}} {moe.stage = 0 : i64} : tensor<1xf32> -> tensor<3xf32>
// NONE: %[[Y:.*]] = linalg.matmul {{.*}} {moe.stage = 1 : i64} ins(%[[X]], %arg1
// NONE: %[[F:.*]] = moe.fold_logits %[[Y]], %[[L]] first(%[[FIRST]])
// NONE: %[[ALL:.*]] = shard.all_gather %[[F]] {{.*}} : tensor<3x3xf32> -> tensor<9x3xf32>
// NONE: %[[M:.*]] = moe.merge_states %[[ALL]]
// NONE: %[[R:.*]] = tensor.extract_slice %[[S]][%[[I]], 0] [1, 3] [1, 1]
// NONE: %[[O:.*]] = moe.embedding_shard_grad %[[M]], %[[NUMBERS]] first(%[[OWN]]) into %[[R]]
// NONE: %[[S1:.*]] = tensor.insert_slice %[[O]] into %[[S]][%[[I]], 0]
// NONE: %{{.*}}, %[[LSE:.*]] = moe.finish_losses %[[M]], %[[IGNORED]]
// NONE: %[[D:.*]] = moe.logits_grad %[[Y]], %[[L]], %[[LSE]], %[[C]]
// NONE: %[[T:.*]] = linalg.matmul {{.*}} ins(%[[D]], %[[X]] {{.*}} outs(%[[DT]]
// NONE: %[[PART:.*]] = linalg.matmul {{.*}} ins(%[[D]], %arg1
// NONE: %[[SUM:.*]] = shard.reduce_scatter %[[PART]] on @vocab grid_axes = [1] scatter_axis = 0 {moe.stage = 2 : i64}
// NONE: %[[X1:.*]] = tensor.insert_slice %[[SUM]] into %[[DX]][%[[I]], 0] [1, 4] [1, 1] {moe.stage = 2 : i64}
// NONE: scf.yield %[[S1]], %[[X1]], %[[T]]
// NONE: {moe.in_flight = 2 : i64}
// NONE: moe.finish_losses %[[LOOP]]#0, %arg2
// NONE: return %{{.*}}, %[[LOOP]]#1, %[[LOOP]]#2

// Two tiles of two rows of the table. The gradient's second tile goes first into the room that is free, the first tile after it into the
// room of the second; in the second hop they come back, the first tile first.
// TILE-LABEL: func @step(
// TILE: moe.finish_losses
// TILE: %[[HALF:.*]] = tensor.extract_slice %arg1[2, 0] [2, 4] [1, 1]
// TILE: moe.shift %[[HALF]] into
// TILE: %[[B:.*]]:2 = scf.for
// TILE: moe.logits_grad {{.*}} column(%c2{{[_0-9]*}})
// TILE: moe.shift %[[B]]#1 into %{{.*}} on @vocab hops(1) : tensor<2x4xf32>
// TILE: %[[HALF:.*]] = tensor.extract_slice %arg1[0, 0] [2, 4] [1, 1]
// TILE: moe.shift %[[HALF]] into
// TILE: %[[A:.*]]:2 = scf.for
// TILE: moe.logits_grad {{.*}} column(%c0{{[_0-9]*}})
// TILE: moe.shift %[[A]]#1 into %[[B]]#1
// TILE: %[[A1:.*]]:2 = scf.for
// TILE: moe.logits_grad {{.*}} column(%c0{{[_0-9]*}})
// TILE: moe.shift %[[A1]]#1 into %[[A]]#1
// TILE: %[[B1:.*]]:2 = scf.for
// TILE: moe.logits_grad {{.*}} column(%c2{{[_0-9]*}})
// TILE: moe.shift %[[B1]]#1 into %[[A1]]#1
// TILE: %[[B2:.*]]:2 = scf.for
// TILE: %[[B3:.*]] = moe.shift %[[B2]]#1 into
// TILE: %[[A2:.*]]:2 = scf.for
// TILE: %[[A3:.*]] = moe.shift %[[A2]]#1 into %[[B2]]#1
// TILE: %[[WHOLE:.*]] = tensor.concat dim(0) %[[A3]], %[[B3]]
// TILE: return %{{.*}}, %[[A2]]#0, %[[WHOLE]]

// SCOPE-LABEL: func @step(
// SCOPE: shard.all_gather {{.*}} loc(fused<#moe.scope<forward, vocabulary>>["x"
// SCOPE: moe.fold_logits {{.*}} loc(fused<#moe.scope<forward, vocabulary>>["state"

// On one rank there is nothing to send, whatever the form.
// NONE-LABEL: func @alone(
// NONE-NOT: shard.
// NONE-NOT: moe.sh
// NONE: arith.constant dense<0> : tensor<i32>
// NONE-NOT: moe.stage
// NONE-NOT: moe.in_flight
// NONE: return
// WEIGHTS-LABEL: func @alone(
// WEIGHTS-NOT: moe.sh
// WEIGHTS: return
// A gradient in bf16 is rounded once, from f32 sums; that of the table is wanted in f32.
// ACTIVATIONS-LABEL: func @alone(
// ACTIVATIONS: moe.logits_grad {{.*}} -> tensor<5x3xbf16>
// ACTIVATIONS: %[[DX:.*]] = linalg.matmul {{.*}} -> tensor<5x4xf32>
// ACTIVATIONS: %[[DT:.*]] = linalg.matmul {{.*}} -> tensor<3x4xf32>
// ACTIVATIONS: %[[DB:.*]] = moe.column_sums
// ACTIVATIONS: %[[NARROW:.*]] = arith.truncf %[[DX]] : tensor<5x4xf32> to tensor<5x4xbf16>
// ACTIVATIONS: return %{{.*}}, %[[NARROW]], %[[DT]], %[[DB]]
func.func @alone(%x: tensor<5x4xbf16>, %table: tensor<3x4xbf16>, %labels: tensor<5xi32>, %bias: tensor<3xf32>, %g: tensor<5xf32>)
    -> (tensor<5xf32>, tensor<5x4xbf16>, tensor<3x4xf32>, tensor<3xf32>) {
  %losses, %lse = moe.vocab_loss %x, %table, %labels bias %bias vocabulary<size = 3>
    : (tensor<5x4xbf16>, tensor<3x4xbf16>, tensor<5xi32>, tensor<3xf32>) -> (tensor<5xf32>, tensor<5xf32>)
  %dx, %dt, %db = moe.vocab_loss_grad %g, %x, %table, %labels, %lse bias %bias vocabulary<size = 3>
    : (tensor<5xf32>, tensor<5x4xbf16>, tensor<3x4xbf16>, tensor<5xi32>, tensor<5xf32>, tensor<3xf32>)
    -> (tensor<5x4xbf16>, tensor<3x4xf32>, tensor<3xf32>)
  return %losses, %dx, %dt, %db : tensor<5xf32>, tensor<5x4xbf16>, tensor<3x4xf32>, tensor<3xf32>
}

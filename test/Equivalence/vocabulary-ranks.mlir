// Compiled code on poisoned memory, three runs, against the interpreter in float64, on ranks with tokens of their own.
// RUN: plateau-run %s --entry loss_on_2 --ranks 2 --compare 2e-5
// RUN: plateau-run %s --entry loss_on_4 --ranks 4 --compare 2e-5
// RUN: plateau-run %s --entry loss_of_copies --ranks 4 --compare 2e-5
// RUN: plateau-run %s --entry loss_bf16 --ranks 2 --compare 2e-2
// RUN: plateau-run %s --entry lookup_on_2 --ranks 2 --compare 1e-6
// RUN: plateau-run %s --entry lookup_on_4 --ranks 4 --compare 1e-6
// RUN: plateau-run %s --entry round --ranks 4 --compare 0
// RUN: plateau-run %s --entry round_of_pairs --ranks 4 --compare 0
// RUN: plateau-run %s --entry states --ranks 4 --compare 1e-5
// RUN: not plateau-run %s --entry outside --ranks 2 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// RUN: not plateau-run %s --entry outside --ranks 2 --interpret 2>&1 | FileCheck %s --check-prefix=OUTSIDE

// In exact mode the op and its standard form are one and the same, to the last bit.
// RUN: plateau-opt %s -moe-expand-vocab-loss=form=standard -o %t.mlir
// RUN: plateau-run %s --entry loss_on_4 --ranks 4 --interpret --exact > %t.one
// RUN: plateau-run %t.mlir --entry loss_on_4 --ranks 4 --interpret --exact > %t.ops
// RUN: diff %t.one %t.ops
// RUN: plateau-run %s --entry loss_of_copies --ranks 4 --interpret --exact > %t.one
// RUN: plateau-run %t.mlir --entry loss_of_copies --ranks 4 --interpret --exact > %t.ops
// RUN: diff %t.one %t.ops
// RUN: not plateau-run %s --entry states --ranks 4 --interpret --exact 2>&1 | FileCheck %s --check-prefix=EXACT
// EXACT: has no exact value: it rescales a running sum of exponentials; compare in float64

shard.grid @pair(shape = 2)
shard.grid @line(shape = 4)
shard.grid @square(shape = 2x2)

// 23 columns on two ranks with 12 rows each.
func.func @loss_on_2(%x: tensor<7x5xf32>, %t: tensor<12x5xf32>, %labels: tensor<7xi32> {plateau.below = 23 : i64}, %g: tensor<7xf32>)
    -> (tensor<7xf32>, tensor<7xf32>, tensor<7x5xf32>, tensor<12x5xf32>) {
  %losses, %lse = moe.vocab_loss %x, %t, %labels on @pair vocabulary<size = 23>
    : (tensor<7x5xf32>, tensor<12x5xf32>, tensor<7xi32>) -> (tensor<7xf32>, tensor<7xf32>)
  %dx, %dt = moe.vocab_loss_grad %g, %x, %t, %labels, %lse on @pair vocabulary<size = 23>
    : (tensor<7xf32>, tensor<7x5xf32>, tensor<12x5xf32>, tensor<7xi32>, tensor<7xf32>) -> (tensor<7x5xf32>, tensor<12x5xf32>)
  return %losses, %lse, %dx, %dt : tensor<7xf32>, tensor<7xf32>, tensor<7x5xf32>, tensor<12x5xf32>
}

// Every option, and a last shard with three rows of six that exist; tokens with the label 3 do not count.
func.func @loss_on_4(%x: tensor<7x5xf32>, %t: tensor<6x5xf32>, %b: tensor<6xf32>, %labels: tensor<7xi32> {plateau.below = 21 : i64},
    %g: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>, tensor<7x5xf32>, tensor<6x5xf32>, tensor<6xf32>) {
  %losses, %lse = moe.vocab_loss %x, %t, %labels bias %b on @line
    vocabulary<size = 21, ignore_index = 3, label_smoothing = 0.1, z_loss = 0.01, softcap = 2.0>
    : (tensor<7x5xf32>, tensor<6x5xf32>, tensor<7xi32>, tensor<6xf32>) -> (tensor<7xf32>, tensor<7xf32>)
  %dx, %dt, %db = moe.vocab_loss_grad %g, %x, %t, %labels, %lse bias %b on @line
    vocabulary<size = 21, ignore_index = 3, label_smoothing = 0.1, z_loss = 0.01, softcap = 2.0>
    : (tensor<7xf32>, tensor<7x5xf32>, tensor<6x5xf32>, tensor<7xi32>, tensor<7xf32>, tensor<6xf32>)
    -> (tensor<7x5xf32>, tensor<6x5xf32>, tensor<6xf32>)
  return %losses, %lse, %dx, %dt, %db : tensor<7xf32>, tensor<7xf32>, tensor<7x5xf32>, tensor<6x5xf32>, tensor<6xf32>
}

// Two pairs of ranks, each with a table of its own.
func.func @loss_of_copies(%x: tensor<3x5xf32>, %t: tensor<4x5xf32>, %labels: tensor<3xi32> {plateau.below = 8 : i64}, %g: tensor<3xf32>)
    -> (tensor<3xf32>, tensor<3x5xf32>, tensor<4x5xf32>) {
  %losses, %lse = moe.vocab_loss %x, %t, %labels on @square vocabulary<size = 8, z_loss = 0.1>
    : (tensor<3x5xf32>, tensor<4x5xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xf32>)
  %dx, %dt = moe.vocab_loss_grad %g, %x, %t, %labels, %lse on @square vocabulary<size = 8, z_loss = 0.1>
    : (tensor<3xf32>, tensor<3x5xf32>, tensor<4x5xf32>, tensor<3xi32>, tensor<3xf32>) -> (tensor<3x5xf32>, tensor<4x5xf32>)
  return %losses, %dx, %dt : tensor<3xf32>, tensor<3x5xf32>, tensor<4x5xf32>
}

func.func @loss_bf16(%x: tensor<7x5xbf16>, %t: tensor<12x5xbf16>, %labels: tensor<7xi32> {plateau.below = 24 : i64}, %g: tensor<7xf32>)
    -> (tensor<7xf32>, tensor<7x5xbf16>, tensor<12x5xf32>) {
  %losses, %lse = moe.vocab_loss %x, %t, %labels on @pair vocabulary<size = 24>
    : (tensor<7x5xbf16>, tensor<12x5xbf16>, tensor<7xi32>) -> (tensor<7xf32>, tensor<7xf32>)
  %dx, %dt = moe.vocab_loss_grad %g, %x, %t, %labels, %lse on @pair vocabulary<size = 24>
    : (tensor<7xf32>, tensor<7x5xbf16>, tensor<12x5xbf16>, tensor<7xi32>, tensor<7xf32>) -> (tensor<7x5xbf16>, tensor<12x5xf32>)
  return %losses, %dx, %dt : tensor<7xf32>, tensor<7x5xbf16>, tensor<12x5xf32>
}

func.func @lookup_on_2(%t: tensor<12x5xf32>, %ids: tensor<7xi32> {plateau.below = 23 : i64}, %d: tensor<7x5xf32>)
    -> (tensor<7x5xf32>, tensor<12x5xf32>) {
  %x = moe.embedding %t, %ids on @pair size(23) : (tensor<12x5xf32>, tensor<7xi32>) -> tensor<7x5xf32>
  %dt = moe.embedding_grad %d, %ids on @pair size(23) : (tensor<7x5xf32>, tensor<7xi32>) -> tensor<12x5xf32>
  return %x, %dt : tensor<7x5xf32>, tensor<12x5xf32>
}

func.func @lookup_on_4(%t: tensor<6x5xf32>, %ids: tensor<1xi32> {plateau.below = 21 : i64}, %d: tensor<1x5xf32>)
    -> (tensor<1x5xf32>, tensor<6x5xf32>) {
  %x = moe.embedding %t, %ids on @line size(21) : (tensor<6x5xf32>, tensor<1xi32>) -> tensor<1x5xf32>
  %dt = moe.embedding_grad %d, %ids on @line size(21) : (tensor<1x5xf32>, tensor<1xi32>) -> tensor<6x5xf32>
  return %x, %dt : tensor<1x5xf32>, tensor<6x5xf32>
}

// Round by one place and back by six, which is on by two; and where the shard begins that comes with each.
func.func @round(%x: tensor<7x5xf32>, %y: tensor<3xi32> {plateau.below = 1000 : i64})
    -> (tensor<7x5xf32>, tensor<3xi32>, tensor<i32>, tensor<i32>) {
  %e = tensor.empty() : tensor<7x5xf32>
  %a = moe.shift %x into %e on @line hops(1) : tensor<7x5xf32>
  %f = tensor.empty() : tensor<3xi32>
  %b = moe.shift %y into %f on @line hops(-6) : tensor<3xi32>
  %s = moe.shard_start on @line hops(1) rows(7)
  %u = moe.shard_start on @line hops(-6) rows(3)
  return %a, %b, %s, %u : tensor<7x5xf32>, tensor<3xi32>, tensor<i32>, tensor<i32>
}

func.func @round_of_pairs(%x: tensor<7x5xf32>) -> (tensor<7x5xf32>, tensor<i32>) {
  %e = tensor.empty() : tensor<7x5xf32>
  %a = moe.shift %x into %e on @square hops(1) : tensor<7x5xf32>
  %s = moe.shard_start on @square hops(1) rows(7)
  return %a, %s : tensor<7x5xf32>, tensor<i32>
}

// Each rank folds its own columns of all tokens; the states of all are merged.
func.func @states(%y: tensor<5x9xf32>, %labels: tensor<5xi32> {plateau.values = dense<[0, 35, 9, 8, -100]> : tensor<5xi32>})
    -> (tensor<5x3xf32>, tensor<5xf32>, tensor<5xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %first = moe.shard_start on @line hops(0) rows(9)
  %e = tensor.empty() : tensor<5x3xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
  %s1 = moe.fold_logits %y, %labels first(%first) column(%c0) into %s0 vocabulary<size = 36>
    : (tensor<5x9xf32>, tensor<5xi32>, tensor<i32>, index, tensor<5x3xf32>) -> tensor<5x3xf32>
  %all = shard.all_gather %s1 on @line grid_axes = [0] gather_axis = 0 : tensor<5x3xf32> -> tensor<20x3xf32>
  %s = moe.merge_states %all vocabulary<size = 36> : tensor<20x3xf32> -> tensor<5x3xf32>
  %losses, %lse = moe.finish_losses %s, %labels vocabulary<size = 36> : (tensor<5x3xf32>, tensor<5xi32>) -> (tensor<5xf32>, tensor<5xf32>)
  return %s, %losses, %lse : tensor<5x3xf32>, tensor<5xf32>, tensor<5xf32>
}

// Row 23 of the table is there, and is padding.
// OUTSIDE: row 1 has label 23
func.func @outside(%x: tensor<2x5xf32>, %t: tensor<12x5xf32>, %labels: tensor<2xi32> {plateau.values = dense<[0, 23]> : tensor<2xi32>})
    -> tensor<2xf32> {
  %losses, %lse = moe.vocab_loss %x, %t, %labels on @pair vocabulary<size = 23>
    : (tensor<2x5xf32>, tensor<12x5xf32>, tensor<2xi32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %losses : tensor<2xf32>
}

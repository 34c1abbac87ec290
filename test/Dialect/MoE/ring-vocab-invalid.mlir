// RUN: not plateau-opt %s --moe-ring-vocab="move=none strict" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not plateau-opt %s --moe-ring-vocab="strict budget-bytes=100" 2>&1 | FileCheck %s --check-prefix=BUDGET
// RUN: not plateau-opt %s --moe-ring-vocab="move=both" 2>&1 | FileCheck %s --check-prefix=MOVE
// RUN: not plateau-opt %s --moe-ring-vocab="hop=row" 2>&1 | FileCheck %s --check-prefix=HOP
// RUN: not plateau-opt %s --moe-ring-vocab="tile-bytes=7" 2>&1 | FileCheck %s --check-prefix=TILE
// RUN: not plateau-opt %s --moe-ring-vocab="budget-bytes=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not plateau-opt %s --moe-ring-vocab="link-bytes-per-second=0" 2>&1 | FileCheck %s --check-prefix=RATE

// NONE: error: move=none: the cotangents depend on the losses
// BUDGET: error: move=weights: the least live bytes are 296, and budget-bytes is 100: raise it, or lower tile-bytes
// MOVE: error: move is 'both': it must be weights, activations, none or auto
// HOP: error: hop is 'row': it must be shard or tile
// TILE: error: tile-bytes is 7: it must be at least 8
// NEGATIVE: error: budget-bytes is -1: it must be positive, or 0 for no limit
// RATE: error: link-bytes-per-second is 0.{{0*}}e+00: it must be positive and finite

// On one rank 80 bytes of dX, 120 of the gradient of the table and 96 of logits are live.
func.func @f(%x: tensor<4x5xf32>, %t: tensor<6x5xf32>, %l: tensor<4xi32>) -> (tensor<4x5xf32>, tensor<6x5xf32>) {
  %losses, %lse = moe.vocab_loss %x, %t, %l vocabulary<size = 6>
    : (tensor<4x5xf32>, tensor<6x5xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %dx, %dt = moe.vocab_loss_grad %losses, %x, %t, %l, %lse vocabulary<size = 6>
    : (tensor<4xf32>, tensor<4x5xf32>, tensor<6x5xf32>, tensor<4xi32>, tensor<4xf32>) -> (tensor<4x5xf32>, tensor<6x5xf32>)
  return %dx, %dt : tensor<4x5xf32>, tensor<6x5xf32>
}

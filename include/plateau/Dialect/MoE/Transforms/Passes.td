//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_TRANSFORMS_PASSES_TD
#define PLATEAU_DIALECT_MOE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def MoEInlineCheckpoints : Pass<"moe-inline-checkpoints"> {
  let summary = "Open checkpoint regions";
  let description = [{
    Replaces each `moe.checkpoint` by its body. What the body computes stays where the region stood, so a value of a
    `recompute` region is computed there and not earlier.

    **Requires** that no later pass merges equal ops: the first and the second evaluation of a body are equal ops, and merging
    them would keep the values that the region exists to drop.
    **Ensures** no `moe.checkpoint` is left; the order of all ops is kept.
  }];
}

#endif // PLATEAU_DIALECT_MOE_TRANSFORMS_PASSES_TD

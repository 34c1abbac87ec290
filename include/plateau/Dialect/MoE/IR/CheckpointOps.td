//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_CHECKPOINTOPS_TD
#define PLATEAU_DIALECT_MOE_IR_CHECKPOINTOPS_TD

include "plateau/Dialect/MoE/IR/MoEBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def MoE_CheckpointOp : MoE_Op<"checkpoint", [
    Pure, IsolatedFromAbove, SingleBlockImplicitTerminator<"::mlir::plateau::moe::YieldOp">, MoE_Differentiable]> {
  let summary = "A region whose values are not kept for the backward pass";
  let description = [{
    Evaluates its body on `inputs`. Only the inputs live on to the backward pass, where the body is evaluated again and then
    taken backwards, inside one region marked `recompute`; and the results of `moe.route` and `moe.plan`, and of collectives on
    integers, so that routing is decided once: `moe-differentiate` adds them to the region's results. The regions are isolated, so no pass can merge the second
    evaluation with the first; `moe-inline-checkpoints` opens them once no such pass follows.

    **Constraints**
    - C1: the body has one argument for each input, of its type.
    - C2: `moe.yield` has one operand for each result, of its type.

    **Adjoint**: a `moe.checkpoint recompute` with the body and its adjoint. **Residuals**: `inputs`, and the results that
    hold routing.
    **Footprint**: that of its body.
    **Lifespan**: created by import; the `recompute` form by `moe-differentiate`; gone after `moe-inline-checkpoints`.

    Example:
    ```mlir
    %y = moe.checkpoint (%a = %x : tensor<8x4xf32>) -> tensor<8x4xf32> {
      %e = math.exp %a : tensor<8x4xf32>
      moe.yield %e : tensor<8x4xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$inputs, UnitAttr:$recompute);
  let results = (outs Variadic<AnyType>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    /// Adds to the results those of the body's ops that want theirs kept for the backward pass. The op is replaced.
    void saveMarkedResults(::mlir::RewriterBase &rewriter);
  }];
  let skipDefaultBuilders = 1;
  let builders = [
    OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::ValueRange":$inputs, CArg<"bool", "false">:$recompute)>
  ];
}

def MoE_YieldOp : MoE_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"CheckpointOp">]> {
  let summary = "Ends the body of a moe.checkpoint";
  let description = [{
    Its operands are the results of the enclosing `moe.checkpoint`, whose constraint C2 speaks of them.

    Example:
    ```mlir
    moe.yield %e : tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
  let builders = [OpBuilder<(ins), [{ /* no operands */ }]>];
}

#endif // PLATEAU_DIALECT_MOE_IR_CHECKPOINTOPS_TD

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

def MoEDifferentiate : Pass<"moe-differentiate", "::mlir::ModuleOp"> {
  let summary = "Derive the gradients of a loss function";
  let description = [{
    Adds the private function `@<function>_and_gradients`: the body of `@<function>`, then its adjoint, in reverse mode. Its
    results are the loss and, in the order of the arguments, the gradient of each argument that carries `moe.parameter`, in
    the argument's type; an argument that the loss does not depend on gets zeros. A value that is used several times sums
    its cotangents in f32. An argument that carries `moe.buffer` is state with a rule of its own: for each, in order, the function
    has a result with the role expert_counts after the loss, which stands after the gradients in the new function.

    Ops are taken backwards by `DifferentiableOpInterface`. A residual of an op outside checkpoint regions stays live from
    its forward op to its adjoint; of a `moe.checkpoint` only the inputs do, and the adjoint evaluates the body again.

    **Requires** the function to have one block and one result of type tensor<f32>, before the counts of buffers.
    **Ensures** the loss is computed by the same ops as before. The bytes live between forward and backward are those of the
    declared residuals: Σ over ops outside regions of their residuals + Σ over regions of their inputs.
    **Does not** remove what the backward pass computes in vain; canonicalize does.
  }];
  let options = [Option<"function", "function", "std::string", "\"loss\"", "name of the loss function">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def MoEAttachOptimizer : Pass<"moe-attach-optimizer", "::mlir::ModuleOp"> {
  let summary = "Turn a loss with gradients into a whole training step on flat groups";
  let description = [{
    Replaces `@<function>` and `@<function>_and_gradients` by one public function `@step`: parameters, gradients and AdamW
    state are flat groups, one buffer each, whose tensors are views at recorded offsets in declaration order; each group is
    donated to the result of the same role, so the step updates in place. The learning rate and the number of the update
    are inputs. The gradient norm over all tensors scales the gradients down to `clip-norm` before the update. bf16
    parameters get an f32 master copy.

    Weight decay applies to the tensors whose `#moe.parameter` says so.

    An argument that carries `moe.buffer` becomes an argument and a result of `@step`, donated: `moe.update_bias` moves it once a
    step by the counts of all micro-batches and ranks, unless the step is skipped.

    **Requires** `moe-differentiate` to have run, and all parameters to have one element type.
    **Ensures** with Θ parameters (padded to a multiple of `shard-elements`) the groups hold, for f32, 4Θ bytes of
    parameters, 4Θ of gradients and 8Θ of state; for bf16 2Θ, 2Θ and 12Θ.
  }];
  let options = [
    Option<"function", "function", "std::string", "\"loss\"", "name of the loss function">,
    Option<"weightDecay", "weight-decay", "double", "0.1", "weight decay, at least 0">,
    Option<"clipNorm", "clip-norm", "double", "1.0", "largest gradient norm; inf for no clipping">,
    Option<"beta1", "beta1", "double", "0.9", "decay of the first moment, in [0, 1)">,
    Option<"beta2", "beta2", "double", "0.95", "decay of the second moment, in [0, 1)">,
    Option<"epsilon", "epsilon", "double", "1e-8", "added to the root of the second moment, more than 0">,
    Option<"microBatches", "micro-batches", "int64_t", "1",
           "how many batches of the loss a step computes one after the other, adding their gradients in f32">,
    Option<"biasUpdateRate", "bias-update-rate", "double", "0.001",
           "what moe.update_bias adds to or takes from the bias of an expert, at least 0">,
    Option<"shardElements", "shard-elements", "int64_t", "1", "groups are padded to a multiple of this many elements">
  ];
  let dependentDialects = ["::mlir::plateau::moe::MoEDialect", "::mlir::scf::SCFDialect", "::mlir::shard::ShardDialect",
                           "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def MoEFoldMatmul : Pass<"moe-fold-matmul"> {
  let summary = "Fold roundings and sums into the matmuls that feed them";
  let description = [{
    `arith.truncf` of an f32 `linalg.matmul` that nothing else reads becomes a matmul with a bf16 result; `arith.addf` of a
    value and a matmul on zeros that nothing else reads becomes a matmul that accumulates onto that value. The runtime sums
    every product in f32 and rounds or adds once, so neither changes a bit of what the two ops computed.

    **Ensures** one f32 tensor of the product's size less is live at each fold.
    **Does not** fold a sum onto a value that is read again, which would need a copy of it, nor onto one that is computed after
    the matmul, which would keep the matmul's operands alive until then.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def MoEFoldRouteGrad : Pass<"moe-fold-route-grad"> {
  let summary = "Take the gradient of route weights without the experts' outputs";
  let description = [{
    The gradient of a route weight is `⟨d, u⟩`, with `d` the cotangent of the combined rows and `u = a · W` the expert's output. This
    becomes `⟨d · Wᵀ, a⟩`, and `(p ∘ d) · Wᵀ`, which the gradient of `a` needs, becomes `p ∘ (d · Wᵀ)`: one product serves both, and
    nothing in the backward pass reads `u`, so that its recomputation is dead.

    **Ensures** one `moe.grouped_matmul` less in the backward pass of each layer with experts.
    **Does not** change a row dot whose product in the other direction is not there.
  }];
  let dependentDialects = ["::mlir::plateau::moe::MoEDialect"];
}

def MoEFuseElementwise : Pass<"moe-fuse-elementwise"> {
  let summary = "Gather elementwise ops into kernels";
  let description = [{
    Each run of elementwise ops of one shape (`arith` and `math` on tensors) that no other computation interrupts becomes one
    `linalg.generic` with a result for each value that is read outside it.

    A kernel computes a value again instead of reading it when the kernel then reads no more tensors than before. So the
    backward pass of SwiGLU reads the gate, the up projection and the cotangent, and nothing in between is saved.

    **Ensures** no elementwise op on tensors is left outside a `linalg.generic`; with r runs, at most r kernels.
    **Does not** fuse across a matmul or an op of this dialect.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def MoEHoistSums : Pass<"moe-hoist-sums", "::mlir::func::FuncOp"> {
  let summary = "Sum over ranks as soon as there is what to sum";
  let description = [{
    Each `shard.all_reduce` moves up to right behind the op that makes its operand, so that the sums of gradients run beside the rest of
    the backward pass on a lane of their own. The order of collectives is fixed from here on, and the same on every rank.

    **Ensures** no byte more is live: such a sum is taken in the place of its operand.
    **Does not** move a sum out of a loop or past another op that has regions.
  }];
}

def MoEVerifySpaces : Pass<"moe-verify-spaces"> {
  let summary = "Check that nothing but slices touches tensors of the host space";
  let description = [{
    Upstream passes know nothing of `#moe.space<host>`: some drop the encoding of a tensor, some give one op a host and a device
    operand. So a request to keep a tensor on the host could be lost in silence. This check stands behind every pass on tensors
    in the pipelines of this project; it changes nothing.

    A host tensor may be an argument or result of a function, be carried by a loop or a checkpoint region, and be sliced
    (`tensor.extract_slice`, `tensor.insert_slice`) by slices of the same space. Any other op that reads or makes one is an error, and
    so is a slice whose space differs from its source's.
  }];
}

#endif // PLATEAU_DIALECT_MOE_TRANSFORMS_PASSES_TD

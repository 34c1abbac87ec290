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

def MoEExpandVocabLoss : Pass<"moe-expand-vocab-loss"> {
  let summary = "Compute vocabulary losses with all their logits at once";
  let description = [{
    Each `moe.vocab_loss`, and the `moe.vocab_loss_grad` that reads its lse, becomes products and separate ops. With N tokens a rank, V
    columns on P ranks:

    - `standard`: the table is gathered, then `moe.log_softmax` and `moe.nll`. Logits, log probabilities and the two gradients by them are
      tensors of their own; the gradient reuses the log probabilities, and the table's is summed over the ranks and scattered. This is
      what differentiating separate ops gives.
    - `in-place`: the same products, but `moe.fold_logits` reads the logits and `moe.logits_grad` overwrites them.
    - `vocab-parallel`: tokens are gathered, and each rank multiplies all P·N of them with its own shard of the table. The states of rows
      are gathered and merged, and the gradient by `x` is summed over the ranks, in f32, and scattered.

    A gradient whose loss is not there (its lse is an argument) multiplies for itself.

    **Ensures** neither op is left. Of [N, V] f32 tensors are live at once: 3 in the backward pass of `standard`, 1 in the others, plus
    half of one for bf16 operands, whose products read rounded gradients.
    **Does not** divide anything into tiles: `moe-ring-vocab` does.
  }];
  let options = [Option<"form", "form", "std::string", "\"standard\"", "standard, in-place or vocab-parallel">];
  let dependentDialects = ["::mlir::plateau::moe::MoEDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::shard::ShardDialect", "::mlir::tensor::TensorDialect"];
}

def MoEExpandEmbedding : Pass<"moe-expand-embedding"> {
  let summary = "Look up rows of tables in shards by tiles of tokens";
  let description = [{
    `moe.embedding` on a grid of P ranks becomes a loop over tiles of t tokens a rank: the tile's ids of all ranks are gathered, each rank
    looks up those of its shard, and a sum over the ranks, of which one has the row and the others zeros, gives each rank its own rows.
    `moe.embedding_grad` gathers ids and cotangents of a tile, and adds up those of its shard in f32.

    **Ensures** no `moe.embedding` or `moe.embedding_grad` on a grid is left. The rows of a tile, of all ranks, have at most `tile-bytes`
    bytes: P·t·H·b, with t at least 1. Of the table there is no copy; its gradient has an f32 accumulator beside a bf16 result.
    **Does not** touch embeddings without a grid.
  }];
  let options = [Option<"tileBytes", "tile-bytes", "int64_t", "16777216", "most bytes of the gathered rows of a tile, at least 1">];
  let dependentDialects = ["::mlir::plateau::moe::MoEDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::scf::SCFDialect", "::mlir::shard::ShardDialect", "::mlir::tensor::TensorDialect"];
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

def MoERaiseVocabLoss : Pass<"moe-raise-vocab-loss", "::mlir::func::FuncOp"> {
  let summary = "Recognise vocabulary losses that are written out";
  let description = [{
    Finds losses of tokens, `log Σ_v exp(y[i, v]) − y[i, label[i]]` with `y = x · tableᵀ (+ bias)`, and makes each a `moe.vocab_loss`; a sum
    or mean of them that follows becomes `moe.mean_loss`. Ops are read as expressions of elements, through maps and bodies of `linalg` ops,
    elementwise ops and dimensions of 1, so that what counts is what is computed and not by which ops. Among the ways to write it are:

    - softmax, logarithm, and a sum over columns in which all but the label's are 0;
    - x − max, exp, sum, log, −, and the label's element by `tensor.extract`, as torch-mlir has `aten.log_softmax` and `aten.nll_loss_forward`;
    - `linalg.softmax`, or `moe.log_softmax` and `moe.nll`;
    - `c · tanh(y / c)` in place of y, and 0 where the label is a given number.

    Equality is that of real numbers: what is subtracted before the exponential may be anything that is the same for all columns, or
    nothing. A label outside the vocabulary that the source does not set to 0 becomes an error at run time. Labels of 64 bits are
    truncated to 32.

    A remark, missed, says what a logarithm of a sum of exponentials of a product has that is not this: the term that is left, a table
    [H, V] that is no transpose, logits that something else reads too.

    **Requires** f32 logits and static tensors [N, H], [V, H].
    **Does not** recognise label smoothing, z loss, weights, tables in shards, or gradients: it runs before `moe-differentiate`.
  }];
  let dependentDialects = ["::mlir::plateau::moe::MoEDialect", "::mlir::arith::ArithDialect"];
}

def MoERingVocab : Pass<"moe-ring-vocab", "::mlir::func::FuncOp"> {
  let summary = "Compute the vocabulary loss by tiles, whose logits are dropped at once";
  let description = [{
    Rewrites each `moe.vocab_loss` and `moe.vocab_loss_grad` into loops over tiles of tokens and columns. With P ranks along the last axis
    of the grid, each rank with N tokens of width H and R rows of the table, the form is one of

    - `weights`: shards of the table go round the ranks, with their gradients, until these are home;
    - `activations`: rows of tokens go round, with their labels and states; with their gradients until these are home;
    - `none`: nothing goes round. Each tile of tokens is gathered from all ranks, its logits against the whole shard serve loss and
      gradient, and the parts of x's gradient are summed where the tokens are. Two tiles are under way at a time. It is legal when the
      cotangents do not depend on the losses, as those of a mean over a given count: then they are computed first.
    - `auto`: the form of the least modelled time, products / `flops-per-second` + bytes sent / `link-bytes-per-second`, of those that fit
      `budget-bytes`.

    | | flops | bytes that a rank sends |
    |---|---|---|
    | weights | 8 N H R P | forward (P−1) w, backward (P−1) w + P g; w bytes of table and bias, g of their f32 gradients |
    | activations | 8 N H R P | forward (P−1) (x + 4N) + P s, backward (P−1) (x + 12N) + 4 P N H; x bytes of x, s of states |
    | none | 6 N H R P | (P−1) (x + 8N) + P (P−1) s + 4 (P−1) N H |

    A state has 12 bytes a token, 16 with label smoothing. Forward alone takes 2 N H R P. On one rank nothing is sent.

    No tile exceeds `tile-bytes`: a tile of logits, with the rounded derivative beside it when operands are bf16; for `none` also one of
    gathered rows, and one of the parts of x's gradient, in f32. Tiles of a ring are as wide as the shard; when fewer than 64 tokens would
    fit, they are narrower. With `hop=tile` what moves is cut into tiles too, and each hops into the place of the one before, so that there is
    one tile's room more than what moves, instead of twice as much.

    Remarks say for each form flops, bytes sent, bytes of logits that are live at once, live bytes (results, what moves, sums and tiles, but not
    operands) and modelled time; what was chosen; and why a form was not. With `strict` it is an error when the form that is asked for is not
    legal, or nothing fits the budget.

    **Requires** that no later pass merges equal ops: a ring sends the table, or the rows, once forward and once backward, and computes
    logits in each, and merging these would keep what the tiles exist to drop.
    **Ensures** sums are in f32 and in an order that the program fixes.
  }];
  let options = [
    Option<"move", "move", "::std::string", "\"auto\"", "what goes round the ranks: weights, activations, none, or auto">,
    Option<"hop", "hop", "::std::string", "\"shard\"", "how much hops at once: shard or tile">,
    Option<"tileBytes", "tile-bytes", "int64_t", "16 << 20", "the most bytes of a tile, at least 8">,
    Option<"flopsPerSecond", "flops-per-second", "double", "4e14", "rate of products">,
    Option<"linkBytesPerSecond", "link-bytes-per-second", "double", "1e11", "rate at which a rank sends">,
    Option<"budgetBytes", "budget-bytes", "int64_t", "0", "the most live bytes that auto may choose; 0 for no limit">,
    Option<"strict", "strict", "bool", "false", "make it an error that a wish cannot be met">
  ];
  let dependentDialects = ["::mlir::plateau::moe::MoEDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::scf::SCFDialect", "::mlir::shard::ShardDialect", "::mlir::tensor::TensorDialect"];
}

def MoEPipelineDispatch : Pass<"moe-pipeline-dispatch", "::mlir::func::FuncOp"> {
  let summary = "Take the rows of experts in iterations of bounded size, and even them out over ranks";
  let description = [{
    Gives each plan of routes (`moe.plan`) iterations and a balance, and puts a loop over the iterations in the place of the ops on its
    rows. N tokens of each of R ranks choose k of E experts; a rank holds M = E / R of them.

    **Chunks.** K = ceil(N / `chunk-tokens`), at most `max-chunks`; `max-chunks` alone is K. With neither, and `inflight-bytes`, K is the
    least whose loops hold no more than that; otherwise it is 1. Chunk i has the tokens i, i + K, i + 2K, ....

    **Capacity.** One token sends at most w rows to one rank: w = min(k, M + S) when its ids come from `moe.route`, otherwise k. No rank
    receives more than C rows in an iteration, whatever the routing: with J leaves of each chunk, of which an iteration takes as many as fit, there
    are K to K · J iterations. C is `capacity-rows`, at least R · w; or what `inflight-bytes` allows, at least 1.25 · k · ceil(N / K) (a
    quarter above the mean); or R · w · ceil(N / K), which all tokens of a chunk on one rank would be, and J is then 1. u = floor(C / (R · w)) tokens
    of a rank fit whatever they choose, and J = ceil(ceil(N / K) / u).

    **Balance.** With `least-loaded` each rank has S = `helper-slots` places for experts of others. No rank computes more than
    `alpha` times the mean number of rows while another may take what is above; pieces have at least `min-rows` rows. Below
    `imbalance-threshold` (the fullest rank's rows over the mean) nothing moves. Weights come in front of each loop
    (`moe.migrate_experts`), gradients go back behind it (`moe.return_expert_grads`). `min-rows=1024` and `alpha=1` are the settings
    of the published method. On one rank there is nothing to even out.

    **Loops.** Rows of a plan that ops hand on to each other are one component; its sinks are `moe.combine` and `moe.grouped_matmul_grad`.
    Sinks that do not wait for each other share one loop with all that their rows need. So in a checkpoint region a layer's
    second evaluation and its backward pass are one loop; without regions they are two, and the second computes rows again that the first has
    dropped: a remark says what that costs. An iteration has three stages, `in-flight` of them are under way at a time: `moe.dispatch`,
    experts, `moe.combine`. Gradients are added up in f32 and rounded behind the loop. With K · J = 1 there is no loop.

    | a loop holds, of each value of rows with b bytes a row | |
    |---|---|
    | `moe.dispatch` makes it | C · b · (ceil((D − 1) / 2) + 1), with D = `in-flight` |
    | others | C · b while it is read; those that `moe.combine` reads C · b · (floor((D − 1) / 2) + 1) |

    and staging of what the tokens of a chunk send, S times the weights and f32 gradients of an expert, and the tables of the plan.

    Remarks say for each plan what was chosen, and what was asked for and not done: more chunks than tokens, more helper slots than
    experts of others, loops above the budget, rows that something else than an op on rows reads. With `strict` these are errors.

    **Requires** that no later pass merges equal ops, which would keep one layer's helpers for another pass over it.
    **Ensures** sums of a token in the same order; those of gradients by iteration; no op on rows whose result nothing reads.
    **Does not** run twice on a plan.
  }];
  let options = [
    Option<"chunkTokens", "chunk-tokens", "int64_t", "0", "tokens of a rank in a chunk; 0 for no wish">,
    Option<"maxChunks", "max-chunks", "int64_t", "0", "the most chunks, and without chunk-tokens their number; 0 for no limit">,
    Option<"capacityRows", "capacity-rows", "int64_t", "0", "the most rows that a rank receives in an iteration; 0 to derive it">,
    Option<"inflightBytes", "inflight-bytes", "int64_t", "0", "the most bytes that a loop may hold; 0 for no limit">,
    Option<"inFlight", "in-flight", "int64_t", "2", "iterations under way at a time">,
    Option<"balance", "balance", "::std::string", "\"least-loaded\"", "none or least-loaded">,
    Option<"alpha", "alpha", "::std::string", "\"1\"", "the most rows of a rank over the mean, as 1.25 or 5/4">,
    Option<"minRows", "min-rows", "int64_t", "1024", "the fewest rows of an expert worth moving">,
    Option<"imbalanceThreshold", "imbalance-threshold", "::std::string", "\"1.3\"", "the fullest rank's rows over the mean below which nothing moves">,
    Option<"helperSlots", "helper-slots", "int64_t", "4", "experts of other ranks that a rank may hold">,
    Option<"strict", "strict", "bool", "false", "make it an error that a wish cannot be met">
  ];
  let dependentDialects = ["::mlir::plateau::moe::MoEDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
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

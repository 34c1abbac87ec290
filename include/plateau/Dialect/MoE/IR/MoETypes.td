//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_MOETYPES_TD
#define PLATEAU_DIALECT_MOE_IR_MOETYPES_TD

include "plateau/Dialect/MoE/IR/MoEDialect.td"

def MoE_PlanType : TypeDef<MoE_Dialect, "Plan"> {
  let mnemonic = "plan";
  let summary = "where the rows of a layer's tokens go";
  let description = [{
    One value that holds what dispatch, experts and combine of a layer must agree on: counts and permutation. `experts` experts lie
    in equal parts on `ranks` ranks; each of `tokens` tokens of a rank has `top_k` slots. The rows a rank receives are known
    when the step runs; they are at most `ranks · tokens · top_k`.

    With `helper_slots` a rank may compute that many experts of other ranks as well.

    With `chunks` and `leaves` the tokens are taken in several iterations. Token t is in leaf t mod Q of Q = chunks · leaves, and leaf q
    in chunk q mod chunks, so that a chunk has every chunks-th token. An iteration takes as many leaves of a chunk, in order, as keep what
    each rank receives within `capacity` rows; there are at least `chunks` and at most Q, the same number on every rank. Iterations up to
    Q that are not needed are empty.

    Example: `!moe.plan<experts = 8, ranks = 4, tokens = 1024, top_k = 2>`,
    `!moe.plan<experts = 8, ranks = 4, tokens = 1024, top_k = 2, helper_slots = 1, chunks = 9, leaves = 4, capacity = 251>`
  }];
  let parameters = (ins "int64_t":$experts, "int64_t":$ranks, "int64_t":$tokens, "int64_t":$topK,
    "int64_t":$helperSlots, "int64_t":$chunks, "int64_t":$leaves, "int64_t":$capacity);
  let builders = [TypeBuilder<(ins "int64_t":$experts, "int64_t":$ranks, "int64_t":$tokens, "int64_t":$topK),
                              [{ return $_get($_ctxt, experts, ranks, tokens, topK, 0, 1, 1, 0); }]>];
  let assemblyFormat = [{
    `<` `experts` `=` $experts `,` `ranks` `=` $ranks `,` `tokens` `=` $tokens `,` `top_k` `=` $topK
    `` custom<Iterations>($helperSlots, $chunks, $leaves, $capacity) `` `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getLocalExperts() const { return getExperts() / getRanks(); }
    /// Experts that a rank has weights of: its own, and those it helps with.
    int64_t getExpertSlots() const { return getLocalExperts() + getHelperSlots(); }
    /// The most iterations that the tokens may take.
    int64_t getIterations() const { return getChunks() * getLeaves(); }
    /// The most tokens that an iteration takes.
    int64_t getIterationTokens() const { return (getTokens() + getChunks() - 1) / getChunks(); }
    /// The most rows that a rank may receive in an iteration, of all its tokens when there is one iteration without a capacity.
    int64_t getMaxRows() const { return getCapacity() ? getCapacity() : getRanks() * getIterationTokens() * getTopK(); }
  }];
}

#endif // PLATEAU_DIALECT_MOE_IR_MOETYPES_TD

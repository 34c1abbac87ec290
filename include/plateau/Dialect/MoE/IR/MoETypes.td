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

    Example: `!moe.plan<experts = 8, ranks = 4, tokens = 1024, top_k = 2>`
  }];
  let parameters = (ins "int64_t":$experts, "int64_t":$ranks, "int64_t":$tokens, "int64_t":$topK);
  let assemblyFormat = [{
    `<` `experts` `=` $experts `,` `ranks` `=` $ranks `,` `tokens` `=` $tokens `,` `top_k` `=` $topK `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getLocalExperts() const { return getExperts() / getRanks(); }
    /// The most rows that a rank may receive.
    int64_t getMaxRows() const { return getRanks() * getTokens() * getTopK(); }
  }];
}

#endif // PLATEAU_DIALECT_MOE_IR_MOETYPES_TD

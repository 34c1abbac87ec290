//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Enums of the dialect alone: tblgen defines every enum it sees, so this file includes no other enums.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_MOEENUMS_TD
#define PLATEAU_DIALECT_MOE_IR_MOEENUMS_TD

include "mlir/IR/EnumAttr.td"

def MoE_Role : I32EnumAttr<"Role", "what an argument or result of a step is", [
  I32EnumAttrCase<"Tokens", 0, "tokens">, I32EnumAttrCase<"Labels", 1, "labels">,
  I32EnumAttrCase<"Positions", 2, "positions">, I32EnumAttrCase<"Starts", 3, "starts">,
  I32EnumAttrCase<"LearningRate", 4, "learning_rate">, I32EnumAttrCase<"Step", 5, "step">,
  I32EnumAttrCase<"Parameters", 6, "parameters">, I32EnumAttrCase<"Gradients", 7, "gradients">,
  I32EnumAttrCase<"FirstMoment", 8, "first_moment">, I32EnumAttrCase<"SecondMoment", 9, "second_moment">,
  I32EnumAttrCase<"Master", 10, "master">, I32EnumAttrCase<"Loss", 11, "loss">,
  I32EnumAttrCase<"GradientNorm", 12, "gradient_norm">, I32EnumAttrCase<"LabelCount", 13, "label_count">,
  I32EnumAttrCase<"ExpertCounts", 14, "expert_counts">, I32EnumAttrCase<"TokenCount", 15, "token_count">]> {
  let cppNamespace = "::mlir::plateau::moe";
  let genSpecializedAttr = 0;
}

def MoE_Score : I32EnumAttr<"Score", "how a router turns logits into scores", [
  I32EnumAttrCase<"Softmax", 0, "softmax">, I32EnumAttrCase<"TopKSoftmax", 1, "top_k_softmax">,
  I32EnumAttrCase<"Sigmoid", 2, "sigmoid">]> {
  let cppNamespace = "::mlir::plateau::moe";
  let genSpecializedAttr = 0;
}

def MoE_Space : I32EnumAttr<"Space", "a memory space", [I32EnumAttrCase<"Host", 1, "host">]> {
  let cppNamespace = "::mlir::plateau::moe";
  let genSpecializedAttr = 0;
}

#endif // PLATEAU_DIALECT_MOE_IR_MOEENUMS_TD

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The components and phases that memory is accounted under.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_INTERFACES_COMPONENT_TD
#define PLATEAU_INTERFACES_COMPONENT_TD

include "mlir/IR/EnumAttr.td"

class Plateau_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::plateau";
  let genSpecializedAttr = 0;
}

def Plateau_Component : Plateau_Enum<"Component", "what a buffer is for", [
  I32EnumAttrCase<"Parameters", 0, "parameters">, I32EnumAttrCase<"Gradients", 1, "gradients">,
  I32EnumAttrCase<"Optimizer", 2, "optimizer">, I32EnumAttrCase<"Embedding", 3, "embedding">,
  I32EnumAttrCase<"Attention", 4, "attention">, I32EnumAttrCase<"Dense", 5, "dense">,
  I32EnumAttrCase<"Routing", 6, "routing">, I32EnumAttrCase<"Dispatch", 7, "dispatch">,
  I32EnumAttrCase<"Experts", 8, "experts">, I32EnumAttrCase<"Vocabulary", 9, "vocabulary">,
  I32EnumAttrCase<"Boundaries", 10, "boundaries">, I32EnumAttrCase<"Staging", 11, "staging">,
  I32EnumAttrCase<"Workspace", 12, "workspace">, I32EnumAttrCase<"External", 13, "external">]>;

def Plateau_Phase : Plateau_Enum<"Phase", "the part of a training step", [
  I32EnumAttrCase<"Forward", 0, "forward">, I32EnumAttrCase<"Backward", 1, "backward">,
  I32EnumAttrCase<"Optimizer", 2, "optimizer">]>;

#endif // PLATEAU_INTERFACES_COMPONENT_TD

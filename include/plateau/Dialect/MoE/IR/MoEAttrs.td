//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_MOEATTRS_TD
#define PLATEAU_DIALECT_MOE_IR_MOEATTRS_TD

include "plateau/Dialect/MoE/IR/MoEDialect.td"
include "plateau/Dialect/MoE/IR/MoEEnums.td"

class MoE_Attr<string name, string attrMnemonic> : AttrDef<MoE_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def MoE_RoleAttr : EnumAttr<MoE_Dialect, MoE_Role, "role"> {
  let description = [{
    What an argument or a result of `@loss` or `@step` is, so that a driver can fill it: `moe.role = #moe.role<tokens>`. A
    `token_count` is the number of this rank's tokens, from 0 to those of `#moe.batch`; the rows from it on are padding.
  }];
  let assemblyFormat = "`<` $value `>`";
}

def MoE_ScopeAttr : MoE_Attr<"Scope", "scope"> {
  let summary = "where a value belongs: phase, component and layer";
  let description = [{
    Metadata of a fused location. `layer` is left out for what belongs to no layer.

    Example: `loc(fused<#moe.scope<backward, attention, layer = 3>>["q_proj"])`
  }];
  let parameters = (ins
    EnumParameter<Plateau_Phase>:$phase,
    EnumParameter<Plateau_Component>:$component,
    OptionalParameter<"::std::optional<int64_t>">:$layer);
  let assemblyFormat = "`<` $phase `,` $component (`,` `layer` `=` $layer^)? `>`";
}

def MoE_LeastLoadedAttr : MoE_Attr<"LeastLoaded", "least_loaded"> {
  let summary = "how rows are evened out over ranks: the least-loaded plan";
  let description = [{
    No rank is given more than `alpha` times the mean number of rows, while a rank can be found that may take what is above; a rank takes no
    fewer than `min_rows` of an expert, unless that is all that is left. Below a ratio of `threshold` of the fullest rank's rows to the mean
    every expert stays on its own rank. Fractions, so that all ranks compute alike.

    Example: `#moe.least_loaded<alpha = 1 over 1, min_rows = 1024, threshold = 13 over 10>`
  }];
  let parameters = (ins "int64_t":$alphaNumerator, "int64_t":$alphaDenominator, "int64_t":$minRows,
                        "int64_t":$thresholdNumerator, "int64_t":$thresholdDenominator);
  let assemblyFormat = [{
    `<` `alpha` `=` $alphaNumerator `over` $alphaDenominator `,` `min_rows` `=` $minRows `,` `threshold` `=` $thresholdNumerator `over` $thresholdDenominator `>`
  }];
  let genVerifyDecl = 1;
}

def MoE_SpaceAttr : MoE_Attr<"Space", "space"> {
  let summary = "the memory space of a tensor that does not lie on the device";
  let description = [{
    Encoding of a tensor in the memory of the host: `tensor<8x4xf32, #moe.space<host>>`. Tensors on the device have no encoding. Few ops
    may touch a host tensor; `moe-verify-spaces` says which.
  }];
  let parameters = (ins EnumParameter<MoE_Space>:$space);
  let assemblyFormat = "`<` $space `>`";
}

def MoE_BatchAttr : MoE_Attr<"Batch", "batch"> {
  let summary = "how many tokens a step takes";
  let description = [{
    On `@loss` and `@step`: the number of ranks, the tokens of a rank and step, and the tokens of a sequence, so that a driver
    knows how to cut its data: `moe.batch = #moe.batch<ranks = 1, tokens = 1024, sequence = 512>`. All are positive, and
    `tokens` is a multiple of `sequence`. A step of several `micro_batches` computes them one after the other, in equal parts of
    whole sequences; its row numbers (starts) count within a micro-batch. Arguments with the role of tokens, labels, positions or starts have `tokens` rows.
  }];
  let parameters = (ins "int64_t":$ranks, "int64_t":$tokens, "int64_t":$sequence,
                        DefaultValuedParameter<"int64_t", "1">:$microBatches);
  let assemblyFormat = [{
    `<` `ranks` `=` $ranks `,` `tokens` `=` $tokens `,` `sequence` `=` $sequence (`,` `micro_batches` `=` $microBatches^)? `>`
  }];
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "int64_t":$ranks, "int64_t":$tokens, "int64_t":$sequence), [{
    return $_get($_ctxt, ranks, tokens, sequence, /*microBatches=*/1);
  }]>];
}

def MoE_ParameterAttr : MoE_Attr<"Parameter", "parameter"> {
  let summary = "a trained tensor: its name, its decay, its first value";
  let description = [{
    On an argument of `@loss` it says that the argument is trained: `moe.parameter = #moe.parameter<"lm_head.weight",
    decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>`. `name` is the one in checkpoints; `decay`: whether weight decay applies;
    element e starts as `mean` + `deviation` · a standard normal number drawn from (seed, name, e). Both are finite, and
    `deviation` is not negative.

    `shard = @experts`: the argument is one of the equal parts, along dimension 0, in which the ranks along the last axis of that
    grid hold the tensor; e counts in the whole tensor. Without it every rank holds the same tensor. `rows = 49155`, positive, is the
    whole tensor's size along dimension 0 where the parts hold more: the rows behind it are padding. They are zero and stay so, and
    are in no file, count or digest.

    State that no gradient moves carries `moe.buffer = "name"` instead: static f32, zeros at first, the same on every rank. For each,
    `@loss` has a result with the role expert_counts, by which `@step` moves it.
  }];
  let parameters = (ins
    StringRefParameter<"name in checkpoints">:$name,
    "bool":$decay,
    "::mlir::FloatAttr":$mean,
    "::mlir::FloatAttr":$deviation,
    OptionalParameter<"::mlir::FlatSymbolRefAttr">:$shard,
    OptionalParameter<"::std::optional<int64_t>">:$rows);
  let assemblyFormat = [{
    `<` $name `,` `decay` `=` $decay `,` `mean` `=` $mean `,` `deviation` `=` $deviation (`,` `shard` `=` $shard^)?
    (`,` `rows` `=` $rows^)? `>`
  }];
  let genVerifyDecl = 1;
  let builders = [
    AttrBuilder<(ins "::llvm::StringRef":$name, "bool":$decay, "double":$mean, "double":$deviation,
                     CArg<"::mlir::FlatSymbolRefAttr", "{}">:$shard,
                     CArg<"::std::optional<int64_t>", "::std::nullopt">:$rows), [{
      auto f64 = ::mlir::Float64Type::get($_ctxt);
      return $_get($_ctxt, name, decay, ::mlir::FloatAttr::get(f64, mean), ::mlir::FloatAttr::get(f64, deviation), shard,
                   rows);
    }]>
  ];
  let extraClassDeclaration = [{
    /// The whole tensor's size along dimension 0, where ranks hold it in `parts` parts of `partRows` rows.
    int64_t getWholeRows(int64_t parts, int64_t partRows) const { return getRows().value_or(parts * partRows); }
    /// Whether `parts` parts of `partRows` rows hold the whole tensor; else an error is emitted.
    ::llvm::LogicalResult verifyParts(::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError, int64_t parts,
                                      int64_t partRows) const;
  }];
}

def MoE_MemberAttr : MoE_Attr<"Member", "member"> {
  let summary = "one tensor of a flat group";
  let description = [{
    The parameter it is or belongs to, its offset in elements from the start of the group, and its shape.
  }];
  let parameters = (ins
    "::mlir::plateau::moe::ParameterAttr":$parameter,
    "int64_t":$offset,
    ArrayRefParameter<"int64_t", "dimensions">:$shape);
  let assemblyFormat = "`<` $parameter `,` `offset` `=` $offset `,` `shape` `=` custom<Shape>($shape) `>`";
  let extraClassDeclaration = [{
    /// Number of elements.
    int64_t getElements() const;
  }];
}

def MoE_LayoutAttr : MoE_Attr<"Layout", "layout"> {
  let summary = "the tensors of a flat group, in declaration order";
  let description = [{
    A group is one buffer; its tensors are views at recorded offsets, in declaration order, without overlap, no two of one
    name. The group's own size may be larger (padding to a shard size).
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::plateau::moe::MemberAttr", "tensors">:$members);
  let assemblyFormat = "`<` `[` $members `]` `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// One past the last element of the last tensor.
    int64_t getExtent() const;
  }];
}

def MoE_RoutingAttr : MoE_Attr<"Routing", "routing"> {
  let summary = "how a router chooses experts";
  let description = [{
    `#moe.routing<top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32>`; what each field
    means is said at `moe.route`. `top_k`, `groups` and `kept_groups` are positive, `kept_groups` is at most `groups`, and
    `scale` is finite and f32.
  }];
  let parameters = (ins
    "int64_t":$topK,
    EnumParameter<MoE_Score>:$score,
    "int64_t":$groups,
    "int64_t":$keptGroups,
    "bool":$normalize,
    "::mlir::FloatAttr":$scale);
  let assemblyFormat = [{
    `<` `top_k` `=` $topK `,` `score` `=` $score `,` `groups` `=` $groups `,` `kept_groups` `=` $keptGroups `,`
    `normalize` `=` $normalize `,` `scale` `=` $scale `>`
  }];
  let genVerifyDecl = 1;
}

def MoE_VocabularyAttr : MoE_Attr<"Vocabulary", "vocabulary"> {
  let summary = "what a vocabulary loss does with logits and labels";
  let description = [{
    `#moe.vocabulary<size = 49155, ignore_index = -100, label_smoothing = 0.1, z_loss = 1.0e-4, softcap = 30.0>`. `size`, V, counts the
    columns that exist; a table may have more rows, whose logits count as −inf. With x a logit and its bias:

    - y = softcap · tanh(x / softcap), or x; then columns from V on are masked;
    - lse = log Σ exp(y), loss = (1 − label_smoothing) · (lse − y[label]) + label_smoothing · (lse − Σ y / V) + z_loss · lse²;
    - a row with the label `ignore_index` has the loss 0 and no gradient.

    An option that is 0 is left out. V is from 1 to 2^31 − 1, `label_smoothing` in [0, 1), the others finite and not negative.
  }];
  let parameters = (ins
    "int64_t":$size,
    DefaultValuedParameter<"int32_t", "-100">:$ignoreIndex,
    DefaultValuedParameter<"::llvm::APFloat", "::llvm::APFloat(0.0f)">:$labelSmoothing,
    DefaultValuedParameter<"::llvm::APFloat", "::llvm::APFloat(0.0f)">:$zLoss,
    DefaultValuedParameter<"::llvm::APFloat", "::llvm::APFloat(0.0f)">:$softcap);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [AttrBuilder<(ins "int64_t":$size, CArg<"int32_t", "-100">:$ignoreIndex, CArg<"float", "0">:$labelSmoothing,
                                   CArg<"float", "0">:$zLoss, CArg<"float", "0">:$softcap), [{
    return $_get($_ctxt, size, ignoreIndex, ::llvm::APFloat(labelSmoothing), ::llvm::APFloat(zLoss), ::llvm::APFloat(softcap));
  }]>];
  let extraClassDeclaration = [{
    bool hasSmoothing() const { return !getLabelSmoothing().isZero(); }
    bool hasZLoss() const { return !getZLoss().isZero(); }
    bool hasSoftcap() const { return !getSoftcap().isZero(); }
    /// Numbers of a row's state: m, z, y, and the sum of the logits when labels are smoothed.
    int64_t getStateSize() const { return hasSmoothing() ? 4 : 3; }
  }];
}

#endif // PLATEAU_DIALECT_MOE_IR_MOEATTRS_TD

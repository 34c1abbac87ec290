//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// All ops of the dialect, one family a file.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_MOEOPS_TD
#define PLATEAU_DIALECT_MOE_IR_MOEOPS_TD

include "plateau/Dialect/MoE/IR/EmbeddingOps.td"
include "plateau/Dialect/MoE/IR/NormOps.td"
include "plateau/Dialect/MoE/IR/RotaryOps.td"
include "plateau/Dialect/MoE/IR/AttentionOps.td"
include "plateau/Dialect/MoE/IR/VocabularyOps.td"
include "plateau/Dialect/MoE/IR/VocabularyTileOps.td"
include "plateau/Dialect/MoE/IR/RoutingOps.td"
include "plateau/Dialect/MoE/IR/BalanceOps.td"
include "plateau/Dialect/MoE/IR/DispatchOps.td"
include "plateau/Dialect/MoE/IR/ExpertOps.td"
include "plateau/Dialect/MoE/IR/CheckpointOps.td"
include "plateau/Dialect/MoE/IR/OptimizerOps.td"

#endif // PLATEAU_DIALECT_MOE_IR_MOEOPS_TD

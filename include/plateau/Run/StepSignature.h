//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Where the arguments and results of a training step stand, found by their roles.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_STEPSIGNATURE_H
#define PLATEAU_RUN_STEPSIGNATURE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace mlir::plateau::run {

/// Sizes of the batch that one step takes.
struct BatchShape {
  int64_t ranks = 1;
  int64_t tokens = 0;       ///< Of one rank.
  int64_t sequence = 0;     ///< Rows of a sequence; divides `tokens`.
  int64_t microBatches = 1; ///< Parts of a rank's tokens that are computed one after the other.

  /// Where ranks have numbers of their own, up to `tokens` each; then there is one micro-batch.
  std::vector<int64_t> rankTokens = {};

  int64_t getTokens(int64_t rank) const { return rankTokens.empty() ? tokens : rankTokens[rank]; }
  /// Tokens of all ranks before this one.
  int64_t getTokensBefore(int64_t rank) const {
    int64_t sum = 0;
    for (int64_t before = 0; before < rank; ++before)
      sum += getTokens(before);
    return sum;
  }
  int64_t getGlobalTokens() const { return rankTokens.empty() ? ranks * tokens : getTokensBefore(ranks); }
};

/// A flat group that a step takes and gives back: parameters, gradients or a part of the optimizer's state.
struct StateGroup {
  moe::Role role;
  unsigned argument = 0, result = 0;
  moe::LayoutAttr layout;
  Type elementType;
  int64_t elements = 0; ///< With padding.
};

/// f32 state that a step moves by a rule of its own; every rank holds the same.
struct StateBuffer {
  std::string name;
  unsigned argument = 0, result = 0;
  llvm::SmallVector<int64_t> shape;

  int64_t getBytes() const { return ShapedType::getNumElements(shape) * int64_t(sizeof(float)); }
};

/// Elements of a whole tensor that a rank holds at the front of its part; what is behind them there is padding.
struct MemberPart {
  int64_t first = 0, elements = 0;
};

struct StepSignature {
  func::FuncOp function;
  BatchShape batch;
  /// The parts in which ranks hold a parameter, by name, for those that are divided.
  llvm::StringMap<int64_t> parts;
  int64_t vocabulary = 0; ///< Rows of the embedding table, of all parts together.
  int32_t ignoreIndex = -100;
  unsigned tokens = 0, labels = 0, positions = 0, starts = 0, learningRate = 0, step = 0; ///< Arguments.
  std::optional<unsigned> tokenCount;  ///< Argument; there when ranks may have less tokens than the batch says.
  unsigned loss = 0, gradientNorm = 0; ///< Results.
  StateGroup parameters, gradients, first, second;
  std::optional<StateGroup> master; ///< There exactly when the parameters are bf16.
  std::vector<StateBuffer> buffers;

  llvm::SmallVector<const StateGroup *> getGroups() const;
  /// The parts in which ranks hold a tensor; 1 when every rank has all of it. Rank r has part r mod parts: the grid
  /// that divides it has them along its last axis.
  int64_t getParts(moe::MemberAttr member) const;
  /// Shape of the whole tensor, as files have it.
  llvm::SmallVector<int64_t> getWholeShape(moe::MemberAttr member) const;
  MemberPart getPart(moe::MemberAttr member, int64_t rank) const;
};

/// The one public function of the module whose arguments have roles; a diagnostic when there is none or more than one.
FailureOr<func::FuncOp> findStep(ModuleOp module);

/// Reads the roles of `function` and checks all types; a diagnostic names the role that is missing or the type that is
/// wrong.
FailureOr<StepSignature> getStepSignature(func::FuncOp function);

/// The result that the buffer of argument `index` holds after a run (moe.donated), if any.
std::optional<unsigned> getDonatedResult(func::FuncOp function, unsigned index);

/// The argument whose buffer holds result `index` after a run, if any.
std::optional<unsigned> getDonatingArgument(func::FuncOp function, unsigned index);

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_STEPSIGNATURE_H

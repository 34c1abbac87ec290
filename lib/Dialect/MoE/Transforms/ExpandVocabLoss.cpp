//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// moe-expand-vocab-loss: the vocabulary loss with all its logits at once, in one of three forms.
//===----------------------------------------------------------------------===//

#include "GroupBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Shard/IR/ShardDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"
#include "plateau/Interfaces/Matmul.h"

namespace mlir::plateau::moe {
#define GEN_PASS_DEF_MOEEXPANDVOCABLOSS
#include "plateau/Dialect/MoE/Transforms/Passes.h.inc"
} // namespace mlir::plateau::moe

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

static int64_t dim(Value tensor, unsigned index) { return cast<RankedTensorType>(tensor.getType()).getDimSize(index); }
static Type getElement(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); }

namespace {
enum class Form { Standard, InPlace, VocabParallel };

/// The operands that loss and gradient share. The table is the operand of the op: a shard when there is a grid.
struct Operands {
  Value x, table, labels, bias;
  FlatSymbolRefAttr grid;
  VocabularyAttr vocabulary;

  template <typename OpTy>
  static Operands get(OpTy op) {
    return {op.getX(), op.getTable(), op.getLabels(), op.getBias(), op.getGridAttr(), op.getVocabulary()};
  }
  bool operator==(const Operands &other) const {
    return std::tie(x, table, labels, bias, grid, vocabulary) ==
           std::tie(other.x, other.table, other.labels, other.bias, other.grid, other.vocabulary);
  }
};

/// What the forward pass leaves to the backward pass: x, labels, table and bias as they were multiplied (whichever the
/// form gathers, gathered), and the log probabilities of the standard form or the raw logits of the others.
struct Kept {
  Value x, table, labels, bias, first, logits;
};

class Expansion {
public:
  Expansion(Form form, Operands operands, GroupBuilder group) : form(form), in(operands), group(group) {}

  /// All products, up to the logits; for the standard form on to log probabilities, whose lse is then `lse`.
  Kept multiply(Value *lse);
  /// Losses and lse from what `multiply` gave.
  std::pair<Value, Value> finish(const Kept &kept, Value lse);
  /// The gradients of x, the table and the bias, the last null without one, in the types of `op`'s results.
  SmallVector<Value> differentiate(VocabLossGradOp op, const Kept &kept);

private:
  /// Whether the group's tokens meet at each shard of the table; else the whole table comes to each rank's tokens.
  bool gathersTokens() const { return form == Form::VocabParallel; }
  Value differentiateLogits(VocabLossGradOp op, const Kept &kept, Value *biasGrad);
  /// The own rows of states that all ranks hold.
  Value pickOwn(Value states);

  Form form;
  Operands in;
  GroupBuilder group;
};

Kept Expansion::multiply(Value *lse) {
  OpBuilder &builder = group.getBuilder();
  Kept kept = {in.x, in.table, in.labels, in.bias, {}, {}};
  if (gathersTokens()) {
    kept.x = group.gather("lm_head_gather", in.x);
    kept.labels = group.gather("labels_gather", in.labels);
  } else {
    kept.table = group.gather("lm_head_gather", in.table);
    kept.bias = group.gather("bias_gather", in.bias);
  }
  kept.logits = createMatmul(builder, group.locate("lm_head"), kept.x, kept.table, {false, true});
  if (form == Form::Standard) {
    Type rows = RankedTensorType::get({dim(kept.x, 0)}, builder.getF32Type());
    auto softmax = LogSoftmaxOp::create(builder, group.locate("log_softmax"), kept.logits.getType(), rows, kept.logits,
                                        kept.bias, in.vocabulary);
    kept.logits = softmax.getResult();
    if (lse)
      *lse = softmax.getLse();
    return kept;
  }
  // A gathered table starts with column 0 on every rank.
  kept.first = group.getShardStart("shard_start", gathersTokens() ? dim(in.table, 0) : 0);
  return kept;
}

/// Rank by rank, one row of a matrix has all of its states; the sum of those rows that have this rank's number is
/// exact.
Value Expansion::pickOwn(Value states) {
  OpBuilder &builder = group.getBuilder();
  Location loc = group.locate("own_states");
  int64_t ranks = group.getRanks(), rows = dim(states, 0) / ranks, columns = dim(states, 1);
  Type f32 = builder.getF32Type(), i32 = builder.getI32Type();
  auto reshape = [&](Value value, ArrayRef<int64_t> shape) -> Value {
    auto flat = RankedTensorType::get({dim(value, 0) * dim(value, 1)}, f32);
    SmallVector<ReassociationIndices> all = {{0, 1}};
    value = tensor::CollapseShapeOp::create(builder, loc, flat, value, all);
    return tensor::ExpandShapeOp::create(builder, loc, RankedTensorType::get(shape, f32), value, all);
  };
  Value byRank = reshape(states, {ranks, rows * columns});
  Value numbers = arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(RankedTensorType::get({ranks}, i32),
                             ArrayRef(llvm::to_vector(llvm::seq<int32_t>(0, static_cast<int32_t>(ranks))))));
  Value number = group.getShardStart("own_states", 1);
  Value zeros = group.createZeros("own_states", {1, rows * columns});
  Value own = EmbeddingShardGradOp::create(builder, loc, zeros.getType(), byRank, numbers, number, zeros);
  return reshape(own, {rows, columns});
}

std::pair<Value, Value> Expansion::finish(const Kept &kept, Value lse) {
  OpBuilder &builder = group.getBuilder();
  Type rows = RankedTensorType::get({dim(in.x, 0)}, builder.getF32Type());
  if (form == Form::Standard) {
    Value losses =
        NLLOp::create(builder, group.locate("nll"), rows, kept.logits, lse, kept.labels, in.vocabulary).getLosses();
    return {losses, lse};
  }
  Value zeros = group.createZeros("state", {dim(kept.x, 0), in.vocabulary.getStateSize()});
  Value column = arith::ConstantIndexOp::create(builder, group.locate("fold_logits"), 0);
  Value state = FoldLogitsOp::create(builder, group.locate("fold_logits"), zeros.getType(), kept.logits, kept.labels,
                                     kept.first, column, kept.bias, zeros, in.vocabulary);
  if (gathersTokens() && group.getRanks() > 1 && dim(in.x, 0) > 0) {
    Value parts = group.gather("states_gather", state);
    state = pickOwn(MergeStatesOp::create(builder, group.locate("merge_states"), state.getType(), parts, in.vocabulary)
                        .getResult());
  }
  auto finished =
      FinishLossesOp::create(builder, group.locate("finish_losses"), rows, rows, state, in.labels, in.vocabulary);
  return {finished.getLosses(), finished.getLse()};
}

/// Rounded to the type of what it will be multiplied with. The sum of its rows is that of the bias.
Value Expansion::differentiateLogits(VocabLossGradOp op, const Kept &kept, Value *biasGrad) {
  OpBuilder &builder = group.getBuilder();
  Value g = op.getCotangents(), lse = op.getLse();
  auto logits = cast<RankedTensorType>(kept.logits.getType());
  Type element = getElement(in.x);
  Type columns = RankedTensorType::get({logits.getDimSize(1)}, builder.getF32Type());
  if (form == Form::Standard) {
    auto nll =
        NLLGradOp::create(builder, group.locate("nll"), logits, lse.getType(), g, lse, kept.labels, in.vocabulary);
    auto grad = LogSoftmaxGradOp::create(builder, group.locate("log_softmax"), logits, in.bias ? columns : Type(),
                                         nll.getLogProbsGrad(), kept.logits, lse,
                                         in.vocabulary.hasZLoss() ? nll.getLseGrad() : Value(), in.vocabulary);
    *biasGrad = grad.getBiasGrad();
    return group.round("lm_head", grad.getResult(), element);
  }
  if (gathersTokens()) {
    g = group.gather("cotangents_gather", g);
    lse = group.gather("lse_gather", lse);
  }
  Value column = arith::ConstantIndexOp::create(builder, group.locate("logits_grad"), 0);
  Value grad = LogitsGradOp::create(builder, group.locate("logits_grad"), logits.clone(element), kept.logits,
                                    kept.labels, lse, g, kept.first, column, kept.bias, in.vocabulary);
  if (in.bias) {
    Value zeros = group.createZeros("bias_sums", {logits.getDimSize(1)});
    *biasGrad = ColumnSumsOp::create(builder, group.locate("bias_sums"), columns, grad, zeros);
  }
  return grad;
}

SmallVector<Value> Expansion::differentiate(VocabLossGradOp op, const Kept &kept) {
  OpBuilder &builder = group.getBuilder();
  Value biasGrad;
  Value dy = differentiateLogits(op, kept, &biasGrad);
  Value xGrad = createMatmul(builder, group.locate("lm_head"), dy, kept.table, {false, false});
  Value tableGrad = createMatmul(builder, group.locate("lm_head"), dy, kept.x, {true, false});
  if (gathersTokens()) // What the shards give for a row is summed in f32 and rounded once.
    xGrad = group.scatterSum("lm_head_scatter", xGrad);
  xGrad = group.round("lm_head", xGrad, getElement(op.getXGrad()));
  tableGrad = group.round("lm_head", tableGrad, getElement(op.getTableGrad()));
  if (!gathersTokens()) {
    tableGrad = group.scatterSum("lm_head_gather", tableGrad);
    biasGrad = group.scatterSum("bias_gather", biasGrad);
  }
  SmallVector<Value> gradients = {xGrad, tableGrad};
  if (biasGrad)
    gradients.push_back(biasGrad);
  return gradients;
}

struct ExpandVocabLoss : moe::impl::MoEExpandVocabLossBase<ExpandVocabLoss> {
  using MoEExpandVocabLossBase::MoEExpandVocabLossBase;

  void runOnOperation() override {
    std::optional<Form> chosen = llvm::StringSwitch<std::optional<Form>>(form)
                                     .Case("standard", Form::Standard)
                                     .Case("in-place", Form::InPlace)
                                     .Case("vocab-parallel", Form::VocabParallel)
                                     .Default(std::nullopt);
    if (!chosen) {
      getOperation()->emitError() << "moe-expand-vocab-loss: form is \"" << form.getValue()
                                  << "\": it must be standard, in-place or vocab-parallel";
      return signalPassFailure();
    }
    SmallVector<VocabLossOp> losses;
    SmallVector<VocabLossGradOp> gradients;
    getOperation()->walk([&](Operation *op) {
      if (auto loss = dyn_cast<VocabLossOp>(op))
        losses.push_back(loss);
      else if (auto gradient = dyn_cast<VocabLossGradOp>(op))
        gradients.push_back(gradient);
    });
    // By the new lse: what was computed on the way to it.
    llvm::DenseMap<Value, std::pair<Operands, Kept>> forward;
    for (VocabLossOp op : losses) {
      Operands operands = Operands::get(op);
      FailureOr<GroupBuilder> group = GroupBuilder::get(op, op.getGridAttr(), Phase::Forward, Component::Vocabulary);
      if (failed(group))
        return signalPassFailure();
      Expansion expansion(*chosen, operands, *group);
      Value lse;
      Kept kept = expansion.multiply(&lse);
      auto [perToken, logSum] = expansion.finish(kept, lse);
      forward[logSum] = {operands, kept};
      op.getLosses().replaceAllUsesWith(perToken);
      op.getLse().replaceAllUsesWith(logSum);
      op.erase();
    }
    for (VocabLossGradOp op : gradients) {
      FailureOr<GroupBuilder> group = GroupBuilder::get(op, op.getGridAttr(), Phase::Backward, Component::Vocabulary);
      if (failed(group))
        return signalPassFailure();
      Expansion expansion(*chosen, Operands::get(op), *group);
      auto found = forward.find(op.getLse());
      bool isKept = found != forward.end() && found->second.first == Operands::get(op);
      // Without the loss beside it (its lse came from elsewhere) the gradient multiplies for itself.
      Kept kept = isKept ? found->second.second : expansion.multiply(nullptr);
      op->replaceAllUsesWith(expansion.differentiate(op, kept));
      op.erase();
    }
  }
};
} // namespace

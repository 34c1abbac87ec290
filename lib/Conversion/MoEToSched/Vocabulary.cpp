//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The vocabulary loss, standard and by tiles, and the embedding by shards.
//===----------------------------------------------------------------------===//

#include "FunctionConversion.h"
#include "plateau/Interfaces/CollectiveOpInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

static int64_t dim(Value tensor, unsigned index) { return cast<RankedTensorType>(tensor.getType()).getDimSize(index); }

LogicalResult FunctionConversion::lowerVocabulary(Operation *op) {
  Call call(*this, op);
  auto read = [&](Value tensor) { return call.read(tensor); };
  auto out = [&](Value result) { return call.out(result); };
  auto rows = [&](Value tensor) { return i64(dim(tensor, 0)); };
  auto columns = [&](Value tensor) { return i64(dim(tensor, 1)); };
  /// plr_vocabulary
  auto options = [&](VocabularyAttr attr) -> Attribute {
    return sched::StructAttr::get(
        op->getContext(),
        builder.getArrayAttr({i64(attr.getSize()), i32(attr.getIgnoreIndex()), f32(attr.getLabelSmoothing()),
                              f32(attr.getZLoss()), f32(attr.getSoftcap())}));
  };
  /// A result that takes the memory of the operand it was made from.
  auto update = [&](OpOperand &operand, Value result) {
    take(operand, result);
    return call.update(result);
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<LogSoftmaxOp>([&](LogSoftmaxOp o) {
        Attribute result = out(o.getResult()), lse = out(o.getLse());
        call.emit("plr_log_softmax", {options(o.getVocabulary()), rows(o.getInput()), columns(o.getInput()),
                                      read(o.getInput()), read(o.getBias()), result, lse});
        return success();
      })
      .Case<LogSoftmaxGradOp>([&](LogSoftmaxGradOp o) {
        Attribute result = out(o.getResult()), bias = out(o.getBiasGrad());
        call.emit("plr_log_softmax_grad",
                  {options(o.getVocabulary()), rows(o.getOutput()), columns(o.getOutput()), read(o.getCotangent()),
                   read(o.getLseCotangent()), read(o.getOutput()), read(o.getLse()), result, bias});
        return success();
      })
      .Case<NLLOp>([&](NLLOp o) {
        Attribute losses = out(o.getLosses());
        call.emit("plr_nll", {options(o.getVocabulary()), rows(o.getLogProbs()), columns(o.getLogProbs()),
                              read(o.getLogProbs()), read(o.getLse()), read(o.getLabels()), losses});
        return success();
      })
      .Case<NLLGradOp>([&](NLLGradOp o) {
        Attribute result = out(o.getLogProbsGrad()), lse = out(o.getLseGrad());
        call.emit("plr_nll_grad", {options(o.getVocabulary()), rows(o.getLogProbsGrad()), columns(o.getLogProbsGrad()),
                                   read(o.getCotangents()), read(o.getLse()), read(o.getLabels()), result, lse});
        return success();
      })
      .Case<MeanLossOp>([&](MeanLossOp o) {
        Attribute result = out(o.getResult());
        call.emit("plr_mean_loss",
                  {rows(o.getLosses()), read(o.getLosses()), read(o.getWeights()), read(o.getCount()), result});
        return success();
      })
      .Case<MeanLossGradOp>([&](MeanLossGradOp o) {
        Attribute result = out(o.getResult());
        call.emit("plr_mean_loss_grad",
                  {rows(o.getResult()), read(o.getCotangent()), read(o.getWeights()), read(o.getCount()), result});
        return success();
      })
      .Case<ShardStartOp>([&](ShardStartOp o) -> LogicalResult {
        FailureOr<Grid> grid = Grid::lookup(op, o.getGridAttr());
        if (failed(grid))
          return o.emitOpError() << "is on grid " << o.getGridAttr()
                                 << ", and there is none with static sizes of at most 2^31 - 1 ranks";
        Attribute start = out(o.getResult());
        int64_t axis = grid->shape.size() - 1;
        call.emit("plr_shard_start",
                  {sched::GroupRankAttr::get(op->getContext(), o.getGridAttr(), builder.getDenseI64ArrayAttr(axis)),
                   i64(grid->getShards()), i64(o.getHops()), i64(o.getRows()), start});
        return success();
      })
      .Case<FoldLogitsOp>([&](FoldLogitsOp o) -> LogicalResult {
        FailureOr<Attribute> column = call.index(o.getColumn());
        if (failed(column))
          return failure();
        Attribute state = update(o.getStateMutable(), o.getResult());
        call.emit("plr_fold_logits",
                  {options(o.getVocabulary()), rows(o.getLogits()), columns(o.getLogits()), *column, read(o.getFirst()),
                   read(o.getLogits()), read(o.getBias()), read(o.getLabels()), state});
        return success();
      })
      .Case<MergeStatesOp>([&](MergeStatesOp o) {
        Attribute result = out(o.getResult());
        int64_t each = dim(o.getResult(), 0);
        call.emit("plr_merge_states", {options(o.getVocabulary()), i64(each ? dim(o.getStates(), 0) / each : 1),
                                       i64(each), read(o.getStates()), result});
        return success();
      })
      .Case<FinishLossesOp>([&](FinishLossesOp o) {
        Attribute losses = out(o.getLosses()), lse = out(o.getLse());
        call.emit("plr_finish_losses", {options(o.getVocabulary()), rows(o.getState()), read(o.getState()),
                                        read(o.getLabels()), losses, lse});
        return success();
      })
      .Case<LogitsGradOp>([&](LogitsGradOp o) -> LogicalResult {
        FailureOr<Attribute> column = call.index(o.getColumn());
        if (failed(column))
          return failure();
        reuse(o.getLogitsMutable(), o.getResult());
        Attribute logits = read(o.getLogits()), result = call.write(o.getResult());
        call.emit("plr_logits_grad", {options(o.getVocabulary()), type(o.getResult()), rows(o.getLogits()),
                                      columns(o.getLogits()), *column, read(o.getFirst()), logits, read(o.getBias()),
                                      read(o.getLabels()), read(o.getLse()), read(o.getCotangents()), result});
        return success();
      })
      .Case<ColumnSumsOp>([&](ColumnSumsOp o) {
        Attribute sums = update(o.getSumsMutable(), o.getResult());
        call.emit("plr_column_sums",
                  {type(o.getInput()), rows(o.getInput()), columns(o.getInput()), read(o.getInput()), sums});
        return success();
      })
      .Case<EmbeddingShardOp>([&](EmbeddingShardOp o) {
        Attribute result = out(o.getResult());
        call.emit("plr_embedding_shard",
                  {type(o.getShard()), rows(o.getResult()), columns(o.getResult()), rows(o.getShard()),
                   i64(o.getSize()), read(o.getFirst()), read(o.getShard()), read(o.getIds()), result});
        return success();
      })
      .Case<EmbeddingShardGradOp>([&](EmbeddingShardGradOp o) {
        Attribute sums = update(o.getSumsMutable(), o.getResult());
        call.emit("plr_embedding_shard_grad",
                  {type(o.getCotangent()), rows(o.getCotangent()), columns(o.getCotangent()), rows(o.getSums()),
                   read(o.getFirst()), read(o.getCotangent()), read(o.getIds()), sums});
        return success();
      })
      .Default([&](Operation *) { return op->emitOpError("is not lowered to the runtime"); });
}

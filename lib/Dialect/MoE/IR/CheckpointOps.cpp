//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Dialect/MoE/IR/Scope.h"
#include "plateau/Interfaces/Differentiation.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

void CheckpointOp::build(OpBuilder &builder, OperationState &state, TypeRange results, ValueRange inputs,
                         bool recompute) {
  state.addOperands(inputs);
  state.addTypes(results);
  if (recompute)
    state.getOrAddProperties<Properties>().recompute = builder.getUnitAttr();
  Block &body = state.addRegion()->emplaceBlock();
  for (Value input : inputs)
    body.addArgument(input.getType(), input.getLoc());
}

ParseResult CheckpointOp::parse(OpAsmParser &parser, OperationState &state) {
  if (succeeded(parser.parseOptionalKeyword("recompute")))
    state.getOrAddProperties<Properties>().recompute = parser.getBuilder().getUnitAttr();
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types;
  auto parseInput = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()) || parser.parseColonType(types.emplace_back()));
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseInput) ||
      parser.parseOptionalArrowTypeList(state.types) || parser.parseOptionalAttrDictWithKeyword(state.attributes) ||
      parser.resolveOperands(operands, types, loc, state.operands))
    return failure();
  for (auto [argument, type] : llvm::zip_equal(arguments, types))
    argument.type = type;
  Region *body = state.addRegion();
  if (parser.parseRegion(*body, arguments))
    return failure();
  ensureTerminator(*body, parser.getBuilder(), state.location);
  return success();
}

void CheckpointOp::print(OpAsmPrinter &printer) {
  if (getRecompute())
    printer << " recompute";
  printer << " (";
  llvm::interleaveComma(llvm::zip_equal(getBody().getArguments(), getInputs()), printer, [&](auto pair) {
    auto [argument, input] = pair;
    printer << argument << " = " << input << " : " << input.getType();
  });
  printer << ")";
  printer.printOptionalArrowTypeList(getResultTypes());
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {"recompute"});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult CheckpointOp::verify() {
  if (TypeRange(ValueRange(getBody().getArguments())) != TypeRange(getInputs())) // C1
    return emitOpError() << "C1: the body must have one argument for each input, of its type";
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (TypeRange(yield.getOperands()) != TypeRange(getResultTypes())) // C2
    return emitOpError() << "C2: moe.yield must have one operand for each result, of its type";
  return success();
}

/// Whether the results of an op of a body are kept for the backward pass: what wants that (SavedByCheckpoint), and
/// integers that ranks have agreed on.
static bool isSaved(Operation *op) {
  auto isInteger = [](Type type) { return getElementTypeOrSelf(type).isInteger(); };
  return op->hasTrait<SavedByCheckpoint>() ||
         (isa<CollectiveOpInterface>(op) && llvm::all_of(op->getResultTypes(), isInteger));
}

/// The results that hold what is kept of the body, by number.
static SmallVector<unsigned> getSavedResults(CheckpointOp op) {
  SmallVector<unsigned> saved;
  for (OpOperand &yielded : op.getBody().front().getTerminator()->getOpOperands())
    if (Operation *origin = yielded.get().getDefiningOp(); origin && isSaved(origin))
      saved.push_back(yielded.getOperandNumber());
  return saved;
}

SmallVector<Value> CheckpointOp::getResiduals() {
  SmallVector<Value> residuals(getInputs());
  for (unsigned index : getSavedResults(*this))
    residuals.push_back(getResult(index));
  return residuals;
}

void CheckpointOp::saveMarkedResults(RewriterBase &rewriter) {
  Operation *yield = getBody().front().getTerminator();
  SmallVector<Value> yielded(yield->getOperands());
  for (Operation &op : getBody().front())
    if (isSaved(&op))
      for (Value result : op.getResults())
        if (!llvm::is_contained(yielded, result))
          yielded.push_back(result);
  if (yielded.size() == getNumResults())
    return;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(*this);
  auto wider = CheckpointOp::create(rewriter, getLoc(), TypeRange(ValueRange(yielded)), getInputs(), getRecompute());
  rewriter.modifyOpInPlace(yield, [&] { yield->setOperands(yielded); });
  wider.getBody().takeBody(getBody());
  rewriter.replaceAllUsesWith(getResults(), wider->getResults().take_front(getNumResults()));
  rewriter.eraseOp(*this);
}

namespace {
/// Drops results that nobody uses and inputs that the body does not read, so that neither keeps a value alive.
struct DropUnused : OpRewritePattern<CheckpointOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(CheckpointOp op, PatternRewriter &rewriter) const override {
    Block &body = op.getBody().front();
    Operation *yield = body.getTerminator();
    SmallVector<unsigned> results, inputs;
    for (OpResult result : op->getResults())
      if (!result.use_empty())
        results.push_back(result.getResultNumber());
    for (BlockArgument argument : body.getArguments())
      if (!argument.use_empty())
        inputs.push_back(argument.getArgNumber());
    if (results.size() == op->getNumResults() && inputs.size() == op->getNumOperands())
      return failure();

    auto pick = [](auto range, ArrayRef<unsigned> indices) {
      return llvm::map_to_vector(indices, [&](unsigned index) -> Value { return range[index]; });
    };
    SmallVector<Value> kept = pick(op.getInputs(), inputs);
    auto smaller = CheckpointOp::create(rewriter, op.getLoc(), TypeRange(ValueRange(pick(op->getResults(), results))),
                                        kept, op.getRecompute());
    rewriter.modifyOpInPlace(yield, [&] { yield->setOperands(pick(yield->getOperands(), results)); });
    for (unsigned index = body.getNumArguments(); index-- > 0;)
      if (body.getArgument(index).use_empty() && !llvm::is_contained(inputs, index))
        body.eraseArgument(index);
    Block &old = smaller.getBody().front();
    rewriter.inlineBlockBefore(&body, &old, old.end(), old.getArguments());
    for (auto [position, index] : llvm::enumerate(results))
      rewriter.replaceAllUsesWith(op->getResult(index), smaller->getResult(position));
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void CheckpointOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<DropUnused>(context);
}

/// One region: the body evaluated again, then its adjoint. Its inputs are this op's inputs and the cotangents there
/// are; its results the cotangents of the floating-point inputs.
LogicalResult CheckpointOp::buildAdjoint(OpBuilder &builder, Location loc, ValueRange residuals,
                                         ArrayRef<Value> resultCotangents, MutableArrayRef<Value> operandCotangents) {
  Block &body = getBody().front();
  SmallVector<Value> inputs(residuals), seeds, yielded(body.getTerminator()->getOperands());
  SmallVector<unsigned> saved = getSavedResults(*this);
  for (auto [cotangent, value] : llvm::zip_equal(resultCotangents, yielded))
    if (cotangent) {
      inputs.push_back(cotangent);
      seeds.push_back(value);
    }
  SmallVector<unsigned> wanted;
  for (BlockArgument argument : body.getArguments())
    if (isa<FloatType>(getElementTypeOrSelf(argument.getType())))
      wanted.push_back(argument.getArgNumber());

  // Built in a region of its own first: which inputs have a cotangent is known only afterwards.
  Region region;
  Block *block = &region.emplaceBlock();
  for (Value input : inputs)
    block->addArgument(input.getType(), input.getLoc());
  OpBuilder inner(getContext());
  inner.setInsertionPointToEnd(block);
  IRMapping again;
  again.map(body.getArguments(), block->getArguments().take_front(body.getNumArguments()));
  for (auto [index, argument] :
       llvm::zip_equal(saved, block->getArguments().slice(body.getNumArguments(), saved.size())))
    again.map(yielded[index], argument);
  auto locate = [](Location inside) { return withPhase(inside, Phase::Backward); };
  for (Operation &op : body.without_terminator()) {
    if (isSaved(&op) && llvm::all_of(op.getResults(), [&](Value result) { return again.contains(result); }))
      continue;
    Operation *clone = inner.clone(op, again);
    clone->walk([&](Operation *copied) { copied->setLoc(locate(copied->getLoc())); });
  }
  llvm::DenseMap<Value, Value> cotangents;
  for (auto [seed, argument] : llvm::zip_equal(seeds, block->getArguments().drop_front(residuals.size()))) {
    if (cotangents.count(seed))
      return emitOpError("yields one value twice: yield it once");
    cotangents[seed] = argument;
  }
  if (failed(buildBlockAdjoint(inner, body, body.getArguments(), again, cotangents, locate)))
    return failure();

  SmallVector<Value> results;
  SmallVector<unsigned> owners;
  for (unsigned index : wanted)
    if (Value cotangent = cotangents.lookup(body.getArgument(index))) {
      results.push_back(cotangent);
      owners.push_back(index);
    }
  YieldOp::create(inner, loc, results);
  auto adjoint = CheckpointOp::create(builder, loc, TypeRange(ValueRange(results)), inputs, /*recompute=*/true);
  adjoint.getBody().takeBody(region);
  for (auto [owner, result] : llvm::zip_equal(owners, adjoint->getResults()))
    operandCotangents[owner] = result;
  return success();
}

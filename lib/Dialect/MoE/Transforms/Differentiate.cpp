//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Dialect/MoE/IR/Scope.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"
#include "plateau/Interfaces/Differentiation.h"

namespace mlir::plateau::moe {
#define GEN_PASS_DEF_MOEDIFFERENTIATE
#include "plateau/Dialect/MoE/Transforms/Passes.h.inc"
} // namespace mlir::plateau::moe

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

namespace {
struct Differentiate : moe::impl::MoEDifferentiateBase<Differentiate> {
  using MoEDifferentiateBase::MoEDifferentiateBase;

  void runOnOperation() override {
    auto loss = getOperation().lookupSymbol<func::FuncOp>(function);
    if (!loss) {
      getOperation().emitError() << "there is no function @" << function << " to differentiate";
      return signalPassFailure();
    }
    if (failed(addGradients(loss)))
      signalPassFailure();
  }

private:
  /// Types of the arguments that are state with a rule of its own.
  static SmallVector<Type> getBuffers(func::FuncOp loss) {
    SmallVector<Type> types;
    for (unsigned index = 0; index < loss.getNumArguments(); ++index)
      if (loss.getArgAttr(index, "moe.buffer"))
        types.push_back(loss.getArgumentTypes()[index]);
    return types;
  }

  /// After the loss come the counts that each buffer is updated by, and nothing else.
  LogicalResult verifyCounts(func::FuncOp loss, ArrayRef<Type> buffers) {
    bool isRight = loss.getNumResults() == 1 + buffers.size();
    for (unsigned index = 0; isRight && index < buffers.size(); ++index) {
      auto role = loss.getResultAttrOfType<RoleAttr>(1 + index, "moe.role");
      isRight = role && role.getValue() == Role::ExpertCounts &&
                loss.getResultTypes()[1 + index] ==
                    cast<RankedTensorType>(buffers[index]).clone(IntegerType::get(&getContext(), 32));
    }
    if (!isRight)
      return loss.emitError() << "@" << function << " has " << buffers.size()
                              << " arguments with moe.buffer: after the loss it must have, for each in order, a result "
                                 "with the role expert_counts, of its shape and i32";
    return success();
  }

  LogicalResult addGradients(func::FuncOp loss) {
    auto scalar = RankedTensorType::get({}, Float32Type::get(&getContext()));
    SmallVector<Type> buffers = getBuffers(loss);
    if (!loss.getBody().hasOneBlock() || loss.getNumResults() < 1 || loss.getResultTypes()[0] != scalar ||
        (buffers.empty() && loss.getNumResults() != 1))
      return loss.emitError() << "@" << function << " must have one block and one result of type " << scalar;
    if (failed(verifyCounts(loss, buffers)))
      return failure();
    std::string name = function + "_and_gradients";
    if (getOperation().lookupSymbol(name))
      return loss.emitError() << "@" << name << " exists already";

    func::FuncOp gradients = loss.clone();
    gradients.setName(name);
    gradients.setPrivate();
    getOperation().insert(std::next(loss->getIterator()), gradients);
    Block &block = gradients.getBody().front();
    IRRewriter rewriter(&getContext());
    SmallVector<CheckpointOp> regions(block.getOps<CheckpointOp>());
    for (CheckpointOp region : regions)
      region.saveMarkedResults(rewriter);
    Operation *terminator = block.getTerminator();

    SmallVector<Value> parameters;
    for (BlockArgument argument : block.getArguments())
      if (gradients.getArgAttrOfType<ParameterAttr>(argument.getArgNumber(), "moe.parameter"))
        parameters.push_back(argument);

    OpBuilder builder(terminator);
    Value result = terminator->getOperand(0);
    SmallVector<Value> counts(terminator->getOperands().drop_front());
    auto locate = [](Location loc) { return withPhase(loc, Phase::Backward); };
    llvm::DenseMap<Value, Value> cotangents;
    cotangents[result] =
        arith::ConstantOp::create(builder, locate(result.getLoc()), DenseElementsAttr::get(scalar, 1.0f));
    if (failed(buildBlockAdjoint(builder, block, parameters, IRMapping(), cotangents, locate)))
      return failure();

    SmallVector<Value> results = {result};
    for (Value parameter : parameters) {
      Value gradient = cotangents.lookup(parameter);
      if (!gradient) {
        auto type = cast<RankedTensorType>(parameter.getType());
        gradient = arith::ConstantOp::create(builder, locate(parameter.getLoc()), type, builder.getZeroAttr(type));
      }
      results.push_back(gradient);
    }
    llvm::append_range(results, counts);
    terminator->setOperands(results);
    SmallVector<Type> types = llvm::map_to_vector(results, [](Value value) { return value.getType(); });
    gradients.setType(FunctionType::get(&getContext(), gradients.getArgumentTypes(), types));
    SmallVector<DictionaryAttr> attributes(results.size(), DictionaryAttr::get(&getContext()));
    auto keep = [&](unsigned from, unsigned to) {
      attributes[to] = DictionaryAttr::get(&getContext(), function_interface_impl::getResultAttrs(loss, from));
    };
    keep(0, 0);
    for (unsigned index = 0; index < counts.size(); ++index)
      keep(1 + index, results.size() - counts.size() + index);
    gradients.setAllResultAttrs(attributes);
    return success();
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Interpreter/Interpreter.h"
#include "Cell.h"
#include "mlir/IR/TypeUtilities.h"
#include "plateau/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;

/// Fails unless there are `ranks` lists of tensors that fit the function's arguments.
static LogicalResult checkArguments(func::FuncOp function, int ranks, Mode mode,
                                    ArrayRef<SmallVector<Tensor>> arguments) {
  if (ranks < 1 || static_cast<int>(arguments.size()) != ranks)
    return function.emitOpError() << "is to run on " << ranks << " ranks and is given the arguments of "
                                  << arguments.size();
  for (auto [rank, tensors] : llvm::enumerate(arguments)) {
    if (tensors.size() != function.getNumArguments())
      return function.emitOpError() << "has " << function.getNumArguments() << " arguments and rank " << rank
                                    << " gives " << tensors.size();
    for (auto [index, type, tensor] : llvm::enumerate(function.getArgumentTypes(), tensors)) {
      if (const char *obstacle =
              isa<moe::PlanType>(type) ? "a plan comes from moe.plan alone" : getObstacle(type, Shapes::Routed))
        return function.emitOpError() << "argument #" << index << " is " << type << ": " << obstacle;
      bool isFloat = isa<FloatType>(getElementTypeOrSelf(type));
      bool fits = !isFloat                ? tensor.holds<int64_t>()
                  : mode == Mode::Float64 ? tensor.holds<double>()
                                          : tensor.holds<Field>();
      if (!fits || failed(verifyCompatibleShape(tensor.getShape(), getShape(type))))
        return function.emitOpError() << "argument #" << index << " is " << type << " and rank " << rank
                                      << " gives a tensor of other elements or of another shape";
    }
  }
  return success();
}

FailureOr<SmallVector<SmallVector<Tensor>>> interpreter::evaluateOnRanks(Evaluator &evaluator, func::FuncOp function,
                                                                         ArrayRef<SmallVector<Tensor>> arguments) {
  if (failed(checkArguments(function, evaluator.getRanks(), evaluator.getMode(), arguments)))
    return failure();
  SmallVector<RankValues> byArgument(function.getNumArguments());
  for (ArrayRef<Tensor> tensors : arguments)
    for (auto [values, tensor] : llvm::zip_equal(byArgument, tensors))
      values.push_back(tensor);
  auto byResult = evaluator.evaluateFunction(function, byArgument);
  if (failed(byResult))
    return failure();
  SmallVector<SmallVector<Tensor>> results(evaluator.getRanks());
  for (const RankValues &values : *byResult)
    for (auto [list, value] : llvm::zip_equal(results, values))
      list.push_back(value);
  return results;
}

FailureOr<SmallVector<SmallVector<Tensor>>> Interpreter::evaluate(func::FuncOp function, int ranks, Mode mode,
                                                                  ArrayRef<SmallVector<Tensor>> arguments) {
  Evaluator evaluator(ranks, mode);
  return evaluateOnRanks(evaluator, function, arguments);
}

FailureOr<std::vector<std::vector<double>>> Interpreter::evaluate(func::FuncOp function,
                                                                  ArrayRef<std::vector<double>> arguments) {
  if (arguments.size() != function.getNumArguments())
    return function.emitOpError() << "has " << function.getNumArguments() << " arguments and is given "
                                  << arguments.size();
  SmallVector<Tensor> tensors;
  for (auto [index, numbers, type] : llvm::enumerate(arguments, function.getArgumentTypes())) {
    ArrayRef<int64_t> shape = getShape(type);
    if (getObstacle(type) || ShapedType::getNumElements(shape) != static_cast<int64_t>(numbers.size()))
      return function.emitOpError() << "argument #" << index << " is " << type << " and is given " << numbers.size()
                                    << " numbers";
    if (isa<FloatType>(getElementTypeOrSelf(type)))
      tensors.push_back(Tensor::make(shape, numbers));
    else
      tensors.push_back(Tensor::make(shape, std::vector<int64_t>(numbers.begin(), numbers.end())));
  }
  auto results = evaluate(function, /*ranks=*/1, Mode::Float64, {tensors});
  if (failed(results))
    return failure();
  std::vector<std::vector<double>> numbers;
  for (const Tensor &tensor : results->front())
    if (tensor.holds<double>())
      numbers.push_back(tensor.get<double>().vec());
    else
      numbers.emplace_back(tensor.get<int64_t>().begin(), tensor.get<int64_t>().end());
  return numbers;
}

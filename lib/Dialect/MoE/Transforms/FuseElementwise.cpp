//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "plateau/Dialect/MoE/IR/MoE.h"
#include "plateau/Dialect/MoE/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::plateau::moe {
#define GEN_PASS_DEF_MOEFUSEELEMENTWISE
#include "plateau/Dialect/MoE/Transforms/Passes.h.inc"
} // namespace mlir::plateau::moe

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::moe;

namespace {
/// Elementwise ops of one shape that become one kernel.
struct Kernel {
  llvm::SetVector<Operation *> ops;   ///< Those that stand in the run.
  llvm::SetVector<Operation *> again; ///< Those of earlier runs that this kernel computes again.

  bool contains(Operation *op) const { return op && (ops.contains(op) || again.contains(op)); }
  /// The tensors that the kernel reads.
  llvm::SetVector<Value> getInputs() const;
};

struct FuseElementwise : moe::impl::MoEFuseElementwiseBase<FuseElementwise> {
  void runOnOperation() override {
    SmallVector<Block *> blocks;
    getOperation()->walk([&](Block *block) {
      if (!isa<linalg::LinalgOp>(block->getParentOp()))
        blocks.push_back(block);
    });
    for (Block *block : blocks)
      fuse(*block);
  }

private:
  void fuse(Block &block);
};
} // namespace

/// The shape of an elementwise op on static tensors; null for any other op.
static RankedTensorType getElementwiseType(Operation *op) {
  if (op->getNumResults() != 1 || !OpTrait::hasElementwiseMappableTraits(op))
    return {};
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || !type.hasStaticShape())
    return {};
  for (Value operand : op->getOperands()) {
    auto operandType = dyn_cast<RankedTensorType>(operand.getType());
    if (!operandType || operandType.getShape() != type.getShape())
      return {};
  }
  return type;
}

/// The scalar that fills a constant tensor; null when `value` is none.
static TypedAttr getSplat(Value value) {
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || !elements.isSplat())
    return {};
  return cast<TypedAttr>(elements.getSplatValue<Attribute>());
}

llvm::SetVector<Value> Kernel::getInputs() const {
  llvm::SetVector<Value> inputs;
  for (const llvm::SetVector<Operation *> *set : {&again, &ops})
    for (Operation *op : *set)
      for (Value operand : op->getOperands())
        if (!contains(operand.getDefiningOp()) && !getSplat(operand))
          inputs.insert(operand);
  return inputs;
}

/// Runs of elementwise ops of one shape. Ops that compute nothing (constants, views) do not interrupt a run, but what
/// they make of the run's own values is not ready for it.
static SmallVector<Kernel> findRuns(Block &block) {
  SmallVector<Kernel> kernels;
  Kernel *open = nullptr;
  ArrayRef<int64_t> shape;
  llvm::SmallPtrSet<Operation *, 8> late;
  auto isLate = [&](Operation *op) {
    return llvm::any_of(op->getOperands(), [&](Value operand) { return late.contains(operand.getDefiningOp()); });
  };
  for (Operation &op : block) {
    if (RankedTensorType type = getElementwiseType(&op)) {
      if (!open || shape != type.getShape() || isLate(&op)) {
        open = &kernels.emplace_back();
        shape = type.getShape();
        late.clear();
      }
      open->ops.insert(&op);
    } else if (op.hasTrait<OpTrait::ConstantLike>() ||
               isa<tensor::EmptyOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp, UnpackOp>(op)) {
      if (open && (isLate(&op) || llvm::any_of(op.getOperands(), [&](Value operand) {
                     return open->ops.contains(operand.getDefiningOp());
                   })))
        late.insert(&op);
    } else {
      open = nullptr;
    }
  }
  return kernels;
}

/// Lets `kernel` compute again what other runs compute for it, when it then reads no more tensors than before.
static void computeAgain(Kernel &kernel) {
  llvm::SetVector<Value> before = kernel.getInputs();
  ArrayRef<int64_t> shape = getElementwiseType(kernel.ops[0]).getShape();
  Kernel wider = kernel;
  SmallVector<Value> worklist(before.begin(), before.end());
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    if (!op || wider.contains(op) || op->getBlock() != kernel.ops[0]->getBlock())
      continue;
    RankedTensorType type = getElementwiseType(op);
    if (!type || type.getShape() != shape)
      continue;
    wider.again.insert(op);
    worklist.append(op->operand_begin(), op->operand_end());
  }
  if (wider.again.empty() || wider.getInputs().size() > before.size())
    return;
  kernel = std::move(wider);
}

/// Replaces the ops of a kernel by one linalg.generic that stands where the last of them stood.
static void build(const Kernel &kernel, ArrayRef<Value> results) {
  Operation *last = kernel.ops.back();
  OpBuilder builder(last);
  Location loc = last->getLoc();
  MLIRContext *context = last->getContext();
  auto type = getElementwiseType(last);

  // What the run interrupts but reads the run's values comes after it.
  SmallVector<Operation *> after;
  llvm::SmallPtrSet<Operation *, 8> moved;
  for (Operation *op = kernel.ops.front(); op != last; op = op->getNextNode())
    if (!kernel.ops.contains(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
          Operation *producer = operand.getDefiningOp();
          return producer && (kernel.ops.contains(producer) || moved.contains(producer));
        })) {
      after.push_back(op);
      moved.insert(op);
    }
  Operation *position = last;
  for (Operation *op : after) {
    op->moveAfter(position);
    position = op;
  }

  llvm::SetVector<Value> inputs = kernel.getInputs();
  SmallVector<Value> inits;
  SmallVector<Type> types;
  for (Value result : results) {
    auto resultType = cast<RankedTensorType>(result.getType());
    types.push_back(resultType);
    inits.push_back(tensor::EmptyOp::create(builder, loc, resultType.getShape(), resultType.getElementType()));
  }
  SmallVector<AffineMap> maps(inputs.size() + results.size(),
                              AffineMap::getMultiDimIdentityMap(type.getRank(), context));
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  SmallVector<Operation *> body(kernel.again.begin(), kernel.again.end());
  body.append(kernel.ops.begin(), kernel.ops.end());
  llvm::sort(body, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  auto generic = linalg::GenericOp::create(
      builder, loc, types, inputs.getArrayRef(), inits, maps, iterators,
      [&](OpBuilder &inner, Location, ValueRange arguments) {
        IRMapping mapping;
        for (auto [input, argument] : llvm::zip(inputs, arguments))
          mapping.map(input, argument);
        for (Operation *op : body) {
          SmallVector<Value> operands;
          for (Value operand : op->getOperands()) {
            if (Value known = mapping.lookupOrNull(operand))
              operands.push_back(known);
            else
              operands.push_back(arith::ConstantOp::create(inner, op->getLoc(), getSplat(operand)));
          }
          OperationState state(op->getLoc(), op->getName(), operands, getElementTypeOrSelf(op->getResult(0).getType()),
                               op->getAttrs());
          mapping.map(op->getResult(0), inner.create(state)->getResult(0));
        }
        linalg::YieldOp::create(inner, loc,
                                llvm::map_to_vector(results, [&](Value result) { return mapping.lookup(result); }));
      });
  llvm::SmallPtrSet<Operation *, 16> replaced(body.begin(), body.end());
  for (unsigned index = 0; index < results.size(); ++index)
    Value(results[index]).replaceAllUsesExcept(generic.getResult(index), replaced);
}

void FuseElementwise::fuse(Block &block) {
  SmallVector<Kernel> kernels = findRuns(block);
  for (Kernel &kernel : kernels)
    computeAgain(kernel);

  // The results of a kernel: what is read outside elementwise ops, or by a kernel that does not compute it itself.
  llvm::DenseSet<Value> read;
  for (Kernel &kernel : kernels)
    for (Value input : kernel.getInputs())
      read.insert(input);
  llvm::DenseSet<Operation *> fused;
  for (Kernel &kernel : kernels)
    fused.insert(kernel.ops.begin(), kernel.ops.end());
  SmallVector<SmallVector<Value>> results;
  for (Kernel &kernel : kernels) {
    SmallVector<Value> &list = results.emplace_back();
    for (Operation *op : kernel.ops) {
      Value result = op->getResult(0);
      if (read.contains(result) ||
          llvm::any_of(result.getUsers(), [&](Operation *user) { return !fused.contains(user); }))
        list.push_back(result);
    }
  }
  // Last kernel first: what it reads is still the original value, and is replaced when the kernel that makes it is
  // built.
  for (auto [kernel, list] : llvm::reverse(llvm::zip_equal(kernels, results)))
    if (!list.empty())
      build(kernel, list);
  for (Kernel &kernel : llvm::reverse(kernels))
    for (Operation *op : llvm::reverse(kernel.ops))
      op->erase();
}

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Lowers one function on tensors to calls of the runtime.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_CONVERSION_MOETORUNTIME_FUNCTIONLOWERING_H
#define PLATEAU_LIB_CONVERSION_MOETORUNTIME_FUNCTIONLOWERING_H

#include "Buffers.h"
#include "Kernels.h"
#include "RuntimeCalls.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "plateau/runtime.h"

namespace mlir::plateau {

/// Lowers one function. Ops are visited in order; each becomes its call, then buffers that nothing reads any more go
/// back.
class FunctionLowering {
public:
  FunctionLowering(func::FuncOp function, ModuleOp module, KernelBuilder &kernels)
      : function(function), builder(module.getContext()), calls(module, builder), kernels(kernels), buffers(function) {}

  LogicalResult run();

private:
  LogicalResult checkTypes();
  LogicalResult checkOperands(Operation *op);
  LogicalResult lower(Operation *op);
  LogicalResult lowerMatmul(linalg::MatmulOp op);
  LogicalResult lowerGeneric(linalg::GenericOp op);
  LogicalResult lowerConstant(Operation *op);
  LogicalResult lowerFill(linalg::FillOp op);
  LogicalResult lowerPack(moe::PackOp op);
  LogicalResult lowerAdamW(moe::AdamWOp op);
  LogicalResult lowerReturn(func::ReturnOp op);
  LogicalResult lowerUnpack(moe::UnpackOp op);
  LogicalResult lowerSlice(tensor::ExtractSliceOp op);

  // Loops (Loops.cpp).
  LogicalResult lowerBlock(Block &block);
  LogicalResult lowerFor(scf::ForOp op);
  LogicalResult lowerYield(scf::YieldOp op);
  /// The carried value of a loop that `result` becomes in the next iteration, when it may be computed in its buffer.
  Value getCarried(Operation *op, Value result);

  // Ranks and experts (Experts.cpp).
  LogicalResult lowerCollective(Operation *op);
  LogicalResult lowerExperts(Operation *op);
  /// The group of this rank along `axes` of a grid; asked for once.
  FailureOr<Value> getGroup(Operation *op, FlatSymbolRefAttr grid, ArrayRef<int64_t> axes);
  /// Fails when rows of two plans meet in one op.
  LogicalResult checkRowCounts(Operation *op);
  /// Rows of a tensor: how many, when the step runs.
  Value getRowCount(Value tensor);

  Value tag(Operation *op) { return calls.tag(op); }
  Value i64(int64_t value) { return calls.i64(loc, value); }
  Value i32(int64_t value) { return calls.i32(loc, value); }
  Value type(Value tensor) { return calls.type(loc, tensor.getType()); }

  /// Pointer to an operand, or to a result that has its buffer.
  Value pointer(Value value) {
    View view = buffers.getView(value);
    return calls.offset(loc, buffers.getPointer(view.buffer), view.offsetBytes);
  }

  /// Gives a result its buffer (its place in a group, or memory from the pool) and returns the pointer.
  Value allocate(Operation *op, Value result);
  Value allocateBytes(Operation *op, Value bytes, bool isWorkspace = false);
  void release(Value memory) { calls.callVoid(loc, "plr_release", {calls.context, i32(PLR_DEVICE), memory}); }
  /// Lets `result` have the buffer of `operand`, or a copy of it when its bytes are read again or by another operand of
  /// the same op; returns the pointer.
  Value take(OpOperand &operand, Value result);
  /// Gives an elementwise result the buffer of `operand` when nothing reads that any more, otherwise one of its own.
  Value reuse(OpOperand &operand, Value result);

  /// An array of pointers on the stack, which a call copies.
  Value pointerArray(ValueRange pointers);
  /// The leading arguments of a call on the lane.
  SmallVector<Value> onLane(Operation *op) { return {calls.lane, tag(op)}; }
  /// The call `name` with `arguments` after lane and tag; a workspace and its size come last when the op needs one.
  void emit(Operation *op, StringRef name, ValueRange arguments);

  func::FuncOp function;
  OpBuilder builder;
  RuntimeCalls calls;
  KernelBuilder &kernels;
  Buffers buffers;
  Location loc = function.getLoc();
  SmallVector<Value> resultPointers;
  /// What runs once, before everything else: handles, and memory on the stack.
  Operation *prologue = nullptr;
  llvm::DenseMap<Value, Value> indices; ///< Of loops: the value that counts.
  /// Rows of values whose first dimension is dynamic, and of plans.
  llvm::DenseMap<Value, Value> rowCounts;
  llvm::DenseMap<std::pair<Attribute, int64_t>, Value> groups;
};

} // namespace mlir::plateau

#endif // PLATEAU_LIB_CONVERSION_MOETORUNTIME_FUNCTIONLOWERING_H

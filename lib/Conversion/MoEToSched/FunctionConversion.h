//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Converts one function on tensors to a program of calls.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_CONVERSION_MOETOSCHED_FUNCTIONCONVERSION_H
#define PLATEAU_LIB_CONVERSION_MOETOSCHED_FUNCTIONCONVERSION_H

#include "Buffers.h"
#include "Kernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "plateau/Dialect/Sched/IR/Sched.h"
#include "plateau/runtime.h"

namespace mlir::plateau {

/// What a tensor holds: bytes of a value of the program, from an offset on.
struct Content {
  Value base;
  int64_t offsetBytes = 0;
};

/// Converts one function. Ops are visited in order; each becomes its call.
class FunctionConversion {
public:
  FunctionConversion(func::FuncOp function, KernelBuilder &kernels, plr_gemm_kind gemm)
      : function(function), builder(function.getContext()), kernels(kernels), gemm(gemm), buffers(function) {}

  LogicalResult run();

private:
  friend class Call;

  LogicalResult checkTypes();
  LogicalResult checkOperands(Operation *op);
  void createBuffers();

  LogicalResult lower(Operation *op);
  LogicalResult lowerMatmul(linalg::MatmulOp op);
  LogicalResult lowerGeneric(linalg::GenericOp op);
  LogicalResult lowerConstant(Operation *op);
  LogicalResult lowerFill(linalg::FillOp op);
  LogicalResult lowerPack(moe::PackOp op);
  LogicalResult lowerAdamW(moe::AdamWOp op);
  LogicalResult lowerReturn(func::ReturnOp op);
  LogicalResult lowerUnpack(moe::UnpackOp op);

  // Rows of tensors (Slices.cpp).
  /// Where rows begin in a tensor: at an offset, that grows by a stride with each iteration of a loop.
  struct Rows {
    Value counter;
    int64_t offsetBytes = 0, strideBytes = 0;
  };
  FailureOr<Rows> getRowRange(OffsetSizeAndStrideOpInterface op, RankedTensorType whole, RankedTensorType part);
  /// The rows of a place or value, which lie `offsetBytes` behind its start, as those of `part`.
  Value getView(Value source, const Rows &rows, Value part, int64_t offsetBytes);
  void bindPart(View whole, const Rows &rows, Value part);
  LogicalResult lowerSlice(tensor::ExtractSliceOp op);
  LogicalResult lowerInsert(tensor::InsertSliceOp op);
  LogicalResult lowerConcat(tensor::ConcatOp op);
  /// Gives a result, which is put into the rows of a tensor later, its place there.
  bool allocateInPlace(Operation *op, Value result);

  // Loops (Loops.cpp).
  LogicalResult lowerBlock(Block &block);
  LogicalResult lowerFor(scf::ForOp op);
  LogicalResult lowerYield(scf::YieldOp op);
  /// A loop's index and a constant.
  LogicalResult lowerIndex(Operation *op);
  /// The carried value of a loop that `result` becomes in the next iteration, when it may be computed in its buffer.
  Value getCarried(Operation *op, Value result);

  // Ranks and experts (Experts.cpp).
  LogicalResult lowerPlan(moe::PlanOp op);
  LogicalResult lowerCollective(Operation *op);
  LogicalResult lowerShift(moe::ShiftOp op);
  LogicalResult lowerExperts(Operation *op);
  // The vocabulary loss (Vocabulary.cpp).
  LogicalResult lowerVocabulary(Operation *op);

  /// Whose rows a tensor has: those of a plan, in an iteration when there are several.
  struct PlanRows {
    Value plan, iteration;
    bool operator==(const PlanRows &other) const { return plan == other.plan && iteration == other.iteration; }
  };
  /// Fails when rows of two plans, or of two iterations, meet in one op.
  LogicalResult checkPlans(Operation *op);
  /// The plan is null for a tensor whose rows are static.
  PlanRows getPlanRows(Value tensor) { return planRows.lookup(tensor); }
  Value getPlan(Value tensor) { return getPlanRows(tensor).plan; }

  // Numbers among the arguments of a call.
  Attribute i32(int64_t value) { return builder.getI32IntegerAttr(value); }
  Attribute i64(int64_t value) { return builder.getI64IntegerAttr(value); }
  Attribute f32(const APFloat &value) { return builder.getF32FloatAttr(value.convertToFloat()); }
  Attribute f64(const APFloat &value) { return builder.getF64FloatAttr(value.convertToDouble()); }
  Attribute array(ArrayRef<int64_t> values) { return builder.getDenseI64ArrayAttr(values); }
  Attribute null() { return sched::NullAttr::get(builder.getContext()); }
  /// plr_type of a tensor's elements (PLR_F32 for anything that is not bf16).
  Attribute type(Value tensor) { return i32(getElementTypeOrSelf(tensor.getType()).isBF16() ? PLR_BF16 : PLR_F32); }

  /// The memref of a tensor, with the most rows that any routing gives.
  MemRefType getMemory(Value tensor);
  sched::TagAttr getTag(Operation *op, bool isWorkspace = false);
  /// The stage of the op's calls in a loop that overlaps iterations.
  IntegerAttr getStage(Operation *op);
  /// The range of a buffer as a place.
  Value getPlace(View view, MemRefType type);
  /// The value that holds `tensor`.
  Value getContent(Value tensor);
  void setContent(Value tensor, Value base, int64_t offsetBytes = 0) { contents[tensor] = {base, offsetBytes}; }

  /// Gives a result its buffer: its place in a group, or a slot.
  void allocate(Operation *op, Value result);
  /// Lets `result` have the buffer of `operand`, or a slot with a copy of it when its bytes are read again or by
  /// another operand of the same op. The result holds what the operand held.
  void take(OpOperand &operand, Value result);
  /// Whether an elementwise result may have the buffer of `operand`; it is bound to it then, otherwise to one of its
  /// own.
  void reuse(OpOperand &operand, Value result);
  /// Copies `content` to a place; the value that the place holds then.
  Value copy(Operation *op, Value content, Value place);

  func::FuncOp function;
  OpBuilder builder;
  KernelBuilder &kernels;
  plr_gemm_kind gemm;
  Buffers buffers;
  Location loc = function.getLoc();
  SmallVector<sched::BufferOp> resultBuffers;
  llvm::DenseMap<Value, Content> contents;
  llvm::DenseMap<Value, PlanRows> planRows; ///< Of values whose first dimension is dynamic.
  /// What a plan is in the program: a table of the host space and one of the device space.
  llvm::DenseMap<Value, std::pair<Value, Value>> planTables;
  /// Of loops' induction values: the counter, the first value and the step.
  struct Index {
    Value counter;
    int64_t from, step;
  };
  llvm::DenseMap<Value, Index> indices;
  llvm::DenseMap<Value, Value> indexTables; ///< What each takes in the iterations of its loop.
  int64_t collectives = 0;                  ///< So far.
};

/// Whether another operand of the op has bytes of `operand`, which the op would then overwrite before or while it reads
/// them. The tensors that a pack finds in their places are no such operands.
bool isReadBeside(OpOperand &operand, const Buffers &buffers);

/// A call that is put together, and then emitted.
class Call {
public:
  Call(FunctionConversion &conversion, Operation *op) : conversion(conversion), op(op) {}

  /// Address of what a tensor holds; null for no tensor.
  Attribute read(Value tensor);
  /// Address of a result, in a buffer of its own; null for no result.
  Attribute out(Value result);
  /// Address of a result that has its buffer and is written there, whatever that held.
  Attribute write(Value result);
  /// Address of a result that is bound to the buffer of the value it updates: it is read and written.
  Attribute update(Value result);
  /// The plan as an argument.
  Attribute plan(Value plan);
  /// Rows of a tensor, static or of its plan; fails when they are those of an iteration of another loop.
  FailureOr<Attribute> rows(Value tensor);
  /// The number of a plan's iteration; 0 for none.
  FailureOr<Attribute> iteration(Value index);
  /// A number that is constant, or the index of the innermost loop around the op.
  FailureOr<Attribute> index(Value number);
  /// Address and size of scratch memory that the call may also take from the pool.
  void addScratch(SmallVectorImpl<Attribute> &arguments, int64_t bytes, bool isWorkspace = true);

  /// The call `callee`; a workspace and its size come last when the op needs one.
  void emit(StringRef callee, SmallVector<Attribute> arguments);

  /// The pieces, for ops that are no plain call of results and operands.
  Attribute readValue(Value content);
  Attribute writePlace(Value place, Value result = {});
  Operation *getCreated() { return created; }

private:
  Attribute addTable(Value content);

  FunctionConversion &conversion;
  Operation *op;
  SmallVector<Value> reads, tables, writes;
  SmallVector<Value> results; ///< What the values written become; null for none.
  Operation *created = nullptr;
};

} // namespace mlir::plateau

#endif // PLATEAU_LIB_CONVERSION_MOETOSCHED_FUNCTIONCONVERSION_H

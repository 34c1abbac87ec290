//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Emits calls of the runtime's C ABI into an LLVM function.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_CONVERSION_SCHEDTOLLVM_RUNTIMECALLS_H
#define PLATEAU_LIB_CONVERSION_SCHEDTOLLVM_RUNTIMECALLS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "plateau/Dialect/Sched/IR/Sched.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::plateau {

class RuntimeCalls {
public:
  RuntimeCalls(ModuleOp module, OpBuilder &builder) : module(module), builder(builder) {}

  /// The context that calls go to; set at the start of each function.
  Value context;

  Value i32(Location loc, int64_t value);
  Value i64(Location loc, int64_t value);
  Value number(Location loc, TypedAttr value) { return LLVM::ConstantOp::create(builder, loc, value.getType(), value); }
  Value null(Location loc);

  /// Pointer to a constant plr_tag.
  Value tag(Location loc, sched::TagAttr tag);

  /// Pointer to a constant array.
  Value array(Location loc, ArrayRef<int64_t> values);
  Value data(Location loc, DenseElementsAttr values);
  /// Pointer to a constant struct of numbers.
  Value structure(Location loc, ArrayAttr fields);

  /// Calls `name` with `arguments` and returns its result, of type `result` (i32, a status, unless said otherwise).
  Value call(Location loc, StringRef name, ValueRange arguments, Type result = {});
  /// The same for a function without a result.
  void callVoid(Location loc, StringRef name, ValueRange arguments);

  /// Pointer `bytes` behind `pointer`.
  Value offset(Location loc, Value pointer, int64_t bytes);

  LLVM::LLVMPointerType getPointerType() { return LLVM::LLVMPointerType::get(module.getContext()); }

private:
  LLVM::LLVMFuncOp declare(StringRef name, Type result, TypeRange arguments);
  Value global(Location loc, LLVM::GlobalOp global);
  LLVM::GlobalOp addGlobal(Location loc, Type type, StringRef prefix, Attribute value);

  ModuleOp module;
  OpBuilder &builder;
  llvm::DenseMap<Attribute, LLVM::GlobalOp> tags, structures;
  llvm::StringMap<LLVM::GlobalOp> strings;
  unsigned globals = 0;
};

} // namespace mlir::plateau

#endif // PLATEAU_LIB_CONVERSION_SCHEDTOLLVM_RUNTIMECALLS_H

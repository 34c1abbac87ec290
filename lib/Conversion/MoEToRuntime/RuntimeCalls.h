
// Emits calls of the runtime's C ABI into an LLVM function.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_CONVERSION_MOETORUNTIME_RUNTIMECALLS_H
#define PLATEAU_LIB_CONVERSION_MOETORUNTIME_RUNTIMECALLS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::plateau {

class RuntimeCalls {
public:
  RuntimeCalls(ModuleOp module, OpBuilder &builder) : module(module), builder(builder) {}

  /// The context and lane that calls go to; set at the start of each function.
  Value context, lane;

  Value i32(Location loc, int64_t value);
  Value i64(Location loc, int64_t value);
  Value f32(Location loc, float value);
  Value f64(Location loc, double value);
  Value null(Location loc);

  /// plr_type of a tensor's elements (PLR_F32 for anything that is not bf16).
  Value type(Location loc, Type tensor);

  /// Pointer to a constant plr_tag for `op`: its name with that of its location, and its scope (the op's default
  /// component where the location has none).
  Value tag(Operation *op, bool isWorkspace = false);

  /// Pointer to a constant array.
  Value array(Location loc, ArrayRef<int64_t> values);
  Value data(Location loc, DenseElementsAttr values);

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
  llvm::StringMap<LLVM::GlobalOp> tags, strings;
  unsigned globals = 0;
};

} // namespace mlir::plateau

#endif // PLATEAU_LIB_CONVERSION_MOETORUNTIME_RUNTIMECALLS_H

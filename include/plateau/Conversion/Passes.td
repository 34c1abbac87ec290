

#ifndef PLATEAU_CONVERSION_PASSES_TD
#define PLATEAU_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertMoEToRuntime : Pass<"convert-moe-to-runtime", "::mlir::ModuleOp"> {
  let summary = "Lower functions on tensors to calls of the runtime, memory from a pool";
  let description = [{
    Each public function becomes an LLVM function `(context, buffers)`: `buffers` points to one pointer for each argument, then
    one for each result. Each op becomes one call of the C ABI on lane `compute` (runtime.h); each `linalg.generic` becomes a
    kernel of its own, a loop over vectors of 16 elements and a scalar tail with the same body, launched by `plr_launch`.

    One buffer for each tensor value, from the pool when it is computed and back to it after its last use. Views
    (`tensor.expand_shape`, `tensor.collapse_shape`, `moe.unpack`) are offsets. A value that `moe.pack` stores is computed in
    its place in the group. An update (`moe.pack`, `moe.adamw`, an accumulating matmul) takes the buffer of the value it updates
    when nothing reads that value afterwards; otherwise the value is copied first. An elementwise kernel takes the buffer of an
    input that it is the last to read, when it has the size.

    This is the dynamic path: peaks are what the pool reaches, not what was planned.

    **Requires** static shapes, one block, no `moe.checkpoint`, elementwise ops inside `linalg.generic`.
    **Ensures** an argument with `moe.donated` holds the result it is donated to; a donation that cannot be honoured is an
    error, never a copy.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect", "::mlir::vector::VectorDialect"
  ];
}

def PlateauApproximateMath : Pass<"plateau-approximate-math"> {
  let summary = "Expand math functions on f32 into polynomials";
  let description = [{
    `math.exp` and the other functions that upstream has polynomials for become arithmetic, on vectors and scalars alike, so
    that a value has the same bits in the vector body and in the tail of a kernel, and no call of libm is left.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

#endif // PLATEAU_CONVERSION_PASSES_TD

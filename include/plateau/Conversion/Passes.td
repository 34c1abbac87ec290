//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_CONVERSION_PASSES_TD
#define PLATEAU_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertMoEToSched : Pass<"convert-moe-to-sched", "::mlir::ModuleOp"> {
  let summary = "Convert functions on tensors to programs of calls on slots";
  let description = [{
    Each public function becomes a `sched.program`: a buffer for each argument and for each result that no argument is donated to, one
    slot for each tensor value, and one launch, copy or collective for each op, in the order of the function, on lane `compute`. Each
    `linalg.generic` becomes a kernel of its own, a loop over vectors of 16 elements and a scalar tail with the same body, launched by
    `plr_launch`. The conversion names the value that each call reads; it chooses no address, no lane and no order.

    Views (`tensor.expand_shape`, `tensor.collapse_shape`, `moe.unpack`) are views. A value that `moe.pack` stores is computed in
    its place in the group. An update (`moe.pack`, `moe.adamw`, an accumulating matmul) takes the place of the value it updates
    when nothing reads that value afterwards; otherwise the value is copied first. An elementwise kernel takes the slot of an
    input that it is the last to read, when it has the size.

    Rows that experts receive have slots for the most that any routing gives: ranks · tokens · top_k. A plan is a table of the host
    space and one of the device space; the host waits at a `sched.fence` until they are filled. A loop that makes a plan becomes its
    iterations, as no fence may stand in a loop.

    **Requires** static shapes, one block, no `moe.checkpoint`, elementwise ops inside `linalg.generic`.
    **Ensures** an argument with `moe.donated` holds the result it is donated to; a donation that cannot be honoured is an
    error, never a copy.
  }];
  let options = [Option<"reference", "reference-gemm", "bool", "false",
    "scratch memory for the reference products instead of the library's">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::plateau::sched::SchedDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect",
    "::mlir::vector::VectorDialect"];
}

def ConvertSchedToLLVM : Pass<"convert-sched-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Lower programs to LLVM functions that call the runtime";
  let description = [{
    Each `sched.program` becomes an LLVM function `(context, buffers)`: `buffers` points to one pointer for each number of a
    `sched.buffer`. Each launch, copy and collective becomes one call of the C ABI (runtime.h). Waits become `plr_wait`, and an event that
    something waits for `plr_record`; a fence is `plr_fence`. Loops carry events; what they start from is recorded before all else.

    Slots lie in the arenas of the context, at their offsets. Before each call `plr_writes` declares each range that the call writes and does not
    update in place, for measuring runs. With `pool` there are no arenas: a slot is memory from the pool, with the rows that the plan really has, from the first op that uses it to the last.
    That is the dynamic path: its peaks are what the pool reaches, not what was planned; all ops are on one lane then.

    **Requires** planned slots and verified programs (`sched-verify`); with `pool`, programs as `convert-moe-to-sched` makes them.
  }];
  let options = [Option<"pool", "pool", "bool", "false", "memory from the pool while the step runs">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
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

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// From a function on tensors to a program that is planned and proven, and to the bytes of an object file.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_COMPILE_COMPILE_H
#define PLATEAU_COMPILE_COMPILE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "plateau/Compile/ProgramDescriptor.h"
#include "plateau/Compile/Target.h"
#include "plateau/Pipelines/Schedule.h"

namespace mlir::plateau::compile {

/// A program, and what the object file tells about it.
struct CompiledProgram {
  OwningOpRef<ModuleOp> module;
  ProgramDescriptor descriptor;
};

/// Schedules and verifies one function; the others of its module may be anything. Errors are reported as diagnostics.
FailureOr<CompiledProgram> schedule(func::FuncOp function, const ScheduleOptions &options);

/// Lowers the program and optimizes it for a target; the module has one symbol for others, the descriptor
/// `plateau_<function>`.
llvm::Expected<std::unique_ptr<llvm::Module>> lower(CompiledProgram program, llvm::LLVMContext &context,
                                                    const Target &target);

} // namespace mlir::plateau::compile

#endif // PLATEAU_COMPILE_COMPILE_H

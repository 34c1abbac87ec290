//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What an object file tells about its program: a plr_program (program.h).
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_COMPILE_PROGRAMDESCRIPTOR_H
#define PLATEAU_COMPILE_PROGRAMDESCRIPTOR_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "plateau/Compile/Target.h"
#include "plateau/Dialect/Sched/IR/Sched.h"
#include "plateau/program.h"
#include "llvm/IR/Module.h"
#include <string>
#include <vector>

namespace mlir::plateau::compile {

struct ProgramDescriptor {
  struct Buffer {
    std::string name;
    int64_t bytes = 0;
    plr_component component = PLR_EXTERNAL;
    plr_space space = PLR_DEVICE;
    bool isResult = false;
    int64_t donor = -1;
  };

  std::string function; ///< The symbol is `plateau_<function>`.
  int64_t ranks = 1;
  plr_gemm_kind gemm = PLR_GEMM_ONEDNN;
  int64_t arenaBytes[PLR_SPACES] = {};
  std::vector<Buffer> buffers; ///< Arguments, then results.

  /// Of the program that `function` became.
  static ProgramDescriptor get(func::FuncOp function, sched::ProgramOp program, plr_gemm_kind gemm);

  /// Adds the constant to a module in which the program is the function `entry`.
  void addTo(llvm::Module &module, llvm::Function *entry, const Target &target) const;
};

} // namespace mlir::plateau::compile

#endif // PLATEAU_COMPILE_PROGRAMDESCRIPTOR_H

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// One function of a module, ready to run any number of times: compiled, or interpreted. What drives a training run
// (data, parameters, step lines) knows only this.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_EXECUTION_STEPEXECUTOR_H
#define PLATEAU_EXECUTION_STEPEXECUTOR_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "plateau/Dialect/Sched/IR/Sched.h"
#include "plateau/runtime.h"
#include "llvm/Support/Error.h"

namespace mlir::plateau {

/// Some elements of a result on one rank.
struct ResultPart {
  int rank = 0;
  unsigned index = 0;
  int64_t first = 0, count = 0; ///< Elements.
};

/// Each argument and each result of the function is a buffer on each rank, in the element type of the IR, dense and
/// row-major (i32, f32, bf16). Arguments keep their bytes from run to run; a result that an argument is donated to
/// (moe.donated) is found in that argument's buffer after the run.
class StepExecutor {
public:
  virtual ~StepExecutor() = default;

  func::FuncOp getFunction() const { return function; }
  int getRanks() const { return ranks; }

  /// Bytes of argument or result `index` on one rank.
  int64_t getArgumentBytes(unsigned index) const;
  int64_t getResultBytes(unsigned index) const;

  virtual llvm::Error writeArgument(int rank, unsigned index, llvm::ArrayRef<char> bytes) = 0;
  virtual llvm::Error readArgument(int rank, unsigned index, llvm::MutableArrayRef<char> bytes) = 0;
  virtual llvm::Error readResult(int rank, unsigned index, llvm::MutableArrayRef<char> bytes) = 0;

  /// Runs the function once on all ranks and waits for it.
  virtual llvm::Error run() = 0;

  /// Memory of one rank and space since the last resetPeak. An executor without a memory model (the interpreter) gives
  /// zeros.
  virtual plr_space_report getMemoryReport(int rank, plr_space space) { return {}; }
  virtual void resetPeak() {}

  /// The program that runs, with its memory planned and proven; null where there is none: in the interpreter, and with
  /// memory from a pool.
  virtual sched::ProgramOp getProgram() { return {}; }
  /// From the next run on, observes what the program writes: poisons the arenas with a pattern that `seed` chooses, and
  /// lets each call fill what it is to write. 0: no more.
  virtual void measure(int seed) {}
  /// The highest byte of a rank's space that was written since measure.
  virtual int64_t getObservedBytes(int rank, plr_space space) { return 0; }
  /// How often the host waited for a lane since resetPeak.
  virtual int64_t getFenceCount(int rank) { return 0; }

  /// Makes a run in progress, and all later ones, fail with an error that says so. Safe in a signal handler.
  virtual void interrupt() = 0;

protected:
  StepExecutor(func::FuncOp function, int ranks) : function(function), ranks(ranks) {}

  func::FuncOp function;
  int ranks;
};

} // namespace mlir::plateau

#endif // PLATEAU_EXECUTION_STEPEXECUTOR_H

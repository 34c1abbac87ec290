//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// SIGINT and SIGTERM end a run cleanly; a second one ends it at once.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_INTERRUPT_H
#define PLATEAU_RUN_INTERRUPT_H

#include "plateau/Execution/StepExecutor.h"

namespace mlir::plateau::run {

/// Exit code of a run that was interrupted.
constexpr int interruptedExitCode = 130;

/// While it lives, the first SIGINT or SIGTERM interrupts the executor, and the next has its default effect again. One
/// at a time.
class InterruptScope {
public:
  explicit InterruptScope(StepExecutor &executor);
  ~InterruptScope();
  InterruptScope(const InterruptScope &) = delete;
  InterruptScope &operator=(const InterruptScope &) = delete;

  static bool wasInterrupted();
};

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_INTERRUPT_H

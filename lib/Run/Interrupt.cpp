//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/Interrupt.h"
#include <atomic>
#include <csignal>

using namespace mlir::plateau;
using namespace mlir::plateau::run;

// A signal handler reaches nothing but statics.
static std::atomic<StepExecutor *> target;
static volatile std::sig_atomic_t interrupted;

static constexpr int signals[] = {SIGINT, SIGTERM};

extern "C" void plateauRunHandleSignal(int) {
  for (int number : signals)
    std::signal(number, SIG_DFL);
  interrupted = 1;
  if (StepExecutor *executor = target.load())
    executor->interrupt();
}

InterruptScope::InterruptScope(StepExecutor &executor) {
  interrupted = 0;
  target = &executor;
  struct sigaction action = {};
  action.sa_handler = plateauRunHandleSignal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (int number : signals)
    sigaction(number, &action, nullptr);
}

InterruptScope::~InterruptScope() {
  for (int number : signals)
    std::signal(number, SIG_DFL);
  target = nullptr;
}

bool InterruptScope::wasInterrupted() { return interrupted != 0; }

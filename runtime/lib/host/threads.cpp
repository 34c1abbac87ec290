//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/threads.h"
#include <csignal>
#include <dlfcn.h>
#include <pthread.h>

using namespace plateau::rt::host;

namespace {
/// The OpenMP library that oneDNN brought into the process, if any: the runtime itself is not linked with one.
struct OpenMP {
  void (*setThreads)(int) = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  int (*getThreads)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
};
} // namespace

static const OpenMP &getOpenMP() {
  static const OpenMP library;
  return library;
}

std::thread plateau::rt::host::startWorker(std::function<void()> body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  struct Restore {
    const sigset_t &mask;
    ~Restore() { pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } restore{before};
  return std::thread(std::move(body));
}

void plateau::rt::host::useOneThread() {
  if (getOpenMP().setThreads)
    getOpenMP().setThreads(1);
}

OneThreadScope::OneThreadScope() : before(getOpenMP().getThreads ? getOpenMP().getThreads() : 1) { useOneThread(); }

OneThreadScope::~OneThreadScope() {
  if (getOpenMP().setThreads)
    getOpenMP().setThreads(before);
}

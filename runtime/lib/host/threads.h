//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Threads of the lanes, and how many threads OpenMP takes in them.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_THREADS_H
#define PLATEAU_RUNTIME_HOST_THREADS_H

#include <functional>
#include <thread>

namespace plateau::rt::host {

/// A thread that leaves all signals to the threads of the program.
std::thread startWorker(std::function<void()> body);

/// Makes libraries that use OpenMP, like oneDNN, run in the calling thread alone.
void useOneThread();

/// The same while it lives, for a thread that is not ours.
class OneThreadScope {
public:
  OneThreadScope();
  ~OneThreadScope();
  OneThreadScope(const OneThreadScope &) = delete;
  OneThreadScope &operator=(const OneThreadScope &) = delete;

private:
  int before;
};

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_THREADS_H

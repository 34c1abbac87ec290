//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A lane of the host: a worker thread and its in-order queue.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_LANE_H
#define PLATEAU_RUNTIME_HOST_LANE_H

#include "host/events.h"
#include "host/ring.h"
#include "plateau/runtime.h"
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace plateau::rt::host {

/// How a task went; the message is empty exactly when the status is PLR_OK.
struct Outcome {
  plr_status status = PLR_OK;
  std::string message;
};

/// What a task is told when it runs.
struct Running {
  plr_span *span; ///< Null without a trace.
  void *extra;    ///< The bytes that were copied into the queue behind the task.
};

/// What a task is, besides its body.
struct TaskInfo {
  const char *call;
  const plr_tag *tag = nullptr; ///< Null for waits, which are no call on memory.
  plr_span *span = nullptr;
  plr_event awaited = {nullptr, 0}; ///< Of a wait.
};

} // namespace plateau::rt::host

/// One thread at a time enqueues; any thread may wait. The thread starts with the first task, so an unused lane costs
/// nothing. When the context has failed, tasks leave the queue without running: whoever waits for them goes on.
struct plr_lane {
  plr_lane(plr_context &context, plr_lane_kind kind) : context(context), kind(kind) {}
  ~plr_lane();
  plr_lane(const plr_lane &) = delete;
  plr_lane &operator=(const plr_lane &) = delete;

  /// Room for bytes behind a task's body.
  static constexpr size_t maxExtraBytes = plateau::rt::host::Ring::largest / 2;

  /// Copies `body`, a function of Running that returns an Outcome, into the queue, and `extraBytes` of `extra` behind
  /// it. Waits while the queue is full.
  template <typename Body>
  void enqueue(const plateau::rt::host::TaskInfo &info, const Body &body, const void *extra = nullptr,
               size_t extraBytes = 0) {
    using namespace plateau::rt::host;
    static_assert(std::is_trivially_copyable_v<Body> && std::is_trivially_destructible_v<Body>);
    static_assert(alignof(Body) <= Ring::alignment && sizeof(Body) <= Ring::largest / 4);
    Run run = [](void *task, const Running &running) { return (*static_cast<Body *>(task))(running); };
    new (reserve(info, run, sizeof(Body), extra, extraBytes)) Body(body);
    push();
  }

  /// What is enqueued from now on runs when `event` has completed.
  void enqueueWait(const plr_event &event);

  /// The tasks enqueued so far.
  uint64_t getTicket() const { return enqueued; }
  /// Waits until the lane has done with its first `ticket` tasks.
  void waitFor(uint64_t ticket);
  void waitIdle() { waitFor(enqueued); }
  /// Starts the thread, if the first task has not.
  void start();
  /// Waits until a thread that was started has what it needs of its own.
  void awaitStart();

  // For an order that is drawn.

  /// Its next task can run.
  bool isReady();
  /// Runs that; returns when it is done, or waits for other ranks.
  void runOne();
  /// Tasks that are not done.
  int64_t countPending();
  /// The running task waits for other ranks, and is left to itself until it is done. In the lane's thread.
  void leaveToOtherRanks();

  /// "lane compute: plr_gemm of linalg.matmul q_proj (layer 3, attention, forward)", for messages.
  std::string locate(const plateau::rt::host::TaskInfo &info) const;

  plr_context &context;
  const plr_lane_kind kind;
  /// Begin and end of what the next call reads, while that is measured.
  std::vector<std::pair<const char *, const char *>> declaredReads;

private:
  using Run = plateau::rt::host::Outcome (*)(void *body, const plateau::rt::host::Running &running);
  struct Task;

  /// Writes everything of a task but its body, and returns where that goes.
  void *reserve(const plateau::rt::host::TaskInfo &info, Run run, size_t bodyBytes, const void *extra,
                size_t extraBytes);
  void push();
  bool isDone(uint64_t ticket);
  void work();
  void execute(Task &task);

  uint64_t enqueued = 0;   ///< Of the enqueuing thread.
  size_t reservedSize = 0; ///< Likewise: the record between reserve() and push().

  std::mutex mutex;
  std::condition_variable filled;   ///< For the worker: a task was pushed, or the lane is to end.
  std::condition_variable advanced; ///< For everyone else: a task is done.
  std::unique_ptr<plateau::rt::host::Ring> ring;
  uint64_t done = 0;
  int waiters = 0;
  bool workerSleeps = false;
  bool isReadyToWork = false;
  bool ending = false;
  bool granted = false;      ///< With an order that is drawn: the next task may run.
  bool running = false;      ///< Likewise: from the grant until it is done.
  bool leftToItself = false; ///< Likewise: it waits for other ranks.
  std::thread worker;
};

#endif // PLATEAU_RUNTIME_HOST_LANE_H

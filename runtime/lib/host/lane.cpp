//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/lane.h"
#include "common/context.h"
#include "common/names.h"
#include "common/plan.h"
#include "host/threads.h"
#include <algorithm>
#include <cstring>

using namespace plateau::rt;
using namespace plateau::rt::host;

/// The head of a record; body and extra bytes follow.
struct alignas(Ring::alignment) plr_lane::Task {
  TaskInfo info;
  Run run;
  size_t size; ///< Of the whole record.
  void *body() { return this + 1; }
  void *extra;
};

plr_lane::~plr_lane() {
  if (!worker.joinable())
    return;
  {
    std::lock_guard<std::mutex> lock(mutex);
    ending = true;
  }
  filled.notify_one();
  worker.join();
}

void plr_lane::start() {
  if (worker.joinable())
    return;
  ring = std::make_unique<Ring>();
  worker = startWorker([this] { work(); });
}

void plr_lane::awaitStart() {
  if (!worker.joinable())
    return;
  std::unique_lock<std::mutex> lock(mutex);
  ++waiters;
  advanced.wait(lock, [&] { return isReadyToWork; });
  --waiters;
}

void *plr_lane::reserve(const TaskInfo &info, Run run, size_t bodyBytes, const void *extra, size_t extraBytes) {
  start();
  size_t bodySize = Ring::round(bodyBytes);
  reservedSize = sizeof(Task) + bodySize + Ring::round(extraBytes);
  void *room;
  if (context.interleaver) {
    context.interleaver->runUntil([&] {
      std::lock_guard<std::mutex> lock(mutex);
      return (room = ring->tryReserve(reservedSize)) != nullptr;
    });
  } else {
    std::unique_lock<std::mutex> lock(mutex);
    ++waiters;
    advanced.wait(lock, [&] { return (room = ring->tryReserve(reservedSize)) != nullptr; });
    --waiters;
  }
  Task *task = new (room) Task{info, run, reservedSize, nullptr};
  task->extra = static_cast<unsigned char *>(task->body()) + bodySize;
  if (extraBytes > 0)
    std::memcpy(task->extra, extra, extraBytes);
  return task->body();
}

void plr_lane::push() {
  ++enqueued;
  bool wake;
  {
    std::lock_guard<std::mutex> lock(mutex);
    ring->push(reservedSize);
    wake = workerSleeps;
  }
  if (wake)
    filled.notify_one();
  if (context.interleaver)
    context.interleaver->afterPush();
}

void plr_lane::enqueueWait(const plr_event &event) {
  // A lane runs in order, so it need not wait for itself.
  if (event.lane != this)
    enqueue({"plr_wait", nullptr, nullptr, event}, [event](const Running &) -> Outcome {
      event.lane->waitFor(event.ticket);
      return {};
    });
}

void plr_lane::waitFor(uint64_t ticket) {
  if (context.interleaver) { // A task that waits runs once its event is complete, and so goes on at once.
    context.interleaver->runUntil([&] { return isDone(ticket); });
    return;
  }
  std::unique_lock<std::mutex> lock(mutex);
  if (done >= ticket)
    return;
  ++waiters;
  advanced.wait(lock, [&] { return done >= ticket; });
  --waiters;
}

bool plr_lane::isDone(uint64_t ticket) {
  std::lock_guard<std::mutex> lock(mutex);
  return done >= ticket;
}

int64_t plr_lane::countPending() {
  std::lock_guard<std::mutex> lock(mutex);
  return static_cast<int64_t>(enqueued - done);
}

bool plr_lane::isReady() {
  plr_event awaited;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!ring || ring->empty() || running)
      return false;
    awaited = static_cast<Task *>(ring->front())->info.awaited;
  }
  return !awaited.lane || awaited.lane->isDone(awaited.ticket);
}

void plr_lane::runOne() {
  std::unique_lock<std::mutex> lock(mutex);
  granted = running = true;
  filled.notify_one();
  ++waiters;
  advanced.wait(lock, [&] { return !running || leftToItself; });
  --waiters;
}

void plr_lane::leaveToOtherRanks() {
  std::lock_guard<std::mutex> lock(mutex);
  leftToItself = true;
  advanced.notify_all();
}

void plr_lane::work() {
  useOneThread();
  std::unique_lock<std::mutex> lock(mutex);
  isReadyToWork = true;
  advanced.notify_all();
  while (true) {
    workerSleeps = true;
    filled.wait(lock, [&] { return (!ring->empty() && (granted || !context.interleaver)) || ending; });
    workerSleeps = granted = false;
    if (ring->empty())
      return;
    Task &task = *static_cast<Task *>(ring->front());
    lock.unlock();
    execute(task);
    lock.lock();
    ring->pop(task.size);
    ++done;
    const bool returns = leftToItself;
    running = leftToItself = false;
    if (waiters > 0)
      advanced.notify_all();
    if (returns)
      context.interleaver->noteReturn();
  }
}

std::string plr_lane::locate(const TaskInfo &info) const {
  std::string text = std::string("lane ") + getLaneName(kind) + ": " + info.call;
  return info.tag ? text + " of " + describe(*info.tag) : text;
}

void plr_lane::execute(Task &task) {
  if (context.error.isInterrupted())
    context.check(locate(task.info).c_str());
  if (context.error.getStatus() != PLR_OK)
    return;
  plr_span *span = task.info.span;
  if (span)
    span->start_ns = context.trace.now();
  Outcome outcome;
  try {
    outcome = task.run(task.body(), {span, task.extra});
  } catch (const std::exception &exception) {
    outcome = {PLR_INTERNAL, exception.what()};
  }
  if (span)
    span->end_ns = context.trace.now();
  if (outcome.status != PLR_OK)
    context.fail(outcome.status, locate(task.info) + ": " + outcome.message);
}

extern "C" plr_lane *plr_get_lane(plr_context *context, plr_lane_kind kind) {
  if (!context)
    return nullptr;
  if (kind >= 0 && kind < PLR_LANES)
    return context->lanes[kind].get();
  guard(context, "plr_get_lane", [&] {
    return context->fail(PLR_INVALID_ARGUMENT, "plr_get_lane: there is no lane " + std::to_string(kind) +
                                                   "; lanes are 0 ... " + std::to_string(PLR_LANES - 1));
  });
  return nullptr;
}

extern "C" plr_event *plr_record(plr_lane *lane) {
  plr_event *event = nullptr;
  guard(lane ? &lane->context : nullptr, "plr_record", [&] {
    // Nothing is enqueued while a context prepares: the event is complete.
    event = lane->context.events.take(lane, lane->context.preparing ? 0 : lane->getTicket());
    return PLR_OK;
  });
  return event;
}

extern "C" plr_status plr_wait(plr_lane *lane, plr_event *event) {
  return guard(lane ? &lane->context : nullptr, "plr_wait", [&]() -> plr_status {
    if (!event)
      return lane->context.fail(PLR_INVALID_ARGUMENT, lane->locate({"plr_wait"}) + ": the event is null");
    if (&event->lane->context != &lane->context)
      return lane->context.fail(PLR_INVALID_ARGUMENT, lane->locate({"plr_wait"}) + ": the event is another context's");
    if (!lane->context.preparing)
      lane->enqueueWait(*event);
    return PLR_OK;
  });
}

extern "C" plr_status plr_prepare(plr_context *context, int32_t on) {
  return guard(context, "plr_prepare", [&]() -> plr_status {
    if (on != 0 && on != 1)
      return context->fail(PLR_INVALID_ARGUMENT, "plr_prepare: on is " + std::to_string(on) + ", but must be 0 or 1");
    context->drain();
    context->preparing = on != 0;
    for (std::unique_ptr<plr_lane> &lane : context->lanes)
      lane->awaitStart();
    return context->error.getStatus();
  });
}

extern "C" plr_status plr_fence(plr_event *event) {
  return guard(event ? &event->lane->context : nullptr, "plr_fence", [&]() -> plr_status {
    plr_context &context = event->lane->context;
    if (context.preparing)
      return PLR_OK;
    ++context.fences;
    event->lane->waitFor(event->ticket);
    return context.check("plr_fence");
  });
}

extern "C" int64_t plr_fence_count(plr_context *context) { return context ? context->fences : 0; }

extern "C" plr_status plr_synchronize(plr_context *context) {
  if (!context)
    return PLR_INVALID_ARGUMENT;
  context->drain();
  context->events.reset();
  if (context->gemms)
    context->gemms->limit();
  context->scratchUses.clear();
  auto &plans = context->plans;
  plans.erase(std::remove_if(plans.begin(), plans.end(), [](const auto &pooled) { return pooled.plan->released != 0; }),
              plans.end());
  return guard(context, "plr_synchronize", [] { return PLR_OK; });
}

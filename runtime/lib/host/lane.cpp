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

void *plr_lane::reserve(const TaskInfo &info, Run run, size_t bodyBytes, const void *extra, size_t extraBytes) {
  if (!worker.joinable()) {
    ring = std::make_unique<Ring>();
    worker = startWorker([this] { work(); });
  }
  size_t bodySize = Ring::round(bodyBytes);
  reservedSize = sizeof(Task) + bodySize + Ring::round(extraBytes);
  void *room;
  {
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
}

void plr_lane::enqueueWait(const plr_event &event) {
  // A lane runs in order, so it need not wait for itself.
  if (event.lane != this)
    enqueue({"plr_wait"}, [event](const Running &) -> Outcome {
      event.lane->waitFor(event.ticket);
      return {};
    });
}

void plr_lane::waitFor(uint64_t ticket) {
  std::unique_lock<std::mutex> lock(mutex);
  if (done >= ticket)
    return;
  ++waiters;
  advanced.wait(lock, [&] { return done >= ticket; });
  --waiters;
}

void plr_lane::work() {
  useOneThread();
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    workerSleeps = true;
    filled.wait(lock, [&] { return !ring->empty() || ending; });
    workerSleeps = false;
    if (ring->empty())
      return;
    Task &task = *static_cast<Task *>(ring->front());
    lock.unlock();
    execute(task);
    lock.lock();
    ring->pop(task.size);
    ++done;
    if (waiters > 0)
      advanced.notify_all();
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
    event = lane->context.events.take(lane, lane->getTicket());
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
    lane->enqueueWait(*event);
    return PLR_OK;
  });
}

extern "C" plr_status plr_synchronize(plr_context *context) {
  if (!context)
    return PLR_INVALID_ARGUMENT;
  context->drain();
  context->events.reset();
  if (context->gemms)
    context->gemms->limit();
  context->scratchUses.clear();
  auto &plans = context->plans;
  plans.erase(std::remove_if(plans.begin(), plans.end(), [](const auto &plan) { return plan->released; }), plans.end());
  return guard(context, "plr_synchronize", [] { return PLR_OK; });
}

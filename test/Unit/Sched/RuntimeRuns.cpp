//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RuntimeRuns.h"
#include "plateau/runtime.h"
#include <gtest/gtest.h>

using namespace mlir::plateau::sched;

namespace {
/// What the calls of one run share. The runtime runs one task at a time.
struct Memory {
  int units;
  std::vector<int> writers;
  bool hasWrongRead = false;
};

struct Task {
  const ModelCall *call;
  int number;
  Memory *memory;

  void run() const {
    for (const ModelUse &use : call->uses)
      for (int unit = use.begin; unit < use.end && !use.isWrite; ++unit) {
        int named = use.named[unit - use.begin];
        memory->hasWrongRead |= named != ModelUse::anything && at(use, unit) != named;
      }
    for (const ModelUse &use : call->uses)
      for (int unit = use.begin; unit < use.end && use.isWrite; ++unit)
        at(use, unit) = number;
  }
  int &at(const ModelUse &use, int unit) const { return memory->writers[use.memory * memory->units + unit]; }
};
} // namespace

static void runTask(void **arguments) { static_cast<const Task *>(arguments[0])->run(); }

bool mlir::plateau::sched::readsWrongOnRuntime(const RandomSchedule &program, uint64_t seed) {
  static const plr_tag tag = {"random call", -1, PLR_EXTERNAL, PLR_FORWARD};
  plr_config config = {};
  config.abi_version = PLR_ABI_VERSION;
  config.ranks = 1;
  config.schedule_seed = seed;
  plr_context *context = nullptr;
  char message[256] = "";
  EXPECT_EQ(plr_context_create(&config, &context, message, sizeof(message)), PLR_OK) << message;
  int memories = 1;
  for (const ModelCall &call : program.calls)
    for (const ModelUse &use : call.uses)
      memories = std::max(memories, use.memory + 1);
  Memory memory = {program.units, std::vector<int>(memories * program.units, ModelUse::initial)};
  std::vector<Task> tasks;
  for (const ModelCall &call : program.calls)
    tasks.push_back({&call, static_cast<int>(tasks.size()), &memory});
  std::vector<plr_event *> events(tasks.size());
  for (const Task &task : tasks) {
    const ModelCall &call = *task.call;
    if (call.lane == ModelCall::ret) {
      plr_synchronize(context);
      task.run();
    } else if (call.lane == ModelCall::fence) {
      for (int wait : call.waits)
        plr_fence(events[wait]);
    } else {
      plr_lane *lane = plr_get_lane(context, call.lane);
      for (int wait : call.waits)
        plr_wait(lane, events[wait]);
      void *argument = const_cast<Task *>(&task);
      plr_launch(lane, &tag, runTask, &argument, 1);
      events[task.number] = plr_record(lane);
    }
  }
  plr_synchronize(context);
  EXPECT_EQ(plr_context_error(context, nullptr), PLR_OK);
  plr_context_destroy(context);
  return memory.hasWrongRead;
}

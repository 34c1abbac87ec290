//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A context: one rank's memory spaces, lanes, first error and trace.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_COMMON_CONTEXT_H
#define PLATEAU_RUNTIME_COMMON_CONTEXT_H

#include "common/error.h"
#include "common/plan_records.h"
#include "common/space.h"
#include "common/trace.h"
#include "host/events.h"
#include "host/gemm.h"
#include "host/interleaver.h"
#include "host/lane.h"
#include "host/scratch_uses.h"
#include <array>
#include <memory>
#include <vector>

namespace plateau::rt {

/// A plan made by plr_plan_create, and its host memory.
struct PooledPlan {
  std::unique_ptr<unsigned char[]> memory;
  plr_plan *plan;
};

} // namespace plateau::rt

struct plr_context {
  plr_context(const plr_config &config, std::array<std::unique_ptr<plateau::rt::Space>, PLR_SPACES> spaces);
  ~plr_context();

  /// The status that stands, after turning a pending interrupt into one. `where` names the call that met it.
  plr_status check(const char *where);
  /// Records a failure, and tells the other ranks; "rank 3: " comes before the text.
  plr_status fail(plr_status status, const std::string &text);
  /// Waits until no lane has anything left to run.
  void drain();
  /// Whether ranges that calls declare matter.
  bool isDeclaring() const { return measureSeed != 0 && !preparing; }

  const plr_config config;
  plateau::rt::StickyError error;
  plateau::rt::Trace trace;
  std::array<std::unique_ptr<plateau::rt::Space>, PLR_SPACES> spaces;
  plateau::rt::host::EventPool events;
  std::unique_ptr<plateau::rt::host::GemmCache> gemms; ///< Made by the first product that wants it.
  plateau::rt::host::ScratchUses scratchUses;
  std::vector<std::unique_ptr<plr_group>> groups;
  std::vector<plateau::rt::PooledPlan> plans; ///< Released ones stay until no lane can read them.
  plateau::rt::PlanRecords planRecords;
  int64_t fences = 0;
  int32_t measureSeed = 0; ///< 0: nothing is measured.
  bool preparing = false;
  std::unique_ptr<plateau::rt::host::Interleaver> interleaver; ///< Null: the lanes run beside each other.
  /// Declared last: the lanes' threads end first.
  std::array<std::unique_ptr<plr_lane>, PLR_LANES> lanes;
};

namespace plateau::rt {

/// Runs the body of a call of the C ABI, across which no exception may pass. `status` is what the call returns when the
/// context has failed before, or fails in it.
template <typename Body>
plr_status guard(plr_context *context, const char *call, Body &&body) noexcept {
  if (!context)
    return PLR_INVALID_ARGUMENT;
  try {
    if (plr_status status = context->check(call))
      return status;
    return body();
  } catch (const std::exception &exception) {
    return context->fail(PLR_INTERNAL, std::string(call) + ": " + exception.what());
  }
}

/// Memory of a space for the runtime's own use or a caller's; null after recording why.
void *allocate(plr_context &context, plr_space space, int64_t bytes, const plr_tag &tag, const char *call);
void release(plr_context &context, plr_space space, void *pointer, const char *call);

} // namespace plateau::rt

#endif // PLATEAU_RUNTIME_COMMON_CONTEXT_H

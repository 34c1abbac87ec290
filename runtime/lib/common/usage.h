//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Bytes handed out by a space: now, at the peak, by component and by phase.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_COMMON_USAGE_H
#define PLATEAU_RUNTIME_COMMON_USAGE_H

#include "plateau/runtime.h"
#include <array>

namespace plateau::rt {

class Usage {
public:
  void add(int64_t bytes, const plr_tag &tag);
  void remove(int64_t bytes, const plr_tag &tag);
  void resetPeak();

  int64_t getLive() const { return live; }
  int64_t getPeak() const { return peak; }
  /// Fills what concerns usage; leaves limit and extent.
  void report(plr_space_report &report) const;

private:
  using ByComponent = std::array<int64_t, PLR_COMPONENTS>;

  int64_t live = 0, peak = 0, allocations = 0;
  ByComponent liveByComponent = {}, atPeak = {}, peakByComponent = {};
  std::array<int64_t, PLR_PHASES> peakByPhase = {};
};

} // namespace plateau::rt

#endif // PLATEAU_RUNTIME_COMMON_USAGE_H

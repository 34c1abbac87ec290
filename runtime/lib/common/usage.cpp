//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/usage.h"
#include <algorithm>

using namespace plateau::rt;

void Usage::add(int64_t bytes, const plr_tag &tag) {
  ++allocations;
  live += bytes;
  int64_t &ofComponent = liveByComponent[tag.component];
  ofComponent += bytes;
  peakByComponent[tag.component] = std::max(peakByComponent[tag.component], ofComponent);
  peakByPhase[tag.phase] = std::max(peakByPhase[tag.phase], live);
  if (live > peak) {
    peak = live;
    atPeak = liveByComponent;
  }
}

void Usage::remove(int64_t bytes, const plr_tag &tag) {
  live -= bytes;
  liveByComponent[tag.component] -= bytes;
}

void Usage::resetPeak() {
  peak = live;
  atPeak = peakByComponent = liveByComponent;
  peakByPhase.fill(live);
}

void Usage::report(plr_space_report &report) const {
  report.live_bytes = live;
  report.peak_bytes = peak;
  report.allocations = allocations;
  std::copy(atPeak.begin(), atPeak.end(), report.at_peak_bytes);
  std::copy(peakByComponent.begin(), peakByComponent.end(), report.component_peak_bytes);
  std::copy(peakByPhase.begin(), peakByPhase.end(), report.phase_peak_bytes);
}

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What came of the plans of a context.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_COMMON_PLAN_RECORDS_H
#define PLATEAU_RUNTIME_COMMON_PLAN_RECORDS_H

#include "plateau/runtime.h"
#include <algorithm>
#include <mutex>
#include <vector>

namespace plateau::rt {

/// Lanes add, and the calling thread reads. A run that nobody asks keeps what it began with.
class PlanRecords {
public:
  static constexpr size_t most = 4096;

  /// Takes the memory for all that is kept, so that add() needs none.
  void reserve() {
    std::lock_guard<std::mutex> lock(mutex);
    records.reserve(most);
  }
  void add(const plr_plan_record &record) {
    std::lock_guard<std::mutex> lock(mutex);
    if (records.size() < most)
      records.push_back(record);
    ++count;
  }
  /// Copies up to `capacity` of those that are kept; returns how many there were.
  int64_t read(int64_t first, plr_plan_record *result, int64_t capacity) {
    std::lock_guard<std::mutex> lock(mutex);
    int64_t end = static_cast<int64_t>(records.size());
    first = std::clamp<int64_t>(first, 0, end);
    std::copy_n(records.begin() + first, std::clamp<int64_t>(capacity, 0, end - first), result);
    return count;
  }
  void clear() {
    std::lock_guard<std::mutex> lock(mutex);
    records.clear();
    count = 0;
  }

private:
  std::mutex mutex;
  std::vector<plr_plan_record> records;
  int64_t count = 0;
};

} // namespace plateau::rt

#endif // PLATEAU_RUNTIME_COMMON_PLAN_RECORDS_H

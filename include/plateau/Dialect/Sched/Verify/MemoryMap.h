//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Which memory, and which bytes of it, a range is.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_SCHED_VERIFY_MEMORYMAP_H
#define PLATEAU_DIALECT_SCHED_VERIFY_MEMORYMAP_H

#include "plateau/Analysis/Timeline.h"
#include "llvm/ADT/DenseMap.h"
#include <map>

namespace mlir::plateau::sched {

/// Bytes of one memory: an arena, or what a buffer, a constant, a table, or a slot without an offset has to itself.
struct Extent {
  int64_t memory, begin, end;
};

class MemoryMap {
public:
  Extent get(const ByteRange &range);

private:
  struct Base {
    int64_t memory, offset;
  };
  llvm::DenseMap<Value, Base> bases;
  int64_t next = getMaxEnumValForSpace() + 1; ///< Arenas come first.
};

/// A value for each byte of one memory, kept as ranges that agree. Bytes that were never assigned have a default one.
template <typename T>
class RangeMap {
public:
  /// Calls `visit(begin, end, T &)` for the ranges of [begin, end), in order; they cover it and do not leave it.
  template <typename Visit>
  void update(int64_t begin, int64_t end, Visit visit) {
    split(begin);
    split(end);
    auto at = ranges.lower_bound(begin);
    for (int64_t from = begin; from < end; ++at) {
      if (at == ranges.end() || at->first > from) {
        int64_t to = at == ranges.end() ? end : std::min(end, at->first);
        at = ranges.emplace_hint(at, from, Range{to, T()});
      }
      visit(from, at->second.end, at->second.value);
      from = at->second.end;
    }
  }

  void assign(int64_t begin, int64_t end, T value) {
    if (begin >= end)
      return;
    split(begin);
    split(end);
    auto at = ranges.erase(ranges.lower_bound(begin), ranges.lower_bound(end));
    ranges.emplace_hint(at, begin, Range{end, std::move(value)});
  }

  /// Calls `visit(begin, end, const T &)` for every range that was assigned.
  template <typename Visit>
  void forEach(Visit visit) const {
    for (auto &[begin, range] : ranges)
      visit(begin, range.end, range.value);
  }

private:
  struct Range {
    int64_t end;
    T value;
  };

  /// Makes `at` a boundary.
  void split(int64_t at) {
    auto next = ranges.upper_bound(at);
    if (next == ranges.begin())
      return;
    auto range = std::prev(next);
    if (range->first == at || range->second.end <= at)
      return;
    Range tail = range->second;
    range->second.end = at;
    ranges.emplace_hint(next, at, std::move(tail));
  }

  std::map<int64_t, Range> ranges;
};

} // namespace mlir::plateau::sched

#endif // PLATEAU_DIALECT_SCHED_VERIFY_MEMORYMAP_H

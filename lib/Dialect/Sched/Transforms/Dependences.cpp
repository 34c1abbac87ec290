//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Dependences.h"
#include <map>

using namespace mlir;
using namespace mlir::plateau::sched;

namespace {
constexpr unsigned numLanes = getMaxEnumValForLane() + 1;

/// Bytes that have the same history.
struct Segment {
  int64_t end;
  int64_t writer = -1;                   ///< The last node that wrote them.
  std::array<int64_t, numLanes> readers; ///< On each lane the last that read them since.

  explicit Segment(int64_t end) : end(end) { readers.fill(-1); }
};

/// The bytes of a slot or buffer that were accessed, by where segments begin.
class Memory {
public:
  /// The segments of [begin, end), with ends exactly there.
  template <typename Fn>
  void forEach(int64_t begin, int64_t end, Fn visit) {
    split(begin);
    split(end);
    auto next = segments.lower_bound(begin);
    for (int64_t at = begin; at < end; ++next) {
      if (next == segments.end() || next->first > at) { // Not accessed so far.
        int64_t upTo = next == segments.end() ? end : std::min(end, next->first);
        next = segments.insert(next, {at, Segment(upTo)});
      }
      visit(next->second);
      at = next->second.end;
    }
  }
  /// They were written at once.
  void write(int64_t begin, int64_t end, int64_t node) {
    segments.erase(segments.lower_bound(begin), segments.lower_bound(end));
    Segment segment(end);
    segment.writer = node;
    segments.insert({begin, segment});
  }

private:
  void split(int64_t at) {
    auto next = segments.upper_bound(at);
    if (next == segments.begin())
      return;
    auto segment = std::prev(next);
    if (segment->first == at || segment->second.end <= at)
      return;
    Segment rest = segment->second;
    segment->second.end = at;
    segments.insert(next, {at, rest});
  }

  std::map<int64_t, Segment> segments;
};
} // namespace

/// Where bytes lie: those of slots with offsets in the arena of their space.
static ByteRange getMemory(ByteRange range, llvm::SmallDenseMap<Space, Value> &arenas) {
  auto slot = range.root.getDefiningOp<SlotOp>();
  if (!slot || !slot.getOffset())
    return range;
  int64_t offset = *slot.getOffset();
  // Any slot may stand for the arena.
  return {arenas.insert({slot.getSpace(), range.root}).first->second, offset + range.begin, offset + range.end};
}

std::vector<SmallVector<int64_t, 2>> mlir::plateau::sched::getDependences(const Timeline &timeline) {
  std::vector<SmallVector<int64_t, 2>> dependences(timeline.nodes.size());
  llvm::DenseMap<Value, Memory> memories;
  llvm::SmallDenseMap<Space, Value> arenas;
  auto laneOf = [&](int64_t node) { return static_cast<int64_t>(*timeline.nodes[node].lane); };
  SmallVector<ByteRange> reads, writes;
  for (auto [index, node] : llvm::enumerate(timeline.nodes)) {
    if (!node.lane)
      continue;
    int64_t lane = laneOf(index);
    reads.clear();
    writes.clear();
    for (const ReadRange &read : node.reads)
      if (read.begin < read.end && !read.root.getDefiningOp<ConstantOp>() && !read.root.getDefiningOp<TableOp>())
        reads.push_back(getMemory(read, arenas));
    for (const ByteRange &write : node.writes)
      if (write.begin < write.end)
        writes.push_back(getMemory(write, arenas));

    std::array<int64_t, numLanes> last;
    last.fill(-1);
    auto add = [&](int64_t before) {
      if (before >= 0)
        last[laneOf(before)] = std::max(last[laneOf(before)], before);
    };
    for (const ByteRange &read : reads)
      memories[read.root].forEach(read.begin, read.end, [&](Segment &segment) { add(segment.writer); });
    for (const ByteRange &write : writes)
      memories[write.root].forEach(write.begin, write.end, [&](Segment &segment) {
        add(segment.writer);
        llvm::for_each(segment.readers, add);
      });
    for (const ByteRange &read : reads)
      memories[read.root].forEach(read.begin, read.end,
                                  [&, index = index](Segment &segment) { segment.readers[lane] = index; });
    for (const ByteRange &write : writes)
      memories[write.root].write(write.begin, write.end, index);
    last[lane] = -1;
    for (int64_t before : last)
      if (before >= 0)
        dependences[index].push_back(before);
    llvm::sort(dependences[index]);
  }
  return dependences;
}

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Planners on random programs, held to an order worked out edge by edge over all iterations.
//===----------------------------------------------------------------------===//

#include "RandomProgram.h"
#include "SchedTest.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "plateau/Analysis/Timeline.h"
#include "plateau/Dialect/Sched/Transforms/Passes.h"
#include "plateau/Dialect/Sched/Verify/Checkers.h"

using namespace mlir;
using namespace mlir::plateau::sched;

namespace {

using Mask = std::vector<uint64_t>;

/// What must be done before each node begins, by the rules of the dialect: the call before it on its lane, what it
/// waits for, what the host waited for before.
std::vector<Mask> getBefore(const Timeline &timeline, llvm::function_ref<bool(Operation *, size_t)> isDropped) {
  size_t count = timeline.nodes.size(), words = count / 64 + 1;
  std::vector<Mask> before(count, Mask(words, 0));
  Mask host(words, 0);
  std::map<Lane, size_t> last;
  for (size_t i = 0; i < count; ++i) {
    const Node &node = timeline.nodes[i];
    before[i] = host;
    auto add = [&](size_t other) {
      for (size_t word = 0; word < words; ++word)
        before[i][word] |= before[other][word];
      before[i][other / 64] |= uint64_t(1) << other % 64;
    };
    if (node.lane) {
      if (auto previous = last.find(*node.lane); previous != last.end())
        add(previous->second);
      last[*node.lane] = i;
    }
    for (size_t operand = 0; operand < node.events.size(); ++operand)
      if (node.events[operand] >= 0 && !isDropped(node.op, operand))
        add(node.events[operand]);
    if (isa<FenceOp>(node.op))
      host = before[i];
  }
  return before;
}

bool isSet(const Mask &mask, size_t bit) { return mask[bit / 64] >> bit % 64 & 1; }

/// Bytes [begin, end) of the arena, or of a slot or buffer.
struct Bytes {
  const void *memory;
  int64_t begin, end;
  bool isWrite;
};

std::vector<std::vector<Bytes>> getAccesses(const Timeline &timeline, bool useOffsets) {
  std::vector<std::vector<Bytes>> accesses;
  for (const Node &node : timeline.nodes) {
    accesses.emplace_back();
    auto add = [&](const ByteRange &range, bool isWrite) {
      auto slot = range.root.getDefiningOp<SlotOp>();
      int64_t offset = useOffsets && slot ? static_cast<int64_t>(*slot.getOffset()) : 0;
      const void *memory = useOffsets && slot ? nullptr : range.root.getAsOpaquePointer();
      accesses.back().push_back({memory, offset + range.begin, offset + range.end, isWrite});
    };
    for (const ReadRange &read : node.reads)
      add(read, false);
    for (const ByteRange &write : node.writes)
      add(write, true);
  }
  return accesses;
}

bool doClash(const std::vector<Bytes> &a, const std::vector<Bytes> &b) {
  for (const Bytes &x : a)
    for (const Bytes &y : b)
      if (x.memory == y.memory && (x.isWrite || y.isWrite) && x.begin < y.end && y.begin < x.end)
        return true;
  return false;
}

/// The first pair of calls that access the same bytes without an order; none: {-1, -1}.
std::pair<int64_t, int64_t> findRace(const Timeline &timeline, const std::vector<std::vector<Bytes>> &accesses,
                                     const std::vector<Mask> &before) {
  for (size_t b = 0; b < timeline.nodes.size(); ++b)
    for (size_t a = 0; a < b; ++a)
      if (timeline.nodes[b].lane && timeline.nodes[a].lane && !isSet(before[b], a) && doClash(accesses[a], accesses[b]))
        return {a, b};
  return {-1, -1};
}

constexpr std::pair<int64_t, int64_t> noRace = {-1, -1};
bool dropNone(Operation *, size_t) { return false; }

/// Whether each read finds, byte for byte, what its writer left, when all runs in the order of issue.
bool doReadsFindTheirWriters(const Timeline &timeline, bool useOffsets) {
  std::map<std::pair<const void *, int64_t>, int64_t> last;
  auto at = [&](Value root, int64_t byte) {
    auto slot = root.getDefiningOp<SlotOp>();
    return useOffsets && slot ? std::pair<const void *, int64_t>(nullptr, *slot.getOffset() + byte)
                              : std::pair<const void *, int64_t>(root.getAsOpaquePointer(), byte);
  };
  for (size_t i = 0; i < timeline.nodes.size(); ++i) {
    const Node &node = timeline.nodes[i];
    for (const ReadRange &read : node.reads)
      for (const Piece &piece : read.pieces)
        for (int64_t byte = piece.begin; byte < piece.end; byte += 4) {
          auto found = last.find(at(read.root, byte));
          if ((found == last.end() ? Piece::initial : found->second) != piece.writer)
            return false;
        }
    for (const ByteRange &write : node.writes)
      for (int64_t byte = write.begin; byte < write.end; byte += 4)
        last[at(write.root, byte)] = i;
  }
  return true;
}

class Planners : public SchedTest {
protected:
  static void SetUpTestSuite() {
    static bool once = (registerSchedPasses(), true);
    (void)once;
  }

  /// The program after the passes.
  ProgramOp run(unsigned seed, StringRef passes) {
    ProgramOp program = parse(makeRandomProgram(seed));
    if (!program)
      return program;
    PassManager manager(&context);
    EXPECT_TRUE(succeeded(parsePassPipeline(passes, manager.nest<ProgramOp>())));
    EXPECT_TRUE(succeeded(manager.run(*module)));
    return *module->getOps<ProgramOp>().begin();
  }
};

TEST_F(Planners, WaitsOrderWhatNeedsIt) {
  int64_t races = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    ProgramOp program = parse(makeRandomProgram(seed));
    ASSERT_TRUE(program) << "seed " << seed;
    FailureOr<Timeline> bare = Timeline::get(program);
    ASSERT_TRUE(succeeded(bare));
    ASSERT_TRUE(doReadsFindTheirWriters(*bare, false)) << "seed " << seed;
    races += findRace(*bare, getAccesses(*bare, false), getBefore(*bare, dropNone)) != noRace;

    program = run(seed, "sched-place-waits");
    FailureOr<Timeline> timeline = Timeline::get(program);
    ASSERT_TRUE(succeeded(timeline));
    ASSERT_EQ(findRace(*timeline, getAccesses(*timeline, false), getBefore(*timeline, dropNone)), noRace)
        << "seed " << seed;
  }
  EXPECT_GT(races, 500);
}

/// Copies in place and into the buffer move up; each read still finds its writer, and lanes keep their order.
TEST_F(Planners, HoistingKeepsValues) {
  int64_t moved = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    ProgramOp program = parse(makeRandomProgram(seed));
    auto list = [&](ProgramOp program) {
      std::vector<std::pair<Lane, int64_t>> order;
      program.walk([&](LaneOpInterface op) {
        order.push_back({op.getLane(), cast<IntegerAttr>(op->getDiscardableAttr("n")).getInt()});
      });
      return order;
    };
    int64_t count = 0;
    program.walk([&](LaneOpInterface op) {
      op->setDiscardableAttr("n", IntegerAttr::get(IntegerType::get(&context, 64), count++));
    });
    auto before = list(program);
    PassManager manager(&context);
    ASSERT_TRUE(succeeded(parsePassPipeline("sched-hoist", manager.nest<ProgramOp>())));
    ASSERT_TRUE(succeeded(manager.run(*module)));
    program = *module->getOps<ProgramOp>().begin();
    auto after = list(program);
    moved += after != before;
    for (Lane lane : {Lane::Compute, Lane::Comm, Lane::H2D, Lane::D2H}) {
      auto isOther = [&](const std::pair<Lane, int64_t> &call) { return call.first != lane; };
      auto a = before, b = after;
      a.erase(std::remove_if(a.begin(), a.end(), isOther), a.end());
      b.erase(std::remove_if(b.begin(), b.end(), isOther), b.end());
      EXPECT_EQ(a, b) << "seed " << seed;
    }
    FailureOr<Timeline> timeline = Timeline::get(program);
    ASSERT_TRUE(succeeded(timeline));
    ASSERT_TRUE(doReadsFindTheirWriters(*timeline, false)) << "seed " << seed;
  }
  EXPECT_GT(moved, 50);
}

TEST_F(Planners, NoWaitCanBeLeftOut) {
  int64_t waits = 0, elided = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    ProgramOp program = run(seed, "sched-place-waits");
    program.walk([&](LaneOpInterface op) { elided += op.getWaits().size(); });
    program = run(seed, "sched-place-waits,sched-elide-waits");
    FailureOr<Timeline> timeline = Timeline::get(program);
    ASSERT_TRUE(succeeded(timeline));
    std::vector<std::vector<Bytes>> accesses = getAccesses(*timeline, false);
    ASSERT_EQ(findRace(*timeline, accesses, getBefore(*timeline, dropNone)), noRace) << "seed " << seed;
    program.walk([&](LaneOpInterface op) {
      for (size_t operand = 0; operand < op.getWaits().size(); ++operand) {
        auto isDropped = [&](Operation *other, size_t index) { return other == op && index == operand; };
        EXPECT_NE(findRace(*timeline, accesses, getBefore(*timeline, isDropped)), noRace)
            << "seed " << seed << ", wait " << operand << " of a call";
        ++waits;
        --elided;
      }
    });
  }
  EXPECT_GT(waits, 500);
  EXPECT_GT(elided, 500);
}

TEST_F(Planners, ArenasShareAlongTheOrder) {
  int64_t shared = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    ProgramOp program = run(seed, "sched-place-waits,sched-elide-waits,sched-plan-arenas");
    FailureOr<Timeline> timeline = Timeline::get(program);
    ASSERT_TRUE(succeeded(timeline));
    ASSERT_EQ(findRace(*timeline, getAccesses(*timeline, true), getBefore(*timeline, dropNone)), noRace)
        << "seed " << seed;
    ASSERT_TRUE(doReadsFindTheirWriters(*timeline, true)) << "seed " << seed;
    Order order(*timeline);
    EXPECT_TRUE(findHazards(*timeline, order).empty() && findWrongValues(*timeline).empty()) << "seed " << seed;
    ArenaOp arena = *program.getOps<ArenaOp>().begin();
    int64_t sum = 0, end = 0;
    program.walk([&](SlotOp slot) {
      sum += slot.getBytes();
      end = std::max<int64_t>(end, *slot.getOffset() + slot.getBytes());
    });
    EXPECT_EQ(*arena.getBytes(), end);
    EXPECT_LE(*arena.getLowerBound(), *arena.getBytes());
    shared += end < sum;
  }
  EXPECT_GT(shared, 100);
}

/// With slots that share bytes each wait is still needed, those that bound what is in flight among them.
TEST_F(Planners, NoWaitCanBeLeftOutOfArenas) {
  int64_t waits = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    ProgramOp program = run(seed, "sched-place-waits,sched-release-slots,sched-plan-arenas,sched-elide-waits");
    FailureOr<Timeline> timeline = Timeline::get(program);
    ASSERT_TRUE(succeeded(timeline));
    std::vector<std::vector<Bytes>> accesses = getAccesses(*timeline, true);
    ASSERT_EQ(findRace(*timeline, accesses, getBefore(*timeline, dropNone)), noRace) << "seed " << seed;
    ASSERT_TRUE(doReadsFindTheirWriters(*timeline, true)) << "seed " << seed;
    program.walk([&](LaneOpInterface op) {
      for (size_t operand = 0; operand < op.getWaits().size(); ++operand) {
        auto isDropped = [&](Operation *other, size_t index) { return other == op && index == operand; };
        EXPECT_NE(findRace(*timeline, accesses, getBefore(*timeline, isDropped)), noRace)
            << "seed " << seed << ", wait " << operand << " of a call";
        ++waits;
      }
    });
  }
  EXPECT_GT(waits, 500);
}

} // namespace

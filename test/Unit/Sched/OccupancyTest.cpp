//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Which bytes are live at which call.
//===----------------------------------------------------------------------===//

#include "plateau/Analysis/Occupancy.h"
#include "SchedTest.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <random>

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::sched;

namespace {
using Numbers = std::vector<int64_t>;
using Pairs = std::vector<std::pair<int64_t, int64_t>>;

class OccupancyTest : public SchedTest {
protected:
  Occupancy measure(llvm::StringRef body, llvm::StringRef aliases = "") {
    program = parse(body, aliases);
    FailureOr<Timeline> line = Timeline::get(program);
    EXPECT_TRUE(succeeded(line));
    timeline = succeeded(line) ? std::move(*line) : Timeline();
    return Occupancy(program, timeline);
  }
  static Pairs lives(const Occupancy &occupancy, size_t index) {
    Pairs pairs;
    for (const Occupant::Life &life : occupancy.occupants[index].lives)
      pairs.emplace_back(life.first, life.last);
    return pairs;
  }

  ProgramOp program;
  Timeline timeline;
};

int64_t at(llvm::ArrayRef<int64_t> bytes, Component component) { return bytes[static_cast<int64_t>(component)]; }
int64_t at(llvm::ArrayRef<int64_t> bytes, Phase phase) { return bytes[static_cast<int64_t>(phase)]; }

TEST_F(OccupancyTest, CountsByComponentAndPhase) {
  // a lives in 0 ... 1, b in 1 ... 3, c in 2 and in 3: what nobody reads keeps its bytes during its call. With the 64
  // bytes of the parameters: 320, 448, 64 + 128 + 128, 320, 64.
  Occupancy occupancy = measure(R"(
    sched.arena device bytes(640)
    %p = sched.buffer 0 in device tag #p : memref<10xf32>
    %h = sched.buffer 1 in host tag #t : memref<64xf32>
    %a = sched.slot in device offset 0 tag #a : memref<64xf32>
    %b = sched.slot in device offset 256 tag #b : memref<32xf32>
    %c = sched.slot in device offset 384 tag #c : memref<65xi8>
    %unused = sched.slot in device offset 0 tag #t : memref<1000xf32>
    %e0, %va = sched.copy on h2d reads(%h : memref<64xf32>) writes(%a : memref<64xf32>) tag #t
    %e1, %vb = sched.launch "f"([]) on compute reads(%va, %p : memref<64xf32>, memref<10xf32>) writes(%b : memref<32xf32>) tag #t
    %e2, %vc = sched.launch "f"([]) on compute writes(%c : memref<65xi8>) tag #sched.tag<"op", dense, backward>
    %e3, %vd = sched.launch "f"([]) on compute reads(%vb : memref<32xf32>) writes(%c : memref<65xi8>) tag #sched.tag<"op", dense, optimizer>
    sched.return)",
                                R"(
#p = #sched.tag<"argument p", parameters, forward>
#a = #sched.tag<"a", attention, forward, layer = 0>
#b = #sched.tag<"b", dense, forward>
#c = #sched.tag<"c", attention, backward>
)");
  ASSERT_EQ(occupancy.occupants.size(), 5u);
  EXPECT_EQ(lives(occupancy, 0), (Pairs{{0, 4}}));
  EXPECT_EQ(lives(occupancy, 2), (Pairs{{0, 1}}));
  EXPECT_EQ(lives(occupancy, 3), (Pairs{{1, 3}}));
  EXPECT_EQ(lives(occupancy, 4), (Pairs{{2, 2}, {3, 3}}));
  EXPECT_EQ(occupancy.occupants[4].offset, 384);
  const Occupancy::SpaceUse &device = occupancy.get(Space::Device), &host = occupancy.get(Space::Host);
  EXPECT_EQ(device.liveBytes, (Numbers{320, 448, 320, 320, 64}));
  EXPECT_EQ(device.bufferBytes, 64);
  EXPECT_EQ(device.getPlannedBytes(), 704);
  EXPECT_EQ(device.peakBytes, 448);
  EXPECT_EQ(device.peakNode, 1);
  EXPECT_EQ(at(device.atPeakBytes, Component::Parameters), 64);
  EXPECT_EQ(at(device.atPeakBytes, Component::Attention), 256);
  EXPECT_EQ(at(device.atPeakBytes, Component::Dense), 128);
  EXPECT_EQ(at(device.componentPeakBytes, Component::Attention), 256);
  EXPECT_EQ(at(device.phasePeakBytes, Phase::Forward), 448);
  EXPECT_EQ(at(device.phasePeakBytes, Phase::Backward), 320);
  EXPECT_EQ(at(device.phasePeakBytes, Phase::Optimizer), 320);
  EXPECT_EQ(host.liveBytes, (Numbers{256, 256, 256, 256, 256}));
  EXPECT_EQ(host.getPlannedBytes(), 256);
  std::vector<const Occupant *> live = occupancy.getLiveAt(Space::Device, 1);
  ASSERT_EQ(live.size(), 3u);
  EXPECT_EQ(live[0]->tag.getOp(), "a");
  EXPECT_EQ(live[1]->tag.getOp(), "b");
  EXPECT_EQ(live[2]->tag.getOp(), "argument p");
}

TEST_F(OccupancyTest, LivesEndWhereTheValueIsLastRead) {
  // Each iteration writes %s anew and reads it at once; %acc is updated in place through the loop. The ring has a value
  // of one of its two places at all times.
  Occupancy occupancy = measure(R"(
    sched.arena device
    %acc = sched.slot in device tag #t : memref<16xf32>
    %ring = sched.slot in device ring 2 tag #t : memref<2xf32>
    %e0, %zero = sched.launch "f"([]) on compute writes(%acc : memref<16xf32>) tag #t
    %first = sched.view %ring[0] ring(0) : memref<2xf32> to memref<2xf32>
    %e1, %r0 = sched.launch "f"([]) on compute writes(%first : memref<2xf32>) tag #t
    %sum, %r = sched.loop %i = 0 to 2 iter(%a = %zero, %q = %r0) : memref<16xf32>, memref<2xf32> {
      %s = sched.slot in device tag #t : memref<32xf32>
      %next = sched.view %ring[0] index(%i) ring(1) : memref<2xf32> to memref<2xf32>
      %e2, %v = sched.launch "f"([]) on compute writes(%s : memref<32xf32>) tag #t
      %e3, %b = sched.launch "f"([]) on compute reads(%a, %v : memref<16xf32>, memref<32xf32>) writes(%acc : memref<16xf32>) tag #t
      %e4, %p = sched.launch "f"([]) on comm reads(%q : memref<2xf32>) writes(%next : memref<2xf32>) tag #t
      sched.yield %b, %p : memref<16xf32>, memref<2xf32>
    }
    %e5 = sched.launch "f"([]) on compute reads(%sum : memref<16xf32>) tag #t
    sched.return)");
  ASSERT_EQ(occupancy.occupants.size(), 3u);
  EXPECT_EQ(lives(occupancy, 0), (Pairs{{0, 8}}));
  EXPECT_EQ(lives(occupancy, 1), (Pairs{{1, 7}}));
  EXPECT_EQ(occupancy.occupants[1].bytes, 128);
  EXPECT_EQ(lives(occupancy, 2), (Pairs{{2, 3}, {5, 6}}));
  const Occupant::Life second = occupancy.occupants[2].lives[1];
  EXPECT_EQ(Numbers(occupancy.occupants[2].getAccesses(second)), (Numbers{5, 6}));
  EXPECT_FALSE(occupancy.get(Space::Device).getPlannedBytes());
  EXPECT_EQ(occupancy.get(Space::Host).getPlannedBytes(), 0);
  EXPECT_EQ(occupancy.get(Space::Device).liveBytes, (Numbers{64, 192, 320, 320, 192, 320, 320, 192, 64, 0}));
}

// Calls that read values written not long ago and write halves of any slots; joins have two writers.
std::string makeProgram(unsigned seed, int64_t slots, int64_t calls) {
  std::mt19937 random(seed);
  auto draw = [&](int64_t limit) { return static_cast<int64_t>(random() % limit); };
  std::string text = "sched.arena device\n";
  llvm::raw_string_ostream os(text);
  for (int64_t slot = 0; slot < slots; ++slot) {
    os << llvm::formatv("%s{0} = sched.slot in device tag #t : memref<32xf32>\n", slot);
    for (int64_t half = 0; half < 2; ++half)
      os << llvm::formatv("%s{0}_{1} = sched.view %s{0}[{2}] : memref<32xf32> to memref<16xf32>\n", slot, half,
                          64 * half);
  }
  struct Written {
    std::string name;
    int64_t slot;
    bool isJoin;
  };
  std::vector<Written> values;
  std::vector<std::array<std::string, 2>> halves(slots);
  for (int64_t call = 0; call < calls; ++call) {
    int64_t slot = draw(slots), half = draw(2);
    os << llvm::formatv("%e{0}, %v{0} = sched.launch \"f\"([]) on {1} ", call, draw(2) ? "compute" : "comm");
    if (!values.empty() && draw(3) > 0) {
      const Written &read = values[values.size() - 1 - draw(std::min<int64_t>(values.size(), 9))];
      if (!read.isJoin || read.slot != slot) // C3
        os << llvm::formatv("reads({0} : memref<{1}xf32>) ", read.name, read.isJoin ? 32 : 16);
    }
    os << llvm::formatv("writes(%s{0}_{1} : memref<16xf32>) tag #t\n", slot, half);
    halves[slot][half] = llvm::formatv("%v{0}", call);
    values.push_back({halves[slot][half], slot, false});
    if (!halves[slot][1 - half].empty() && draw(4) == 0) {
      os << llvm::formatv("%j{0} = sched.join %s{1} from({2}, {3} : memref<16xf32>, memref<16xf32>) : memref<32xf32>\n",
                          call, slot, halves[slot][0], halves[slot][1]);
      values.push_back({llvm::formatv("%j{0}", call), slot, true});
    }
  }
  os << "sched.return";
  return text;
}

TEST_F(OccupancyTest, AgreesWithTheDefinition) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    Occupancy occupancy = measure(makeProgram(seed, 4, 24));
    int64_t count = timeline.nodes.size();
    for (int64_t node = 0; node < count; ++node) {
      int64_t expected = 0;
      for (const Occupant &occupant : occupancy.occupants) {
        auto isOurs = [&](const ByteRange &range) { return range.root == occupant.root; };
        bool isLive =
            llvm::any_of(timeline.nodes[node].reads, isOurs) || llvm::any_of(timeline.nodes[node].writes, isOurs);
        // Or something written by now is read later.
        for (int64_t reader = node; reader < count; ++reader)
          for (const ReadRange &read : timeline.nodes[reader].reads)
            for (const Piece &piece : read.pieces)
              isLive |= isOurs(read) && piece.writer >= 0 && piece.writer <= node;
        expected += isLive ? occupant.bytes : 0;
        EXPECT_EQ(occupant.isLiveAt(node), isLive) << "seed " << seed << ", node " << node;
      }
      EXPECT_EQ(occupancy.get(Space::Device).liveBytes[node], expected) << "seed " << seed << ", node " << node;
    }
  }
}

TEST_F(OccupancyTest, IsNearlyLinear) {
  auto getSeconds = [&](int64_t calls) {
    program = parse(makeProgram(1, calls / 4, calls));
    timeline = *Timeline::get(program);
    auto start = std::chrono::steady_clock::now();
    Occupancy occupancy(program, timeline);
    EXPECT_GT(occupancy.get(Space::Device).peakBytes, 0);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  EXPECT_LT(getSeconds(40000), 2.0);
}
} // namespace

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The straight line of calls that a program stands for.
//===----------------------------------------------------------------------===//

#include "plateau/Analysis/Timeline.h"
#include "SchedTest.h"

using namespace mlir;
using namespace mlir::plateau::sched;

namespace {
using Numbers = std::vector<int64_t>;
using Triples = std::vector<std::array<int64_t, 3>>;

class TimelineTest : public SchedTest {
protected:
  Timeline expand(llvm::StringRef body, bool prefix = false) {
    Timeline::Options options;
    options.prefix = prefix;
    FailureOr<Timeline> timeline = Timeline::get(parse(body), options);
    EXPECT_TRUE(succeeded(timeline));
    return succeeded(timeline) ? std::move(*timeline) : Timeline();
  }
  static Numbers waits(const Node &node) { return Numbers(node.waits.begin(), node.waits.end()); }
  static Numbers iteration(const Node &node) { return Numbers(node.iteration.begin(), node.iteration.end()); }
  static Triples pieces(const Node &node, size_t read = 0) {
    Triples result;
    for (const Piece &piece : node.reads[read].pieces)
      result.push_back({piece.begin, piece.end, piece.writer});
    return result;
  }
};

TEST_F(TimelineTest, ReadsNameTheirWriters) {
  Timeline line = expand(R"(
    %b = sched.buffer 0 in device tag #t : memref<8xf32>
    %s = sched.slot in device tag #t : memref<8xf32>
    %e0, %v = sched.copy on h2d reads(%b : memref<8xf32>) writes(%s : memref<8xf32>) tag #t
    %part = sched.view %v[8] : memref<8xf32> to memref<2xf32>
    %e1 = sched.launch "f"([]) on compute waits(%e0, %e0) reads(%part : memref<2xf32>) tag #t
    sched.return %v : memref<8xf32>)");
  ASSERT_EQ(line.nodes.size(), 3u);
  EXPECT_EQ(pieces(line.nodes[0]), (Triples{{0, 32, Piece::initial}}));
  EXPECT_EQ(line.nodes[0].writes[0].end, 32);
  EXPECT_EQ(waits(line.nodes[1]), Numbers{0});
  EXPECT_EQ(pieces(line.nodes[1]), (Triples{{8, 16, 0}}));
  EXPECT_EQ(line.nodes[1].reads[0].begin, 8);
  EXPECT_FALSE(line.nodes[2].lane);
  EXPECT_EQ(pieces(line.nodes[2]), (Triples{{0, 32, 0}}));
}

TEST_F(TimelineTest, CarriesValuesAndEventsRoundARing) {
  // Places of a ring of 2 are 64 bytes apart; iteration i writes place (i + 1) mod 2 and reads what i - 1 wrote.
  Timeline line = expand(R"(
    %ring = sched.slot in device ring 2 tag #t : memref<2xf32>
    %first = sched.view %ring[0] ring(1) : memref<2xf32> to memref<2xf32>
    %none = sched.no_event
    %e0, %v0 = sched.launch "f"([]) on compute writes(%first : memref<2xf32>) tag #t
    %last, %done = sched.loop %i = 1 to 4 iter(%v = %v0, %e = %none) : memref<2xf32>, !sched.event {
      %place = sched.view %ring[0] index(%i) ring(1) : memref<2xf32> to memref<2xf32>
      %e1, %next = sched.launch "f"([]) on comm waits(%e) reads(%v : memref<2xf32>) writes(%place : memref<2xf32>) tag #t
      sched.yield %next, %e1 : memref<2xf32>, !sched.event
    }
    sched.fence %done
    sched.return %last : memref<2xf32>)");
  ASSERT_EQ(line.nodes.size(), 6u);
  EXPECT_EQ(line.nodes[0].writes[0].begin, 64);
  EXPECT_EQ(pieces(line.nodes[1]), (Triples{{64, 72, 0}}));
  EXPECT_EQ(line.nodes[1].writes[0].begin, 0);
  EXPECT_EQ(waits(line.nodes[1]), Numbers{});
  EXPECT_EQ(iteration(line.nodes[1]), Numbers{1});
  EXPECT_EQ(pieces(line.nodes[2]), (Triples{{0, 8, 1}}));
  EXPECT_EQ(line.nodes[2].writes[0].begin, 64);
  EXPECT_EQ(waits(line.nodes[2]), Numbers{1});
  EXPECT_EQ(pieces(line.nodes[3]), (Triples{{64, 72, 2}}));
  EXPECT_EQ(iteration(line.nodes[3]), Numbers{3});
  EXPECT_EQ(waits(line.nodes[4]), Numbers{3});
  EXPECT_EQ(pieces(line.nodes[5]), (Triples{{0, 8, 3}}));
}

TEST_F(TimelineTest, NestsLoops) {
  // Row i of a table of 3 rows of 16 bytes; the inner loop carries one value through all iterations of both.
  Timeline line = expand(R"(
    %t = sched.table dense<0> : tensor<3x2xi64> as memref<3x2xi64>
    %acc = sched.slot in device tag #t : memref<2xf32>
    %e0, %v0 = sched.launch "f"([]) on compute writes(%acc : memref<2xf32>) tag #t
    %sum = sched.loop %i = 0 to 3 iter(%v = %v0) : memref<2xf32> {
      %row = sched.view %t[0] index(%i) stride(16) : memref<3x2xi64> to memref<1x2xi64>
      %inner = sched.loop %j = 4 to 6 iter(%w = %v) : memref<2xf32> {
        %e1, %next = sched.launch "g"([]) on compute reads(%w : memref<2xf32>) tables(%row : memref<1x2xi64>) writes(%acc : memref<2xf32>) tag #t
        sched.yield %next : memref<2xf32>
      }
      sched.yield %inner : memref<2xf32>
    }
    sched.return %sum : memref<2xf32>)");
  ASSERT_EQ(line.nodes.size(), 8u);
  for (int64_t node = 1; node <= 6; ++node) {
    EXPECT_EQ(iteration(line.nodes[node]), (Numbers{(node - 1) / 2, 4 + (node - 1) % 2}));
    EXPECT_EQ(pieces(line.nodes[node]), (Triples{{0, 8, node - 1}}));
    EXPECT_TRUE(line.nodes[node].reads[1].isTable);
    int64_t row = 16 * ((node - 1) / 2);
    EXPECT_EQ(pieces(line.nodes[node], 1), (Triples{{row, row + 16, Piece::initial}}));
  }
  EXPECT_EQ(pieces(line.nodes[7]), (Triples{{0, 8, 6}}));
}

TEST_F(TimelineTest, JoinsLeaveGapsAndPermutedArgumentsKeepTheirValues) {
  Timeline line = expand(R"(
    %s = sched.slot in device tag #t : memref<6xf32>
    %a = sched.view %s[16] : memref<6xf32> to memref<2xf32>
    %b = sched.view %s[0] : memref<6xf32> to memref<2xf32>
    %e0, %va = sched.launch "f"([]) on compute writes(%a : memref<2xf32>) tag #t
    %e1, %vb = sched.launch "f"([]) on compute writes(%b : memref<2xf32>) tag #t
    %both = sched.join %s from(%va, %vb : memref<2xf32>, memref<2xf32>) : memref<6xf32>
    %middle = sched.view %both[4] : memref<6xf32> to memref<4xf32>
    %e2 = sched.launch "f"([]) on compute reads(%both, %middle : memref<6xf32>, memref<4xf32>) tag #t
    %x, %y = sched.loop %i = 0 to 3 iter(%p = %e0, %q = %e1) : !sched.event, !sched.event {
      %e3 = sched.launch "f"([]) on comm waits(%p) tag #t
      sched.yield %q, %p : !sched.event, !sched.event
    }
    sched.fence %x
    %z = sched.loop %i = 0 to 0 iter(%p = %e2) : !sched.event {
      %e4 = sched.launch "f"([]) on comm tag #t
      sched.yield %e4 : !sched.event
    }
    sched.fence %z
    sched.return)");
  ASSERT_EQ(line.nodes.size(), 9u);
  EXPECT_EQ(pieces(line.nodes[2]), (Triples{{0, 8, 1}, {16, 24, 0}}));
  EXPECT_EQ(pieces(line.nodes[2], 1), (Triples{{4, 8, 1}, {16, 20, 0}}));
  EXPECT_EQ(waits(line.nodes[3]), Numbers{0});
  EXPECT_EQ(waits(line.nodes[4]), Numbers{1});
  EXPECT_EQ(waits(line.nodes[5]), Numbers{0});
  EXPECT_EQ(waits(line.nodes[6]), Numbers{1});
  EXPECT_EQ(waits(line.nodes[7]), Numbers{2});
}

TEST_F(TimelineTest, PrefixKeepsTheResidueOfTheRings) {
  // A ring of 3, two lanes, values one iteration old: 3 + 3 · 1 + 2 = 8 iterations or more, as 100 is 1 mod 3: 10.
  const char body[] = R"(
    %ring = sched.slot in device ring 3 tag #t : memref<2xf32>
    sched.loop %i = 0 to 100 {
      %place = sched.view %ring[0] index(%i) ring(0) : memref<2xf32> to memref<2xf32>
      %e0, %v = sched.launch "f"([]) on compute writes(%place : memref<2xf32>) tag #t
      %e1 = sched.launch "f"([]) on comm waits(%e0) reads(%v : memref<2xf32>) tag #t
    }
    sched.return)";
  EXPECT_EQ(expand(body).nodes.size(), 201u);
  EXPECT_EQ(expand(body, /*prefix=*/true).nodes.size(), 21u);
}

TEST_F(TimelineTest, PrefixSeesValuesThatAreHandedOn) {
  // Two values at one place that pass each other round, the one by a view, the other through a loop: after an odd
  // number of iterations %x is what %b was. No shorter run says so.
  const char body[] = R"(
    %s = sched.slot in device tag #t : memref<2xf32>
    %e0, %a = sched.launch "f"([]) on compute writes(%s : memref<2xf32>) tag #t
    %e1, %b = sched.launch "f"([]) on compute writes(%s : memref<2xf32>) tag #t
    %x, %y = sched.loop %i = 0 to 101 iter(%p = %a, %q = %b) : memref<2xf32>, memref<2xf32> {
      %e2 = sched.launch "f"([]) on compute tag #t
      %view = sched.view %q[0] : memref<2xf32> to memref<2xf32>
      %same = sched.loop %j = 0 to 3 iter(%r = %p) : memref<2xf32> {
        sched.yield %r : memref<2xf32>
      }
      sched.yield %view, %same : memref<2xf32>, memref<2xf32>
    }
    sched.return %x : memref<2xf32>)";
  Timeline line = expand(body, /*prefix=*/true);
  ASSERT_EQ(line.nodes.size(), 104u);
  EXPECT_EQ(pieces(line.nodes.back()), (Triples{{0, 8, 1}}));

  // A shift register of three events: 1 + 2 · 3 + 1 iterations on one lane, so that what it holds behind the loop is an
  // event of the loop, as after 101 iterations, and not the one that was carried in.
  line = expand(R"(
    %none = sched.no_event
    %e0 = sched.launch "f"([]) on comm tag #t
    %x, %y, %z = sched.loop %i = 0 to 101 iter(%p = %none, %q = %none, %r = %e0) : !sched.event, !sched.event, !sched.event {
      %e1 = sched.launch "f"([]) on compute waits(%p) tag #t
      sched.yield %q, %r, %e1 : !sched.event, !sched.event, !sched.event
    }
    sched.fence %x
    sched.return)",
                /*prefix=*/true);
  ASSERT_EQ(line.nodes.size(), 1u + 8 + 2);
  EXPECT_EQ(waits(line.nodes[3]), Numbers{0});
  EXPECT_EQ(waits(line.nodes[4]), Numbers{1});
  EXPECT_EQ(waits(line.nodes[9]), Numbers{6});
}

TEST_F(TimelineTest, StridesIntoWhatIsWrittenAreTakenWhole) {
  const char body[] = R"(
    %s = sched.slot in device tag #t : memref<100x2xf32>
    sched.loop %i = 0 to 100 {
      %row = sched.view %s[0] index(%i) stride(8) : memref<100x2xf32> to memref<2xf32>
      %e0, %v = sched.launch "f"([]) on compute writes(%row : memref<2xf32>) tag #t
    }
    sched.return)";
  EXPECT_EQ(expand(body, /*prefix=*/true).nodes.size(), 101u);
}

TEST_F(TimelineTest, RefusesWhatNeverEnds) {
  ProgramOp program = parse(R"(
    sched.loop %i = 0 to 1000000000000000000 {
      %e0 = sched.launch "f"([]) on compute tag #t
    }
    sched.return)");
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diag) { message = diag.str(); });
  Timeline::Options options;
  options.maxSteps = 1000;
  EXPECT_TRUE(failed(Timeline::get(program, options)));
  EXPECT_NE(message.find("comes after 1000 calls and iterations"), std::string::npos) << message;
  options.prefix = true;
  EXPECT_TRUE(succeeded(Timeline::get(program, options)));
}
} // namespace

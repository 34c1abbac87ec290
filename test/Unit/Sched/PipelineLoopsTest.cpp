//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The overlapped loop leaves the bytes that the loop leaves, and its rings are as small as they can be.
//===----------------------------------------------------------------------===//

#include "ByteInterpreter.h"
#include "RandomLoop.h"
#include "SchedTest.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "plateau/Dialect/Sched/Transforms/Passes.h"
#include "plateau/Dialect/Sched/Verify/Passes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::plateau::sched;

namespace {
struct PipelineLoopsTest : SchedTest {
  bool pipeline() {
    PassManager passes(&context);
    passes.nest<ProgramOp>().addPass(createSchedPipelineLoops());
    return succeeded(passes.run(*module));
  }

  ProgramOp getProgram() { return *module->getOps<ProgramOp>().begin(); }

  int64_t countSlotBytes() {
    int64_t bytes = 0;
    getProgram().walk([&](SlotOp slot) { bytes += slot.getBytes(); });
    return bytes;
  }

  std::string print() {
    std::string text;
    llvm::raw_string_ostream(text) << *module;
    return text;
  }

  /// Runs the program, pipelines it and runs it again.
  void compare(const std::string &body) {
    ProgramOp before = parse(body);
    ASSERT_TRUE(before);
    Outcome expected = interpret(before);
    ASSERT_EQ(expected.faults, std::vector<std::string>()) << body;
    ASSERT_TRUE(pipeline()) << body;
    Outcome actual = interpret(getProgram());
    EXPECT_EQ(actual.faults, std::vector<std::string>()) << body << print();
    EXPECT_EQ(actual.buffers, expected.buffers) << body << print();
    EXPECT_EQ(actual.returned, expected.returned) << body << print();
    EXPECT_EQ(actual.calls, expected.calls) << body << print();
    getProgram().walk([](Operation *op) {
      EXPECT_FALSE(op->hasAttr("stage"));
      EXPECT_FALSE(isa<LoopOp>(op) && cast<LoopOp>(op).getInFlight());
    });
  }
};

/// Rows come by h2d, compute adds them up and writes parts of an output.
std::string twoStages(int64_t inFlight, int64_t trips, int64_t from = 0) {
  std::string table;
  for (int64_t row = 0; row < 12; ++row)
    table += llvm::formatv("{0}[{1}, {2}]", row ? ", " : "", 64 - row * row / 3, 7 * row);
  return llvm::formatv(R"(
    %rows = sched.buffer 0 in host tag #t : memref<12x64xi8>
    %out = sched.buffer 1 writable in device tag #t : memref<12x32xi8>
    %table = sched.table dense<[{0}]> : tensor<12x2xi64> as memref<12x2xi64>
    %acc = sched.slot in device tag #t : memref<16xi8>
    %seen = sched.buffer 2 writable in device tag #t : memref<8xi8>
    %total = sched.buffer 3 writable in device tag #t : memref<16xi8>
    %e0, %zero = sched.launch "zero"([]) on compute writes(%acc : memref<16xi8>) tag #t
    %e1, %none = sched.launch "zero"([]) on h2d writes(%seen : memref<8xi8>) tag #t
    %sum:2 = sched.loop %i = {1} to {2} in_flight({3}) iter(%a = %zero, %s = %none) : memref<16xi8>, memref<8xi8> {{
      %in = sched.slot in device tag #t : memref<64xi8>
      %row = sched.view %rows[0] index(%i) stride(64) : memref<12x64xi8> to memref<64xi8>
      %e2, %x = sched.copy on h2d stage 0 reads(%row : memref<64xi8>) writes(%in : memref<64xi8>) tag #t
      %e3, %n = sched.launch "count"([]) on h2d stage 0 waits(%e1) reads(%s : memref<8xi8>) writes(%seen : memref<8xi8>) tag #t
      %e4, %next = sched.launch "add"([#sched.cell<0, 0, 0>, #sched.cell<0, 0, 1>]) on compute stage 1 waits(%e2)
        reads(%a, %x : memref<16xi8>, memref<64xi8>) tables(%table : memref<12x2xi64>) writes(%acc : memref<16xi8>) tag #t
      %half = sched.view %x[32] : memref<64xi8> to memref<32xi8>
      %part = sched.view %out[0] index(%i) stride(32) : memref<12x32xi8> to memref<32xi8>
      %e5, %y = sched.copy on compute stage 1 waits(%e4) reads(%half : memref<32xi8>) writes(%part : memref<32xi8>) tag #t
      sched.yield %next, %n : memref<16xi8>, memref<8xi8>
    }
    %e6, %all = sched.copy on compute reads(%sum#0 : memref<16xi8>) writes(%total : memref<16xi8>) tag #t
    sched.return %sum#1, %all : memref<8xi8>, memref<16xi8>)",
                       table, from, from + trips, inFlight);
}

/// Slots that live in stages 0 to 1, 1 to 2, 0 to 2, and 1 to 2: of 64, 128, 256 and 512 bytes.
std::string threeStages(int64_t inFlight, int64_t trips) {
  return llvm::formatv(R"(
    %rows = sched.buffer 0 in host tag #t : memref<8x64xi8>
    %out = sched.buffer 1 writable in device tag #t : memref<64x8xi8>
    %acc = sched.buffer 2 writable in device tag #t : memref<256xi8>
    %e0, %zero = sched.launch "zero"([]) on compute writes(%acc : memref<256xi8>) tag #t
    %sum = sched.loop %i = 0 to {0} in_flight({1}) iter(%s = %zero) : memref<256xi8> {{
      %a = sched.slot in device tag #t : memref<64xi8>
      %b = sched.slot in device tag #t : memref<128xi8>
      %c = sched.slot in device tag #t : memref<256xi8>
      %d = sched.slot in device tag #t : memref<512xi8>
      %row = sched.view %rows[448] index(%i) stride(-64) : memref<8x64xi8> to memref<64xi8>
      %e1, %a0 = sched.copy on h2d stage 0 reads(%row : memref<64xi8>) writes(%a : memref<64xi8>) tag #t
      %e2, %c0 = sched.launch "wide"([]) on h2d stage 0 waits(%e1) reads(%a0 : memref<64xi8>) writes(%c : memref<256xi8>) tag #t
      %e3, %d0 = sched.launch "work"([]) on comm stage 1 reads(%a0 : memref<64xi8>) writes(%d : memref<512xi8>) tag #t
      %low = sched.view %b[0] : memref<128xi8> to memref<64xi8>
      %high = sched.view %b[64] : memref<128xi8> to memref<64xi8>
      %e4, %b0 = sched.launch "low"([]) on comm stage 1 waits(%e2) reads(%d0 : memref<512xi8>) writes(%low : memref<64xi8>) tag #t
      %e5, %b1 = sched.launch "high"([]) on compute stage 2 reads(%d0 : memref<512xi8>) writes(%high : memref<64xi8>) tag #t
      %b2 = sched.join %b from(%b0, %b1 : memref<64xi8>, memref<64xi8>) : memref<128xi8>
      %e6, %next = sched.launch "add"([]) on compute stage 2 waits(%e4, %e5) reads(%s, %b2, %c0 : memref<256xi8>, memref<128xi8>, memref<256xi8>)
        writes(%acc : memref<256xi8>) tag #t
      %o = sched.view %out[8] index(%i) stride(16) : memref<64x8xi8> to memref<8xi8>
      %e7, %y = sched.launch "put"([]) on compute stage 2 reads(%b2 : memref<128xi8>) writes(%o : memref<8xi8>) tag #t
      sched.yield %next : memref<256xi8>
    }
    sched.return %sum : memref<256xi8>)",
                       trips, inFlight);
}

constexpr int64_t tripCounts[] = {0, 1, 2, 3, 5, 8};
} // namespace

TEST_F(PipelineLoopsTest, KeepsTheBytesOfTwoStages) {
  for (int64_t inFlight = 1; inFlight <= 4; ++inFlight)
    for (int64_t trips : tripCounts)
      for (int64_t from : {0, 1, 4})
        compare(twoStages(inFlight, trips, from));
}

TEST_F(PipelineLoopsTest, KeepsTheBytesOfThreeStages) {
  for (int64_t inFlight = 1; inFlight <= 4; ++inFlight)
    for (int64_t trips : tripCounts)
      compare(threeStages(inFlight, trips));
}

// Σ bytes · (delay(last) − delay(first) + 1), with delays 0 0 0, 0 1 1, 0 1 2, 0 2 3.
TEST_F(PipelineLoopsTest, AddsTheBytesOfTheFormula) {
  const int64_t delays[4][3] = {{0, 0, 0}, {0, 1, 1}, {0, 1, 2}, {0, 2, 3}};
  for (int64_t inFlight = 1; inFlight <= 4; ++inFlight) {
    ASSERT_TRUE(parse(threeStages(inFlight, 8)));
    EXPECT_EQ(countSlotBytes(), 64 + 128 + 256 + 512);
    ASSERT_TRUE(pipeline());
    const int64_t *delay = delays[inFlight - 1];
    EXPECT_EQ(countSlotBytes(), 64 * (delay[1] - delay[0] + 1) + 128 * (delay[2] - delay[1] + 1) +
                                    256 * (delay[2] - delay[0] + 1) + 512 * (delay[2] - delay[1] + 1));
  }
  // Fewer iterations than places: one for each iteration.
  ASSERT_TRUE(parse(threeStages(4, 2)));
  ASSERT_TRUE(pipeline());
  EXPECT_EQ(countSlotBytes(), 64 * 2 + 128 * 2 + 256 * 2 + 512 * 2);
}

TEST_F(PipelineLoopsTest, KeepsTheBytesOfRandomLoops) {
  int64_t loops = 0;
  for (uint64_t seed = 0; seed < 1500 && !HasFailure(); ++seed) {
    RandomLoopOptions options;
    options.inFlight = 1 + static_cast<int64_t>(seed % 4);
    options.stages = 1 + static_cast<int64_t>(seed / 4 % 4);
    options.trips = tripCounts[seed / 16 % 6];
    options.from = static_cast<int64_t>(seed / 96 % 3);
    compare(drawLoop(seed, options));
    loops += !getProgram().getOps<LoopOp>().empty();
  }
  EXPECT_GT(loops, 500);
}

// What is not refused is right.
TEST_F(PipelineLoopsTest, RefusesWhatWouldChangeOrder) {
  int64_t refused = 0, taken = 0;
  for (uint64_t seed = 0; seed < 1500 && !HasFailure(); ++seed) {
    RandomLoopOptions options;
    options.inFlight = 2 + static_cast<int64_t>(seed % 3);
    options.stages = 2 + static_cast<int64_t>(seed / 3 % 3);
    options.trips = tripCounts[seed / 9 % 6];
    options.from = static_cast<int64_t>(seed / 54 % 3);
    options.hasConflicts = true;
    std::string body = drawLoop(seed, options);
    ASSERT_TRUE(parse(body));
    ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
    if (!pipeline()) {
      ++refused;
      continue;
    }
    taken += options.trips > 1;
    compare(body);
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(taken, 100);
}

// With waits and offsets behind it, the checkers find nothing. VA3 is about outputs that the random programs do not
// return.
TEST_F(PipelineLoopsTest, SatisfiesTheCheckers) {
  for (uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
    RandomLoopOptions options;
    options.inFlight = 2 + static_cast<int64_t>(seed % 3);
    options.stages = 2 + static_cast<int64_t>(seed / 3 % 3);
    options.trips = tripCounts[seed / 9 % 6];
    std::string body = drawLoop(seed, options);
    ASSERT_TRUE(parse(body));
    std::string errors;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error && !StringRef(diagnostic.str()).starts_with("VA3"))
        errors += diagnostic.str() + "\n";
      return success();
    });
    PassManager passes(&context);
    OpPassManager &program = passes.nest<ProgramOp>();
    program.addPass(createSchedPipelineLoops());
    program.addPass(createSchedPlaceWaits());
    program.addPass(createSchedElideWaits());
    program.addPass(createSchedPlanArenas());
    program.addPass(createSchedVerifyArenas());
    program.addPass(createSchedVerifyHazards());
    program.addPass(createSchedVerifyValues());
    (void)passes.run(*module);
    EXPECT_EQ(errors, "") << body << print();
  }
}

// One place less in any ring: a value is overwritten before it is read.
TEST_F(PipelineLoopsTest, NeedsEveryPlaceOfEveryRing) {
  int64_t shrunk = 0;
  auto shrinkEach = [&](const std::string &body) {
    ASSERT_TRUE(parse(body));
    llvm::SmallPtrSet<Operation *, 4> given; // Rings of the program's own are no doing of the pass.
    for (SlotOp slot : getProgram().getOps<SlotOp>())
      if (slot.getRing() > 1)
        given.insert(slot);
    ASSERT_TRUE(pipeline()) << body;
    getProgram().walk([&](SlotOp slot) {
      int64_t ring = slot.getRing();
      if (ring == 1 || given.contains(slot))
        return;
      slot.setRing(ring - 1);
      EXPECT_NE(interpret(getProgram()).faults, std::vector<std::string>()) << body << print();
      slot.setRing(ring);
      ++shrunk;
    });
    EXPECT_EQ(interpret(getProgram()).faults, std::vector<std::string>()) << body;
  };
  for (int64_t inFlight = 2; inFlight <= 4; ++inFlight)
    for (int64_t trips : tripCounts) {
      shrinkEach(twoStages(inFlight, trips));
      shrinkEach(threeStages(inFlight, trips));
    }
  for (uint64_t seed = 0; seed < 400 && !HasFailure(); ++seed) {
    RandomLoopOptions options;
    options.inFlight = 2 + static_cast<int64_t>(seed % 3);
    options.stages = 2 + static_cast<int64_t>(seed / 3 % 3);
    options.trips = tripCounts[1 + seed / 9 % 5];
    options.hasParts = false;
    shrinkEach(drawLoop(seed, options));
  }
  EXPECT_GT(shrunk, 500);
}

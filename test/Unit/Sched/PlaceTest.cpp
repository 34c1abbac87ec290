//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// VA4: the addresses that the lowering computes are those that were checked. The dialect's verifiers leave no program
// in which they are not, so the test breaks one behind their backs.
//===----------------------------------------------------------------------===//

#include "SchedTest.h"
#include "plateau/Dialect/Sched/Verify/Checkers.h"

using namespace mlir;
using namespace mlir::plateau::sched;

namespace {
class PlaceTest : public SchedTest {};

TEST_F(PlaceTest, LoweringAndTimelineAgree) {
  ProgramOp program = parse(R"(
    %ring = sched.slot in device ring 2 tag #t : memref<2xf32>
    %first = sched.view %ring[0] ring(1) : memref<2xf32> to memref<2xf32>
    %other = sched.view %ring[0] ring(0) : memref<2xf32> to memref<2xf32>
    %e0, %v0 = sched.launch "f"([]) on compute writes(%first : memref<2xf32>) tag #t
    %e1, %v1 = sched.launch "f"([]) on compute writes(%other : memref<2xf32>) tag #t
    %last = sched.loop %i = 1 to 4 iter(%v = %v0) : memref<2xf32> {
      %place = sched.view %ring[0] index(%i) ring(1) : memref<2xf32> to memref<2xf32>
      %e2, %next = sched.launch "f"([]) on compute reads(%v : memref<2xf32>) writes(%place : memref<2xf32>) tag #t
      sched.yield %next : memref<2xf32>
    }
    sched.return %last : memref<2xf32>)");
  ASSERT_TRUE(program);
  EXPECT_TRUE(succeeded(verifyValues(program, *Timeline::get(program))));

  LoopOp loop = *program.getOps<LoopOp>().begin();
  auto launches = llvm::to_vector(program.getOps<LaunchOp>());
  loop.getInitsMutable().assign(launches[1].getValues()[0]);
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diag) { message += diag.str() + "\n"; });
  EXPECT_TRUE(failed(verifyValues(program, *Timeline::get(program))));
  EXPECT_EQ(message,
            "VA4: memory operand #0 of sched.launch \"f\" on compute in iteration 1 lies at bytes 0 ... 8 of the "
            "slot of op, and Place::get finds it elsewhere\n");
}
} // namespace

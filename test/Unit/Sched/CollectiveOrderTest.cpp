//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The order that ranks agree on, and the digest by which they see that they do.
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/Sched/IR/CollectiveOrder.h"
#include "SchedTest.h"

using namespace mlir;
using namespace mlir::plateau::sched;

namespace {
class CollectiveOrderTest : public SchedTest {
protected:
  uint64_t digest(llvm::StringRef first, llvm::StringRef second, llvm::StringRef trips = "4") {
    return getCollectiveDigest(parse(("sched.loop %i = 0 to " + trips + " {\n%e0 = " + first +
                                      " tag #t\n}\n%e1 = " + second + " tag #t\n sched.return")
                                         .str()));
  }
};

TEST_F(CollectiveOrderTest, NumbersFollowTheText) {
  ProgramOp program = parse(R"(
    %e0 = sched.collective "a"([]) over @world axes [0] number 0 on comm tag #t
    sched.loop %i = 0 to 4 {
      %e1 = sched.collective "b"([]) over @world axes [0] number 0 on comm tag #t
    }
    %e2 = sched.collective "c"([]) over @world axes [0] number 7 on comm tag #t)"
                            "\nsched.return");
  numberCollectives(program);
  std::string order;
  program.walk([&](CollectiveOp op) { order += op.getCallee().str() + std::to_string(op.getOrdinal()); });
  EXPECT_EQ(order, "a0b1c2");
}

TEST_F(CollectiveOrderTest, DigestSeesWhatMustMatch) {
  const char a[] = "sched.collective \"a\"([1 : i64]) over @world axes [0] number 0 on comm";
  const char b[] = "sched.collective \"b\"([]) over @world axes [0] number 0 on comm";
  uint64_t same = digest(a, b);
  EXPECT_EQ(digest(a, b), same);
  EXPECT_NE(digest(b, a), same);
  EXPECT_NE(digest(a, b, "5"), same);
  EXPECT_NE(digest("sched.collective \"a\"([2 : i64]) over @world axes [0] number 0 on comm", b), same);
  EXPECT_NE(digest("sched.collective \"a\"([1 : i64]) over @world axes [] number 0 on comm", b), same);
  EXPECT_NE(digest("sched.collective \"a\"([1 : i64]) over @world axes [0] number 0 on compute", b), same);
  EXPECT_NE(digest(a, "sched.launch \"b\"([]) on comm"), same);
}
} // namespace

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/Trace.h"
#include "PlannedStep.h"
#include "llvm/Support/JSON.h"

using namespace mlir::plateau;
using namespace mlir::plateau::run;

namespace {
class TraceTest : public PlannedStepTest {
protected:
  /// The events of the file so far; `end` is what it lacks to be JSON.
  std::vector<llvm::json::Object> readEvents(llvm::StringRef end = "") {
    auto json = llvm::json::parse(readFile("t") + end.str());
    EXPECT_TRUE(static_cast<bool>(json)) << llvm::toString(json.takeError());
    std::vector<llvm::json::Object> events;
    if (json)
      for (const llvm::json::Value &event : *json->getAsArray())
        events.push_back(*event.getAsObject());
    return events;
  }
  std::vector<llvm::json::Object> select(llvm::StringRef kind, llvm::StringRef end = "") {
    auto events = readEvents(end);
    llvm::erase_if(events, [&](const llvm::json::Object &event) { return event.getString("ph") != kind; });
    return events;
  }
  std::string why;
};
} // namespace

TEST_F(TraceTest, HasASpanForEachCallAndStep) {
  TraceWriter writer(getPath("t"), /*calls=*/nullptr);
  ASSERT_EQ(getText(writer.addStep(7, {getSpans(), getSpans()}, why)), "");
  ASSERT_EQ(getText(writer.finish()), "");
  auto names = select("M");
  ASSERT_EQ(names.size(), 2u * (1 + PLR_LANES + 1));
  EXPECT_EQ(names[0].getObject("args")->getString("name"), "rank 0");
  auto spans = select("X");
  ASSERT_EQ(spans.size(), 2u * (1 + 6));
  EXPECT_EQ(spans[0].getString("name"), "step 7");
  EXPECT_EQ(spans[0].getNumber("ts"), 1.0);
  EXPECT_EQ(spans[0].getNumber("dur"), 9.0);
  EXPECT_EQ(spans[3].getString("name"), "linalg.mul \"d\"");
  EXPECT_EQ(spans[3].getString("cat"), "plr_double");
  EXPECT_EQ(spans[3].getNumber("ts"), 3.0);
  EXPECT_EQ(spans[3].getNumber("dur"), 4.0);
  EXPECT_EQ(spans[3].getObject("args")->getInteger("layer"), 3);
  EXPECT_EQ(spans[3].getObject("args")->getString("component"), "dense");
  EXPECT_EQ(spans[3].getObject("args")->getString("phase"), "backward");
  EXPECT_EQ(spans[7].getInteger("pid"), 1);
  EXPECT_TRUE(select("C").empty());
  EXPECT_TRUE(select("s").empty());
}

TEST_F(TraceTest, IsThereAfterEachStep) {
  TraceWriter writer(getPath("t"), /*calls=*/nullptr);
  ASSERT_EQ(getText(writer.addStep(1, {getSpans()}, why)), "");
  EXPECT_EQ(select("X", "]").size(), 7u);
  ASSERT_EQ(getText(writer.addStep(2, {getSpans()}, why)), "");
  EXPECT_EQ(select("X", "]").size(), 14u);
}

// Device: 64 bytes of the result throughout, the ring (128) from 1 to 9, once, however many of its lives overlap; what
// is made (64) from 3 to 10, and the zeros, which nobody reads, from 1 to 2.
TEST_F(TraceTest, CountsBytesOverTime) {
  TraceWriter writer(getPath("t"), &*calls);
  ASSERT_EQ(getText(writer.addStep(1, {getSpans()}, why)), "");
  EXPECT_EQ(why, "");
  ASSERT_EQ(getText(writer.finish()), "");
  std::vector<std::pair<double, int64_t>> device, dense, host;
  for (const llvm::json::Object &event : select("C")) {
    std::pair point(*event.getNumber("ts"), *event.getObject("args")->getInteger("bytes"));
    if (event.getString("name") == "device memory")
      device.push_back(point);
    if (event.getString("name") == "device memory: dense")
      dense.push_back(point);
    if (event.getString("name") == "host memory")
      host.push_back(point);
  }
  using Points = std::vector<std::pair<double, int64_t>>;
  EXPECT_EQ(host, (Points{{1, 128}}));
  EXPECT_EQ(dense, (Points{{1, 128}, {2, 64}, {3, 128}, {10, 64}}));
  EXPECT_EQ(device, (Points{{1, 256}, {2, 192}, {3, 256}, {9, 128}, {10, 64}}));
}

TEST_F(TraceTest, DrawsArrowsInsideTheSpans) {
  TraceWriter writer(getPath("t"), &*calls);
  ASSERT_EQ(getText(writer.addStep(1, {getSpans()}, why)), "");
  ASSERT_EQ(getText(writer.addStep(2, {getSpans()}, why)), "");
  ASSERT_EQ(getText(writer.finish()), "");
  auto starts = select("s"), ends = select("f");
  ASSERT_EQ(starts.size(), 4u);
  ASSERT_EQ(ends.size(), 4u);
  for (int64_t arrow = 0; arrow < 4; ++arrow) {
    EXPECT_EQ(starts[arrow].getInteger("id"), arrow);
    EXPECT_EQ(ends[arrow].getInteger("id"), arrow);
    EXPECT_EQ(starts[arrow].getInteger("tid"), PLR_H2D);
    EXPECT_EQ(ends[arrow].getInteger("tid"), PLR_COMPUTE);
  }
  EXPECT_LT(*starts[0].getNumber("ts"), 3.0);
  EXPECT_GT(*starts[0].getNumber("ts"), 2.9);
  EXPECT_EQ(ends[0].getNumber("ts"), 3.0);
}

TEST_F(TraceTest, TellsWhySpansAreAlone) {
  TraceWriter writer(getPath("t"), &*calls);
  auto spans = getSpans();
  spans.pop_back();
  ASSERT_EQ(getText(writer.addStep(1, {spans}, why)), "");
  EXPECT_EQ(why, "the step left 5 spans, but its program has 6 calls");
  ASSERT_EQ(getText(writer.finish()), "");
  EXPECT_EQ(select("X").size(), 6u);
  EXPECT_TRUE(select("C").empty());
}

TEST_F(TraceTest, RefusesPlacesThatCannotBeWritten) {
  TraceWriter writer(getPath("none/t"), /*calls=*/nullptr);
  EXPECT_NE(getText(writer.addStep(1, {getSpans()}, why)), "");
}

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The data of the page. What the page draws of them is tested in a browser (test/Python/test_report.py).
//===----------------------------------------------------------------------===//

#include "plateau/Run/Report.h"
#include "PlannedStep.h"
#include "llvm/Support/JSON.h"

using namespace mlir::plateau;
using namespace mlir::plateau::run;

namespace {
class ReportTest : public PlannedStepTest {
protected:
  llvm::json::Object write(llvm::ArrayRef<plr_span> spans) {
    ReportFacts facts;
    facts.input = "step.mlir";
    facts.limits[PLR_DEVICE] = 1000;
    facts.memory.spaces = getPlannedMemory(program);
    facts.memory.spaces[PLR_DEVICE].observed = 200;
    if (!spans.empty())
      facts.step = 5;
    EXPECT_EQ(getText(writeReport(getPath("r.html"), *calls, spans, facts)), "");
    page = readFile("r.html");
    llvm::StringRef text = page;
    llvm::StringRef open = "<script id=\"data\" type=\"application/json\">";
    text = text.drop_front(text.find(open) + open.size());
    auto data = llvm::json::parse(text.take_front(text.find("</script>")));
    EXPECT_TRUE(static_cast<bool>(data)) << llvm::toString(data.takeError());
    return data ? *data->getAsObject() : llvm::json::Object();
  }
  static std::vector<int64_t> numbers(const llvm::json::Object &object, llvm::StringRef key) {
    std::vector<int64_t> result;
    for (const llvm::json::Value &value : *object.getArray(key))
      result.push_back(*value.getAsInteger());
    return result;
  }

  std::string page;
};
using Numbers = std::vector<int64_t>;
} // namespace

TEST_F(ReportTest, HasWhatTheProgramPlansAndWhatRan) {
  llvm::json::Object data = write(getSpans());
  EXPECT_EQ(data.getInteger("step"), 5);
  const llvm::json::Object &nodes = *data.getObject("nodes");
  EXPECT_EQ(numbers(nodes, "lane"), (Numbers{0, 2, 0, 2, 0, -1, 0, -1}));
  EXPECT_EQ(numbers(nodes, "start"), (Numbers{0, 0, 2000, 2000, 6000, -1, 8500, -1}));
  EXPECT_EQ(numbers(nodes, "end"), (Numbers{1000, 2000, 6000, 4000, 8000, -1, 9000, -1}));
  EXPECT_EQ(numbers(nodes, "bytes"), (Numbers{64, 128, 128, 128, 128, 0, 128, 64}));

  const llvm::json::Object &device = *(*data.getArray("spaces"))[0].getAsObject();
  EXPECT_EQ(device.getInteger("planned"), 256);
  EXPECT_EQ(device.getInteger("lower_bound"), 256);
  EXPECT_EQ(device.getInteger("observed"), 200);
  EXPECT_EQ(device.getInteger("limit"), 1000);
  EXPECT_EQ(device.getInteger("live"), 256);
  EXPECT_EQ(device.getInteger("peak_node"), 2);
  const llvm::json::Object &host = *(*data.getArray("spaces"))[1].getAsObject();
  EXPECT_EQ(host.getInteger("planned"), 128);
  EXPECT_EQ(*host.get("limit"), llvm::json::Value(nullptr));

  const llvm::json::Array &occupants = *data.getArray("occupants");
  ASSERT_EQ(occupants.size(), 4u);
  const llvm::json::Object &ring = *occupants[2].getAsObject();
  EXPECT_EQ(ring.getInteger("bytes"), 128);
  EXPECT_EQ(ring.getInteger("offset"), 0);
  EXPECT_EQ(numbers(ring, "lives"), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(numbers(ring, "times"), (Numbers{0, 8000}));
  EXPECT_EQ(occupants[0].getAsObject()->getBoolean("buffer"), true);
}

TEST_F(ReportTest, IsThereBeforeTheFirstStep) {
  llvm::json::Object data = write({});
  EXPECT_EQ(*data.get("step"), llvm::json::Value(nullptr));
  EXPECT_FALSE(data.getObject("nodes")->get("start"));
  const llvm::json::Object &device = *(*data.getArray("spaces"))[0].getAsObject();
  EXPECT_EQ(*device.get("observed"), llvm::json::Value(nullptr));
}

// One file that asks for nothing, in which no name can end the data.
TEST_F(ReportTest, StandsAlone) {
  write(getSpans());
  EXPECT_EQ(page.find("http"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_EQ(page.find("<in>"), std::string::npos);
  EXPECT_NE(page.find("\\u003cin>"), std::string::npos);
  EXPECT_EQ(page.find("@DATA@"), std::string::npos);
}

TEST_F(ReportTest, RefusesSpansOfAnotherProgramAndPlacesThatCannotBeWritten) {
  auto spans = getSpans();
  EXPECT_NE(getText(writeReport(getPath("none/r.html"), *calls, spans, {})), "");
  spans.pop_back();
  EXPECT_EQ(getText(writeReport(getPath("r.html"), *calls, spans, {})),
            getPath("r.html") + ": the step left 5 spans, but its program has 6 calls");
}

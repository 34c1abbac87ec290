//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/Trace.h"
#include "plateau/Run/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;
using llvm::json::OStream;

/// The thread of the steps, behind those of the lanes.
static constexpr int64_t stepsThread = PLR_LANES;

namespace {
/// Events as text, one in a line, each behind a comma: what has been written is always an array but for its end.
class Events {
public:
  void add(llvm::StringRef kind, llvm::StringRef name, int64_t rank, llvm::function_ref<void(OStream &)> rest) {
    os << (isFirst ? "" : ",\n");
    isFirst = false;
    OStream json(os);
    json.object([&] {
      json.attribute("ph", kind);
      json.attribute("name", llvm::json::fixUTF8(name));
      json.attribute("pid", rank);
      rest(json);
    });
  }
  void addName(llvm::StringRef kind, int64_t rank, std::optional<int64_t> thread, llvm::StringRef name) {
    add("M", kind, rank, [&](OStream &json) {
      if (thread)
        json.attribute("tid", *thread);
      json.attributeObject("args", [&] { json.attribute("name", name); });
    });
  }
  void addSpan(int64_t rank, const plr_span &span);
  void addStep(int64_t rank, int64_t step, llvm::ArrayRef<plr_span> spans);
  void addBytes(int64_t rank, const StepCalls &calls, llvm::ArrayRef<plr_span> spans);
  void addArrow(int64_t rank, int64_t number, const plr_span &from, const plr_span &to);

  explicit Events(bool isFirst) : isFirst(isFirst) {}
  std::string take() { return std::move(text); }

private:
  std::string text;
  llvm::raw_string_ostream os{text};
  bool isFirst;
};
} // namespace

static double toMicroseconds(int64_t nanoseconds) { return nanoseconds / 1e3; }

void Events::addSpan(int64_t rank, const plr_span &span) {
  add("X", span.tag ? span.tag->op : span.call, rank, [&](OStream &json) {
    json.attribute("cat", span.call);
    json.attribute("tid", span.lane);
    json.attribute("ts", toMicroseconds(span.start_ns));
    json.attribute("dur", toMicroseconds(span.end_ns - span.start_ns));
    json.attributeObject("args", [&] {
      if (span.tag) {
        if (span.tag->layer >= 0)
          json.attribute("layer", span.tag->layer);
        json.attribute("component", stringifyComponent(static_cast<Component>(span.tag->component)));
        json.attribute("phase", stringifyPhase(static_cast<Phase>(span.tag->phase)));
      }
      if (span.flops > 0)
        json.attribute("flops", span.flops);
    });
  });
}

void Events::addStep(int64_t rank, int64_t step, llvm::ArrayRef<plr_span> spans) {
  if (spans.empty())
    return;
  int64_t start = spans.front().start_ns, end = start;
  for (const plr_span &span : spans) {
    start = std::min(start, span.start_ns);
    end = std::max(end, span.end_ns);
  }
  add("X", "step " + std::to_string(step), rank, [&](OStream &json) {
    json.attribute("cat", "step");
    json.attribute("tid", stepsThread);
    json.attribute("ts", toMicroseconds(start));
    json.attribute("dur", toMicroseconds(end - start));
  });
}

/// A counter for each space and component that slots of the program have, and one for each space as a whole.
void Events::addBytes(int64_t rank, const StepCalls &calls, llvm::ArrayRef<plr_span> spans) {
  constexpr int64_t all = sched::Occupancy::numComponents;
  struct Change {
    int64_t time, space, component, bytes;
  };
  std::vector<Change> changes;
  std::array<std::array<int64_t, all + 1>, sched::Occupancy::numSpaces> live = {};
  int64_t start = std::numeric_limits<int64_t>::max();
  for (const plr_span &span : spans)
    if (span.call)
      start = std::min(start, span.start_ns);
  for (const sched::Occupant &occupant : calls.getOccupancy().occupants) {
    auto space = static_cast<int64_t>(occupant.space), component = static_cast<int64_t>(occupant.tag.getComponent());
    if (occupant.isBuffer()) {
      changes.push_back({start, space, component, occupant.bytes});
      continue;
    }
    for (const StepCalls::Time &time : calls.getTimes(occupant, spans)) {
      changes.push_back({time.start_ns, space, component, occupant.bytes});
      changes.push_back({time.end_ns, space, component, -occupant.bytes});
    }
  }
  llvm::sort(changes, [](const Change &a, const Change &b) { return a.time < b.time; });
  for (size_t first = 0, next; first < changes.size(); first = next) {
    // Changes at one time are one event for each counter.
    std::array<std::array<bool, all + 1>, sched::Occupancy::numSpaces> changed = {};
    for (next = first; next < changes.size() && changes[next].time == changes[first].time; ++next)
      for (int64_t counter : {changes[next].component, all}) {
        live[changes[next].space][counter] += changes[next].bytes;
        changed[changes[next].space][counter] = true;
      }
    for (int64_t space = 0; space < sched::Occupancy::numSpaces; ++space)
      for (int64_t counter = 0; counter <= all; ++counter) {
        if (!changed[space][counter])
          continue;
        std::string name = stringifySpace(static_cast<sched::Space>(space)).str() + " memory";
        if (counter < all)
          name += ": " + stringifyComponent(static_cast<Component>(counter)).str();
        add("C", name, rank, [&](OStream &json) {
          json.attribute("ts", toMicroseconds(changes[first].time));
          json.attributeObject("args", [&] { json.attribute("bytes", live[space][counter]); });
        });
      }
  }
}

void Events::addArrow(int64_t rank, int64_t number, const plr_span &from, const plr_span &to) {
  // Each end belongs to the span that its time lies in, so it has to lie inside.
  auto addEnd = [&](llvm::StringRef kind, const plr_span &span, int64_t time) {
    add(kind, "reads", rank, [&](OStream &json) {
      json.attribute("cat", "data");
      json.attribute("id", number);
      json.attribute("tid", span.lane);
      json.attribute("ts", toMicroseconds(time));
      if (kind == "f")
        json.attribute("bp", "e");
    });
  };
  addEnd("s", from, std::max(from.start_ns, from.end_ns - 1));
  addEnd("f", to, to.start_ns);
}

TraceWriter::~TraceWriter() {
  if (os)
    llvm::consumeError(finish());
}

llvm::Error TraceWriter::write(llvm::StringRef events) {
  *os << events;
  os->flush();
  std::error_code code = os->error();
  os->clear_error();
  return code ? makeError("{0}: cannot be written: {1}", path, code.message()) : llvm::Error::success();
}

llvm::Error TraceWriter::open(size_t ranks) {
  if (os)
    return llvm::Error::success();
  std::error_code code;
  os = std::make_unique<llvm::raw_fd_ostream>(path, code, llvm::sys::fs::OF_Text);
  if (code) {
    os.reset();
    isFinished = true;
    return makeError("{0}: cannot be written: {1}", path, code.message());
  }
  Events events(/*isFirst=*/true);
  for (size_t rank = 0; rank < ranks; ++rank) {
    events.addName("process_name", rank, std::nullopt, "rank " + std::to_string(rank));
    for (int lane = 0; lane < PLR_LANES; ++lane)
      events.addName("thread_name", rank, lane, stringifyLane(static_cast<sched::Lane>(lane)));
    events.addName("thread_name", rank, stepsThread, "steps");
  }
  return write("[\n" + events.take());
}

llvm::Error TraceWriter::addStep(int64_t step, const RankSpans &spans, std::string &why) {
  if (auto error = open(spans.size()))
    return error;
  Events events(/*isFirst=*/false);
  for (auto [rank, list] : llvm::enumerate(spans)) {
    events.addStep(rank, step, list);
    for (const plr_span &span : list)
      events.addSpan(rank, span);
    if (!calls || list.empty())
      continue;
    llvm::Expected<std::vector<plr_span>> aligned = calls->align(list);
    if (!aligned) {
      why = llvm::toString(aligned.takeError());
      continue;
    }
    events.addBytes(rank, *calls, *aligned);
    for (const StepCalls::Flow &flow : calls->getFlows())
      if (const plr_span &from = (*aligned)[flow.from], &to = (*aligned)[flow.to]; from.call && to.call)
        events.addArrow(rank, arrows++, from, to);
  }
  return write(events.take());
}

llvm::Error TraceWriter::finish() {
  if (isFinished)
    return llvm::Error::success();
  isFinished = true;
  if (!os)
    if (auto error = open(0))
      return error;
  return write("\n]\n");
}

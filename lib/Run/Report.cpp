//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/Report.h"
#include "plateau/Dialect/MoE/IR/Scope.h"
#include "plateau/Run/Error.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;
using namespace mlir::plateau::sched;
using llvm::json::OStream;

/// report.html with its scripts, in two parts: the data belong between them.
static constexpr llvm::StringRef page[] = {
#include "ReportPage.inc"
};

namespace {
/// Writes the data of the page. Ops are named by the number of their tag, texts by their number.
class Data {
public:
  Data(llvm::raw_ostream &os, const StepCalls &calls, llvm::ArrayRef<plr_span> spans, const ReportFacts &facts)
      : json(os), calls(calls), spans(spans), facts(facts) {
    for (const plr_span &span : spans)
      if (span.call)
        start = std::min(start.value_or(span.start_ns), span.start_ns);
  }
  void write();

private:
  int64_t getText(llvm::StringRef text) {
    auto [it, isNew] = textNumbers.try_emplace(text, texts.size());
    if (isNew)
      texts.push_back(it->getKey());
    return it->second;
  }
  int64_t getTag(TagAttr tag) { return tags.insert({tag, tags.size()}).first->second; }
  /// Since the first call of the step.
  int64_t getTime(int64_t nanoseconds) const { return nanoseconds - *start; }
  void writeNumber(llvm::StringRef key, std::optional<int64_t> number) {
    number ? json.attribute(key, *number) : json.attribute(key, nullptr);
  }
  template <typename Enum>
  void writeNames(llvm::StringRef key, int64_t count, llvm::StringRef (*getName)(Enum)) {
    json.attributeArray(key, [&] {
      for (int64_t i = 0; i < count; ++i)
        json.value(getName(static_cast<Enum>(i)));
    });
  }
  void writeColumn(llvm::StringRef key, llvm::function_ref<int64_t(int64_t node, const Node &)> get) {
    json.attributeArray(key, [&] {
      for (auto [index, node] : llvm::enumerate(calls.getTimeline().nodes))
        json.value(get(index, node));
    });
  }
  void writeNodes();
  void writeSpace(Space space);
  void writeOccupant(const Occupant &occupant);

  OStream json;
  const StepCalls &calls;
  llvm::ArrayRef<plr_span> spans;
  const ReportFacts &facts;
  std::optional<int64_t> start;
  llvm::StringMap<int64_t> textNumbers;
  std::vector<llvm::StringRef> texts;
  llvm::MapVector<TagAttr, int64_t> tags;
};
} // namespace

/// File and line, or the name of the op: imported files have no lines.
static std::string getWhere(Location loc) {
  if (auto place = LocationAttr(loc).findInstanceOf<FileLineColLoc>())
    return llvm::formatv("{0}:{1}:{2}", place.getFilename().getValue(), place.getLine(), place.getColumn());
  return moe::getLocationName(loc).str();
}

void Data::writeNodes() {
  writeColumn("tag", [&](int64_t, const Node &node) {
    auto call = dyn_cast<LaneOpInterface>(node.op);
    return call ? getTag(call.getTag()) : -1;
  });
  writeColumn("call", [&](int64_t, const Node &node) {
    llvm::StringRef callee = getCallee(node.op);
    return getText(callee.empty() ? node.op->getName().getStringRef() : callee);
  });
  writeColumn("lane", [](int64_t, const Node &node) { return node.lane ? static_cast<int64_t>(*node.lane) : -1; });
  // What a call touches.
  writeColumn("bytes", [](int64_t, const Node &node) {
    int64_t bytes = 0;
    for (const ReadRange &read : node.reads)
      bytes += read.end - read.begin;
    for (const ByteRange &write : node.writes)
      bytes += write.end - write.begin;
    return bytes;
  });
  if (spans.empty())
    return;
  for (bool isEnd : {false, true})
    writeColumn(isEnd ? "end" : "start", [&](int64_t index, const Node &) {
      const plr_span *span = calls.getSpan(index, spans);
      return span ? getTime(isEnd ? span->end_ns : span->start_ns) : -1;
    });
}

void Data::writeSpace(Space space) {
  const Occupancy::SpaceUse &use = calls.getOccupancy().get(space);
  const SpaceMemory &memory = facts.memory.spaces[static_cast<int64_t>(space)];
  json.object([&] {
    json.attribute("name", stringifySpace(space));
    writeNumber("planned", memory.planned ? memory.planned : use.getPlannedBytes());
    writeNumber("lower_bound", memory.lowerBound);
    writeNumber("observed", spans.empty() ? std::nullopt : std::optional(memory.observed));
    writeNumber("limit", facts.limits[static_cast<int64_t>(space)]);
    writeNumber("arena", use.arenaBytes);
    json.attribute("buffers", use.bufferBytes);
    json.attribute("live", use.peakBytes);
    json.attribute("peak_node", use.peakNode);
    auto writeAll = [&](llvm::StringRef key, llvm::ArrayRef<int64_t> numbers) {
      json.attributeArray(key, [&] {
        for (int64_t number : numbers)
          json.value(number);
      });
    };
    writeAll("at_peak", use.atPeakBytes);
    writeAll("component_peaks", use.componentPeakBytes);
    writeAll("phase_peaks", use.phasePeakBytes);
  });
}

void Data::writeOccupant(const Occupant &occupant) {
  json.object([&] {
    json.attribute("space", static_cast<int64_t>(occupant.space));
    json.attribute("tag", getTag(occupant.tag));
    json.attribute("bytes", occupant.bytes);
    if (occupant.isBuffer())
      json.attribute("buffer", true);
    if (occupant.offset)
      json.attribute("offset", *occupant.offset);
    if (std::string where = getWhere(occupant.root.getLoc()); !where.empty() && !occupant.isBuffer())
      json.attribute("where", getText(where));
    json.attributeArray("lives", [&] { // First and last node of each.
      for (const Occupant::Life &life : occupant.lives) {
        json.value(life.first);
        json.value(life.last);
      }
    });
    if (spans.empty() || occupant.isBuffer())
      return;
    json.attributeArray("times", [&] { // Start and end of each, for the lives taken together.
      for (const StepCalls::Time &time : calls.getTimes(occupant, spans)) {
        json.value(getTime(time.start_ns));
        json.value(getTime(time.end_ns));
      }
    });
  });
}

void Data::write() {
  json.object([&] {
    json.attribute("input", llvm::json::fixUTF8(facts.input));
    json.attribute("ranks", facts.ranks);
    writeNumber("step", facts.step);
    writeNumber("host_fences", facts.memory.hostFences);
    writeNames("components", Occupancy::numComponents, stringifyComponent);
    writeNames("phases", Occupancy::numPhases, stringifyPhase);
    writeNames("lanes", getMaxEnumValForLane() + 1, stringifyLane);
    json.attributeObject("nodes", [&] { writeNodes(); });
    json.attributeArray("spaces", [&] {
      for (int64_t space = 0; space < Occupancy::numSpaces; ++space)
        writeSpace(static_cast<Space>(space));
    });
    json.attributeArray("occupants", [&] {
      for (const Occupant &occupant : calls.getOccupancy().occupants)
        writeOccupant(occupant);
    });
    json.attributeArray("tags", [&] {
      for (const auto &entry : tags)
        json.array([&, tag = entry.first] {
          json.value(llvm::json::fixUTF8(tag.getOp()));
          json.value(static_cast<int64_t>(tag.getComponent()));
          json.value(static_cast<int64_t>(tag.getPhase()));
          json.value(tag.getLayer().value_or(-1));
        });
    });
    json.attributeArray("texts", [&] {
      for (llvm::StringRef text : texts)
        json.value(llvm::json::fixUTF8(text));
    });
  });
}

llvm::Error run::writeReport(llvm::StringRef path, const StepCalls &calls, llvm::ArrayRef<plr_span> spans,
                             const ReportFacts &facts) {
  std::vector<plr_span> aligned;
  if (!spans.empty()) {
    llvm::Expected<std::vector<plr_span>> found = calls.align(spans);
    if (!found)
      return makeError("{0}: {1}", path, llvm::toString(found.takeError()));
    aligned = std::move(*found);
  }
  std::string data;
  llvm::raw_string_ostream dataStream(data);
  Data(dataStream, calls, aligned, facts).write();

  std::error_code code;
  llvm::raw_fd_ostream os(path, code, llvm::sys::fs::OF_Text);
  if (!code) {
    os << page[0];
    for (char letter : data) // A text must not end the script that the data stand in.
      letter == '<' ? os << "\\u003c" : os << letter;
    os << page[1];
    os.close();
    code = os.error();
    os.clear_error();
  }
  return code ? makeError("{0}: cannot be written: {1}", path, code.message()) : llvm::Error::success();
}

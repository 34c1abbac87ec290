//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RandomLoop.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <optional>
#include <random>
#include <vector>

using namespace mlir::plateau::sched;

namespace {
struct Draw {
  /// What lies at a place now.
  struct Current {
    std::string value, place;
    int64_t bytes;
    std::optional<int64_t> stage = std::nullopt; ///< The only one that may use it; none for slots of an iteration.
    int64_t carried = -1;                        ///< Index among the values that the loop carries.
  };
  struct Event {
    std::string value;
    int64_t stage; ///< The first that may wait for it.
  };

  std::mt19937_64 random;
  const RandomLoopOptions &options;
  std::string before, body, behind;
  std::vector<Current> values, rowwise;
  std::vector<Event> events;
  std::vector<std::string> arguments, inits, types, yields, kept;
  std::vector<int64_t> outs; ///< Bytes of an iteration's part of each output.
  int64_t names = 0, buffers = 0;

  Draw(uint64_t seed, const RandomLoopOptions &options) : random(seed), options(options) {}

  int64_t below(int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); }
  bool chance(int64_t percent) { return below(100) < percent; }
  int64_t size() { return 8 * (1 + below(8)); }
  std::string name(llvm::StringRef prefix) { return llvm::formatv("%{0}{1}", prefix, names++); }
  static std::string type(int64_t bytes) { return llvm::formatv("memref<{0}xi8>", bytes); }
  std::string lane() { return std::vector<std::string>{"compute", "comm", "h2d"}[below(3)]; }
  std::optional<int64_t> drawStage() {
    int64_t stage = below(options.stages);
    return options.hasConflicts ? std::nullopt : std::optional<int64_t>(stage);
  }
  int64_t rows() const { return options.from + options.trips + 3; }

  void carry(const std::string &argument, const std::string &init, const std::string &typeText, std::string yield) {
    arguments.push_back(argument);
    inits.push_back(init);
    types.push_back(typeText);
    yields.push_back(std::move(yield));
  }

  /// Memory outside the loop, and what it carries.
  void drawOutside() {
    before += llvm::formatv("%rows = sched.buffer {0} in device tag #t : memref<{1}x64xi8>\n", buffers++, rows());
    std::string cells;
    for (int64_t row = 0; row < rows(); ++row)
      cells += llvm::formatv("{0}[{1}, {2}]", row ? ", " : "", below(100), below(100));
    before +=
        llvm::formatv("%table = sched.table dense<[{0}]> : tensor<{1}x2xi64> as memref<{1}x2xi64>\n", cells, rows());
    before += "%one = sched.constant dense<1> : tensor<8xi8> as memref<8xi8>\n%none = sched.no_event\n";
    before += "%early, %ev = sched.copy on comm reads(%one : memref<8xi8>) writes(%scratch : memref<8xi8>) tag #t\n";
    before.insert(0, "%scratch = sched.slot in device tag #t : memref<8xi8>\n");
    for (int64_t i = below(3) + 1; i > 0; --i) { // Accumulators.
      int64_t bytes = size();
      std::string place = name("acc"), init = name("init"), argument = name("a");
      before += chance(50) ? llvm::formatv("{0} = sched.slot in device tag #t : {1}\n", place, type(bytes)).str()
                           : llvm::formatv("{0} = sched.buffer {1} writable in device tag #t : {2}\n", place, buffers++,
                                           type(bytes))
                                 .str();
      before +=
          llvm::formatv("{0}e, {0} = sched.launch \"init\"([#sched.write<0>]) on compute writes({1} : {2}) tag #t\n",
                        init, place, type(bytes));
      values.push_back({argument, place, bytes, drawStage(), static_cast<int64_t>(yields.size())});
      carry(argument, init, type(bytes), argument);
    }
    for (int64_t i = below(3); i > 0; --i) { // Outputs that are written in parts by stride.
      outs.push_back(size());
      before += llvm::formatv("%out{0} = sched.buffer {1} writable in device tag #t : memref<{2}x{3}xi8>\n",
                              outs.size() - 1, buffers++, rows(), outs.back());
    }
    // Values that are written again row by row, a row by each iteration and perhaps two stages.
    for (int64_t i = below(3); i > 0; --i) {
      int64_t bytes = size();
      std::string place = name("rowwise"), init = name("init"), argument = name("a"), typeText;
      typeText = llvm::formatv("memref<{0}x{1}xi8>", rows(), bytes);
      before += llvm::formatv("{0} = sched.slot in device tag #t : {1}\n"
                              "{2}e, {2} = sched.launch \"init\"([]) on compute writes({0} : {1}) tag #t\n",
                              place, typeText, init);
      rowwise.push_back({argument, place, bytes, below(options.stages), static_cast<int64_t>(yields.size())});
      carry(argument, init, typeText, argument);
    }
    // A value that goes round a ring: read where the iteration before wrote it. With five places it may wait three
    // times.
    if (chance(50)) {
      int64_t bytes = size(), places = chance(50) ? 2 : 5;
      std::string init = name("init"), argument = name("a");
      before += llvm::formatv("%turn = sched.slot in device ring {0} tag #t : {1}\n"
                              "%turn0 = sched.view %turn[0] ring({2}) : {1} to {1}\n"
                              "{3}e, {3} = sched.launch \"init\"([]) on comm writes(%turn0 : {1}) tag #t\n",
                              places, type(bytes), options.from % places, init);
      body += llvm::formatv("%turn1 = sched.view %turn[0] index(%i) ring(1) : {0} to {0}\n", type(bytes));
      int64_t stage = below(options.stages);
      turn = Current{argument, "%turn1", bytes, stage};
      turnsFar = places == 5 || options.hasConflicts;
      carry(argument, init, type(bytes), "");
      turn->carried = static_cast<int64_t>(yields.size()) - 1;
    }
    if (chance(50)) { // An event of one iteration ago, or of two.
      waited = static_cast<int64_t>(yields.size());
      carry("%once", "%none", "!sched.event", "%none");
      if (chance(50))
        carry("%twice", "%none", "!sched.event", "%once");
    }
  }

  /// The values that a call of `stage` may read beside what it writes.
  std::vector<size_t> drawReads(int64_t stage, std::optional<size_t> but) {
    std::vector<size_t> usable, chosen;
    for (size_t i = 0; i < values.size(); ++i)
      if (i != but && (!values[i].stage || *values[i].stage == stage))
        usable.push_back(i);
    for (int64_t n = below(4); n > 0 && !usable.empty(); --n) {
      size_t at = static_cast<size_t>(below(static_cast<int64_t>(usable.size())));
      chosen.push_back(usable[at]);
      usable.erase(usable.begin() + static_cast<int64_t>(at));
    }
    return chosen;
  }

  struct Operands {
    std::vector<std::string> names, types;
    void add(const std::string &name, const std::string &type) {
      names.push_back(name);
      types.push_back(type);
    }
    std::string get(llvm::StringRef word) const {
      return names.empty()
                 ? ""
                 : llvm::formatv(" {0}({1} : {2})", word, llvm::join(names, ", "), llvm::join(types, ", ")).str();
    }
  };

  /// Writes a launch of `stage` that reads `reads` and writes `place`; returns its value.
  std::string call(int64_t stage, Operands reads, const std::string &place, int64_t bytes) {
    std::string value = name("v");
    if (chance(options.hasParts ? 40 : 100)) { // A part of the rows, by stride.
      std::string row = name("row");
      int64_t part = size();
      body += llvm::formatv("{0} = sched.view %rows[{1}] index(%i) stride(64) : memref<{2}x64xi8> to {3}\n", row,
                            below(65 - part), rows(), type(part));
      reads.add(row, type(part));
    }
    std::string waits;
    std::vector<std::string> waitable = {"%early"};
    for (const Event &event : events)
      if (event.stage <= stage)
        waitable.push_back(event.value);
    if (chance(40))
      waits = " waits(" + waitable[static_cast<size_t>(below(static_cast<int64_t>(waitable.size())))] + ")";
    std::string args = "7 : i64", tables;
    if (chance(50)) {
      tables = llvm::formatv(" tables(%table : memref<{0}x2xi64>)", rows());
      args = llvm::formatv("#sched.cell<0, {0}, {1}>, #sched.pointers<[#sched.cell<0, {2}, 0>, #sched.null]>", below(3),
                           below(2), below(3));
    }
    body +=
        llvm::formatv("{0}e, {0} = sched.launch \"f{1}\"([{2}]) on {3} stage {4}{5}{6}{7} writes({8} : {9}) tag #t\n",
                      value, below(4), args, lane(), stage, waits, reads.get("reads"), tables, place, type(bytes));
    events.push_back({value + "e", stage});
    if (waited && yields[static_cast<size_t>(*waited)] == "%none" && chance(30)) {
      yields[static_cast<size_t>(*waited)] = value + "e";
      firstWait = stage;
    }
    return value;
  }

  void drawCall(int64_t stage) {
    std::optional<size_t> target;
    if (chance(40)) { // An update in place.
      for (size_t i = 0; i < values.size(); ++i)
        if ((!values[i].stage || *values[i].stage == stage) && chance(50))
          target = i;
    }
    Operands reads;
    for (size_t i : drawReads(stage, target)) {
      Current &from = values[i];
      if (chance(30) && from.bytes >= 16) { // A part of the value.
        std::string part = name("part");
        body += llvm::formatv("{0} = sched.view {1}[{2}] : {3} to memref<8xi8>\n", part, from.value,
                              below(from.bytes - 8), type(from.bytes));
        reads.add(part, "memref<8xi8>");
      } else {
        reads.add(from.value, type(from.bytes));
      }
    }
    if (target) {
      Current &to = values[*target];
      reads.add(to.value, type(to.bytes));
      to.value = call(stage, reads, to.place, to.bytes);
      if (to.carried >= 0)
        yields[static_cast<size_t>(to.carried)] = to.value;
      return;
    }
    if (!outs.empty() && chance(25)) {
      // An output belongs to the stage that writes it first.
      size_t out = static_cast<size_t>(below(static_cast<int64_t>(outs.size())));
      std::string place = name("place");
      body += llvm::formatv("{0} = sched.view %out{1}[{2}] index(%i) stride({3}) : memref<{4}x{3}xi8> to {5}\n", place,
                            out, outs[out] * below(2), outs[out], rows(), type(outs[out]));
      outStages.resize(outs.size(), stage);
      if (outStages[out] == stage || options.hasConflicts)
        call(stage, reads, place, outs[out]);
      return;
    }
    int64_t bytes = size();
    std::string slot = name("slot");
    (chance(25) ? before : body) += llvm::formatv("{0} = sched.slot in device tag #t : {1}\n", slot, type(bytes));
    if (options.hasParts && bytes >= 16 && chance(30)) {
      body += llvm::formatv(
          "{0}a = sched.view {0}[0] : {1} to memref<8xi8>\n{0}b = sched.view {0}[8] : {1} to memref<8xi8>\n", slot,
          type(bytes));
      std::string first = call(stage, reads, slot + "a", 8);
      std::string second = call(stage, {}, slot + "b", 8), joined = name("j");
      body += llvm::formatv("{0} = sched.join {1} from({2}, {3} : memref<8xi8>, memref<8xi8>) : {4}\n", joined, slot,
                            first, second, type(bytes));
      values.push_back({joined, slot, bytes});
      return;
    }
    values.push_back({call(stage, reads, slot, bytes), slot, bytes});
  }

  std::string draw() {
    drawOutside();
    for (int64_t stage = 0; stage < options.stages; ++stage) {
      if (turn && (turn->stage == stage || (turnsFar && *turn->stage < stage))) {
        Operands reads; // Before the stage writes anything: what the iteration before left.
        reads.add(turn->value, type(turn->bytes));
        if (turn->stage == stage)
          yields[static_cast<size_t>(turn->carried)] = call(stage, reads, turn->place, turn->bytes);
        else
          readTurn(stage, reads);
      }
      if (options.hasConflicts ? waited.has_value() : firstWait && *firstWait <= stage)
        for (size_t i = static_cast<size_t>(*waited); i < arguments.size(); ++i)
          events.push_back({arguments[i], options.hasConflicts ? 0 : *firstWait});
      for (int64_t n = 1 + below(4); n > 0; --n)
        drawCall(stage);
      for (Current &whole : rowwise)
        if (*whole.stage == stage || (options.hasConflicts && chance(30)))
          updateRow(stage, whole);
    }
    std::string results;
    for (size_t i = 0; i < yields.size(); ++i) {
      if (types[i] == "!sched.event")
        continue;
      std::string place = name("final");
      before += llvm::formatv("{0} = sched.buffer {1} writable in device tag #t : {2}\n", place, buffers++, types[i]);
      behind += llvm::formatv("{0}e, {0}v = sched.copy on compute reads(%loop#{1} : {2}) writes({0} : {2}) tag #t\n",
                              place, i, types[i]);
      results += (results.empty() ? "" : ", ") + place + "v";
      kept.push_back(types[i]);
    }
    std::string carried;
    for (size_t i = 0; i < arguments.size(); ++i)
      carried += llvm::formatv("{0}{1} = {2}", i ? ", " : "", arguments[i], inits[i]);
    return before +
           llvm::formatv("%loop:{0} = sched.loop %i = {1} to {2} in_flight({3}) iter({4}) : {5} {{\n", types.size(),
                         options.from, options.from + options.trips, options.inFlight, carried, llvm::join(types, ", "))
               .str() +
           body + llvm::formatv("sched.yield {0} : {1}\n}\n", llvm::join(yields, ", "), llvm::join(types, ", ")).str() +
           behind + llvm::formatv("sched.return {0} : {1}\n", results, llvm::join(kept, ", ")).str();
  }

  /// A call writes the iteration's row of a value, perhaps after reading it.
  void updateRow(int64_t stage, Current &whole) {
    std::string place = name("place"), old = name("old"), next = name("u"), wholeType;
    wholeType = llvm::formatv("memref<{0}x{1}xi8>", rows(), whole.bytes);
    body += llvm::formatv("{0} = sched.view {1}[{2}] index(%i) stride({3}) : {4} to {5}\n", place, whole.place,
                          whole.bytes, whole.bytes, wholeType, type(whole.bytes));
    Operands reads;
    if (chance(50)) {
      body += llvm::formatv("{0} = sched.view {1}[{2}] index(%i) stride({3}) : {4} to {5}\n", old, whole.value,
                            whole.bytes, whole.bytes, wholeType, type(whole.bytes));
      reads.add(old, type(whole.bytes));
    }
    std::string row = call(stage, reads, place, whole.bytes);
    body += llvm::formatv("{0} = sched.update {1} with {2} : {3}, {4}\n", next, whole.value, row, wholeType,
                          type(whole.bytes));
    whole.value = next;
    yields[static_cast<size_t>(whole.carried)] = next;
  }

  /// A later stage reads the value that goes round, into a slot of its own.
  void readTurn(int64_t stage, const Operands &reads) {
    std::string slot = name("slot");
    body += llvm::formatv("{0} = sched.slot in device tag #t : memref<8xi8>\n", slot);
    values.push_back({call(stage, reads, slot, 8), slot, 8});
  }

  std::optional<Current> turn;
  bool turnsFar = false;
  std::optional<int64_t> waited, firstWait;
  std::vector<int64_t> outStages;
};
} // namespace

std::string mlir::plateau::sched::drawLoop(uint64_t seed, const RandomLoopOptions &options) {
  return Draw(seed, options).draw();
}

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RandomProgram.h"
#include <random>
#include <vector>

using namespace mlir::plateau::sched;

namespace {
/// A slot or a buffer with one place, and the value in it that can be named here.
struct Memory {
  std::string name, type;
  std::string value; ///< Empty: none.
};

class Writer {
public:
  explicit Writer(unsigned seed) : random(seed) {}

  std::string run() {
    lanes = 2 + upTo(2);
    text = "%buffer = sched.buffer 0 writable in device tag #t : memref<16xf32>\n";
    memories.push_back({"%buffer", "memref<16xf32>", "%buffer"});
    int slots = 3 + upTo(4);
    for (int i = 0; i < slots; ++i) {
      std::string name = "%s" + std::to_string(i), type = "memref<" + std::to_string(16 * (1 + upTo(3))) + "xf32>";
      text += name + " = sched.slot in device tag #t : " + type + "\n";
      memories.push_back({name, type, ""});
    }
    for (int i = 0; i < 2; ++i)
      text += "%ring" + std::to_string(i) + " = sched.slot in device ring " + std::to_string(2 + upTo(1)) +
              " tag #t : memref<16xf32>\n";
    writeItems(6 + upTo(6), 0);
    return text + "sched.return";
  }

private:
  int upTo(int most) { return static_cast<int>(random() % (most + 1)); }
  std::string fresh(const char *prefix) { return prefix + std::to_string(next++); }
  std::string lane() {
    static const char *const names[] = {"compute", "comm", "h2d", "d2h"};
    return names[upTo(lanes - 1)];
  }

  /// Reads some values, and writes one place, or none.
  std::string launch(std::vector<std::pair<std::string, std::string>> reads, std::string place, std::string type) {
    std::string event = fresh("%e"), value = fresh("%v");
    bool isCopy = reads.size() == 1 && reads[0].second == type && upTo(3) > 0;
    text += event + (place.empty() ? "" : ", " + value) +
            (isCopy ? " = sched.copy on " : " = sched.launch \"f\"([]) on ") + lane();
    auto list = [&](const char *what, const auto &values) {
      std::string names, types;
      for (auto &[name, type] : values) {
        names += (names.empty() ? "" : ", ") + name;
        types += (types.empty() ? "" : ", ") + type;
      }
      if (!values.empty())
        text += std::string(" ") + what + "(" + names + " : " + types + ")";
    };
    list("reads", reads);
    if (!place.empty())
      list("writes", std::vector<std::pair<std::string, std::string>>{{place, type}});
    text += " tag #t\n";
    lastEvent = event;
    return value;
  }

  std::vector<std::pair<std::string, std::string>> someReads(const Memory *except) {
    std::vector<std::pair<std::string, std::string>> reads;
    for (Memory &memory : memories)
      if (&memory != except && !memory.value.empty() && upTo(3) == 0)
        reads.push_back({memory.value, memory.type});
    return reads;
  }

  void writeCall() {
    Memory &memory = memories[upTo(memories.size() - 1)];
    auto reads = someReads(&memory);
    if (upTo(3) == 0) {
      launch(reads, "", "");
      return;
    }
    if (!memory.value.empty() && upTo(1)) // In place.
      reads.push_back({memory.value, memory.type});
    memory.value = launch(reads, memory.name, memory.type);
  }

  void writeItems(int count, int depth) {
    for (int i = 0; i < count; ++i) {
      int kind = upTo(9);
      if (kind < 2 && depth < 2)
        writeLoop(depth);
      else if (kind == 2 && depth == 0 && !lastEvent.empty())
        text += "sched.fence " + lastEvent + "\n";
      else
        writeCall();
    }
  }

  void writeLoop(int depth) {
    int trips = upTo(6), ring = upTo(3);
    std::string counter = fresh("%i");
    // What the body may read is carried; the rest starts without a value in each iteration.
    std::vector<Memory> outer = memories;
    std::vector<size_t> carried;
    for (size_t i = 0; i < memories.size(); ++i) {
      if (memories[i].value.empty())
        continue;
      if (upTo(2) == 0)
        carried.push_back(i);
      else
        memories[i].value.clear();
    }
    // A value that moves round a ring from iteration to iteration.
    std::string turning, ringName = "%ring" + std::to_string(upTo(1)), ringType = "memref<16xf32>";
    bool isCarriedRing = ring == 0 && depth == 0, isRing = ring == 1 && depth == 0;
    std::string start;
    if (isCarriedRing) {
      std::string view = fresh("%p");
      text += view + " = sched.view " + ringName + "[0] ring(0) : " + ringType + " to " + ringType + "\n";
      start = launch({}, view, ringType);
      turning = fresh("%a");
    }
    std::string arguments, types, results;
    auto carry = [&](const std::string &argument, const std::string &init, const std::string &type) {
      arguments += (arguments.empty() ? "" : ", ") + argument + " = " + init;
      types += (types.empty() ? "" : ", ") + type;
      results += (results.empty() ? "" : ", ") + fresh("%r");
    };
    for (size_t i : carried) {
      std::string argument = fresh("%a");
      carry(argument, memories[i].value, memories[i].type);
      memories[i].value = argument;
    }
    if (isCarriedRing)
      carry(turning, start, ringType);
    text += (results.empty() ? "" : results + " = ") + "sched.loop " + counter + " = 0 to " + std::to_string(trips);
    text += (arguments.empty() ? "" : " iter(" + arguments + ") : " + types) + " {\n";
    std::string outerEvent = lastEvent, yielded;
    writeItems(1 + upTo(3), depth + 1);
    if (isRing || isCarriedRing) {
      std::string place = fresh("%p");
      text += place + " = sched.view " + ringName + "[0] index(" + counter + ") ring(" + (isRing ? "0" : "1") +
              ") : " + ringType + " to " + ringType + "\n";
      if (isCarriedRing)
        launch({{turning, ringType}}, "", "");
      std::string value = launch(isCarriedRing && upTo(1) ? std::vector{std::pair(turning, ringType)}
                                                          : std::vector<std::pair<std::string, std::string>>{},
                                 place, ringType);
      if (isRing)
        launch({{value, ringType}}, "", "");
      turning = value;
    }
    writeItems(upTo(2), depth + 1);
    for (size_t i : carried) {
      // A loop in the body may have written it.
      if (memories[i].value.empty())
        memories[i].value = launch({}, memories[i].name, memories[i].type);
      yielded += (yielded.empty() ? "" : ", ") + memories[i].value;
    }
    if (isCarriedRing)
      yielded += (yielded.empty() ? "" : ", ") + turning;
    if (!yielded.empty())
      text += "sched.yield " + yielded + " : " + types + "\n";
    text += "}\n";
    size_t at = 0;
    auto nextResult = [&] {
      size_t end = results.find(", ", at);
      std::string name = results.substr(at, end == std::string::npos ? end : end - at);
      at = end == std::string::npos ? results.size() : end + 2;
      return name;
    };
    memories = outer;
    for (Memory &memory : memories)
      memory.value.clear(); // Perhaps written.
    for (size_t i : carried)
      memories[i].value = nextResult();
    lastEvent = outerEvent;
  }

  std::mt19937 random;
  int lanes = 2, next = 0;
  std::string text, lastEvent;
  std::vector<Memory> memories;
};
} // namespace

std::string mlir::plateau::sched::makeRandomProgram(unsigned seed) { return Writer(seed).run(); }

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "RandomSchedule.h"
#include <algorithm>
#include <set>

using namespace mlir::plateau::sched;

namespace {
struct Slot {
  std::string name;
  bool isHost, isBuffer = false, isWritable = true;
  int units, depth = 1;
  std::optional<int> offset = std::nullopt;
};

struct Statement {
  enum Kind { View, Join, Update, Call, Loop, Fence, Return } kind;
  std::string name = {}; ///< Of a view, a join, an update, an event, a counter.
  std::string source = {};
  int unit = 0, units = 0;
  std::optional<int> ring = std::nullopt;
  std::string index = {};
  int lane = 0;
  std::vector<std::string> results = {}, waits = {}, reads = {}, tables = {}, writes = {}, inits = {}, arguments = {},
                           yields = {};
  int from = 0, to = 0;
  std::vector<Statement> body = {};
};

/// What is known of a name when the text is written.
struct Typed {
  int units;
  bool isHost;
  std::string place; ///< SSA name of the place, when an op may write it here.
};

const char *const laneNames[] = {"compute", "comm", "h2d", "d2h"};

class Generator {
public:
  Generator(std::mt19937 &random, const Habits &habits) : random(random), habits(habits) {}

  RandomSchedule run() {
    makeSlots();
    std::vector<Statement> program;
    Scope scope;
    scope.values = {"%in"};
    for (const Slot &slot : slots)
      if (slot.depth == 1 && !slot.isBuffer && chance(0.04))
        scope.values.push_back(slot.name); // Which nobody has written.
    if (habits.isOneLoop) {
      addCalls(program, scope, below(3));
      addLoop(program, scope);
      addCalls(program, scope, below(3));
    } else {
      for (int part = 1 + below(3); part > 0; --part) {
        if (chance(0.35))
          addLoop(program, scope);
        else
          addCalls(program, scope, 1 + below(3));
        if (habits.hasTables && !scope.events.empty() && chance(0.3)) {
          Statement fence{Statement::Fence};
          fence.waits = {pick(scope.events, 0.8)};
          program.push_back(fence);
        }
      }
    }
    Statement ret{Statement::Return};
    for (int reads = below(3); reads > 0; --reads)
      ret.reads.push_back(pick(scope.values, habits.recent));
    program.push_back(ret);

    RandomSchedule result;
    result.text = "%in = sched.buffer 0 in device tag #t : memref<32xf32>\n"
                  "%out = sched.buffer 1 writable in device tag #t : memref<32xf32>\n"
                  "%none = sched.no_event\n";
    for (const Slot &slot : slots)
      if (!slot.isBuffer)
        result.text += slot.name + " = sched.slot in " + (slot.isHost ? "host" : "device") +
                       (slot.depth > 1 ? " ring " + std::to_string(slot.depth) : "") +
                       (slot.offset ? " offset " + std::to_string(64 * *slot.offset) : "") +
                       " tag #t : " + type(slot.units, slot.isHost) + "\n";
    write(program, result.text);
    int memory = 2;
    for (const Slot &slot : slots) {
      roots[slot.name] = slot.offset ? std::make_pair(int(slot.isHost), *slot.offset) : std::make_pair(memory++, 0);
      Content content{slot.name, 0, std::vector<int>(slot.units * slot.depth, ModelUse::initial)};
      if (!slot.isBuffer)
        std::fill(content.writers.begin(), content.writers.end(), ModelUse::unwritten);
      contents[slot.name] = content;
    }
    events["%none"] = -1;
    expand(program, result.calls);
    result.units = 64;
    return result;
  }

private:
  struct Scope {
    std::vector<std::string> values, events, calls; ///< Newest last; `calls` are events of the scope itself.
    std::string counter;
  };
  struct Content {
    std::string root;
    int begin;
    std::vector<int> writers;
  };

  int below(int bound) { return bound <= 1 ? 0 : int(random() % bound); }
  bool chance(double p) { return random() % 10000 < p * 10000; }
  std::string fresh() { return "%n" + std::to_string(next++); }
  /// One of the last two with probability `recent`, else any.
  std::string pick(const std::vector<std::string> &from, double recent) {
    if (chance(recent))
      return from[from.size() - 1 - below(std::min<int>(2, from.size()))];
    return from[below(from.size())];
  }
  static std::string type(int units, bool isHost) {
    return isHost ? "memref<" + std::to_string(8 * units) + "xi64>" : "memref<" + std::to_string(16 * units) + "xf32>";
  }
  std::string typeOf(const std::string &name) const {
    auto known = types.find(name);
    return known == types.end() ? "!sched.event" : type(known->second.units, known->second.isHost);
  }

  void makeSlots() {
    slots.push_back({"%in", false, true, false, 2});
    slots.push_back({"%out", false, true, true, 2});
    int count = 2 + below(4), ends[2] = {0, 0};
    for (int index = 0; index < count; ++index) {
      Slot slot{"%s" + std::to_string(index), habits.hasTables && chance(0.25), false, true, 1 + below(2)};
      if (chance(0.5))
        slot.depth = 1 + below(habits.maxDepth);
      int &end = ends[slot.isHost];
      if (chance(0.9)) {
        slot.offset = habits.apart ? end : below(6);
        end += slot.units * slot.depth;
      }
      slots.push_back(slot);
    }
    for (const Slot &slot : slots)
      types[slot.name] = {slot.units, slot.isHost, slot.depth == 1 && slot.isWritable ? slot.name : ""};
  }

  /// Views of a place of the slot, or a part of one; the name of the place.
  std::string addPlace(std::vector<Statement> &body, const Slot &slot, const std::string &counter, bool isWhole,
                       std::optional<int> ring = std::nullopt) {
    bool isPart = !isWhole && slot.units > 1 && chance(0.4);
    if (!isPart && slot.depth == 1)
      return slot.name;
    Statement view{Statement::View};
    view.name = fresh();
    view.source = slot.name;
    view.units = isPart ? 1 : slot.units;
    view.unit = isPart ? below(slot.units) : 0;
    if (slot.depth > 1) {
      view.ring = ring ? *ring : below(slot.depth);
      if (!counter.empty() && (ring || chance(0.85)))
        view.index = counter;
    }
    types[view.name] = {view.units, slot.isHost, view.name};
    body.push_back(view);
    return view.name;
  }

  const Slot &pickSlot() {
    while (true) {
      const Slot &slot = slots[below(slots.size())];
      if (slot.isWritable && !(slot.isBuffer && chance(0.7)))
        return slot;
    }
  }

  /// A value of the scope, or a part of it.
  std::string addRead(std::vector<Statement> &body, const Scope &scope) {
    std::string value = pick(scope.values, habits.recent);
    if (types[value].units == 1 || chance(0.7))
      return value;
    Statement view{Statement::View};
    view.name = fresh();
    view.source = value;
    view.units = 1;
    view.unit = below(types[value].units);
    types[view.name] = {1, types[value].isHost, ""};
    body.push_back(view);
    return view.name;
  }

  void addWaits(Statement &call, const Scope &scope) {
    if (habits.isSerial && !scope.calls.empty())
      call.waits.push_back(scope.calls.back());
    if (scope.events.empty())
      return;
    for (int count = 0; count < 2; ++count)
      if (chance(habits.wait))
        call.waits.push_back(pick(scope.events, 0.7));
  }

  void addCalls(std::vector<Statement> &body, Scope &scope, int count) {
    for (; count > 0; --count) {
      Statement call{Statement::Call};
      call.name = fresh();
      call.lane = below(habits.lanes);
      addWaits(call, scope);
      for (int reads = below(3); reads > 0; --reads) {
        std::string value = addRead(body, scope);
        if (types[value].isHost && chance(0.5))
          call.tables.push_back(value);
        else
          call.reads.push_back(value);
      }
      for (int writes = chance(0.9) ? 1 + chance(0.15) : 0; writes > 0; --writes) {
        std::string place;
        if (!call.reads.empty() && chance(0.3))
          place = types[call.reads.back()].place; // In place.
        if (place.empty())
          place = addPlace(body, pickSlot(), scope.counter, /*isWhole=*/false);
        if (!std::count(call.writes.begin(), call.writes.end(), place))
          call.writes.push_back(place);
      }
      addCall(body, scope, call);
      if (call.writes.size() == 2 && chance(0.5))
        addJoin(body, scope, call);
      if (habits.update > 0 && !call.writes.empty() && chance(habits.update))
        addUpdate(body, scope, call);
    }
  }

  void addCall(std::vector<Statement> &body, Scope &scope, Statement &call) {
    for (const std::string &place : call.writes) {
      call.results.push_back(fresh());
      types[call.results.back()] = {types[place].units, types[place].isHost, place};
      scope.values.push_back(call.results.back());
    }
    scope.events.push_back(call.name);
    scope.calls.push_back(call.name);
    body.push_back(call);
  }

  /// The value of a whole slot of two units, of which one call writes a part.
  void addJoin(std::vector<Statement> &body, Scope &scope, const Statement &call) {
    for (const Statement &view : body)
      if (view.kind == Statement::View && view.name == call.writes.front() && !view.ring &&
          types[view.source].units > view.units && view.source[1] == 's') {
        Statement join{Statement::Join};
        join.name = fresh();
        join.source = view.source;
        join.reads = {call.results.front()};
        types[join.name] = types[view.source];
        body.push_back(join);
        scope.values.push_back(join.name);
        return;
      }
  }

  /// A value of a slot of two units, of which the call has written a part.
  void addUpdate(std::vector<Statement> &body, Scope &scope, const Statement &call) {
    for (const Statement &view : body)
      if (view.kind == Statement::View && view.name == call.writes.front() && !view.ring)
        for (const std::string &value : scope.values)
          if (types[value].place == view.source && types[value].units > view.units) {
            Statement update{Statement::Update};
            update.name = fresh();
            update.source = value;
            update.reads = {call.results.front()};
            types[update.name] = types[value];
            body.push_back(update);
            scope.values.push_back(update.name);
            return;
          }
  }

  void addLoop(std::vector<Statement> &program, Scope &scope, bool isInner = false) {
    Statement loop{Statement::Loop};
    loop.name = fresh();
    loop.from = below(3);
    loop.to = loop.from + (habits.isOneLoop ? habits.trips - below(habits.trips / 2) : below(habits.trips + 1));
    Scope inner = scope;
    inner.counter = loop.name;
    inner.calls.clear();

    // Carried values: updated in place, or one place further round a ring.
    struct Carried {
      Slot slot;
      int ring;
    };
    std::vector<Carried> carried;
    for (int count = below(3); count > 0; --count) {
      const Slot &slot = pickSlot();
      Carried value{slot, below(slot.depth)};
      Statement call{Statement::Call};
      call.name = fresh();
      call.lane = below(habits.lanes);
      addWaits(call, scope);
      int first = ((value.ring + loop.from - 1) % slot.depth + slot.depth) % slot.depth;
      call.writes = {addPlace(program, slot, "", /*isWhole=*/true, first)};
      addCall(program, scope, call);
      loop.inits.push_back(call.results[0]);
      loop.arguments.push_back(fresh());
      types[loop.arguments.back()] = {slot.units, slot.isHost, slot.depth == 1 ? slot.name : ""};
      inner.values.push_back(loop.arguments.back());
      inner.events.push_back(call.name);
      carried.push_back(value);
    }
    int numValues = carried.size(), distance = below(4);
    // A shift register of events: its last argument is the event of an op `distance` iterations ago.
    for (int index = 0; index < distance; ++index) {
      loop.inits.push_back(chance(0.7) || scope.events.empty() ? "%none" : pick(scope.events, 0.5));
      loop.arguments.push_back(fresh());
      inner.events.push_back(loop.arguments.back());
    }
    addCalls(loop.body, inner, 1 + below(habits.isOneLoop ? 3 : 2));
    if (!isInner && chance(habits.nest))
      addLoop(loop.body, inner, /*isInner=*/true);
    for (int index = 0; index < numValues; ++index) {
      Statement call{Statement::Call};
      call.name = fresh();
      call.lane = below(habits.lanes);
      addWaits(call, inner);
      if (chance(0.5))
        call.waits.push_back(inner.events[below(inner.events.size())]);
      if (chance(0.8))
        call.reads.push_back(loop.arguments[index]);
      if (chance(0.4))
        call.reads.push_back(addRead(loop.body, inner));
      call.writes = {addPlace(loop.body, carried[index].slot, loop.name, /*isWhole=*/true, carried[index].ring)};
      addCall(loop.body, inner, call);
      loop.yields.push_back(call.results[0]);
    }
    if (chance(0.6))
      addCalls(loop.body, inner, 1);
    for (int index = 0; index < distance; ++index)
      loop.yields.push_back(index + 1 < distance ? loop.arguments[numValues + index + 1]
                            : habits.isSerial    ? inner.calls.back()
                                                 : inner.calls[below(inner.calls.size())]);
    // A serial program waits across iterations too.
    if (habits.isSerial && distance > 0 && !inner.calls.empty())
      for (Statement &call : loop.body)
        if (call.kind == Statement::Call) {
          call.waits.push_back(loop.arguments.back());
          break;
        }
    for (int index = 0; index < int(loop.inits.size()); ++index) {
      loop.results.push_back(fresh());
      if (index < numValues) {
        types[loop.results.back()] = {types[loop.inits[index]].units, types[loop.inits[index]].isHost, ""};
        scope.values.push_back(loop.results.back());
      } else {
        scope.events.push_back(loop.results.back());
        scope.calls.push_back(loop.results.back());
      }
    }
    program.push_back(loop);
  }

  std::string list(const std::vector<std::string> &names, bool hasTypes) const {
    std::string names_, types_;
    for (size_t index = 0; index < names.size(); ++index) {
      names_ += (index ? ", " : "") + names[index];
      types_ += (index ? ", " : "") + typeOf(names[index]);
    }
    return hasTypes ? names_ + " : " + types_ : names_;
  }

  void write(const std::vector<Statement> &body, std::string &text) const {
    for (const Statement &op : body) {
      switch (op.kind) {
      case Statement::View:
        text += op.name + " = sched.view " + op.source + "[" + std::to_string(64 * op.unit) + "]" +
                (op.index.empty() ? "" : " index(" + op.index + ")") +
                (op.ring ? " ring(" + std::to_string(*op.ring) + ")" : "") + " : " + typeOf(op.source) + " to " +
                typeOf(op.name) + "\n";
        break;
      case Statement::Join:
        text +=
            op.name + " = sched.join " + op.source + " from(" + list(op.reads, true) + ") : " + typeOf(op.name) + "\n";
        break;
      case Statement::Update:
        text += op.name + " = sched.update " + op.source + " with " + op.reads[0] + " : " + typeOf(op.source) + ", " +
                typeOf(op.reads[0]) + "\n";
        break;
      case Statement::Call:
        text += op.name;
        for (const std::string &result : op.results)
          text += ", " + result;
        text += std::string(" = sched.launch \"f\"([]) on ") + laneNames[op.lane];
        if (!op.waits.empty())
          text += " waits(" + list(op.waits, false) + ")";
        if (!op.reads.empty())
          text += " reads(" + list(op.reads, true) + ")";
        if (!op.tables.empty())
          text += " tables(" + list(op.tables, true) + ")";
        if (!op.writes.empty())
          text += " writes(" + list(op.writes, true) + ")";
        text += " tag #t\n";
        break;
      case Statement::Loop: {
        std::string carried;
        for (size_t index = 0; index < op.inits.size(); ++index)
          carried += (index ? ", " : "") + op.arguments[index] + " = " + op.inits[index];
        if (!op.inits.empty())
          text += list(op.results, false) + " = ";
        text += "sched.loop " + op.name + " = " + std::to_string(op.from) + " to " + std::to_string(op.to);
        std::string initTypes = list(op.inits, true);
        if (!op.inits.empty())
          text += " iter(" + carried + ")" + initTypes.substr(initTypes.find(" : "));
        text += " {\n";
        write(op.body, text);
        text += op.inits.empty() ? "sched.yield\n}\n" : "sched.yield " + list(op.yields, true) + "\n}\n";
        break;
      }
      case Statement::Fence:
        text += "sched.fence " + list(op.waits, false) + "\n";
        break;
      case Statement::Return:
        text += op.reads.empty() ? "sched.return" : "sched.return " + list(op.reads, true);
        break;
      }
    }
  }

  // What the program means.
  void addUse(ModelCall &call, const std::string &name, bool isWrite, bool isTable) {
    const Content &content = contents.at(name);
    auto [memory, offset] = roots.at(content.root);
    int begin = offset + content.begin;
    call.uses.push_back(
        {memory, content.root, begin, begin + int(content.writers.size()), content.writers, isWrite, isTable});
  }

  void expand(const std::vector<Statement> &body, std::vector<ModelCall> &calls) {
    for (const Statement &op : body) {
      switch (op.kind) {
      case Statement::View: {
        Content content = contents.at(op.source);
        int place = 0;
        if (op.ring) {
          const Slot &slot = *std::find_if(slots.begin(), slots.end(), [&](auto &s) { return s.name == op.source; });
          place = (*op.ring + (op.index.empty() ? 0 : counters.at(op.index))) % slot.depth * slot.units;
        }
        int from = place + op.unit;
        content.writers = std::vector<int>(content.writers.begin() + from, content.writers.begin() + from + op.units);
        content.begin += from;
        contents[op.name] = content;
        break;
      }
      case Statement::Join: {
        Content content = contents.at(op.source);
        std::fill(content.writers.begin(), content.writers.end(), ModelUse::anything);
        for (const std::string &name : op.reads) {
          const Content &part = contents.at(name);
          for (size_t unit = 0; unit < part.writers.size(); ++unit)
            content.writers[part.begin - content.begin + unit] = part.writers[unit];
        }
        contents[op.name] = content;
        break;
      }
      case Statement::Update: {
        Content content = contents.at(op.source);
        const Content &part = contents.at(op.reads[0]);
        for (size_t unit = 0; unit < part.writers.size(); ++unit)
          content.writers[part.begin - content.begin + unit] = part.writers[unit];
        contents[op.name] = content;
        break;
      }
      case Statement::Call:
      case Statement::Fence:
      case Statement::Return: {
        ModelCall call;
        call.lane = op.kind == Statement::Call    ? op.lane
                    : op.kind == Statement::Fence ? ModelCall::fence
                                                  : ModelCall::ret;
        std::set<int> waits;
        for (const std::string &event : op.waits)
          if (events.at(event) >= 0)
            waits.insert(events.at(event));
        call.waits.assign(waits.begin(), waits.end());
        for (const std::string &name : op.reads)
          addUse(call, name, false, false);
        for (const std::string &name : op.tables)
          addUse(call, name, false, true);
        for (size_t index = 0; index < op.writes.size(); ++index) {
          addUse(call, op.writes[index], true, false);
          Content content = contents.at(op.writes[index]);
          std::fill(content.writers.begin(), content.writers.end(), int(calls.size()));
          contents[op.results[index]] = content;
        }
        if (op.kind == Statement::Call)
          events[op.name] = calls.size();
        calls.push_back(call);
        break;
      }
      case Statement::Loop: {
        auto carry = [&](const std::vector<std::string> &to, const std::vector<std::string> &from) {
          std::vector<std::pair<Content, int>> values;
          for (const std::string &name : from)
            values.push_back(types.count(name) ? std::make_pair(contents.at(name), 0)
                                               : std::make_pair(Content(), events.at(name)));
          for (size_t index = 0; index < to.size(); ++index) {
            if (types.count(from[index]))
              contents[to[index]] = values[index].first;
            else
              events[to[index]] = values[index].second;
          }
        };
        carry(op.arguments, op.inits);
        carry(op.results, op.inits);
        for (int counter = op.from; counter < op.to; ++counter) {
          counters[op.name] = counter;
          expand(op.body, calls);
          carry(op.results, op.yields);
          carry(op.arguments, op.yields);
        }
        break;
      }
      }
    }
  }

  std::mt19937 &random;
  const Habits &habits;
  int next = 0;
  std::vector<Slot> slots;
  std::map<std::string, Typed> types;
  std::map<std::string, Content> contents;
  std::map<std::string, int> events, counters;
  std::map<std::string, std::pair<int, int>> roots; ///< Memory, offset.
};
} // namespace

RandomSchedule mlir::plateau::sched::getRandomSchedule(std::mt19937 &random, const Habits &habits) {
  return Generator(random, habits).run();
}

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ByteInterpreter.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include <algorithm>
#include <unordered_map>

using namespace mlir;
using namespace mlir::plateau::sched;

namespace {
/// FNV-1a, stirred at the end.
struct Hash {
  uint64_t state = 0xcbf29ce484222325;
  void add(uint64_t word) {
    for (int i = 0; i < 8; ++i, word >>= 8)
      state = (state ^ (word & 255)) * 0x100000001b3;
  }
  void add(StringRef text) {
    add(text.size());
    for (unsigned char c : text)
      add(static_cast<uint64_t>(c));
  }
  void add(const Bytes &bytes) {
    add(bytes.size());
    for (int byte : bytes)
      add(static_cast<uint64_t>(byte));
  }
  uint64_t get() const { return (state ^ (state >> 29)) * 0xbf58476d1ce4e5b9 >> 7; }
};

/// Where something lies, and what its writer left there.
struct Item {
  Bytes *memory = nullptr;
  int64_t begin = 0;
  Bytes bytes;        ///< As many as it has; known ones are those that a read must find.
  uint64_t event = 0; ///< Of an event: the hash of its call.
};

class Machine {
public:
  Outcome run(ProgramOp program) {
    runBlock(program.getBody().front());
    for (auto &[op, memory] : memories)
      if (auto buffer = dyn_cast<BufferOp>(op))
        outcome.buffers[buffer.getNumber()] = memory;
    return outcome;
  }

private:
  static int64_t countBytes(Type type) {
    auto memref = cast<MemRefType>(type);
    return memref.getNumElements() * ((memref.getElementTypeBitWidth() + 7) / 8);
  }
  /// From one place of a slot to the next.
  static int64_t getStride(Type type) { return (countBytes(type) + 63) / 64 * 64; }

  void define(Operation &op, int64_t size, function_ref<int(int64_t)> initial) {
    auto [entry, isNew] = memories.try_emplace(&op);
    if (isNew)
      for (int64_t i = 0; i < size; ++i)
        entry->second.push_back(initial(i));
    int64_t bytes = countBytes(op.getResult(0).getType());
    bool mayBeAnything = isa<SlotOp>(op);
    Bytes found = mayBeAnything ? Bytes(bytes, -1) : Bytes(entry->second.begin(), entry->second.begin() + bytes);
    if (isa<BufferOp>(op)) // What it held before the program, however often the op is met.
      for (int64_t i = 0; i < bytes; ++i)
        found[i] = initial(i);
    at(op.getResult(0)) = {&entry->second, 0, found, 0};
  }

  const Bytes &read(Value value, Operation *reader) {
    Item &item = at(value);
    for (size_t i = 0; i < item.bytes.size(); ++i)
      if (item.bytes[i] >= 0 && (*item.memory)[item.begin + i] != item.bytes[i]) {
        std::string text;
        llvm::raw_string_ostream(text) << "byte " << i << " of " << value << " was overwritten before " << *reader;
        outcome.faults.push_back(text);
        break;
      }
    return item.bytes;
  }

  void addArgument(Hash &hash, Attribute argument, LaneOpInterface call) {
    if (auto cell = dyn_cast<CellAttr>(argument)) {
      const Item &table = at(call.getTables()[cell.getTable()]);
      int64_t columns = cast<MemRefType>(call.getTables()[cell.getTable()].getType()).getDimSize(1);
      int64_t row = cell.getRow() + (counters.empty() ? 0 : counters.back());
      hash.add("cell");
      for (int64_t i = 0; i < 8; ++i)
        hash.add(static_cast<uint64_t>(table.bytes.at((row * columns + cell.getColumn()) * 8 + i)));
      return;
    }
    auto each = [&](StringRef name, ArrayAttr elements) {
      hash.add(name);
      for (Attribute element : elements)
        addArgument(hash, element, call);
    };
    if (auto pointers = dyn_cast<PointersAttr>(argument))
      return each("pointers", pointers.getElements());
    if (auto fields = dyn_cast<StructAttr>(argument))
      return each("struct", fields.getFields());
    std::string text;
    llvm::raw_string_ostream(text) << argument;
    hash.add(text);
  }

  void runCall(LaneOpInterface call) {
    Hash hash;
    std::string text;
    llvm::raw_string_ostream(text) << call->getName() << stringifyLane(call.getLane()) << call.getTag();
    hash.add(text);
    if (auto callee = call->getAttrOfType<StringAttr>("callee"))
      hash.add(callee.getValue());
    if (auto args = call->getAttrOfType<ArrayAttr>("args"))
      for (Attribute argument : args)
        addArgument(hash, argument, call);
    for (Value value : call.getReads())
      hash.add(read(value, call));
    for (Value table : call.getTables())
      hash.add(read(table, call));
    bool isCopy = isa<CopyOp>(call.getOperation());
    std::vector<Bytes> written;
    for (auto [index, place] : llvm::enumerate(call.getWrites())) {
      if (isCopy) {
        written.push_back(at(call.getReads()[0]).bytes);
        continue;
      }
      Bytes bytes;
      for (int64_t i = 0, e = countBytes(place.getType()); i < e; ++i) {
        Hash one = hash;
        one.add(index);
        one.add(static_cast<uint64_t>(i));
        bytes.push_back(static_cast<int>(one.get() & 255));
      }
      written.push_back(bytes);
    }
    for (auto [place, bytes, value] : llvm::zip_equal(call.getWrites(), written, call.getValues())) {
      Item &to = at(place);
      std::copy(bytes.begin(), bytes.end(), to.memory->begin() + to.begin);
      at(value) = {to.memory, to.begin, bytes, 0};
      hash.add(static_cast<uint64_t>(to.bytes.size()));
    }
    std::vector<uint64_t> log;
    for (Value wait : call.getWaits())
      log.push_back(at(wait).event);
    std::sort(log.begin(), log.end());
    log.insert(log.begin(), hash.get());
    outcome.calls.insert(log);
    at(call.getEvent()).event = hash.get();
  }

  void runView(ViewOp view) {
    int64_t counter = view.getIndex() ? numbers.lookup(view.getIndex()) : 0;
    int64_t offset = static_cast<int64_t>(view.getOffset()) + static_cast<int64_t>(view.getStride()) * counter;
    Item source = at(view.getSource());
    int64_t place = 0;
    if (auto slot = view.getSource().getDefiningOp<SlotOp>(); slot && view.getRing()) {
      int64_t ring = slot.getRing();
      place = ((counter + static_cast<int64_t>(*view.getRing())) % ring + ring) % ring;
      place *= getStride(slot.getType());
    }
    int64_t bytes = countBytes(view.getType());
    Bytes part(source.bytes.begin() + offset, source.bytes.begin() + offset + bytes);
    at(view.getResult()) = {source.memory, source.begin + place + offset, part, 0};
  }

  void runJoin(JoinOp join) {
    Item whole = at(join.getPlace());
    std::fill(whole.bytes.begin(), whole.bytes.end(), -1);
    for (Value part : join.getParts()) {
      const Item &item = at(part);
      if (item.memory != whole.memory || item.begin < whole.begin ||
          item.begin + item.bytes.size() > whole.begin + whole.bytes.size())
        outcome.faults.push_back("a part lies outside its join");
      else
        std::copy(item.bytes.begin(), item.bytes.end(), whole.bytes.begin() + (item.begin - whole.begin));
    }
    at(join.getResult()) = whole;
  }

  void runUpdate(UpdateOp update) {
    Item whole = at(update.getSource());
    const Item &part = at(update.getPart());
    if (part.memory != whole.memory || part.begin < whole.begin ||
        part.begin + part.bytes.size() > whole.begin + whole.bytes.size())
      outcome.faults.push_back("a part lies outside what it updates");
    else
      std::copy(part.bytes.begin(), part.bytes.end(), whole.bytes.begin() + (part.begin - whole.begin));
    at(update.getResult()) = whole;
  }

  void runLoop(LoopOp loop) {
    std::vector<Item> carried;
    for (Value init : loop.getInits())
      carried.push_back(at(init));
    for (int64_t i = loop.getFrom(); i < static_cast<int64_t>(loop.getTo()); ++i) {
      numbers[loop.getCounter()] = i;
      for (auto [argument, item] : llvm::zip_equal(loop.getCarried(), carried))
        at(argument) = item;
      counters.push_back(i);
      runBlock(loop.getBody().front());
      counters.pop_back();
      for (auto [value, item] : llvm::zip_equal(loop.getYield().getValues(), carried))
        item = at(value);
    }
    for (auto [result, item] : llvm::zip_equal(loop.getResults(), carried))
      at(result) = item;
  }

  void runBlock(Block &block) {
    for (Operation &op : block)
      llvm::TypeSwitch<Operation *>(&op)
          .Case([&](BufferOp buffer) {
            Hash seed;
            seed.add("buffer");
            seed.add(static_cast<uint64_t>(buffer.getNumber()));
            define(op, countBytes(buffer.getType()), [&](int64_t i) {
              Hash one = seed;
              one.add(static_cast<uint64_t>(i));
              return static_cast<int>(one.get() & 255);
            });
          })
          .Case(
              [&](SlotOp slot) { define(op, slot.getRing() * getStride(slot.getType()), [](int64_t) { return -1; }); })
          .Case([&](TableOp table) {
            std::vector<int64_t> cells(table.getElements().getValues<int64_t>().begin(),
                                       table.getElements().getValues<int64_t>().end());
            define(op, countBytes(table.getType()),
                   [&](int64_t i) { return static_cast<int>(cells[i / 8] >> (i % 8 * 8) & 255); });
          })
          .Case([&](ConstantOp constant) {
            define(op, countBytes(constant.getType()), [](int64_t i) { return static_cast<int>(i * 7 & 255); });
          })
          .Case([&](NoEventOp none) { at(none.getEvent()).event = 1; })
          .Case([&](ViewOp view) { runView(view); })
          .Case([&](JoinOp join) { runJoin(join); })
          .Case([&](UpdateOp update) { runUpdate(update); })
          .Case([&](LoopOp loop) { runLoop(loop); })
          .Case([&](LaneOpInterface call) { runCall(call); })
          .Case([&](ReturnOp end) {
            for (Value value : end.getOperands())
              outcome.returned.push_back(read(value, end));
          });
  }

  std::map<Operation *, Bytes> memories;
  Item &at(Value value) { return items[value.getAsOpaquePointer()]; }

  std::unordered_map<const void *, Item> items; ///< By value; references to what is in it stay good.
  llvm::DenseMap<Value, int64_t> numbers;       ///< What counters stand at.
  std::vector<int64_t> counters;                ///< Of the loops around, the innermost last.
  Outcome outcome;
};
} // namespace

Outcome mlir::plateau::sched::interpret(ProgramOp program) { return Machine().run(program); }

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/Sched/Verify/Faults.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::plateau::sched;

void FaultList::add(Fault fault, const Timeline &timeline) {
  ++count;
  Operation *other = fault.others.empty() ? nullptr : timeline.nodes[fault.others.front().node].op;
  if (faults.size() < most && seen.insert({fault.code.data(), timeline.nodes[fault.access.node].op, other}).second)
    faults.push_back(std::move(fault));
}

std::string mlir::plateau::sched::describe(const Node &node) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << node.op->getName();
  if (auto launch = dyn_cast<LaunchOp>(node.op))
    os << " \"" << launch.getCallee() << '"';
  else if (auto collective = dyn_cast<CollectiveOp>(node.op))
    os << " \"" << collective.getCallee() << '"';
  if (node.lane)
    os << " on " << stringifyLane(*node.lane);
  if (!node.iteration.empty()) {
    os << " in iteration ";
    llvm::interleaveComma(node.iteration, os);
  }
  return text;
}

std::string mlir::plateau::sched::describe(const ByteRange &range) {
  std::string text;
  llvm::raw_string_ostream os(text);
  Operation *root = range.root.getDefiningOp();
  auto slot = dyn_cast<SlotOp>(root);
  if (slot && slot.getOffset()) {
    int64_t offset = *slot.getOffset();
    os << "bytes " << offset + range.begin << " ... " << offset + range.end << " of the "
       << stringifySpace(slot.getSpace()) << " arena (" << range.begin << " ... " << range.end << " of the slot of "
       << slot.getTag().getOp() << ")";
    return text;
  }
  os << "bytes " << range.begin << " ... " << range.end << " of ";
  if (slot)
    os << "the slot of " << slot.getTag().getOp();
  else if (auto buffer = dyn_cast<BufferOp>(root))
    os << "buffer " << buffer.getNumber() << " (" << buffer.getTag().getOp() << ")";
  else
    os << "a " << (isa<TableOp>(root) ? "table" : "constant");
  return text;
}

std::string mlir::plateau::sched::describe(const Access &access) {
  StringRef kind = access.kind == Access::Write ? "write" : access.kind == Access::Read ? "read" : "table";
  return (kind + " #" + Twine(access.operand)).str();
}

LogicalResult mlir::plateau::sched::emitCount(ProgramOp program, StringRef checker, int64_t count, int64_t numTold) {
  if (count == 0)
    return success();
  if (count <= numTold)
    return failure();
  return program.emitError() << "@" << program.getSymName() << " has " << count << " faults that " << checker
                             << " refuses, " << numTold << " of them told above";
}

LogicalResult mlir::plateau::sched::emitFaults(ProgramOp program, const Timeline &timeline, const FaultList &faults,
                                               StringRef checker, llvm::function_ref<std::string(const Fault &)> text,
                                               llvm::function_ref<std::string(const Fault &, size_t)> note) {
  ArrayRef<Fault> told = faults.get().take_front(maxToldFaults);
  for (const Fault &fault : told) {
    const Node &node = timeline.nodes[fault.access.node];
    InFlightDiagnostic diag = node.op->emitError()
                              << fault.code << ": " << describe(fault.access) << " of " << describe(node) << ", "
                              << describe(fault.access.range) << ", " << text(fault);
    for (auto [index, other] : llvm::enumerate(fault.others))
      diag.attachNote(timeline.nodes[other.node].op->getLoc()) << note(fault, index);
  }
  return emitCount(program, checker, faults.size(), told.size());
}

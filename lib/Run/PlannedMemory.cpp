//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/PlannedMemory.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

/// A line of /proc/self/status, in KiB there.
static std::optional<int64_t> readStatus(llvm::StringRef key) {
  auto file = llvm::MemoryBuffer::getFileAsStream("/proc/self/status");
  if (!file)
    return std::nullopt;
  llvm::SmallVector<llvm::StringRef> lines;
  (*file)->getBuffer().split(lines, '\n');
  int64_t kib;
  for (llvm::StringRef line : lines)
    if (line.consume_front(key) && line.consume_front(":") && !line.trim().split(' ').first.getAsInteger(10, kib))
      return kib * 1024;
  return std::nullopt;
}

std::optional<int64_t> run::getResidentBytes() { return readStatus("VmRSS"); }
std::optional<int64_t> run::getResidentPeak() { return readStatus("VmHWM"); }

void run::resetResidentPeak() {
  std::error_code code;
  llvm::raw_fd_ostream file("/proc/self/clear_refs", code, llvm::sys::fs::CD_OpenExisting, llvm::sys::fs::FA_Write,
                            llvm::sys::fs::OF_None);
  if (!code)
    file << "5"; // proc(5): the peak becomes what is resident now.
  file.clear_error();
}

std::array<SpaceMemory, PLR_SPACES> run::getPlannedMemory(sched::ProgramOp program) {
  std::array<SpaceMemory, PLR_SPACES> spaces;
  for (SpaceMemory &space : spaces)
    space.planned = space.lowerBound = space.arena = 0;
  auto add = [&](sched::Space space, int64_t planned, int64_t lowerBound) {
    *spaces[static_cast<int>(space)].planned += planned;
    *spaces[static_cast<int>(space)].lowerBound += lowerBound;
  };
  for (Operation &op : program.getBody().front()) {
    if (auto buffer = dyn_cast<sched::BufferOp>(op)) {
      int64_t bytes = llvm::alignTo(sched::getBytes(buffer.getType()), sched::slotAlignment);
      add(buffer.getSpace(), bytes, bytes);
    }
    if (auto arena = dyn_cast<sched::ArenaOp>(op)) {
      add(arena.getSpace(), arena.getBytes().value_or(0), arena.getLowerBound().value_or(0));
      spaces[static_cast<int>(arena.getSpace())].arena = arena.getBytes().value_or(0);
    }
  }
  return spaces;
}

void MemorySummary::print(sched::ProgramOp program, llvm::raw_ostream &os) const {
  auto mib = [](int64_t bytes) { return llvm::format("%.1f", bytes / 1048576.0); };
  for (int space = 0; space < PLR_SPACES; ++space) {
    const SpaceMemory &memory = spaces[space];
    if (memory.planned.value_or(0) == 0)
      continue;
    os << sched::stringifySpace(static_cast<sched::Space>(space)) << " memory of a rank, MiB: planned "
       << mib(*memory.planned) << ", observed " << mib(memory.observed) << ", at least "
       << mib(memory.lowerBound.value_or(0)) << " for this order of calls\n";
  }
  if (hostFences)
    os << "host fences in a step: " << *hostFences;
  if (hostFences && allocationsAfterStart)
    os << "; large allocations after the start: " << *allocationsAfterStart;
  if (hostFences)
    os << "\n";
}

void MemorySummary::printJSON(llvm::raw_ostream &os) const {
  auto number = [](std::optional<int64_t> value) { return value ? std::to_string(*value) : std::string("null"); };
  os << "{\"spaces\": [";
  for (int space = 0; space < PLR_SPACES; ++space) {
    const SpaceMemory &memory = spaces[space];
    os << llvm::formatv("{0}{{\"space\": \"{1}\", \"planned_peak_bytes\": {2}, \"observed_peak_bytes\": {3}, "
                        "\"lower_bound_bytes\": {4}, \"arena_bytes\": {5}, \"allocations_after_start\": {6}}",
                        space == 0 ? "" : ", ", sched::stringifySpace(static_cast<sched::Space>(space)),
                        number(memory.planned), memory.observed, number(memory.lowerBound), number(memory.arena),
                        number(allocationsAfterStart));
  }
  os << "], \"host_fences\": " << number(hostFences) << ", \"resident_growth_bytes\": " << number(residentGrowth)
     << "}\n";
}

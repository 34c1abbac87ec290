//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/MemoryLimits.h"
#include "plateau/Run/Error.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>

using namespace mlir::plateau;
using namespace mlir::plateau::run;

llvm::Expected<int64_t> run::parseBytes(llvm::StringRef text) {
  llvm::StringRef number = text;
  int64_t unit = 1;
  if (number.consume_back("KiB"))
    unit = int64_t(1) << 10;
  else if (number.consume_back("MiB"))
    unit = int64_t(1) << 20;
  else if (number.consume_back("GiB"))
    unit = int64_t(1) << 30;
  int64_t value, bytes;
  if (number.getAsInteger(10, value) || value <= 0 || llvm::MulOverflow(value, unit, bytes))
    return makeError("'{0}' is no number of bytes: a positive integer, alone or with KiB, MiB or GiB behind it", text);
  return bytes;
}

std::string run::formatMiB(int64_t bytes) { return llvm::formatv("{0:f1} MiB", bytes / 1048576.0).str(); }

int64_t SystemMemory::getUsableBytes() const {
  int64_t limit = groupBytes ? std::min(machineBytes, *groupBytes) : machineBytes;
  return std::min(limit, availableBytes);
}

static std::optional<std::string> readText(const llvm::Twine &path) {
  // Files of the kernel have no size in advance.
  auto file = llvm::MemoryBuffer::getFileAsStream(path);
  if (!file)
    return std::nullopt;
  return (*file)->getBuffer().str();
}

/// The smallest number found in `file` of the group's folder and the folders above it.
static void takeGroupLimits(std::optional<int64_t> &limit, llvm::StringRef hierarchy, llvm::StringRef group,
                            llvm::StringRef file) {
  llvm::SmallString<256> folder(hierarchy);
  folder += group;
  while (folder.size() >= hierarchy.size()) {
    int64_t value;
    // "max" is no number: no limit.
    if (auto text = readText(folder + "/" + file); text && !llvm::StringRef(*text).trim().getAsInteger(10, value))
      limit = limit ? std::min(*limit, value) : value;
    if (folder.size() == hierarchy.size())
      break;
    llvm::sys::path::remove_filename(folder);
  }
}

llvm::Expected<SystemMemory> run::readSystemMemory(llvm::StringRef root) {
  SystemMemory memory;
  std::string path = (root + "/proc/meminfo").str();
  auto text = readText(path);
  if (!text)
    return makeError("{0}: cannot be read, so the memory of this machine is unknown; give --hbm-bytes and --host-bytes",
                     path);
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(*text).split(lines, '\n');
  for (llvm::StringRef line : lines) {
    auto [key, value] = line.split(':');
    int64_t kib;
    if (value.trim().split(' ').first.getAsInteger(10, kib))
      continue;
    if (key == "MemTotal")
      memory.machineBytes = kib * 1024;
    if (key == "MemAvailable")
      memory.availableBytes = kib * 1024;
  }
  if (memory.machineBytes <= 0 || memory.availableBytes <= 0)
    return makeError("{0}: gives no MemTotal and MemAvailable; give --hbm-bytes and --host-bytes", path);

  std::string groups = readText(root + "/proc/self/cgroup").value_or("");
  llvm::SmallVector<llvm::StringRef> entries;
  llvm::StringRef(groups).split(entries, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef entry : entries) {
    // "0::/group" in version 2, "number:controllers:/group" in version 1.
    auto [number, rest] = entry.split(':');
    auto [controllers, group] = rest.split(':');
    if (controllers.empty())
      takeGroupLimits(memory.groupBytes, (root + "/sys/fs/cgroup").str(), group.rtrim('/'), "memory.max");
    else if (llvm::is_contained(llvm::split(controllers, ','), "memory"))
      takeGroupLimits(memory.groupBytes, (root + "/sys/fs/cgroup/memory").str(), group.rtrim('/'),
                      "memory.limit_in_bytes");
  }
  return memory;
}

MemoryLimits run::chooseLimits(std::optional<int64_t> deviceRequest, std::optional<int64_t> hostRequest,
                               const SystemMemory &memory, int ranks, llvm::function_ref<void(llvm::StringRef)> note) {
  int64_t half = std::max<int64_t>(memory.getUsableBytes() / 2 / ranks, 1);
  MemoryLimits limits{deviceRequest.value_or(half), hostRequest.value_or(half)};
  int64_t most = memory.groupBytes ? std::min(memory.machineBytes, *memory.groupBytes) : memory.machineBytes;
  if (limits.hostBytes > most) {
    bool byGroup = most < memory.machineBytes;
    note(llvm::formatv("the host space gets {0} bytes, not the {1} asked for: {2} has no more", most, limits.hostBytes,
                       byGroup ? "the control group" : "this machine")
             .str());
    limits.hostBytes = most;
  }
  return limits;
}

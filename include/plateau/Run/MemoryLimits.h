//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// How much memory a run may use.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_MEMORYLIMITS_H
#define PLATEAU_RUN_MEMORYLIMITS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>

namespace mlir::plateau::run {

/// "1048576", "512MiB", "2GiB", "64KiB": a positive number of bytes.
llvm::Expected<int64_t> parseBytes(llvm::StringRef text);

/// "210.3 MiB".
std::string formatMiB(int64_t bytes);

/// Memory of the machine, and of the control group this process is in.
struct SystemMemory {
  int64_t machineBytes = 0;
  int64_t availableBytes = 0;        ///< Of the machine, now.
  std::optional<int64_t> groupBytes; ///< The smallest limit of the control group and those above it.

  /// What this process can hope to get.
  int64_t getUsableBytes() const;
};

/// Reads /proc/meminfo, /proc/self/cgroup and the limits under /sys/fs/cgroup; `root` stands before these paths.
llvm::Expected<SystemMemory> readSystemMemory(llvm::StringRef root = "");

struct MemoryLimits {
  int64_t deviceBytes = 0, hostBytes = 0;
};

/// Limits of one rank of `ranks`. Each space that was not asked for gets half of what is usable; the host space never
/// gets more than the machine or the control group has, and `note` tells when that cuts a request.
MemoryLimits chooseLimits(std::optional<int64_t> deviceRequest, std::optional<int64_t> hostRequest,
                          const SystemMemory &memory, int ranks, llvm::function_ref<void(llvm::StringRef)> note);

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_MEMORYLIMITS_H

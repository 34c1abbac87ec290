//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/MemoryLimits.h"
#include "FakeExecutor.h"

using namespace mlir::plateau::run;

namespace {
class MemoryLimitsTest : public RunTest {
protected:
  void write(llvm::StringRef path, llvm::StringRef contents) {
    llvm::sys::fs::create_directories(llvm::sys::path::parent_path(getPath(path)));
    writeFile(path, contents);
  }
  SystemMemory read() { return llvm::cantFail(readSystemMemory(folder)); }
};
constexpr int64_t gib = int64_t(1) << 30;
} // namespace

TEST_F(MemoryLimitsTest, ParsesBytes) {
  EXPECT_EQ(llvm::cantFail(parseBytes("12345")), 12345);
  EXPECT_EQ(llvm::cantFail(parseBytes("3KiB")), 3072);
  EXPECT_EQ(llvm::cantFail(parseBytes("2MiB")), 2097152);
  EXPECT_EQ(llvm::cantFail(parseBytes("16GiB")), 17179869184);
  for (const char *text : {"", "0", "-1", "1.5GiB", "2GB", "GiB", "9223372036854775807KiB", "1 GiB", "0x10"})
    EXPECT_NE(getText(parseBytes(text)), "") << text;
}

TEST_F(MemoryLimitsTest, TheControlGroupCounts) {
  write("proc/meminfo", "MemTotal:  33554432 kB\nMemFree: 1 kB\nMemAvailable:   25165824 kB\nHugePages_Total:  0\n");
  EXPECT_EQ(read().machineBytes, 32 * gib);
  EXPECT_EQ(read().getUsableBytes(), 24 * gib);
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(read().getUsableBytes(), 24 * gib);
  write("sys/fs/cgroup/a/memory.max", "4294967296\n"); // of the group above
  EXPECT_EQ(read().getUsableBytes(), 4 * gib);
  write("sys/fs/cgroup/memory.max", "2147483648\n");
  EXPECT_EQ(read().getUsableBytes(), 2 * gib);
}

TEST_F(MemoryLimitsTest, TheFirstVersionOfControlGroups) {
  write("proc/meminfo", "MemTotal:  33554432 kB\nMemAvailable:   25165824 kB\n");
  write("proc/self/cgroup", "5:cpu,memory:/job\n4:pids:/x\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "3221225472\n");
  EXPECT_EQ(read().getUsableBytes(), 3 * gib);
}

TEST_F(MemoryLimitsTest, WithoutMemoryInformation) {
  EXPECT_NE(getText(readSystemMemory(folder)).find("meminfo: cannot be read"), std::string::npos);
}

TEST_F(MemoryLimitsTest, Chooses) {
  std::string notes;
  auto note = [&](llvm::StringRef text) { notes += text; };
  SystemMemory memory{32 * gib, 24 * gib, 4 * gib};
  MemoryLimits limits = chooseLimits({}, {}, memory, 2, note);
  EXPECT_EQ(limits.deviceBytes, gib);
  EXPECT_EQ(limits.hostBytes, gib);
  limits = chooseLimits(64 * gib, 3 * gib, memory, 1, note);
  EXPECT_EQ(limits.deviceBytes, 64 * gib);
  EXPECT_EQ(limits.hostBytes, 3 * gib);
  EXPECT_EQ(notes, "");
  limits = chooseLimits({}, 8 * gib, memory, 1, note);
  EXPECT_EQ(limits.hostBytes, 4 * gib);
  EXPECT_EQ(notes, "the host space gets 4294967296 bytes, not the 8589934592 asked for: the control group has no more");
}

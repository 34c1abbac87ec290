//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "rank.h"
#include <cstring>
#include <limits>

using namespace plateau::rt::test;

TEST(Memory, BlocksAreAlignedAndApart) {
  Rank rank;
  std::vector<char *> pointers;
  for (int64_t bytes : {1, 63, 64, 65, 1000, 0, 4096}) {
    auto *pointer = static_cast<char *>(plr_allocate(rank, PLR_DEVICE, bytes, &denseTag));
    ASSERT_NE(pointer, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pointer) % 64, 0u);
    std::memset(pointer, static_cast<int>(pointers.size()), bytes);
    pointers.push_back(pointer);
  }
  // 64 + 64 + 64 + 128 + 1024 + 0 + 4096
  EXPECT_EQ(rank.report().live_bytes, 5440);
  EXPECT_EQ(pointers[0][0], 0);
  EXPECT_EQ(pointers[4][999], 4);
  for (char *pointer : pointers)
    plr_release(rank, PLR_DEVICE, pointer);
  plr_space_report report = rank.report();
  EXPECT_EQ(report.live_bytes, 0);
  EXPECT_EQ(report.peak_bytes, 5440);
  EXPECT_EQ(report.extent_bytes, 5440);
  EXPECT_EQ(report.allocations, 7);
  EXPECT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
}

TEST(Memory, EmptyBlocksAreReleasedOnceEach) {
  Rank rank;
  void *first = plr_allocate(rank, PLR_DEVICE, 0, &denseTag), *second = plr_allocate(rank, PLR_DEVICE, 0, &denseTag);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  plr_release(rank, PLR_DEVICE, first);
  plr_release(rank, PLR_DEVICE, second);
  EXPECT_EQ(plr_context_error(rank, nullptr), PLR_OK);
  plr_release(rank, PLR_DEVICE, second);
  EXPECT_EQ(plr_context_error(rank, nullptr), PLR_INVALID_ARGUMENT);
}

TEST(Memory, ASpaceOfNoBytesHoldsEmptyBlocksOnly) {
  plr_config config = makeConfig();
  config.host_bytes = 0;
  Rank rank(config);
  EXPECT_NE(plr_allocate(rank, PLR_HOST, 0, &denseTag), nullptr);
  EXPECT_EQ(plr_allocate(rank, PLR_HOST, 1, &denseTag), nullptr);
  EXPECT_EQ(plr_context_error(rank, nullptr), PLR_OUT_OF_MEMORY);
}

TEST(Memory, TheWholeLimitCanBeHad) {
  plr_config config = makeConfig();
  config.device_bytes = 1024;
  Rank rank(config);
  std::vector<void *> pointers;
  for (int i = 0; i < 16; ++i)
    pointers.push_back(plr_allocate(rank, PLR_DEVICE, 64, &denseTag));
  EXPECT_EQ(plr_context_error(rank, nullptr), PLR_OK);
  for (void *pointer : pointers)
    plr_release(rank, PLR_DEVICE, pointer);
  EXPECT_NE(plr_allocate(rank, PLR_DEVICE, 1024, &denseTag), nullptr);
  EXPECT_EQ(plr_allocate(rank, PLR_DEVICE, 1, &denseTag), nullptr);
}

TEST(Memory, SpacesAreApart) {
  Rank rank;
  void *device = plr_allocate(rank, PLR_DEVICE, 128, &denseTag), *host = plr_allocate(rank, PLR_HOST, 64, &denseTag);
  EXPECT_NE(device, host);
  EXPECT_EQ(rank.report(PLR_DEVICE).live_bytes, 128);
  EXPECT_EQ(rank.report(PLR_HOST).live_bytes, 64);
  EXPECT_EQ(rank.report(PLR_DEVICE).limit_bytes, 64 << 20);
  EXPECT_EQ(rank.report(PLR_HOST).limit_bytes, 1 << 20);
}

// Live bytes after each line: attention 640 | dense 640 + 1280 | attention gone: 1280 | loss 1280 + 320.
TEST(Memory, PeaksAreCountedByComponentAndPhase) {
  Rank rank;
  void *attention = plr_allocate(rank, PLR_DEVICE, 640, &attentionTag);
  void *dense = plr_allocate(rank, PLR_DEVICE, 1280, &denseTag);
  plr_release(rank, PLR_DEVICE, attention);
  void *loss = plr_allocate(rank, PLR_DEVICE, 320, &lossTag);
  plr_space_report report = rank.report();
  EXPECT_EQ(report.live_bytes, 1600);
  EXPECT_EQ(report.peak_bytes, 1920);
  EXPECT_EQ(report.extent_bytes, 1920);
  EXPECT_EQ(report.allocations, 3);
  EXPECT_EQ(report.at_peak_bytes[PLR_ATTENTION], 640);
  EXPECT_EQ(report.at_peak_bytes[PLR_DENSE], 1280);
  EXPECT_EQ(report.at_peak_bytes[PLR_VOCABULARY], 0);
  EXPECT_EQ(report.component_peak_bytes[PLR_ATTENTION], 640);
  EXPECT_EQ(report.component_peak_bytes[PLR_DENSE], 1280);
  EXPECT_EQ(report.component_peak_bytes[PLR_VOCABULARY], 320);
  EXPECT_EQ(report.phase_peak_bytes[PLR_FORWARD], 1600);
  EXPECT_EQ(report.phase_peak_bytes[PLR_BACKWARD], 1920);
  EXPECT_EQ(report.phase_peak_bytes[PLR_OPTIMIZER_PHASE], 0);

  plr_release(rank, PLR_DEVICE, dense);
  plr_reset_peak(rank);
  report = rank.report();
  EXPECT_EQ(report.peak_bytes, 320);
  EXPECT_EQ(report.extent_bytes, 640); // The loss took half the place of the attention: the other half is a hole.
  EXPECT_EQ(report.at_peak_bytes[PLR_VOCABULARY], 320);
  EXPECT_EQ(report.at_peak_bytes[PLR_DENSE], 0);
  EXPECT_EQ(report.component_peak_bytes[PLR_DENSE], 0);
  EXPECT_EQ(report.phase_peak_bytes[PLR_BACKWARD], 320);
  EXPECT_EQ(report.allocations, 3);
  plr_release(rank, PLR_DEVICE, loss);
}

TEST(Memory, AShortageNamesNumbersAndHolders) {
  plr_config config = makeConfig();
  config.device_bytes = 64 * 100;
  config.rank = 5;
  config.ranks = 8;
  Rank rank(config);
  // 40 + 30 + 9 + 8 + 7 + 1 of 100 lines live; the second block of 2 lines is released again: 5 free, 3 in one piece.
  const int64_t lines[] = {40, 2, 30, 9, 8, 7, 1};
  std::vector<void *> pointers;
  for (int64_t count : lines)
    pointers.push_back(plr_allocate(rank, PLR_DEVICE, 64 * count, count == 9 ? &lossTag : &attentionTag));
  plr_release(rank, PLR_DEVICE, pointers[1]);
  EXPECT_EQ(plr_allocate(rank, PLR_DEVICE, 64 * 4, &denseTag), nullptr);
  EXPECT_EQ(plr_context_error(rank, nullptr), PLR_OUT_OF_MEMORY);
  EXPECT_EQ(rank.message(),
            "rank 5: plr_allocate: out of device memory for linalg.matmul up_proj (layer 1, dense, backward): "
            "256 bytes asked, 320 bytes free (largest free block 192), limit of the device space 6400 bytes; there is "
            "room, but not in one piece; the largest of 6 live buffers: "
            "2560 bytes of linalg.matmul q_proj (layer 3, attention, forward); "
            "1920 bytes of linalg.matmul q_proj (layer 3, attention, forward); "
            "576 bytes of moe.nll (vocabulary, forward); "
            "512 bytes of linalg.matmul q_proj (layer 3, attention, forward); "
            "448 bytes of linalg.matmul q_proj (layer 3, attention, forward). "
            "Raise the limit, give each step fewer tokens, or checkpoint its layers");
  // What was live is still told.
  plr_space_report report = {};
  EXPECT_EQ(plr_memory_report(rank, PLR_DEVICE, &report), PLR_OUT_OF_MEMORY);
  EXPECT_EQ(report.live_bytes, 64 * 95);
}

TEST(Memory, PoisonFillsWhatIsHandedOutAndTakenBack) {
  plr_config config = makeConfig();
  config.poison = 1;
  Rank rank(config);
  auto *first = static_cast<float *>(plr_allocate(rank, PLR_DEVICE, 400, &denseTag));
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(first[i] != first[i]);
  // A task that was enqueued before the release sees what it should; afterwards nobody does.
  float kept[100] = {};
  Gate gate;
  for (int i = 0; i < 100; ++i)
    first[i] = static_cast<float>(i);
  gate.close(rank.lane());
  plr_copy(rank.lane(), &denseTag, kept, first, 400);
  std::thread opener([&] { gate.release(); });
  plr_release(rank, PLR_DEVICE, first);
  opener.join();
  EXPECT_EQ(kept[99], 99);
  unsigned char bytes[400];
  std::memcpy(bytes, first, sizeof bytes);
  for (unsigned char byte : bytes)
    EXPECT_EQ(byte, 0xFF);
}

TEST(Memory, WithoutPoisonBytesStay) {
  Rank rank;
  auto *first = static_cast<int *>(plr_allocate(rank, PLR_DEVICE, 64, &denseTag));
  *first = 12345;
  plr_release(rank, PLR_DEVICE, first);
  auto *second = static_cast<int *>(plr_allocate(rank, PLR_DEVICE, 64, &denseTag));
  EXPECT_EQ(first, second);
  EXPECT_EQ(*second, 12345);
}

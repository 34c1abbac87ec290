//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "rank.h"
#include <cstring>

using namespace plateau::rt::test;

static plr_config makeTracedConfig() {
  plr_config config = makeConfig();
  config.trace = 1;
  return config;
}

static std::vector<plr_span> readAll(plr_context *context) {
  std::vector<plr_span> spans(plr_trace(context, 0, nullptr, 0));
  EXPECT_EQ(plr_trace(context, 0, spans.data(), static_cast<int64_t>(spans.size())),
            static_cast<int64_t>(spans.size()));
  return spans;
}

TEST(Trace, NamesEveryCallInOrder) {
  Rank rank(makeTracedConfig());
  std::vector<float> a(6 * 4, 1), b(4 * 5, 1), c(6 * 5);
  plr_zero(rank.lane(PLR_COMPUTE), &lossTag, c.data(), 8);
  plr_copy(rank.lane(PLR_H2D), &denseTag, b.data(), a.data(), 16);
  plr_wait(rank.lane(PLR_COMPUTE), plr_record(rank.lane(PLR_H2D)));
  plr_gemm(rank.lane(PLR_COMPUTE), &attentionTag, 0, 1, 0, PLR_F32, PLR_F32, 6, 5, 4, a.data(), b.data(), c.data(),
           nullptr, PLR_FROM_POOL);
  plr_gemm(rank.lane(PLR_COMPUTE), &attentionTag, 1, 0, 1, PLR_F32, PLR_F32, 6, 5, 0, nullptr, nullptr, c.data(),
           nullptr, PLR_FROM_POOL);
  plr_launch(rank.lane(PLR_COMPUTE), &lossTag, [](void **) {}, nullptr, 0);
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  std::vector<plr_span> spans = readAll(rank);
  ASSERT_EQ(spans.size(), 5u);
  const char *calls[] = {"plr_zero", "plr_copy", "plr_gemm", "plr_gemm", "plr_launch"};
  for (int i = 0; i < 5; ++i) {
    EXPECT_STREQ(spans[i].call, calls[i]);
    EXPECT_EQ(spans[i].lane, i == 1 ? PLR_H2D : PLR_COMPUTE);
    EXPECT_GE(spans[i].start_ns, 0);
    EXPECT_GE(spans[i].end_ns, spans[i].start_ns);
    EXPECT_EQ(spans[i].flops, i == 2 ? 2 * 6 * 5 * 4 : 0);
  }
  EXPECT_EQ(spans[0].tag, &lossTag);
  EXPECT_EQ(spans[1].tag, &denseTag);
  EXPECT_EQ(spans[2].tag, &attentionTag);
  EXPECT_LE(spans[0].end_ns, spans[2].start_ns);
  EXPECT_LE(spans[1].end_ns, spans[2].start_ns);
  const int64_t first[8] = {0, 1, 0, PLR_F32, PLR_F32, 6, 5, 4}, second[8] = {1, 0, 1, PLR_F32, PLR_F32, 6, 5, 0};
  EXPECT_EQ(std::memcmp(spans[2].shape, first, sizeof first), 0);
  EXPECT_EQ(std::memcmp(spans[3].shape, second, sizeof second), 0);
  EXPECT_EQ(spans[0].shape[5], 0);
}

TEST(Trace, IsReadInPieces) {
  Rank rank(makeTracedConfig());
  std::vector<plr_tag> tags(2000, lossTag);
  float value = 0;
  for (plr_tag &tag : tags)
    plr_zero(rank.lane(), &tag, &value, 4);
  plr_synchronize(rank);
  plr_span piece[300];
  for (int64_t first = 0; first < 2100; first += 300) {
    EXPECT_EQ(plr_trace(rank, first, piece, 300), 2000);
    for (int64_t i = 0; i < 300 && first + i < 2000; ++i)
      ASSERT_EQ(piece[i].tag, &tags[first + i]);
  }
  plr_trace_clear(rank);
  EXPECT_EQ(plr_trace(rank, 0, nullptr, 0), 0);
  plr_zero(rank.lane(), &denseTag, &value, 4);
  std::vector<plr_span> spans = readAll(rank);
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].tag, &denseTag);
}

TEST(Trace, IsEmptyWhenNotAskedFor) {
  Rank rank;
  float value;
  plr_zero(rank.lane(), &lossTag, &value, 4);
  plr_synchronize(rank);
  EXPECT_EQ(plr_trace(rank, 0, nullptr, 0), 0);
}

TEST(Trace, LeavesOutCallsThatDidNotRun) {
  Rank rank(makeTracedConfig());
  float value;
  Gate gate;
  plr_zero(rank.lane(), &lossTag, &value, 4);
  gate.close(rank.lane());
  gate.waitUntilReached();
  plr_zero(rank.lane(), &lossTag, &value, 4);
  plr_zero(rank.lane(), &lossTag, &value, -1);
  gate.release();
  EXPECT_EQ(plr_synchronize(rank), PLR_INVALID_ARGUMENT);
  EXPECT_EQ(plr_trace(rank, 0, nullptr, 0), 2);
}

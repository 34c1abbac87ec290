//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/blocks.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <random>

using namespace plateau::rt;

static const plr_tag owner = {"owner", -1, PLR_DENSE, PLR_FORWARD};

namespace {
/// The same contract without any structure: every line of 64 bytes is taken or not.
class Model {
public:
  Model(int64_t lines, int64_t small) : taken(lines, false), small(small) {}

  /// The smallest free run that holds `lines`, the lowest of several; for fewer than `small` lines, when that run has
  /// no fewer, the end of the highest run that holds them. -1 when no run does.
  int64_t allocate(int64_t lines) {
    int64_t best = -1, bestLength = 0;
    for (auto [begin, length] : getFreeRuns())
      if (length >= lines && (best < 0 || length < bestLength)) {
        best = begin;
        bestLength = length;
      }
    if (best >= 0 && lines < small && bestLength >= small)
      for (auto [begin, length] : getFreeRuns())
        if (length >= lines)
          best = begin + length - lines;
    if (best >= 0)
      std::fill_n(taken.begin() + best, lines, true);
    return best;
  }
  void release(int64_t begin, int64_t lines) { std::fill_n(taken.begin() + begin, lines, false); }

  std::vector<std::pair<int64_t, int64_t>> getFreeRuns() const {
    std::vector<std::pair<int64_t, int64_t>> runs;
    for (int64_t i = 0; i < static_cast<int64_t>(taken.size()); ++i)
      if (!taken[i]) {
        if (i == 0 || taken[i - 1])
          runs.push_back({i, 0});
        ++runs.back().second;
      }
    return runs;
  }

private:
  std::vector<bool> taken;
  int64_t small;
};
} // namespace

TEST(Blocks, AgreeWithAModel) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const int64_t lines = 40 + static_cast<int64_t>(random() % 400);
    const int64_t small = static_cast<int64_t>(random() % 10);
    Blocks blocks(lines * 64 + static_cast<int64_t>(random() % 64), small * 64);
    ASSERT_EQ(blocks.getCapacity(), lines * 64);
    Model model(lines, small);
    std::vector<std::pair<int64_t, int64_t>> live;
    for (int step = 0; step < 2000; ++step) {
      if (random() % 100 < 55) {
        int64_t count = 1 + static_cast<int64_t>(random() % (random() % 8 == 0 ? lines : 12));
        int64_t bytes = count * 64 - static_cast<int64_t>(random() % 64);
        int64_t expected = model.allocate(count);
        std::optional<int64_t> offset = blocks.allocate(bytes, &owner);
        ASSERT_EQ(offset.value_or(-64), expected * 64) << "seed " << seed << " step " << step;
        if (offset) {
          ASSERT_EQ(blocks.getLiveBytes(*offset), count * 64);
          live.push_back({expected, count});
        }
      } else if (!live.empty()) {
        size_t index = random() % live.size();
        auto [begin, count] = live[index];
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(index));
        model.release(begin, count);
        std::optional<Blocks::Released> released = blocks.release(begin * 64);
        ASSERT_TRUE(released);
        ASSERT_EQ(released->bytes, count * 64);
        ASSERT_EQ(released->owner, &owner);
        ASSERT_FALSE(blocks.release(begin * 64)) << "released twice";
      }
      int64_t freeLines = 0, largest = 0;
      for (auto [begin, length] : model.getFreeRuns()) {
        freeLines += length;
        largest = std::max(largest, length);
      }
      ASSERT_EQ(blocks.getFreeBytes(), freeLines * 64);
      ASSERT_EQ(blocks.getLargestFree(), largest * 64);
      ASSERT_EQ(blocks.getExtent(), (lines - largest) * 64);
    }
    std::sort(live.begin(), live.end());
    std::vector<Blocks::Live> listed = blocks.getLive();
    ASSERT_EQ(listed.size(), live.size());
    for (size_t i = 0; i < live.size(); ++i) {
      EXPECT_EQ(listed[i].offset, live[i].first * 64);
      EXPECT_EQ(listed[i].bytes, live[i].second * 64);
    }
  }
}

TEST(Blocks, HugeRequestsAreRefused) {
  Blocks blocks(1 << 20);
  EXPECT_FALSE(blocks.allocate(INT64_MAX, &owner));
  EXPECT_FALSE(blocks.allocate((1 << 20) + 1, &owner));
  EXPECT_TRUE(blocks.allocate(1 << 20, &owner));
  EXPECT_FALSE(Blocks(0).allocate(1, &owner));
}

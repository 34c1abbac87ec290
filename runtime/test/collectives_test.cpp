//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What collectives compute, against loops over plain numbers.

#include "kernels_support.h"
#include "ranks.h"

using namespace plateau::rt::test;

namespace {

constexpr plr_tag gradientTag = {"moe.all_reduce", -1, PLR_GRADIENTS, PLR_BACKWARD};

/// Numbers of any type of a collective, as bytes.
struct Data {
  Data(plr_type type, int64_t count) : type(type), bytes(count * width(type) + 8, 0xEE) {}
  Data(plr_type type, const std::vector<double> &values) : Data(type, static_cast<int64_t>(values.size())) {
    for (size_t i = 0; i < values.size(); ++i)
      set(i, values[i]);
  }
  static int64_t width(plr_type type) { return type == PLR_BF16 ? 2 : type == PLR_F64 ? 8 : 4; }
  void *data() { return bytes.data(); }
  int64_t size() const { return (static_cast<int64_t>(bytes.size()) - 8) / width(type); }
  void set(int64_t i, double value) {
    unsigned char *to = bytes.data() + i * width(type);
    if (type == PLR_F64) {
      std::memcpy(to, &value, 8);
    } else if (type == PLR_I32) {
      int32_t number = static_cast<int32_t>(value);
      std::memcpy(to, &number, 4);
    } else {
      Tensor one(type, 1);
      one.set(0, value);
      std::memcpy(to, one.data(), width(type));
    }
  }
  bool operator==(const Data &other) const { return bytes == other.bytes; }

  plr_type type;
  std::vector<unsigned char> bytes;
};

/// Numbers of very different sizes, whose sum depends on its order; exact in the type.
std::vector<double> makeValues(plr_type type, int64_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<double> values(count);
  for (double &value : values) {
    if (type == PLR_I32) {
      value = static_cast<int32_t>(generator());
    } else {
      int exponent = static_cast<int>(generator() % 24) - 12;
      value = std::ldexp(static_cast<double>(generator()) / 0x1p32 - 0.5, exponent);
      if (type != PLR_F64)
        value = roundTo(type, value);
    }
  }
  return values;
}

/// The sum of one element of several ranks, in the given order.
double sumInOrder(plr_type type, const std::vector<std::vector<double>> &inputs, int64_t i, bool reversed = false) {
  size_t ranks = inputs.size();
  double sum = inputs[reversed ? ranks - 1 : 0][i];
  for (size_t j = 1; j < ranks; ++j) {
    double next = inputs[reversed ? ranks - 1 - j : j][i];
    if (type == PLR_I32)
      sum = std::remainder(sum + next, 0x1p32);
    else
      sum = type == PLR_F64 ? sum + next : static_cast<double>(static_cast<float>(sum) + static_cast<float>(next));
  }
  if (type == PLR_I32 && sum == 0x1p31)
    sum = -0x1p31;
  return type == PLR_BF16 ? roundTo(type, sum) : sum;
}

constexpr plr_type types[] = {PLR_F32, PLR_BF16, PLR_I32, PLR_F64};
constexpr int64_t counts[] = {0, 1, 5, 7, 64, 1000, 5003};

class Collectives : public testing::TestWithParam<int> {
protected:
  int32_t ranks = GetParam();

  /// Runs `body(rank, number, type, count)` for all types and counts; each has inputs of `factor(count)` numbers.
  template <typename Body>
  void forAll(int64_t factor, const Body &body) {
    Ranks run(ranks);
    for (plr_type type : types)
      for (int64_t count : counts) {
        inputs.clear();
        for (int32_t rank = 0; rank < ranks; ++rank)
          inputs.push_back(makeValues(type, factor * count, 1 + rank));
        run.runWell([&](Rank &rank, int32_t number) { body(rank, number, type, count); });
      }
  }
  std::vector<std::vector<double>> inputs;
};

} // namespace

TEST_P(Collectives, AllReduceSumsInRankOrder) {
  int64_t dependent = 0;
  forAll(1, [&](Rank &rank, int32_t number, plr_type type, int64_t count) {
    Data input(type, inputs[number]), result(type, count), expected(type, count);
    for (int64_t i = 0; i < count; ++i) {
      expected.set(i, sumInOrder(type, inputs, i));
      if (number == 0)
        dependent += sumInOrder(type, inputs, i) != sumInOrder(type, inputs, i, true);
    }
    Data before = input;
    plr_group *group = getWorld(rank, ranks);
    plr_all_reduce(rank.lane(PLR_COMM), &gradientTag, group, type, count, input.data(), result.data());
    plr_synchronize(rank);
    EXPECT_TRUE(result == expected) << "type " << type << " count " << count << " rank " << number;
    EXPECT_TRUE(input == before);
    plr_all_reduce(rank.lane(PLR_COMM), &gradientTag, group, type, count, input.data(), input.data());
    plr_synchronize(rank);
    EXPECT_TRUE(input == expected) << "in place: type " << type << " count " << count << " rank " << number;
  });
  if (ranks > 2) {
    EXPECT_GT(dependent, 1000) << "the order of these sums does not matter";
  }
}

TEST_P(Collectives, AllGatherKeepsRankOrder) {
  forAll(1, [&](Rank &rank, int32_t number, plr_type type, int64_t count) {
    std::vector<double> all;
    for (const std::vector<double> &values : inputs)
      all.insert(all.end(), values.begin(), values.end());
    Data input(type, inputs[number]), result(type, count * ranks), expected(type, all);
    plr_group *group = getWorld(rank, ranks);
    plr_all_gather(rank.lane(), &gradientTag, group, type, count, input.data(), result.data());
    plr_synchronize(rank);
    EXPECT_TRUE(result == expected) << "type " << type << " count " << count << " rank " << number;
    // The input may lie at its place in the result.
    Data again(type, count * ranks);
    unsigned char *place = again.bytes.data() + number * count * Data::width(type);
    std::memcpy(place, input.data(), count * Data::width(type));
    plr_all_gather(rank.lane(), &gradientTag, group, type, count, place, again.data());
    plr_synchronize(rank);
    EXPECT_TRUE(again == expected) << "in place: type " << type << " count " << count << " rank " << number;
  });
}

TEST_P(Collectives, ReduceScatterSumsInRankOrder) {
  forAll(ranks, [&](Rank &rank, int32_t number, plr_type type, int64_t count) {
    Data input(type, inputs[number]), result(type, count), expected(type, count);
    for (int64_t i = 0; i < count; ++i)
      expected.set(i, sumInOrder(type, inputs, number * count + i));
    plr_group *group = getWorld(rank, ranks);
    plr_reduce_scatter(rank.lane(PLR_COMM), &gradientTag, group, type, count, input.data(), result.data());
    plr_synchronize(rank);
    EXPECT_TRUE(result == expected) << "type " << type << " count " << count << " rank " << number;
    void *place = input.bytes.data() + number * count * Data::width(type);
    plr_reduce_scatter(rank.lane(PLR_COMM), &gradientTag, group, type, count, input.data(), place);
    plr_synchronize(rank);
    EXPECT_EQ(std::memcmp(place, expected.data(), count * Data::width(type)), 0);
  });
}

// Rank s sends (3s + 5r) mod 4 numbers to rank r; the i-th is 10000s + 100r + i.
TEST_P(Collectives, AllToAllSendsEveryRankItsPart) {
  auto size = [](int32_t from, int32_t to) { return (3 * from + 5 * to) % 4; };
  Ranks run(ranks);
  for (int round = 0; round < 3; ++round)
    run.runWell([&](Rank &rank, int32_t number) {
      std::vector<int32_t> input, expected;
      std::vector<int64_t> sends, receives;
      for (int32_t peer = 0; peer < ranks; ++peer) {
        sends.push_back(4 * size(number, peer));
        receives.push_back(4 * size(peer, number));
        for (int i = 0; i < size(number, peer); ++i)
          input.push_back(10000 * number + 100 * peer + i);
        for (int i = 0; i < size(peer, number); ++i)
          expected.push_back(10000 * peer + 100 * number + i);
      }
      std::vector<int32_t> result(expected.size(), -1);
      plr_all_to_all(rank.lane(PLR_COMM), &gradientTag, getWorld(rank, ranks), sends.data(), receives.data(),
                     input.data(), result.data());
      std::fill(sends.begin(), sends.end(), -1); // The call has copied them.
      std::fill(receives.begin(), receives.end(), -1);
      plr_synchronize(rank);
      EXPECT_EQ(result, expected);
    });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, testing::Values(1, 2, 3, 4, 8), testing::PrintToStringParamName());

TEST(Groups, OfOneRankNeedNoTransport) {
  Rank rank;
  const int64_t shape[] = {1, 1};
  plr_group *group = plr_get_group(rank, shape, 2, 1);
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(plr_group_size(group), 1);
  EXPECT_EQ(plr_group_rank(group), 0);
  EXPECT_EQ(group, plr_get_group(rank, shape, 2, 0));
  EXPECT_EQ(group, plr_get_group(rank, nullptr, 0, 0));
  float input = 3, result = 0;
  plr_all_reduce(rank.lane(), &gradientTag, group, PLR_F32, 1, &input, &result);
  EXPECT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  EXPECT_EQ(result, 3);
}

// A rank of a grid sums the numbers 2^rank of its group: the sum tells who is in it.
static void expectGroups(std::vector<int64_t> shape, int64_t axes, const std::vector<int32_t> &sums,
                         const std::vector<int32_t> &places) {
  Ranks run(static_cast<int32_t>(sums.size()));
  run.runWell([&](Rank &rank, int32_t number) {
    plr_group *group = plr_get_group(rank, shape.data(), static_cast<int64_t>(shape.size()), axes);
    int32_t bit = 1 << number, sum = 0;
    plr_all_reduce(rank.lane(PLR_COMM), &gradientTag, group, PLR_I32, 1, &bit, &sum);
    plr_synchronize(rank);
    EXPECT_EQ(sum, sums[number]) << "rank " << number;
    EXPECT_EQ(plr_group_rank(group), places[number]);
    EXPECT_EQ(plr_group_size(group), __builtin_popcount(sums[number]));
  });
}

TEST(Groups, LieAlongTheAxesOfAGrid) {
  // Ranks 0 1 / 2 3.
  expectGroups({2, 2}, 1, {0b0101, 0b1010, 0b0101, 0b1010}, {0, 0, 1, 1});
  expectGroups({2, 2}, 2, {0b0011, 0b0011, 0b1100, 0b1100}, {0, 1, 0, 1});
  expectGroups({2, 2}, 3, {15, 15, 15, 15}, {0, 1, 2, 3});
  expectGroups({2, 2}, 0, {1, 2, 4, 8}, {0, 0, 0, 0});
  // Ranks 0 1 2 3 / 4 5 6 7.
  expectGroups({2, 4}, 1, {0x11, 0x22, 0x44, 0x88, 0x11, 0x22, 0x44, 0x88}, {0, 0, 0, 0, 1, 1, 1, 1});
  expectGroups({2, 4}, 2, {0x0f, 0x0f, 0x0f, 0x0f, 0xf0, 0xf0, 0xf0, 0xf0}, {0, 1, 2, 3, 0, 1, 2, 3});
  // 2 x 2 x 2 along the first and the last axis: 0 1 4 5 and 2 3 6 7.
  expectGroups({2, 2, 2}, 5, {0x33, 0x33, 0xcc, 0xcc, 0x33, 0x33, 0xcc, 0xcc}, {0, 1, 0, 1, 2, 3, 2, 3});
}

TEST(Groups, OfOneContextAreKept) {
  Ranks run(4);
  const int64_t line = 4, grid[] = {2, 2};
  EXPECT_EQ(plr_get_group(run[1], &line, 1, 1), plr_get_group(run[1], grid, 2, 3));
  EXPECT_NE(plr_get_group(run[1], grid, 2, 1), plr_get_group(run[1], grid, 2, 2));
  EXPECT_NE(plr_get_group(run[1], &line, 1, 1), plr_get_group(run[2], &line, 1, 1));
}

// Lanes are apart: what one does between two collectives does not matter to the other.
TEST(Groups, MeetOnEachLaneByItself) {
  Ranks run(2);
  run.runWell([&](Rank &rank, int32_t number) {
    plr_group *group = getWorld(rank, 2);
    int32_t first[2] = {1, 2}, second[2] = {10, 20};
    plr_lane_kind lanes[2] = {PLR_COMM, PLR_COMPUTE};
    // The ranks use the lanes in opposite order.
    for (int i = 0; i < 2; ++i) {
      plr_lane *lane = rank.lane(lanes[(i + number) % 2]);
      int32_t *values = (i + number) % 2 == 0 ? first : second;
      plr_all_reduce(lane, &gradientTag, group, PLR_I32, 2, values, values);
    }
    plr_synchronize(rank);
    EXPECT_EQ(first[1], 4);
    EXPECT_EQ(second[0], 20);
  });
}

// Many rounds of small collectives in three groups: nobody is overtaken.
TEST(Groups, TakeTurnsManyTimes) {
  Ranks run(4);
  const int64_t grid[] = {2, 2};
  run.runWell([&](Rank &rank, int32_t number) {
    plr_group *groups[3];
    for (int64_t axes = 1; axes <= 3; ++axes)
      groups[axes - 1] = plr_get_group(rank, grid, 2, axes);
    int64_t wrong = 0;
    std::vector<int32_t> inputs(300), results(300);
    for (int i = 0; i < 300; ++i) {
      inputs[i] = i + number;
      plr_all_reduce(rank.lane(PLR_COMM), &gradientTag, groups[i % 3], PLR_I32, 1, &inputs[i], &results[i]);
    }
    plr_synchronize(rank);
    for (int i = 0; i < 300; ++i) {
      // Rows 0 1 and 2 3, columns 0 2 and 1 3, all.
      int32_t expected = i % 3 == 0   ? 2 * i + 2 * (number % 2) + 2
                         : i % 3 == 1 ? 2 * i + 4 * (number / 2) + 1
                                      : 4 * i + 6;
      wrong += results[i] != expected;
    }
    EXPECT_EQ(wrong, 0);
  });
}

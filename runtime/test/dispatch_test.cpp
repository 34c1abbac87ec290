//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Plans, dispatch and combine against a list of all rows of all ranks, sorted the obvious way.

#include "common/plan.h"
#include "kernels_support.h"
#include "plan_shape.h"
#include "ranks.h"
#include <optional>

using namespace plateau::rt::test;

namespace {

constexpr plr_tag dispatchTag = {"moe.dispatch", 1, PLR_DISPATCH, PLR_FORWARD};

/// The ids of each rank's tokens, [tokens, top_k].
struct Case {
  std::string name;
  int64_t topK, experts;
  std::vector<std::vector<int32_t>> ids;

  int64_t getRanks() const { return static_cast<int64_t>(ids.size()); }
  int64_t getTokens(int32_t rank) const { return static_cast<int64_t>(ids[rank].size()) / topK; }
};

/// What a route is, wherever its row lies.
struct Route {
  int32_t expert, source;
  int64_t token, slot;
  bool operator<(const Route &other) const {
    return std::tie(expert, source, token, slot) < std::tie(other.expert, other.source, other.token, other.slot);
  }
};

std::vector<Route> listRoutes(const Case &c) {
  std::vector<Route> routes;
  for (size_t rank = 0; rank < c.ids.size(); ++rank)
    for (size_t i = 0; i < c.ids[rank].size(); ++i)
      if (c.ids[rank][i] != -1)
        routes.push_back({c.ids[rank][i], static_cast<int32_t>(rank), static_cast<int64_t>(i) / c.topK,
                          static_cast<int64_t>(i) % c.topK});
  std::sort(routes.begin(), routes.end());
  return routes;
}

/// Memory of a rank, released with it.
struct Buffer {
  Buffer(Rank &rank, int64_t bytes, plr_space space = PLR_DEVICE)
      : rank(rank), space(space), bytes(bytes), pointer(plr_allocate(rank, space, bytes, &dispatchTag)) {}
  ~Buffer() { plr_release(rank, space, pointer); }
  float *floats() const { return static_cast<float *>(pointer); }
  Rank &rank;
  plr_space space;
  int64_t bytes;
  void *pointer;
};

/// Where plan and staging lie: in memory that the calls take from the pool, or in the caller's, known from shapes
/// alone.
enum class Memory { Pool, Caller };

/// The caller's memory for a case.
struct PlannedMemory {
  Buffer host, device, scratch;
  PlannedMemory(Rank &rank, const Case &c, int32_t number, int64_t rowBytes)
      : host(rank, getPlanHostBytes(c.getRanks(), makeShape(0, c.topK, c.experts)), PLR_HOST),
        device(rank, plr_footprint_plan_device(c.getTokens(number), c.topK)),
        scratch(rank, plr_footprint_exchange(c.getRanks(), c.getTokens(number) * c.topK, rowBytes, 1)) {}

  plr_plan *fill(plr_group *group, const Case &c, int64_t tokens, const Buffer &ids) {
    plr_lane *lane = host.rank.lane();
    fillPlan(lane, &dispatchTag, group, tokens, c.topK, c.experts, static_cast<int32_t *>(ids.pointer), host.pointer,
             host.bytes, device.pointer, device.bytes);
    EXPECT_EQ(plr_fence(plr_record(lane)), PLR_OK) << host.rank.message();
    return static_cast<plr_plan *>(host.pointer);
  }
};

Tensor read(const Buffer &buffer, plr_type type, int64_t count) {
  Tensor tensor(type, count);
  std::memcpy(tensor.data(), buffer.pointer, count * (type == PLR_BF16 ? 2 : 4));
  return tensor;
}
void write(const Buffer &buffer, Tensor tensor, plr_type type) {
  std::memcpy(buffer.pointer, tensor.data(), tensor.size() * (type == PLR_BF16 ? 2 : 4));
}

bool same(const Tensor &actual, const std::vector<double> &expected) {
  bool equal = actual.size() == static_cast<int64_t>(expected.size());
  // Signs of zero differ in bits alone.
  for (int64_t i = 0; equal && i < actual.size(); ++i)
    equal = actual[i] == expected[i] && std::signbit(actual[i]) == std::signbit(expected[i]);
  return equal;
}

/// Some number for a column of a route, of any size, so that the order of sums matters.
double makeNumber(const Route &route, int64_t column, plr_type type) {
  std::mt19937 generator(static_cast<uint32_t>(((route.source * 101 + route.token) * 17 + route.slot) * 1009 + column));
  generator.discard(3);
  return roundTo(type,
                 std::ldexp(static_cast<double>(generator()) / 0x1p32 - 0.5, static_cast<int>(generator() % 20) - 10));
}

/// A token's own number: the same for all its routes.
double makeTokenNumber(int32_t rank, int64_t token, int64_t column, plr_type type) {
  return makeNumber({0, rank, token, 77}, column, type);
}

void runCase(const Case &c, Rank &rank, int32_t number, plr_group *group, plr_type type, int64_t columns,
             Memory memory = Memory::Pool) {
  const int64_t tokens = c.getTokens(number), width = type == PLR_BF16 ? 2 : 4, slots = tokens * c.topK;
  const int32_t local = static_cast<int32_t>(c.experts / static_cast<int64_t>(c.ids.size()));
  std::vector<Route> mine;
  for (const Route &route : listRoutes(c))
    if (route.expert / local == number)
      mine.push_back(route);
  const int64_t received = static_cast<int64_t>(mine.size());
  SCOPED_TRACE(c.name + ", rank " + std::to_string(number));

  int64_t before = rank.report().live_bytes;
  {
    Buffer ids(rank, slots * 4), input(rank, tokens * columns * width), values(rank, slots * 4);
    std::copy(c.ids[number].begin(), c.ids[number].end(), static_cast<int32_t *>(ids.pointer));
    Tensor tokenData(type, tokens * columns), valueData(PLR_F32, slots);
    for (int64_t i = 0; i < tokens * columns; ++i)
      tokenData.set(i, makeTokenNumber(number, i / columns, i % columns, type));
    for (int64_t i = 0; i < slots; ++i)
      valueData.set(i, makeNumber({0, number, i / c.topK, i % c.topK}, -1, PLR_F32));
    write(input, tokenData, type);
    write(values, valueData, PLR_F32);

    std::optional<PlannedMemory> planned;
    if (memory == Memory::Caller)
      planned.emplace(rank, c, number, columns * width);
    void *scratch = planned ? planned->scratch.pointer : nullptr;
    const int64_t scratchBytes = planned ? planned->scratch.bytes : PLR_FROM_POOL;
    plr_plan *plan = planned ? planned->fill(group, c, tokens, ids)
                             : createPlan(rank.lane(), &dispatchTag, group, tokens, c.topK, c.experts,
                                          static_cast<int32_t *>(ids.pointer));
    ASSERT_NE(plan, nullptr) << rank.message();
    ASSERT_EQ(plr_plan_rows(plan, 0), received);
    for (int32_t expert = 0; expert < local; ++expert)
      EXPECT_EQ(plan->slotOffsets[expert + 1] - plan->slotOffsets[expert],
                std::count_if(mine.begin(), mine.end(),
                              [&](const Route &route) { return route.expert == number * local + expert; }));

    Buffer rows(rank, received * columns * width), rowValues(rank, received * 4);
    plr_dispatch(rank.lane(), &dispatchTag, plan, 0, type, columns, input.pointer, values.floats(), rows.pointer,
                 rowValues.floats(), scratch, scratchBytes);
    plr_synchronize(rank);
    std::vector<double> expectedRows, expectedValues;
    for (const Route &route : mine) {
      expectedValues.push_back(makeNumber({0, route.source, route.token, route.slot}, -1, PLR_F32));
      for (int64_t column = 0; column < columns; ++column)
        expectedRows.push_back(makeTokenNumber(route.source, route.token, column, type));
    }
    EXPECT_TRUE(same(read(rows, type, received * columns), expectedRows));
    EXPECT_TRUE(same(read(rowValues, PLR_F32, received), expectedValues));

    // What comes back differs from route to route.
    Tensor output(type, received * columns);
    for (int64_t i = 0; i < received * columns; ++i)
      output.set(i, makeNumber(mine[i / columns], i % columns, type));
    write(rows, output, type);
    Buffer result(rank, tokens * columns * width), valuesBack(rank, slots * 4);
    plr_combine(rank.lane(), &dispatchTag, plan, 0, type, columns, rows.pointer, rowValues.floats(), result.pointer,
                valuesBack.floats(), scratch, scratchBytes);
    if (!planned)
      plr_plan_release(plan);
    plr_synchronize(rank);
    std::vector<double> expected, expectedBack;
    for (int64_t i = 0; i < tokens * columns; ++i) {
      float sum = 0;
      for (int64_t slot = 0, first = 1; slot < c.topK; ++slot) {
        if (c.ids[number][i / columns * c.topK + slot] == -1)
          continue;
        float next = static_cast<float>(makeNumber({0, number, i / columns, slot}, i % columns, type));
        sum = first ? next : sum + next;
        first = 0;
      }
      expected.push_back(roundTo(type, sum));
    }
    for (int64_t i = 0; i < slots; ++i)
      expectedBack.push_back(c.ids[number][i] == -1 ? 0 : valueData[i]);
    EXPECT_TRUE(same(read(result, type, tokens * columns), expected));
    EXPECT_TRUE(same(read(valuesBack, PLR_F32, slots), expectedBack));
  }
  EXPECT_EQ(rank.report().live_bytes, before);
}

/// `tokens` of each rank, with ids from a function of (rank, token, slot).
template <typename Choose>
Case makeCase(std::string name, std::vector<int64_t> tokens, int64_t topK, int64_t experts, const Choose &choose) {
  Case c = {std::move(name), topK, experts, {}};
  for (size_t rank = 0; rank < tokens.size(); ++rank) {
    c.ids.emplace_back();
    for (int64_t i = 0; i < tokens[rank] * topK; ++i)
      c.ids.back().push_back(static_cast<int32_t>(choose(static_cast<int64_t>(rank), i / topK, i % topK)));
  }
  return c;
}

std::vector<Case> makeCases(int64_t ranks) {
  const int64_t experts = 2 * ranks;
  std::vector<Case> cases;
  auto add = [&](std::string name, std::vector<int64_t> tokens, int64_t topK, auto choose) {
    tokens.resize(ranks, 6);
    cases.push_back(makeCase(std::move(name), tokens, topK, experts, choose));
  };
  for (uint32_t seed = 0; seed < 4; ++seed) {
    std::mt19937 generator(seed);
    add("random " + std::to_string(seed), {7, 5, 30}, 1 + seed,
        [&](int64_t, int64_t, int64_t) { return static_cast<int64_t>(generator() % (experts + 1)) - 1; });
  }
  add("all to the last expert", {7, 5}, 2, [&](int64_t, int64_t, int64_t) { return experts - 1; });
  add("all to the first expert", {7, 5}, 1, [&](int64_t, int64_t, int64_t) { return 0; });
  add("odd experts empty", {9, 1}, 2, [&](int64_t r, int64_t t, int64_t s) { return 2 * ((r + t + s) % ranks); });
  add("a rank without tokens", {0, 5}, 3, [&](int64_t r, int64_t t, int64_t s) { return (r + t + 2 * s) % experts; });
  add("the last rank without tokens", ranks > 1 ? std::vector<int64_t>(ranks - 1, 4) : std::vector<int64_t>{}, 2,
      [&](int64_t r, int64_t t, int64_t s) { return (3 * r + t + s) % experts; });
  cases.back().ids.back().clear();
  add("the same expert in all slots", {7, 5}, 3, [&](int64_t r, int64_t t, int64_t) { return (r + t) % experts; });
  add("no expert at all", {3, 4}, 2, [&](int64_t, int64_t, int64_t) { return -1; });
  add("no tokens at all", {}, 2, [&](int64_t, int64_t, int64_t) { return 0; });
  for (std::vector<int32_t> &ids : cases.back().ids)
    ids.clear();
  add("only the first slot", {7, 5}, 4,
      [&](int64_t r, int64_t t, int64_t s) { return s == 0 ? (r + t) % experts : -1; });
  return cases;
}

class Dispatch : public testing::TestWithParam<std::tuple<int, plr_type>> {
protected:
  int32_t ranks = std::get<0>(GetParam());
  plr_type type = std::get<1>(GetParam());
  plr_config config = [] {
    plr_config config = makeConfig();
    config.poison = 1;
    return config;
  }();

  void moveRows(Memory memory) {
    Ranks run(ranks, 60, config);
    for (int round = 0; round < 3; ++round)
      for (const Case &c : makeCases(ranks))
        run.runWell([&](Rank &rank, int32_t number) {
          runCase(c, rank, number, getWorld(rank, ranks), type, round == 0 ? 5 : 16, memory);
        });
  }
};

} // namespace

TEST_P(Dispatch, MovesRowsToTheirExpertsAndBack) { moveRows(Memory::Pool); }

TEST_P(Dispatch, MovesRowsInMemoryOfTheCaller) { moveRows(Memory::Caller); }

// k = 1: what comes back is what went, bit for bit, the sign of zero included.
TEST_P(Dispatch, ThereAndBackIsIdentity) {
  Ranks run(ranks, 60, config);
  run.runWell([&](Rank &rank, int32_t number) {
    const int64_t tokens = 10 + number, columns = 1025, count = tokens * columns, width = type == PLR_BF16 ? 2 : 4;
    std::vector<int32_t> ids(tokens);
    for (int64_t i = 0; i < tokens; ++i)
      ids[i] = static_cast<int32_t>((7 * i + number) % (3 * ranks));
    Tensor input = randomTensor(type, count, 5 + number), result(type, count);
    input.set(0, -0.0);
    plr_plan *plan = createPlan(rank.lane(), &dispatchTag, getWorld(rank, ranks), tokens, 1, 3 * ranks, ids.data());
    Buffer rows(rank, plr_plan_rows(plan, 0) * columns * width);
    plr_dispatch(rank.lane(), &dispatchTag, plan, 0, type, columns, input.data(), nullptr, rows.pointer, nullptr,
                 nullptr, PLR_FROM_POOL);
    plr_combine(rank.lane(), &dispatchTag, plan, 0, type, columns, rows.pointer, nullptr, result.data(), nullptr,
                nullptr, PLR_FROM_POOL);
    plr_plan_release(plan);
    plr_synchronize(rank);
    EXPECT_TRUE(result.sameBits(input));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Dispatch,
                         testing::Combine(testing::Values(1, 2, 3, 4, 8), testing::Values(PLR_F32, PLR_BF16)),
                         [](const auto &info) {
                           return std::to_string(std::get<0>(info.param)) + "_" + nameOf(std::get<1>(info.param));
                         });

// Two groups of a grid at once, each with a case of its own; the plan is made on one lane and used on another.
TEST(DispatchGroups, DoNotMix) {
  Ranks run(4);
  const int64_t grid[] = {2, 2};
  std::vector<Case> cases = makeCases(2);
  for (size_t i = 0; i < cases.size(); ++i)
    run.runWell([&](Rank &rank, int32_t number) {
      plr_group *group = plr_get_group(rank, grid, 2, 1); // Ranks 0, 2 and 1, 3.
      runCase(cases[(i + number % 2) % cases.size()], rank, number / 2, group, PLR_F32, 3);
    });
}

TEST(DispatchGroups, ValuesMayGoAlone) {
  Ranks run(2);
  run.runWell([&](Rank &rank, int32_t number) {
    const int32_t ids[2] = {1, 0};
    float values[2] = {10.0f + number, 20.0f + number}, back[2] = {}, rowValues[2] = {};
    plr_plan *plan = createPlan(rank.lane(), &dispatchTag, getWorld(rank, 2), 1, 2, 2, ids);
    ASSERT_EQ(plr_plan_rows(plan, 0), 2);
    plr_dispatch(rank.lane(), &dispatchTag, plan, 0, PLR_F32, 64, nullptr, values, nullptr, rowValues, nullptr,
                 PLR_FROM_POOL);
    plr_combine(rank.lane(), &dispatchTag, plan, 0, PLR_F32, 64, nullptr, rowValues, nullptr, back, nullptr,
                PLR_FROM_POOL);
    plr_synchronize(rank);
    EXPECT_EQ(rowValues[0], number == 0 ? 20 : 10);
    EXPECT_EQ(rowValues[1], number == 0 ? 21 : 11);
    EXPECT_EQ(back[0], values[0]);
    EXPECT_EQ(back[1], values[1]);
    plr_plan_release(plan);
  });
}

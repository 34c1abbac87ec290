//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What goes wrong between ranks: calls that differ, ranks that do not come, fail or go away. Nobody hangs, and every
// message says what each rank did.

#include "plan_shape.h"
#include "ranks.h"
#include <chrono>
#include <csignal>

using namespace plateau::rt::test;

namespace {

constexpr plr_tag oneTag = {"moe.all_reduce one", 2, PLR_GRADIENTS, PLR_BACKWARD};
constexpr plr_tag otherTag = {"moe.all_gather other", -1, PLR_DISPATCH, PLR_FORWARD};

/// Room for whatever a test reduces.
struct Values {
  alignas(64) double input[64] = {}, result[256] = {};
};

plr_status allReduce(Rank &rank, plr_group *group, Values &values, int64_t count = 8, plr_type type = PLR_F32,
                     const plr_tag *tag = &oneTag) {
  return plr_all_reduce(rank.lane(PLR_COMM), tag, group, type, count, values.input, values.result);
}
plr_status allGather(Rank &rank, plr_group *group, Values &values, int64_t count = 8, plr_type type = PLR_F32) {
  return plr_all_gather(rank.lane(PLR_COMM), &otherTag, group, type, count, values.input, values.result);
}

void expectText(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace

/// Both ranks of two make a call; both fail, and both messages have all the parts.
template <typename Call>
static void expectMismatch(const Call &call, std::initializer_list<const char *> parts) {
  Ranks run(2);
  run.run([&](Rank &rank, int32_t number) {
    Values values;
    call(rank, number, getWorld(rank, 2), values);
    EXPECT_EQ(plr_synchronize(rank), PLR_COMMUNICATION);
    expectText(rank.message(), "rank " + std::to_string(number) + ": lane comm: plr_all_");
    for (const char *part : parts)
      expectText(rank.message(), part);
  });
}

TEST(Mismatch, OfTheKind) {
  expectMismatch([](Rank &rank, int32_t number, plr_group *group,
                    Values &values) { number == 0 ? allReduce(rank, group, values) : allGather(rank, group, values); },
                 {"the ranks of group [0, 1] disagree about their collective 1: the ranks do not make the same call: ",
                  "rank 0 with plr_all_reduce of 8 f32 for moe.all_reduce one (layer 2, gradients, backward)",
                  "rank 1 with plr_all_gather of 8 f32 for moe.all_gather other (dispatch, forward)"});
}

TEST(Mismatch, OfTheCount) {
  expectMismatch(
      [](Rank &rank, int32_t number, plr_group *group, Values &values) {
        allReduce(rank, group, values);
        allReduce(rank, group, values, 9 - number);
      },
      {"collective 2", "rank 0 with plr_all_reduce of 9 f32 for", "rank 1 with plr_all_reduce of 8 f32 for"});
}

TEST(Mismatch, OfTheType) {
  expectMismatch([](Rank &rank, int32_t number, plr_group *group,
                    Values &values) { allReduce(rank, group, values, 8, number == 0 ? PLR_BF16 : PLR_I32); },
                 {"rank 0 with plr_all_reduce of 8 bf16 for", "rank 1 with plr_all_reduce of 8 i32 for"});
}

TEST(Mismatch, OfWhatIsSentAndExpected) {
  expectMismatch(
      [](Rank &rank, int32_t number, plr_group *group, Values &values) {
        const int64_t sends[2] = {8, 16}, receives[2] = {number == 0 ? 8 : 24, number == 0 ? 8 : 16};
        plr_all_to_all(rank.lane(PLR_COMM), &oneTag, group, sends, receives, values.input, values.result);
      },
      {"disagree about their collective 1: rank 0 sends 16 bytes to rank 1, which expects 24"});
}

TEST(Mismatch, LeavesTheDataAlone) {
  Ranks run(2);
  run.run([&](Rank &rank, int32_t number) {
    float input[4] = {1, 2, 3, 4}, result[8] = {-1, -1, -1, -1};
    plr_all_gather(rank.lane(), &oneTag, getWorld(rank, 2), PLR_F32, 4 - number, input, result);
    EXPECT_EQ(plr_synchronize(rank), PLR_COMMUNICATION);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(input[i], i + 1);
      EXPECT_EQ(result[i], -1);
    }
  });
}

// Long before the timeout: ranks that wait for each other at two places never meet.
TEST(Mismatch, OfGroupsIsNoticedAtOnce) {
  Ranks run(4, 600);
  const int64_t grid[] = {2, 2};
  run.run([&](Rank &rank, int32_t number) {
    // Ranks 0 1 / 2 3. Rank 0 goes to [0, 1], rank 1 to [0, 1, 2, 3], where the others join it.
    Values values;
    plr_group *group = number == 0 ? plr_get_group(rank, grid, 2, 2) : plr_get_group(rank, grid, 2, 3);
    number == 0 ? allReduce(rank, group, values) : allGather(rank, group, values);
    EXPECT_EQ(plr_synchronize(rank), PLR_COMMUNICATION);
    if (number < 2) {
      expectText(rank.message(), "the ranks wait for each other in different groups: ");
      expectText(rank.message(), "rank 0 waits in plr_all_reduce of 8 f32 for moe.all_reduce one (layer 2, gradients, "
                                 "backward) on lane comm (collective 1 of group [0, 1])");
      expectText(rank.message(), "rank 1 waits in plr_all_gather of 8 f32 for moe.all_gather other (dispatch, "
                                 "forward) on lane comm (collective 1 of group [0, 1, 2, 3])");
    }
  });
}

// 0 waits for 1 in a row, 1 for 3 in a column, 3 for 2 in a row, 2 for 0 in a column.
TEST(Mismatch, OfGroupsMayGoRoundACircle) {
  Ranks run(4, 600);
  const int64_t grid[] = {2, 2};
  run.run([&](Rank &rank, int32_t number) {
    Values values;
    allReduce(rank, plr_get_group(rank, grid, 2, number == 0 || number == 3 ? 2 : 1), values);
    EXPECT_EQ(plr_synchronize(rank), PLR_COMMUNICATION);
    expectText(rank.message(), "the ranks wait for each other in different groups: ");
    for (const char *group : {"group [0, 1])", "group [1, 3])", "group [2, 3])", "group [0, 2])"})
      expectText(rank.message(), group);
  });
}

TEST(Mismatch, OfDispatches) {
  Ranks run(2);
  run.run([&](Rank &rank, int32_t number) {
    Values values;
    const int32_t ids[1] = {1 - number};
    plr_plan *plan = createPlan(rank.lane(), &oneTag, getWorld(rank, 2), 1, 1, 2, ids);
    ASSERT_EQ(plr_plan_rows(plan, 0), 1);
    plr_dispatch(rank.lane(), &otherTag, plan, 0, PLR_F32, 3 + number, values.input, nullptr, values.result, nullptr,
                 nullptr, PLR_FROM_POOL);
    EXPECT_EQ(plr_synchronize(rank), PLR_COMMUNICATION);
    expectText(rank.message(), "rank 0 with plr_dispatch of 3 f32 columns for moe.all_gather other");
    expectText(rank.message(), "rank 1 with plr_dispatch of 4 f32 columns for moe.all_gather other");
  });
}

TEST(Mismatch, OfTheNumberOfExperts) {
  Ranks run(2);
  run.run([&](Rank &rank, int32_t number) {
    EXPECT_EQ(createPlan(rank.lane(), &oneTag, getWorld(rank, 2), 0, 1, 2 + 2 * number, nullptr), nullptr);
    EXPECT_EQ(plr_context_error(rank, nullptr), PLR_COMMUNICATION);
    expectText(rank.message(), "rank 0 with plr_plan_create of 2 experts");
    expectText(rank.message(), "rank 1 with plr_plan_create of 4 experts");
  });
}

TEST(Watchdog, TellsWhoIsMissingAndWhatItDoes) {
  Ranks run(4, 0.3);
  const int64_t grid[] = {2, 2};
  auto start = std::chrono::steady_clock::now();
  run.run([&](Rank &rank, int32_t number) {
    Values values;
    allReduce(rank, plr_get_group(rank, grid, 2, 2), values);
    // Rank 2 stands still after its first collective.
    plr_synchronize(rank);
    if (number == 2)
      return;
    allGather(rank, plr_get_group(rank, grid, 2, 3), values);
    EXPECT_EQ(plr_synchronize(rank), PLR_COMMUNICATION);
    expectText(rank.message(),
               "rank " + std::to_string(number) + ": lane comm: plr_all_gather of moe.all_gather other");
    expectText(rank.message(),
               "not all ranks of group [0, 1, 2, 3] have come to their collective 1 within 0.3 seconds");
    expectText(rank.message(),
               "rank 2 has last done plr_all_reduce of 8 f32 for moe.all_reduce one (layer 2, gradients, "
               "backward) on lane comm (collective 1 of group [2, 3])");
    expectText(rank.message(), "there came rank 0 with plr_all_gather of 8 f32");
  });
  EXPECT_GT(secondsSince(start), 0.25);
  EXPECT_LT(secondsSince(start), 20);
  // Whoever comes after the failure has it too.
  Values values;
  allGather(run[2], plr_get_group(run[2], grid, 2, 3), values);
  EXPECT_EQ(plr_synchronize(run[2]), PLR_COMMUNICATION);
}

TEST(Watchdog, KnowsOtherLanesAndRanksThatDidNothing) {
  Ranks run(3, 0.3);
  run.run([&](Rank &rank, int32_t number) {
    Values values;
    if (number == 0)
      allReduce(rank, getWorld(rank, 3), values);
    if (number == 1)
      plr_all_reduce(rank.lane(PLR_COMPUTE), &otherTag, getWorld(rank, 3), PLR_F32, 4, values.input, values.result);
    plr_synchronize(rank);
  });
  EXPECT_EQ(plr_context_error(run[2], nullptr), PLR_OK);
  // Which of the two gives up first is open; the other may then have heard of it instead.
  std::string messages = run[0].message() + run[1].message();
  expectText(messages, "rank 2 has come to no collective yet");
  bool first = run[0].message().find("rank 1 waits in plr_all_reduce of 4 f32 for moe.all_gather other (dispatch, "
                                     "forward) on lane compute") != std::string::npos;
  bool second = run[1].message().find("rank 0 waits in plr_all_reduce of 8 f32 for moe.all_reduce one (layer 2, "
                                      "gradients, backward) on lane comm") != std::string::npos;
  EXPECT_TRUE(first || second) << messages;
}

TEST(Watchdog, KnowsRanksWithoutAContext) {
  Transport transport(2, 0.1);
  plr_config config = makeConfig();
  config.ranks = 2;
  config.transport = transport;
  Rank rank(config);
  Values values;
  allReduce(rank, getWorld(rank, 2), values);
  EXPECT_EQ(plr_synchronize(rank), PLR_COMMUNICATION);
  expectText(rank.message(), "within 0.1 seconds: rank 1 has no context yet");
}

TEST(Failure, OfOneRankReachesThoseWhoWait) {
  Ranks run(3, 600);
  run.run([&](Rank &rank, int32_t number) {
    Values values;
    if (number == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      plr_zero(rank.lane(), &otherTag, values.input, -4);
    }
    allReduce(rank, getWorld(rank, 3), values);
    EXPECT_EQ(plr_synchronize(rank), number == 2 ? PLR_INVALID_ARGUMENT : PLR_COMMUNICATION);
    if (number != 2)
      expectText(rank.message(),
                 "rank " + std::to_string(number) +
                     ": lane comm: plr_all_reduce of moe.all_reduce one (layer 2, gradients, backward): rank 2 failed: "
                     "lane compute: plr_zero of moe.all_gather other (dispatch, forward): bytes is -4");
  });
}

TEST(Failure, OfOneRankReachesThoseWhoComeLater) {
  Ranks run(2, 600);
  plr_launch(run[1].lane(), &oneTag, [](void **) { throw std::runtime_error("no such luck"); }, nullptr, 0);
  EXPECT_EQ(plr_synchronize(run[1]), PLR_INTERNAL);
  Values values;
  allReduce(run[0], getWorld(run[0], 2), values);
  EXPECT_EQ(plr_synchronize(run[0]), PLR_COMMUNICATION);
  expectText(run[0].message(), "rank 1 failed: lane compute: plr_launch of moe.all_reduce one (layer 2, gradients, "
                               "backward): no such luck");
}

// A rank that waits on one lane and fails on another leaves; nobody takes it for present.
TEST(Failure, OfARankThatWaitsItself) {
  Ranks run(3, 600);
  Values values[3];
  allReduce(run[0], getWorld(run[0], 3), values[0]);
  allReduce(run[1], getWorld(run[1], 3), values[1]);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  plr_launch(run[1].lane(), &otherTag, [](void **) { throw std::runtime_error("no such luck"); }, nullptr, 0);
  EXPECT_EQ(plr_synchronize(run[1]), PLR_INTERNAL);
  EXPECT_EQ(plr_synchronize(run[0]), PLR_COMMUNICATION);
  expectText(run[0].message(), "rank 1 failed: lane compute: plr_launch");
  allReduce(run[2], getWorld(run[2], 3), values[2]);
  EXPECT_EQ(plr_synchronize(run[2]), PLR_COMMUNICATION);
  expectText(run[2].message(), "rank 1 failed: lane compute: plr_launch");
}

// Rank 3 has no collective with rank 0, but one with a rank that has.
TEST(Failure, GoesThroughGroups) {
  Ranks run(4, 600);
  const int64_t grid[] = {2, 2};
  run.run([&](Rank &rank, int32_t number) {
    Values values;
    if (number == 0)
      plr_zero(rank.lane(), &otherTag, values.input, -4);
    for (int round = 0; round < 10; ++round)
      for (int64_t axes = 1; axes <= 2; ++axes)
        allReduce(rank, plr_get_group(rank, grid, 2, axes), values);
    EXPECT_EQ(plr_synchronize(rank), number == 0 ? PLR_INVALID_ARGUMENT : PLR_COMMUNICATION);
    if (number == 3)
      expectText(rank.message(), "rank 0 failed: lane compute: plr_zero of");
  });
}

TEST(Failure, OfMemoryReachesTheOthers) {
  Ranks run(2, 600);
  EXPECT_EQ(plr_allocate(run[0], PLR_DEVICE, int64_t(1) << 40, &oneTag), nullptr);
  EXPECT_EQ(createPlan(run[1].lane(), &oneTag, getWorld(run[1], 2), 0, 1, 2, nullptr), nullptr);
  EXPECT_EQ(plr_context_error(run[1], nullptr), PLR_COMMUNICATION);
  expectText(run[1].message(), "rank 0 failed: plr_allocate: out of device memory for moe.all_reduce one");
}

TEST(Interrupt, EndsWaiting) {
  Ranks run(2, 600);
  Values values[2];
  allReduce(run[0], getWorld(run[0], 2), values[0]);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  auto start = std::chrono::steady_clock::now();
  plr_interrupt(run[0]);
  EXPECT_EQ(plr_synchronize(run[0]), PLR_INTERRUPTED);
  EXPECT_LT(secondsSince(start), 5); // About 0.04 where the machine is not busy.
  expectText(run[0].message(),
             "rank 0: lane comm: plr_all_reduce of moe.all_reduce one (layer 2, gradients, backward): "
             "interrupted while it waited; rank 1 has come to no collective yet");
  allReduce(run[1], getWorld(run[1], 2), values[1]);
  EXPECT_EQ(plr_synchronize(run[1]), PLR_COMMUNICATION);
  expectText(run[1].message(), "rank 0 failed: ");
  expectText(run[1].message(), "interrupted");
}

// The interrupted rank makes no call; those who wait for it go on all the same.
TEST(Interrupt, OfARankThatDoesNotComeEndsWaitingToo) {
  Ranks run(2, 600);
  Values values;
  allReduce(run[0], getWorld(run[0], 2), values);
  auto start = std::chrono::steady_clock::now();
  plr_interrupt(run[1]);
  EXPECT_EQ(plr_synchronize(run[0]), PLR_COMMUNICATION);
  EXPECT_LT(secondsSince(start), 5);
  expectText(run[0].message(), "rank 1 failed: it was interrupted");
  EXPECT_EQ(plr_synchronize(run[1]), PLR_INTERRUPTED);
}

static Rank *interruptedRank;

TEST(Interrupt, FromASignalHandlerEndsAPlan) {
  Ranks run(2, 600);
  interruptedRank = &run[1];
  auto before = std::signal(SIGUSR1, [](int) { plr_interrupt(*interruptedRank); });
  std::thread signaller([main = pthread_self()] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    pthread_kill(main, SIGUSR1);
  });
  EXPECT_EQ(createPlan(run[1].lane(), &oneTag, getWorld(run[1], 2), 0, 1, 2, nullptr), nullptr);
  EXPECT_EQ(plr_context_error(run[1], nullptr), PLR_INTERRUPTED);
  signaller.join();
  std::signal(SIGUSR1, before);
}

TEST(Destroyed, RanksAreNotWaitedFor) {
  Ranks run(2, 600);
  Values values;
  allReduce(run[0], getWorld(run[0], 2), values);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  run[1].destroy();
  EXPECT_EQ(plr_synchronize(run[0]), PLR_COMMUNICATION);
  expectText(run[0].message(), "rank 1 does not come: its context was destroyed");
}

TEST(Destroyed, RanksHaveFinishedTheirCollectives) {
  Ranks run(3);
  std::vector<float> results[3];
  run.run([&](Rank &rank, int32_t number) {
    results[number].assign(20000, 1);
    for (int i = 0; i < 5; ++i)
      plr_all_reduce(rank.lane(), &oneTag, getWorld(rank, 3), PLR_F32, 20000, results[number].data(),
                     results[number].data());
    rank.destroy();
  });
  for (const std::vector<float> &result : results)
    EXPECT_EQ(result[19999], 243);
}

TEST(Destroyed, RanksMayStartAgainUnlessOneHasFailed) {
  Transport transport(2);
  plr_config config = makeConfig();
  config.ranks = 2;
  config.transport = transport;
  for (int round = 0; round < 3; ++round) {
    // All start before the first of them waits for another.
    std::vector<std::unique_ptr<Rank>> ranks;
    for (config.rank = 0; config.rank < 2; ++config.rank)
      ranks.push_back(std::make_unique<Rank>(config));
    int32_t values[2] = {round, round + 1}, sums[2] = {};
    for (int i = 0; i < 2; ++i)
      plr_all_reduce(ranks[i]->lane(), &oneTag, getWorld(*ranks[i], 2), PLR_I32, 1, &values[i], &sums[i]);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(plr_synchronize(*ranks[i]), PLR_OK) << ranks[i]->message();
      EXPECT_EQ(sums[i], 2 * round + 1);
    }
  }
  config.rank = 0;
  {
    Rank rank(config);
    plr_zero(rank.lane(), &oneTag, nullptr, -1);
  }
  plr_context *context = nullptr;
  char message[512] = "";
  EXPECT_EQ(plr_context_create(&config, &context, message, sizeof message), PLR_INVALID_ARGUMENT);
  expectText(message, "ranks that start again need a new transport");
}

TEST(Transports, AreChecked) {
  plr_transport *transport = nullptr;
  char message[512] = "";
  EXPECT_EQ(plr_transport_create_threads(0, 1, &transport, message, sizeof message), PLR_INVALID_ARGUMENT);
  expectText(message, "plr_transport_create_threads: ranks is 0, but must be at least 1");
  for (double timeout : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), 1e9}) {
    EXPECT_EQ(plr_transport_create_threads(1, timeout, &transport, message, sizeof message), PLR_INVALID_ARGUMENT);
    expectText(message, "timeout_seconds is ");
  }
  EXPECT_EQ(transport, nullptr);
  EXPECT_EQ(plr_transport_create_threads(1, 1, nullptr, message, sizeof message), PLR_INVALID_ARGUMENT);
  plr_transport_destroy(nullptr);
}

static void expectRefused(plr_config config, const char *text) {
  plr_context *context = nullptr;
  char message[512] = "";
  EXPECT_EQ(plr_context_create(&config, &context, message, sizeof message), PLR_INVALID_ARGUMENT);
  EXPECT_EQ(context, nullptr);
  expectText(message, text);
}

TEST(Transports, FitTheirContexts) {
  Transport transport(2);
  plr_config config = makeConfig();
  config.ranks = 2;
  expectRefused(config, "ranks is 2, but there is no transport to connect them");
  config.transport = transport;
  config.ranks = 3;
  expectRefused(config, "ranks is 3, but its transport is for 2");
  config.ranks = 1;
  expectRefused(config, "ranks is 1, but its transport is for 2");
  config.ranks = 2;
  config.rank = 1;
  Rank rank(config);
  expectRefused(config, "rank 1: the transport has a context of this rank already");
}

/// A call on a fresh rank 1 of 2 that no correct program makes.
template <typename Call>
static void expectMisuse(const Call &call, const char *text) {
  Ranks run(2);
  Values values;
  call(run[1], getWorld(run[1], 2), values);
  EXPECT_EQ(plr_context_error(run[1], nullptr), PLR_INVALID_ARGUMENT) << text;
  expectText(run[1].message(), text);
}

TEST(CollectiveMisuse, IsNamed) {
  const int64_t sizes[2] = {8, 8}, negative[2] = {8, -8}, large[2] = {INT64_MAX, 1};
  expectMisuse([](Rank &r, plr_group *, Values &v) { allReduce(r, nullptr, v); }, "the group is null");
  expectMisuse([](Rank &r, plr_group *g, Values &v) { allReduce(r, g, v, -1); }, "count is -1");
  expectMisuse([](Rank &r, plr_group *g, Values &v) { allReduce(r, g, v, 8, 4); }, "type is 4");
  expectMisuse([](Rank &r, plr_group *g, Values &v) { allReduce(r, g, v, int64_t(1) << 60, PLR_F64); },
               "count is 1152921504606846976: 2 ranks have more bytes of it than 64 bits can count");
  expectMisuse(
      [](Rank &r, plr_group *g, Values &v) { plr_all_reduce(r.lane(), &oneTag, g, PLR_F32, 8, nullptr, v.result); },
      "input is null");
  expectMisuse(
      [](Rank &r, plr_group *g, Values &v) { plr_all_gather(r.lane(), &oneTag, g, PLR_F32, 8, v.input, nullptr); },
      "result is null");
  expectMisuse(
      [](Rank &r, plr_group *g, Values &v) { plr_all_reduce(r.lane(), &oneTag, g, PLR_F64, 8, v.input, v.input + 1); },
      "input and result overlap");
  expectMisuse(
      [](Rank &r, plr_group *g, Values &v) { plr_all_gather(r.lane(), &oneTag, g, PLR_F64, 8, v.result, v.result); },
      "input and result overlap, and not at this rank's place");
  expectMisuse(
      [](Rank &r, plr_group *g, Values &v) { plr_reduce_scatter(r.lane(), &oneTag, g, PLR_F64, 8, v.input, v.input); },
      "input and result overlap, and not at this rank's place");
  expectMisuse([&](Rank &r, plr_group *g,
                   Values &v) { plr_all_to_all(r.lane(), &oneTag, g, sizes, negative, v.input, v.result); },
               "receive_bytes[1] is -8");
  expectMisuse(
      [&](Rank &r, plr_group *g, Values &v) { plr_all_to_all(r.lane(), &oneTag, g, large, sizes, v.input, v.result); },
      "send_bytes[1] is 1: the sum is more than 64 bits can count");
  expectMisuse([&](Rank &r, plr_group *g,
                   Values &v) { plr_all_to_all(r.lane(), &oneTag, g, nullptr, sizes, v.input, v.result); },
               "send_bytes is null");
  expectMisuse(
      [&](Rank &r, plr_group *g, Values &v) { plr_all_to_all(r.lane(), &oneTag, g, sizes, sizes, v.input, v.input); },
      "input and result overlap");
}

TEST(CollectiveMisuse, OfGridsIsNamed) {
  auto getGroup = [](std::vector<int64_t> shape, int64_t dimensions, int64_t axes) {
    return [=](Rank &rank, plr_group *, Values &) {
      EXPECT_EQ(plr_get_group(rank, shape.empty() ? nullptr : shape.data(), dimensions, axes), nullptr);
    };
  };
  expectMisuse(getGroup({2, 2}, 2, 1),
               "the grid's shape is [2x2], but its sizes must multiply to the number of ranks, 2");
  expectMisuse(getGroup({-2, -1}, 2, 1), "the grid's shape is [-2x-1]");
  expectMisuse(getGroup({int64_t(1) << 62, 4}, 2, 1), "must multiply to the number of ranks, 2");
  expectMisuse(getGroup({}, 1, 1), "shape is null");
  expectMisuse(getGroup({}, 0, 0), "the grid's shape is []");
  expectMisuse(getGroup({2}, -1, 0), "dimensions is -1");
  expectMisuse(getGroup({2}, 63, 0), "dimensions is 63");
  expectMisuse(getGroup({2}, 1, 2), "axes is 2, a bit set, but the grid has 1 dimensions");
  expectMisuse(getGroup({2}, 1, -1), "axes is -1");
  Ranks run(2);
  Values values;
  allReduce(run[1], getWorld(run[0], 2), values);
  expectText(run[1].message(), "the group is another context's");
  EXPECT_EQ(plr_get_group(nullptr, nullptr, 0, 0), nullptr);
  EXPECT_EQ(plr_group_size(nullptr), 0);
}

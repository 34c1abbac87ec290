//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "rank.h"
#include <csignal>

using namespace plateau::rt::test;

static void expectRefused(plr_config config, plr_status status, const char *text) {
  plr_context *context = nullptr;
  char message[512] = "";
  EXPECT_EQ(plr_context_create(&config, &context, message, sizeof message), status);
  EXPECT_EQ(context, nullptr);
  EXPECT_NE(std::string(message).find(text), std::string::npos) << message;
}

TEST(Errors, ConfigurationsAreChecked) {
  auto changed = [](auto change) {
    plr_config config = makeConfig();
    change(config);
    return config;
  };
  expectRefused(changed([](plr_config &c) { c.abi_version = 7; }), PLR_INVALID_ARGUMENT, "built for version 7");
  expectRefused(changed([](plr_config &c) { c.ranks = 0; }), PLR_INVALID_ARGUMENT, "ranks is 0");
  expectRefused(changed([](plr_config &c) { c.rank = 1; }), PLR_INVALID_ARGUMENT, "rank is 1, but must be 0 ... 0");
  expectRefused(changed([](plr_config &c) { c.rank = -1; }), PLR_INVALID_ARGUMENT, "rank is -1");
  expectRefused(changed([](plr_config &c) { c.device_bytes = -5; }), PLR_INVALID_ARGUMENT, "device_bytes is -5");
  expectRefused(changed([](plr_config &c) { c.host_bytes = -6; }), PLR_INVALID_ARGUMENT, "host_bytes is -6");
  expectRefused(changed([](plr_config &c) { c.gemm = 2; }), PLR_INVALID_ARGUMENT, "gemm is 2");
  expectRefused(changed([](plr_config &c) { c.poison = 3; }), PLR_INVALID_ARGUMENT, "poison is 3");
  expectRefused(changed([](plr_config &c) { c.trace = -1; }), PLR_INVALID_ARGUMENT, "trace is -1");
  plr_config config = makeConfig();
  plr_context *context = nullptr;
  char message[8] = "";
  EXPECT_EQ(plr_context_create(nullptr, &context, message, sizeof message), PLR_INVALID_ARGUMENT);
  EXPECT_STREQ(message, "plr_con"); // Cut to the room there is.
  EXPECT_EQ(plr_context_create(&config, nullptr, nullptr, 0), PLR_INVALID_ARGUMENT);
}

TEST(Errors, ALimitBeyondTheMachineIsNoError) {
  plr_config config = makeConfig();
  config.device_bytes = INT64_MAX;
  Rank rank(config);
  EXPECT_EQ(rank.report().limit_bytes, INT64_MAX);
  EXPECT_EQ(plr_allocate(rank, PLR_DEVICE, INT64_MAX, &denseTag), nullptr);
  EXPECT_NE(rank.message().find("of which this machine has"), std::string::npos) << rank.message();
}

TEST(Errors, TheFirstSticksAndStopsEverything) {
  plr_config config = makeConfig();
  config.rank = 2;
  config.ranks = 4;
  Rank rank(config);
  float value = 1;
  EXPECT_EQ(plr_gemm(rank.lane(), &attentionTag, 0, 0, 0, PLR_F32, PLR_F32, -1, 1, 1, &value, &value, &value, nullptr,
                     PLR_FROM_POOL),
            PLR_INVALID_ARGUMENT);
  const char *message = nullptr;
  EXPECT_EQ(plr_context_error(rank, &message), PLR_INVALID_ARGUMENT);
  EXPECT_STREQ(message, "rank 2: lane compute: plr_gemm of linalg.matmul q_proj (layer 3, attention, forward): "
                        "m is -1, but must be at least 0");
  // Another fault, of another kind, changes nothing; neither does a call that would have been right.
  EXPECT_EQ(plr_allocate(rank, PLR_DEVICE, INT64_MAX, &denseTag), nullptr);
  EXPECT_EQ(plr_zero(rank.lane(), &lossTag, &value, 4), PLR_INVALID_ARGUMENT);
  EXPECT_EQ(plr_allocate(rank, PLR_DEVICE, 64, &denseTag), nullptr);
  EXPECT_EQ(plr_record(rank.lane()), nullptr);
  EXPECT_EQ(plr_wait(rank.lane(), nullptr), PLR_INVALID_ARGUMENT);
  EXPECT_EQ(plr_synchronize(rank), PLR_INVALID_ARGUMENT);
  EXPECT_EQ(value, 1);
  const char *again = nullptr;
  plr_context_error(rank, &again);
  EXPECT_EQ(again, message);
}

TEST(Errors, NoneIsEmpty) {
  Rank rank;
  const char *message = nullptr;
  EXPECT_EQ(plr_context_error(rank, &message), PLR_OK);
  EXPECT_STREQ(message, "");
}

TEST(Errors, AFailedQueueDrainsWithoutRunning) {
  Rank rank;
  Gate gate;
  std::vector<intptr_t> numbers;
  gate.close(rank.lane(PLR_COMPUTE));
  gate.waitUntilReached();
  append(rank.lane(PLR_COMPUTE), numbers, 1);
  plr_wait(rank.lane(PLR_COMM), plr_record(rank.lane(PLR_COMPUTE)));
  append(rank.lane(PLR_COMM), numbers, 2);
  EXPECT_EQ(plr_copy(rank.lane(PLR_COMM), &lossTag, nullptr, nullptr, 5), PLR_INVALID_ARGUMENT);
  gate.release();
  EXPECT_EQ(plr_synchronize(rank), PLR_INVALID_ARGUMENT);
  EXPECT_TRUE(numbers.empty());
}

TEST(Errors, AnInterruptIsOne) {
  plr_config config = makeConfig();
  config.rank = 1;
  config.ranks = 2;
  Rank rank(config);
  float value = 3;
  EXPECT_EQ(plr_zero(rank.lane(), &lossTag, &value, 4), PLR_OK);
  EXPECT_EQ(plr_synchronize(rank), PLR_OK);
  plr_interrupt(rank);
  value = 3;
  EXPECT_EQ(plr_zero(rank.lane(), &lossTag, &value, 4), PLR_INTERRUPTED);
  EXPECT_EQ(plr_synchronize(rank), PLR_INTERRUPTED);
  EXPECT_EQ(value, 3);
  EXPECT_EQ(rank.message(), "rank 1: interrupted at plr_zero");
}

TEST(Errors, AnInterruptStopsTheQueue) {
  Rank rank;
  Gate gate;
  std::vector<intptr_t> numbers;
  gate.close(rank.lane());
  gate.waitUntilReached();
  append(rank.lane(), numbers, 1);
  std::thread other([&] {
    plr_interrupt(rank);
    gate.release();
  });
  EXPECT_EQ(plr_synchronize(rank), PLR_INTERRUPTED);
  other.join();
  EXPECT_TRUE(numbers.empty());
  EXPECT_EQ(rank.message(), "rank 0: interrupted at lane compute: plr_launch of moe.nll (vocabulary, forward)");
}

static plr_context *interrupted;

TEST(Errors, AnInterruptMayComeFromASignalHandler) {
  Rank rank;
  interrupted = rank;
  auto before = std::signal(SIGUSR1, [](int) { plr_interrupt(interrupted); });
  std::vector<intptr_t> numbers;
  append(rank.lane(), numbers, 1);
  std::raise(SIGUSR1);
  EXPECT_EQ(plr_synchronize(rank), PLR_INTERRUPTED);
  std::signal(SIGUSR1, before);
}

TEST(Errors, KernelsThatThrowAreCaught) {
  Rank rank;
  plr_launch(rank.lane(), &denseTag, [](void **) { throw std::runtime_error("no such luck"); }, nullptr, 0);
  EXPECT_EQ(plr_synchronize(rank), PLR_INTERNAL);
  EXPECT_EQ(rank.message(),
            "rank 0: lane compute: plr_launch of linalg.matmul up_proj (layer 1, dense, backward): no such luck");
}

TEST(Errors, NullHandlesAreRefused) {
  float value = 0;
  EXPECT_EQ(plr_zero(nullptr, &lossTag, &value, 4), PLR_INVALID_ARGUMENT);
  EXPECT_EQ(plr_synchronize(nullptr), PLR_INVALID_ARGUMENT);
  EXPECT_EQ(plr_allocate(nullptr, PLR_DEVICE, 4, &lossTag), nullptr);
  EXPECT_EQ(plr_get_lane(nullptr, PLR_COMPUTE), nullptr);
  EXPECT_EQ(plr_record(nullptr), nullptr);
  EXPECT_EQ(plr_wait(nullptr, nullptr), PLR_INVALID_ARGUMENT);
  const char *message = nullptr;
  EXPECT_EQ(plr_context_error(nullptr, &message), PLR_INVALID_ARGUMENT);
  EXPECT_STREQ(message, "the context is null");
  EXPECT_EQ(plr_memory_report(nullptr, PLR_DEVICE, nullptr), PLR_INVALID_ARGUMENT);
  EXPECT_EQ(plr_trace(nullptr, 0, nullptr, 0), 0);
  plr_release(nullptr, PLR_DEVICE, &value);
  plr_reset_peak(nullptr);
  plr_trace_clear(nullptr);
  plr_interrupt(nullptr);
  plr_context_destroy(nullptr);
}

/// A fresh rank, one call, and what its message says.
template <typename Call>
static void expectMisuse(Call call, const char *text) {
  Rank rank;
  call(static_cast<plr_context *>(rank));
  const char *message = nullptr;
  EXPECT_EQ(plr_context_error(rank, &message), PLR_INVALID_ARGUMENT) << text;
  EXPECT_NE(std::string(message).find(text), std::string::npos) << message;
}

TEST(Errors, MisuseIsNamed) {
  static float value;
  static const plr_tag noOp = {nullptr, 0, PLR_DENSE, PLR_FORWARD}, badComponent = {"x", 0, 99, PLR_FORWARD},
                       badPhase = {"x", 0, PLR_DENSE, 3};
  auto lane = [](plr_context *c) { return plr_get_lane(c, PLR_COMPUTE); };
  expectMisuse([&](plr_context *c) { plr_zero(lane(c), nullptr, &value, 4); }, "plr_zero: the tag is null");
  expectMisuse([&](plr_context *c) { plr_zero(lane(c), &noOp, &value, 4); }, "the tag names no op");
  expectMisuse([&](plr_context *c) { plr_zero(lane(c), &badComponent, &value, 4); }, "component is 99");
  expectMisuse([&](plr_context *c) { plr_zero(lane(c), &badPhase, &value, 4); }, "phase is 3");
  expectMisuse([&](plr_context *c) { plr_zero(lane(c), &lossTag, &value, -4); }, "bytes is -4");
  expectMisuse([&](plr_context *c) { plr_zero(lane(c), &lossTag, nullptr, 4); }, "destination is null");
  expectMisuse([&](plr_context *c) { plr_copy(lane(c), &lossTag, &value, nullptr, 4); }, "source is null");
  expectMisuse([&](plr_context *c) { plr_launch(lane(c), &lossTag, nullptr, nullptr, 0); }, "the function is null");
  expectMisuse([&](plr_context *c) { plr_launch(lane(c), &lossTag, [](void **) {}, nullptr, 1); }, "arguments is null");
  expectMisuse([&](plr_context *c) { plr_launch(lane(c), &lossTag, [](void **) {}, nullptr, -1); }, "count is -1");
  expectMisuse([&](plr_context *c) { plr_get_lane(c, 5); }, "there is no lane 5; lanes are 0 ... 4");
  expectMisuse([&](plr_context *c) { plr_get_lane(c, -1); }, "there is no lane -1");
  expectMisuse([&](plr_context *c) { plr_wait(lane(c), nullptr); }, "the event is null");
  expectMisuse([&](plr_context *c) { plr_allocate(c, 2, 64, &lossTag); }, "there is no space 2");
  expectMisuse([&](plr_context *c) { plr_allocate(c, PLR_DEVICE, -64, &lossTag); },
               "moe.nll (vocabulary, forward) asks for -64 bytes");
  expectMisuse([&](plr_context *c) { plr_allocate(c, PLR_DEVICE, 64, nullptr); }, "the tag is null");
  expectMisuse([&](plr_context *c) { plr_release(c, PLR_DEVICE, &value); }, "is not the start of a live buffer");
  expectMisuse([&](plr_context *c) { plr_release(c, PLR_DEVICE, nullptr); }, "is not the start of a live buffer");
  expectMisuse([&](plr_context *c) { plr_release(c, PLR_HOST, plr_allocate(c, PLR_DEVICE, 64, &lossTag)); },
               "it lies in the device space");
  expectMisuse([&](plr_context *c) { plr_memory_report(c, PLR_DEVICE, nullptr); }, "the report is null");
  expectMisuse([&](plr_context *c) { plr_memory_report(c, -1, nullptr); }, "there is no space -1");
  auto gemm = [&](plr_context *c, int ta, int type, int result, int64_t m, int64_t n, int64_t k, void *a) {
    plr_gemm(lane(c), &lossTag, ta, 0, 0, type, result, m, n, k, a, &value, &value, nullptr, PLR_FROM_POOL);
  };
  expectMisuse([&](plr_context *c) { gemm(c, 2, 0, 0, 1, 1, 1, &value); }, "transpose_a is 2");
  expectMisuse([&](plr_context *c) { gemm(c, 0, 2, 0, 1, 1, 1, &value); }, "type is 2");
  expectMisuse([&](plr_context *c) { gemm(c, 0, 0, 1, 1, 1, 1, &value); }, "f32 operands give an f32 result");
  expectMisuse([&](plr_context *c) { gemm(c, 0, 0, 0, 1, 1, 1, nullptr); }, "a is null");
  expectMisuse([&](plr_context *c) { gemm(c, 0, 0, 0, int64_t(1) << 40, int64_t(1) << 40, 0, &value); },
               "c has more bytes than 64 bits can count: 1099511627776 x 1099511627776 elements");
}

TEST(Errors, EventsOfOtherContextsAreRefused) {
  Rank rank, other;
  EXPECT_EQ(plr_wait(rank.lane(), plr_record(other.lane())), PLR_INVALID_ARGUMENT);
  EXPECT_NE(rank.message().find("the event is another context's"), std::string::npos);
}

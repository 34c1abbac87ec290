//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/program.h"
#include "plateau/runtime_footprint.h"
#include "rank.h"
#include <array>

using namespace plateau::rt::test;

namespace {

constexpr int64_t size = 8;
int64_t scratchBytes = 0; ///< What the program gives its product.

/// sum += input: the program's kernel.
void add(void **arguments) {
  auto *sum = static_cast<float *>(arguments[0]);
  auto *input = static_cast<const float *>(arguments[1]);
  for (int64_t i = 0; i < size * size; ++i)
    sum[i] += input[i];
}

/// Buffers: input, sum, square, sum again. sum += input; square = input · input, by way of the arena.
void runStep(plr_context *context, void **buffers) {
  auto *arena = static_cast<char *>(plr_arena(context, PLR_DEVICE, 4096, &denseTag));
  plr_lane *lane = plr_get_lane(context, PLR_COMPUTE);
  void *arguments[] = {buffers[1], buffers[0]};
  plr_launch(lane, &denseTag, &add, arguments, 2);
  plr_copy(lane, &denseTag, arena, buffers[0], 4 * size * size);
  void *scratch = arena ? arena + 1024 : nullptr; // There is no arena where memory was refused.
  plr_gemm(lane, &denseTag, 0, 0, 0, PLR_F32, PLR_F32, size, size, size, arena, buffers[0], buffers[2], scratch,
           scratchBytes);
}

constexpr int64_t bytes = 4 * size * size;
constexpr plr_program_buffer list[] = {
    {{"argument input", -1, PLR_EXTERNAL, PLR_FORWARD}, bytes, PLR_DEVICE, 0, -1},
    {{"argument sum", -1, PLR_EXTERNAL, PLR_FORWARD}, bytes, PLR_DEVICE, 0, -1},
    {{"result square", -1, PLR_EXTERNAL, PLR_FORWARD}, bytes, PLR_DEVICE, 1, -1},
    {{"result sum", -1, PLR_EXTERNAL, PLR_FORWARD}, bytes, PLR_DEVICE, 1, 1},
};

plr_program makeProgram() {
  scratchBytes = plr_gemm_workspace_bytes(PLR_GEMM_ONEDNN, 0, 0, 0, PLR_F32, PLR_F32, size, size, size);
  return {PLR_ABI_VERSION, 1, PLR_GEMM_ONEDNN, 0, "x86-64", "", {4096, 0}, 4, list, &runStep};
}

/// The limits that the program asks for, and no more.
plr_config makeConfigOf(const plr_program &program) {
  plr_config config = makeConfig();
  config.device_bytes = plr_program_bytes(&program, PLR_DEVICE);
  config.host_bytes = plr_program_bytes(&program, PLR_HOST);
  return config;
}

std::string refuse(const plr_program *program, plr_config config = makeConfig()) {
  Rank rank(config);
  std::array<void *, 4> buffers = {};
  EXPECT_EQ(plr_program_create(rank, program, buffers.data()), PLR_INVALID_ARGUMENT);
  return rank.message();
}

} // namespace

TEST(Program, BuffersAreZeroAndDonatedOnesShared) {
  plr_program program = makeProgram();
  EXPECT_EQ(plr_program_bytes(&program, PLR_DEVICE), 3 * 256 + 4096);
  EXPECT_EQ(plr_program_bytes(&program, PLR_HOST), 0);
  plr_config config = makeConfigOf(program);
  config.poison = 1;
  Rank rank(config);
  std::array<void *, 4> buffers = {};
  ASSERT_EQ(plr_program_create(rank, &program, buffers.data()), PLR_OK) << rank.message();
  for (int number = 0; number < 3; ++number)
    for (int64_t i = 0; i < size * size; ++i)
      ASSERT_EQ(static_cast<float *>(buffers[number])[i], 0) << number;
  EXPECT_EQ(buffers[3], buffers[1]);
  EXPECT_NE(buffers[2], buffers[1]);
}

TEST(Program, RunsStepAfterStep) {
  plr_program program = makeProgram();
  Rank rank(makeConfigOf(program));
  std::array<void *, 4> buffers = {};
  ASSERT_EQ(plr_program_create(rank, &program, buffers.data()), PLR_OK) << rank.message();
  int64_t allocations = rank.report().allocations;
  auto *input = static_cast<float *>(buffers[0]), *sum = static_cast<float *>(buffers[1]),
       *square = static_cast<float *>(buffers[2]);
  for (int step = 1; step <= 3; ++step) {
    for (int64_t i = 0; i < size * size; ++i)
      input[i] = step;
    ASSERT_EQ(plr_program_run(rank, &program, buffers.data()), PLR_OK) << rank.message();
    for (int64_t i = 0; i < size * size; ++i) {
      ASSERT_EQ(sum[i], step * (step + 1) / 2);
      ASSERT_EQ(square[i], size * step * step);
    }
  }
  EXPECT_EQ(rank.report().allocations, allocations);
}

TEST(Program, BuffersHaveNames) {
  plr_program program = makeProgram();
  EXPECT_EQ(plr_program_find(&program, "argument sum"), 1);
  EXPECT_EQ(plr_program_find(&program, "result sum"), 3);
  EXPECT_EQ(plr_program_find(&program, "sum"), -1);
  EXPECT_EQ(plr_program_find(&program, nullptr), -1);
  EXPECT_EQ(plr_program_find(nullptr, "argument sum"), -1);
}

TEST(Program, OfOtherRanksProductsOrVersionsIsRefused) {
  EXPECT_CONTAINS(refuse(nullptr), "plr_program_create: the program is null");
  plr_program program = makeProgram();
  program.abi_version = PLR_ABI_VERSION + 1;
  EXPECT_CONTAINS(refuse(&program), "compiled for version " + std::to_string(PLR_ABI_VERSION + 1));
  program = makeProgram();
  program.ranks = 2;
  EXPECT_CONTAINS(refuse(&program), "the program is for 2 ranks, but the context is one of 1 rank");
  program = makeProgram();
  plr_config config = makeConfig();
  config.gemm = PLR_GEMM_REFERENCE;
  EXPECT_CONTAINS(refuse(&program, config), "compiled with --gemm onednn");
}

// No machine has both: one is AMD's of 2011 to 2017, the other Intel's from 2017 on.
TEST(Program, ForAnotherProcessorIsRefused) {
  plr_program program = makeProgram();
  program.cpu = "chimera";
  program.features = "fma4,avx512f,something-else";
  std::string message = refuse(&program);
  EXPECT_CONTAINS(message, "compiled for the processor chimera, and this machine lacks ");
  EXPECT_EQ(message.find("something-else"), std::string::npos) << message;
  EXPECT_CONTAINS(message, "--cpu generic");
}

TEST(Program, WithTooLittleScratchMemoryIsRefusedBeforeTheFirstStep) {
  // What a norm needs is a formula of ours, so some memory is missing on every machine.
  plr_program program = makeProgram();
  program.entry = [](plr_context *context, void **buffers) {
    void *arena = plr_arena(context, PLR_DEVICE, 4096, &denseTag);
    plr_rms_norm_grad(plr_get_lane(context, PLR_COMPUTE), &denseTag, PLR_F32, size, size, buffers[0], buffers[0],
                      buffers[0], static_cast<float *>(buffers[0]), buffers[2], buffers[1], arena,
                      plr_footprint_rms_norm_grad(size) - 1);
  };
  int64_t needed = plr_footprint_rms_norm_grad(size);
  EXPECT_CONTAINS(refuse(&program), "the workspace has " + std::to_string(needed - 1) + " bytes, but " +
                                        std::to_string(needed) + " are needed");

  program = makeProgram();
  if (scratchBytes == 0)
    return; // This machine's library needs none for the product: nothing can be missing.
  scratchBytes -= 1;
  std::string message = refuse(&program);
  EXPECT_CONTAINS(message, "the workspace has " + std::to_string(scratchBytes) + " bytes, but " +
                               std::to_string(scratchBytes + 1) + " are needed");
  EXPECT_CONTAINS(message, "on the machine that runs it");
}

TEST(Program, WithoutMemoryIsRefused) {
  plr_program program = makeProgram();
  for (int64_t limit : {int64_t(512), plr_program_bytes(&program, PLR_DEVICE) - 64}) { // A buffer; the arena.
    plr_config config = makeConfigOf(program);
    config.device_bytes = limit;
    Rank rank(config);
    std::array<void *, 4> buffers = {};
    EXPECT_EQ(plr_program_create(rank, &program, buffers.data()), PLR_OUT_OF_MEMORY);
    EXPECT_CONTAINS(rank.message(), limit == 512 ? "result square" : "plr_arena");
  }
}

TEST(Program, AfterAFailureDoesNothing) {
  plr_program program = makeProgram();
  Rank rank(makeConfigOf(program));
  std::array<void *, 4> buffers = {};
  ASSERT_EQ(plr_program_create(rank, &program, buffers.data()), PLR_OK) << rank.message();
  plr_interrupt(rank);
  EXPECT_EQ(plr_program_run(rank, &program, buffers.data()), PLR_INTERRUPTED);
  EXPECT_EQ(plr_program_run(rank, nullptr, buffers.data()), PLR_INTERRUPTED);
  EXPECT_EQ(plr_program_run(nullptr, &program, buffers.data()), PLR_INVALID_ARGUMENT);
}

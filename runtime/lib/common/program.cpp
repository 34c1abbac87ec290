//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/program.h"
#include "common/context.h"
#include "common/cpu_features.h"
#include "plateau/runtime_footprint.h"
#include <cstring>

using namespace plateau::rt;

/// Why the context cannot run the program; empty when it can.
static std::string checkProgram(const plr_config &config, const plr_program *program, void **buffers) {
  if (!program || !buffers)
    return program ? "the array for the buffers' addresses is null" : "the program is null";
  if (program->abi_version != PLR_ABI_VERSION)
    return "the program was compiled for version " + std::to_string(program->abi_version) +
           " of the runtime's interface, but this runtime has version " + std::to_string(PLR_ABI_VERSION) +
           "; compile it again, by the plateau-compile of this source";
  auto ranks = [](int32_t count) { return std::to_string(count) + (count == 1 ? " rank" : " ranks"); };
  if (program->ranks != config.ranks)
    return "the program is for " + ranks(program->ranks) + ", but the context is one of " + ranks(config.ranks);
  if (program->gemm != config.gemm) {
    auto kind = [](plr_gemm_kind gemm) { return gemm == PLR_GEMM_ONEDNN ? "onednn" : "reference"; };
    return std::string("the program was compiled with --gemm ") + kind(program->gemm) +
           ", which sizes scratch memory, but the context's products are " + kind(config.gemm);
  }
  if (std::string missing = findMissingFeatures(program->features); !missing.empty())
    return std::string("the program was compiled for the processor ") + program->cpu + ", and this machine lacks " +
           missing + "; compile it here, or with --cpu generic";
  return {};
}

/// Memory for a buffer, zeroed, or that of its donor; null after recording why.
static void *createBuffer(plr_context &context, const plr_program_buffer &buffer, void *const *created) {
  if (buffer.donor >= 0)
    return created[buffer.donor];
  void *memory = allocate(context, buffer.space, buffer.bytes, buffer.tag, "plr_program_create");
  if (memory)
    std::memset(memory, 0, static_cast<size_t>(buffer.bytes));
  return memory;
}

extern "C" int64_t plr_program_bytes(const plr_program *program, plr_space space) {
  if (!program || space < 0 || space >= PLR_SPACES)
    return 0;
  int64_t bytes = plr_footprint_lines(program->arena_bytes[space]);
  for (int64_t number = 0; number < program->buffer_count; ++number)
    if (const plr_program_buffer &buffer = program->buffers[number]; buffer.space == space && buffer.donor < 0)
      bytes += plr_footprint_lines(buffer.bytes);
  return bytes;
}

extern "C" int64_t plr_program_find(const plr_program *program, const char *name) {
  if (program && name)
    for (int64_t number = 0; number < program->buffer_count; ++number)
      if (std::strcmp(program->buffers[number].tag.op, name) == 0)
        return number;
  return -1;
}

extern "C" plr_status plr_program_create(plr_context *context, const plr_program *program, void **buffers) {
  return guard(context, "plr_program_create", [&]() -> plr_status {
    if (std::string fault = checkProgram(context->config, program, buffers); !fault.empty())
      return context->fail(PLR_INVALID_ARGUMENT, "plr_program_create: " + fault);
    for (int64_t number = 0; number < program->buffer_count; ++number)
      if (!(buffers[number] = createBuffer(*context, program->buffers[number], buffers)))
        return context->error.getStatus();
    plr_prepare(context, 1);
    program->entry(context, buffers);
    return plr_prepare(context, 0);
  });
}

extern "C" plr_status plr_program_run(plr_context *context, const plr_program *program, void **buffers) {
  if (!context)
    return PLR_INVALID_ARGUMENT;
  if (!program || !buffers)
    return context->fail(PLR_INVALID_ARGUMENT, "plr_program_run: the program or the array of its buffers is null");
  program->entry(context, buffers);
  return plr_synchronize(context);
}

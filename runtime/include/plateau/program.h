//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A program that was compiled ahead of time: what an object file of plateau-compile exports, as `plateau_<function>`,
// and how to run it on a context. Linked with the runtime alone, it needs no compiler on the machine that runs it.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_PROGRAM_H
#define PLATEAU_PROGRAM_H

#include "plateau/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/// An argument or a result: memory that outlives the step.
typedef struct plr_program_buffer {
  plr_tag tag; ///< tag.op is its name: "argument parameters", "result loss", "argument #3" of one without a role.
  int64_t bytes;
  plr_space space;
  int32_t is_result;
  int64_t donor; ///< Of a result: number of the argument in whose memory it is computed. -1: it has memory of its own.
} plr_program_buffer;

typedef struct plr_program {
  int32_t abi_version; ///< PLR_ABI_VERSION of the compiler.
  int32_t ranks;       ///< All of them run this one program.
  plr_gemm_kind gemm;  ///< Of the contexts: scratch memory is sized for it.
  int32_t reserved;
  const char *cpu;      ///< The processor that kernels were compiled for.
  const char *features; ///< Instruction sets that they may use beyond x86-64, by their names in LLVM, with commas.
  int64_t arena_bytes[PLR_SPACES]; ///< 0: there is none.
  int64_t buffer_count;
  const plr_program_buffer *buffers; ///< Arguments in order, then results in order.
  void (*entry)(plr_context *context, void **buffers);
} plr_program;

/// Bytes of a space that a rank needs: its arena, and the buffers in whole lines of 64. A plr_config whose limits are
/// these is enough.
int64_t plr_program_bytes(const plr_program *program, plr_space space);

/// Number of the buffer of this name; -1 when there is none.
int64_t plr_program_find(const plr_program *program, const char *name);

/// Gives each buffer memory, zeroed, and its address in `buffers` (buffer_count of them); takes the arenas, and makes
/// what the library makes at first use: a run allocates nothing. PLR_INVALID_ARGUMENT when the context is another
/// number of ranks or another kind of products than the program was compiled for, when this machine lacks an
/// instruction set, or when the library needs more scratch memory here than on the machine that compiled. The memory
/// lives as long as the context; a context has one program.
plr_status plr_program_create(plr_context *context, const plr_program *program, void **buffers);

/// Runs the step once, on the buffers of plr_program_create, and waits for it. All ranks run, each on a thread.
plr_status plr_program_run(plr_context *context, const plr_program *program, void **buffers);

#ifdef __cplusplus
}
#endif

#endif // PLATEAU_PROGRAM_H

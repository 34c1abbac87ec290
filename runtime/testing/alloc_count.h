//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Counts what a process asks its allocators for between two moments, on all threads. A program that links
// plateau_alloc_count and calls these functions has malloc and its kin, and mmap, replaced by versions that count and
// then do what those of libc do.
//
// Counted: malloc, calloc, realloc, reallocarray, posix_memalign, aligned_alloc, memalign, valloc, pvalloc, and so
// operator new, of all libraries of the process; mmap of anonymous memory, even where it only reserves addresses; and
// plr_allocate with all that the runtime takes from its pools, which is no allocation of the process. Not counted: free
// and munmap, and what libc maps for itself, like the stacks of threads. realloc counts its new size.
//
// Not for programs with a sanitizer, which replaces the same functions.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_TESTING_ALLOC_COUNT_H
#define PLATEAU_RUNTIME_TESTING_ALLOC_COUNT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A call for at least so many bytes is large.
#define PLATEAU_ALLOC_COUNT_LARGE_BYTES 65536

typedef struct plateau_alloc_counts {
  int64_t calls, bytes;             ///< All of them.
  int64_t large_calls, large_bytes; ///< Those for at least 64 KiB.
  int64_t largest_bytes;            ///< Of one call.
} plateau_alloc_counts;

/// Counts from zero.
void plateau_alloc_count_start(void);
/// Ends the count; returns it.
plateau_alloc_counts plateau_alloc_count_stop(void);

/// The runtime, if it is in the same program, tells of memory that it hands out.
void plateau_alloc_count_note(int64_t bytes);

#ifdef __cplusplus
}
#endif

#endif // PLATEAU_RUNTIME_TESTING_ALLOC_COUNT_H

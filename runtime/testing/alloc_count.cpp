//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// Libc exports its allocator under second names, so nothing has to be looked up: these functions work from the first
// instruction of the process on, and what they return may be freed by free.
#include "alloc_count.h"
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void *__libc_valloc(size_t size);
void *__libc_pvalloc(size_t size);
}

namespace {
std::atomic<bool> counting{false};
std::atomic<int64_t> calls{0}, bytes{0}, largeCalls{0}, largeBytes{0}, largest{0};
} // namespace

static void note(size_t size) {
  if (!counting.load(std::memory_order_relaxed))
    return;
  const int64_t asked = static_cast<int64_t>(size);
  calls.fetch_add(1, std::memory_order_relaxed);
  bytes.fetch_add(asked, std::memory_order_relaxed);
  if (asked >= PLATEAU_ALLOC_COUNT_LARGE_BYTES) {
    largeCalls.fetch_add(1, std::memory_order_relaxed);
    largeBytes.fetch_add(asked, std::memory_order_relaxed);
  }
  int64_t known = largest.load(std::memory_order_relaxed);
  while (known < asked && !largest.compare_exchange_weak(known, asked, std::memory_order_relaxed))
    ;
}

extern "C" {

void plateau_alloc_count_start() {
  counting = false;
  calls = bytes = largeCalls = largeBytes = largest = 0;
  counting = true;
}

plateau_alloc_counts plateau_alloc_count_stop() {
  counting = false;
  return {calls, bytes, largeCalls, largeBytes, largest};
}

void plateau_alloc_count_note(int64_t size) { note(static_cast<size_t>(size)); }

#define PLATEAU_REPLACES __attribute__((visibility("default")))

PLATEAU_REPLACES void *malloc(size_t size) noexcept {
  note(size);
  return __libc_malloc(size);
}

PLATEAU_REPLACES void *calloc(size_t count, size_t size) noexcept {
  size_t product;
  note(__builtin_mul_overflow(count, size, &product) ? 0 : product);
  return __libc_calloc(count, size);
}

PLATEAU_REPLACES void *realloc(void *pointer, size_t size) noexcept {
  note(size);
  return __libc_realloc(pointer, size);
}

PLATEAU_REPLACES void *reallocarray(void *pointer, size_t count, size_t size) noexcept {
  size_t product;
  if (__builtin_mul_overflow(count, size, &product)) {
    errno = ENOMEM;
    return nullptr;
  }
  note(product);
  return __libc_realloc(pointer, product);
}

PLATEAU_REPLACES void *memalign(size_t alignment, size_t size) noexcept {
  note(size);
  return __libc_memalign(alignment, size);
}

PLATEAU_REPLACES void *aligned_alloc(size_t alignment, size_t size) noexcept {
  note(size);
  return __libc_memalign(alignment, size);
}

PLATEAU_REPLACES int posix_memalign(void **pointer, size_t alignment, size_t size) noexcept {
  if (alignment % sizeof(void *) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0)
    return EINVAL;
  note(size);
  const int before = errno; // The answer is the return value.
  void *memory = __libc_memalign(alignment, size);
  errno = before;
  if (!memory)
    return ENOMEM;
  *pointer = memory;
  return 0;
}

PLATEAU_REPLACES void *valloc(size_t size) noexcept {
  note(size);
  return __libc_valloc(size);
}

PLATEAU_REPLACES void *pvalloc(size_t size) noexcept {
  note(size);
  return __libc_pvalloc(size);
}

PLATEAU_REPLACES void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) noexcept {
  if (flags & MAP_ANONYMOUS)
    note(size);
  return reinterpret_cast<void *>(syscall(SYS_mmap, address, size, protection, flags, file, offset));
}

PLATEAU_REPLACES void *mmap64(void *address, size_t size, int protection, int flags, int file,
                              off64_t offset) noexcept {
  if (flags & MAP_ANONYMOUS)
    note(size);
  return reinterpret_cast<void *>(syscall(SYS_mmap, address, size, protection, flags, file, offset));
}
}

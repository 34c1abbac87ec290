//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Storage of a lane's queue: records of any size in one ring of bytes, so that a call allocates nothing.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_RING_H
#define PLATEAU_RUNTIME_HOST_RING_H

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace plateau::rt::host {

/// First in, first out. The owner of the lane's mutex calls; the bytes of a record themselves may be written before
/// push() and read before pop() without it.
class Ring {
public:
  static constexpr size_t alignment = 16;
  static constexpr size_t capacity = size_t(1) << 18;
  /// The largest record: whatever the position, it finds room once the ring is empty.
  static constexpr size_t largest = capacity / 4;

  Ring() : bytes(new Line[capacity / sizeof(Line)]) {}

  static size_t round(size_t size) { return (size + alignment - 1) / alignment * alignment; }

  bool empty() const { return head == tail; }

  /// Room for a record of `size` bytes in one piece, or null while there is none.
  void *tryReserve(size_t size) {
    assert(size <= largest && size == round(size));
    size_t position = tail % capacity;
    skip = position + size > capacity ? capacity - position : 0;
    if (tail + skip + size - head > capacity)
      return nullptr;
    return at(tail + skip);
  }
  /// Appends the record that tryReserve made room for.
  void push(size_t size) {
    if (skip > 0)
      wrapped = tail; // At most one record crosses the end at a time: the ring holds less than two rounds.
    tail += skip + size;
    skip = 0;
  }
  void *front() {
    assert(!empty());
    if (head == wrapped)
      head += capacity - head % capacity;
    return at(head);
  }
  void pop(size_t size) { head += size; }

private:
  struct alignas(alignment) Line {
    unsigned char bytes[alignment];
  };
  void *at(uint64_t position) { return reinterpret_cast<unsigned char *>(bytes.get()) + position % capacity; }

  std::unique_ptr<Line[]> bytes;
  uint64_t head = 0, tail = 0;     ///< Bytes taken out and put in since the start.
  uint64_t wrapped = ~uint64_t(0); ///< Where the bytes up to the end of the storage were left unused.
  size_t skip = 0;
};

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_RING_H

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/rank_sums.h"
#include "host/bf16.h"

using namespace plateau::rt::host;

// Plain loops, which compilers turn into vectors: elements are independent, so their bits do not depend on that.

static float toSum(float value) { return value; }
static float toSum(BF16 value) { return widen(value); }
static double toSum(double value) { return value; }
static uint32_t toSum(uint32_t value) { return value; }
static uint64_t toSum(uint64_t value) { return value; }

template <typename Element, typename Sum>
static void add(bool first, int64_t length, const void *input, void *sums) {
  const Element *from = static_cast<const Element *>(input);
  Sum *to = static_cast<Sum *>(sums);
  if (first)
    for (int64_t i = 0; i < length; ++i)
      to[i] = toSum(from[i]);
  else
    for (int64_t i = 0; i < length; ++i)
      to[i] += toSum(from[i]);
}

void plateau::rt::host::addRank(plr_type type, bool first, int64_t length, const void *input, void *sums) {
  switch (type) {
  case PLR_F32:
    return add<float, float>(first, length, input, sums);
  case PLR_BF16:
    return add<BF16, float>(first, length, input, sums);
  case PLR_I32:
    return add<uint32_t, uint32_t>(first, length, input, sums);
  case PLR_F64:
    return add<double, double>(first, length, input, sums);
  case countType:
    return add<uint64_t, uint64_t>(first, length, input, sums);
  }
}

void plateau::rt::host::storeSums(plr_type type, int64_t length, const void *sums, void *result) {
  if (length == 0)
    return;
  if (type != PLR_BF16) {
    std::memcpy(result, sums, static_cast<size_t>(length * widthOf(type)));
    return;
  }
  const float *from = static_cast<const float *>(sums);
  BF16 *to = static_cast<BF16 *>(result);
  for (int64_t i = 0; i < length; ++i)
    narrow(from[i], to[i]);
}

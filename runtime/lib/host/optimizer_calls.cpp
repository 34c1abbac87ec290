//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/call.h"
#include "host/kernels.h"
#include <cmath>

using namespace plateau::rt::host;

/// `width` numbers a segment, the first two of which are offset and length.
static void checkRanges(Call &call, int64_t segments, const int64_t *ranges, int width) {
  call.size("segments", segments);
  call.tensor("ranges", ranges, {segments, width});
  for (int64_t i = 0; i < segments && !call.isRefused(); ++i) {
    int64_t offset = ranges[i * width], length = ranges[i * width + 1], end;
    if (offset < 0 || length < 0 || __builtin_add_overflow(offset, length, &end))
      call.refuse("segment " + std::to_string(i) + " has offset " + std::to_string(offset) + " and length " +
                  std::to_string(length));
    else if (width == 3 && ranges[i * width + 2] != 0 && ranges[i * width + 2] != 1)
      call.refuse("segment " + std::to_string(i) + " has decay " + std::to_string(ranges[i * width + 2]) +
                  ", but it must be 0 or 1");
  }
}

extern "C" plr_status plr_sum_squares(plr_lane *lane, const plr_tag *tag, plr_type type, int64_t segments,
                                      const int64_t *ranges, const void *gradients, double *result) {
  return enter(lane, "plr_sum_squares", tag, [&](Call &call) {
    call.type("type", type);
    checkRanges(call, segments, ranges, 2);
    call.tensor("gradients", gradients, {segments});
    call.tensor("result", result, {1});
    call.enqueue([=](const Running &) -> Outcome {
      sumSquares(type, segments, ranges, gradients, result);
      return {};
    });
  });
}

extern "C" plr_status plr_grad_norm(plr_lane *lane, const plr_tag *tag, int64_t count, const double *const *squares,
                                    float *norm) {
  return enter(lane, "plr_grad_norm", tag, [&](Call &call) {
    constexpr int64_t most = plr_lane::maxExtraBytes / sizeof(void *);
    call.size("count", count);
    if (count > most)
      call.refuse("count is " + std::to_string(count) + ", but a norm takes at most " + std::to_string(most) +
                  " sums of squares");
    call.tensor("squares", squares, {count});
    for (int64_t i = 0; i < count && !call.isRefused(); ++i)
      if (!squares[i])
        call.refuse("squares[" + std::to_string(i) + "] is null");
    call.tensor("norm", norm, {1});
    call.enqueue(
        [=](const Running &running) -> Outcome {
          gradNorm(count, static_cast<const double *const *>(running.extra), norm);
          return {};
        },
        squares, call.isRefused() ? 0 : static_cast<size_t>(count) * sizeof(double *));
  });
}

extern "C" plr_status plr_clip_factor(plr_lane *lane, const plr_tag *tag, float max_norm, const float *norm,
                                      float *factor) {
  return enter(lane, "plr_clip_factor", tag, [&](Call &call) {
    call.require(max_norm > 0, "max_norm must be positive");
    call.tensor("norm", norm, {1});
    call.tensor("factor", factor, {1});
    call.enqueue([=](const Running &) -> Outcome {
      clipFactor(max_norm, norm, factor);
      return {};
    });
  });
}

extern "C" plr_status plr_adamw(plr_lane *lane, const plr_tag *tag, plr_type type, plr_type gradient_type,
                                int64_t segments, const int64_t *ranges, double beta1, double beta2, double epsilon,
                                double weight_decay, void *parameters, const void *gradients, float *first,
                                float *second, float *master, const float *factor, const float *learning_rate,
                                const int32_t *step) {
  return enter(lane, "plr_adamw", tag, [&](Call &call) {
    call.type("type", type);
    call.type("gradient_type", gradient_type);
    checkRanges(call, segments, ranges, 3);
    call.require(beta1 >= 0 && beta1 < 1, "beta1 must be at least 0 and less than 1");
    call.require(beta2 >= 0 && beta2 < 1, "beta2 must be at least 0 and less than 1");
    call.require(epsilon >= 0 && std::isfinite(epsilon), "epsilon must be a number that is not negative");
    call.require(std::isfinite(weight_decay), "weight_decay must be a number");
    call.tensor("parameters", parameters, {segments});
    call.tensor("gradients", gradients, {segments});
    call.tensor("first", first, {segments});
    call.tensor("second", second, {segments});
    call.require(type == PLR_BF16 || !master, "f32 parameters are their own master, so master must be null");
    if (type == PLR_BF16)
      call.tensor("master", master, {segments});
    call.tensor("factor", factor, {1});
    call.tensor("learning_rate", learning_rate, {1});
    call.tensor("step", step, {1});
    call.enqueue([=](const Running &) -> Outcome {
      if (*step < 1)
        return {PLR_BAD_DATA, "the number of the update is " + std::to_string(*step) + ", but the first is 1"};
      adamw(type, gradient_type, segments, ranges, beta1, beta2, epsilon, weight_decay, parameters, gradients, first,
            second, master, factor, learning_rate, step);
      return {};
    });
  });
}

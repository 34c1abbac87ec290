//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A layer with experts in iterations, forward and backward, for tests of several ranks.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_TEST_CHUNKED_LAYER_H
#define PLATEAU_RUNTIME_TEST_CHUNKED_LAYER_H

#include "kernels_support.h"
#include "plan_shape.h"
#include "ranks.h"
#include <optional>

namespace plateau::rt::test {

inline constexpr plr_tag layerTag = {"moe.layer", 4, PLR_DISPATCH, PLR_FORWARD};

/// Device memory of a rank, NaN all over, released with it.
class Block {
public:
  Block(Rank &rank, int64_t bytes, plr_space space = PLR_DEVICE)
      : rank(rank), space(space), bytes(bytes), pointer(plr_allocate(rank, space, bytes, &layerTag)) {
    if (pointer && bytes > 0)
      std::memset(pointer, 0xff, static_cast<size_t>(bytes));
  }
  ~Block() { plr_release(rank, space, pointer); }
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;
  float *floats() const { return static_cast<float *>(pointer); }

  Rank &rank;
  const plr_space space;
  const int64_t bytes;
  void *const pointer;
};

/// result[t] = Σ over the slots of x[t] · weights[expert], and the gradients of the weights when that of the result is
/// dy. Sums of the reference product.
struct ChunkedLayer {
  static constexpr int64_t k = 5, n = 3;

  struct Inputs {
    std::vector<int32_t> ids;
    Tensor x, dy, values, weights; ///< f32.
    /// Small whole numbers, whose sums are exact in any order, or any.
    Inputs(const std::vector<int32_t> &ids, int64_t tokens, int64_t localExperts, int32_t rank, bool areWhole)
        : ids(ids), x(randomTensor(PLR_F32, tokens * k, 10 + rank)), dy(randomTensor(PLR_F32, tokens * n, 20 + rank)),
          values(randomTensor(PLR_F32, static_cast<int64_t>(ids.size()), 30 + rank)),
          weights(randomTensor(PLR_F32, localExperts * k * n, 40 + rank)) {
      if (areWhole)
        for (Tensor *tensor : {&x, &dy, &weights})
          for (int64_t i = 0; i < tensor->size(); ++i)
            tensor->set(i, std::nearbyint(4 * (*tensor)[i]));
    }
  };
  struct Results {
    Tensor y, values, grads;
    Results(int64_t tokens, int64_t topK, int64_t localExperts)
        : y(PLR_F32, tokens * n), values(PLR_F32, tokens * topK), grads(PLR_F32, localExperts * k * n) {
      for (int64_t i = 0; i < grads.size(); ++i)
        grads.set(i, 0);
    }
  };

  /// `isPlanned`: plan and scratch lie in memory known from the shape. `check` is a function of a plan, an iteration,
  /// its rows [received, k] and their values, which are there when it is called.
  template <typename Check>
  static void run(Rank &rank, plr_group *group, const plr_plan_shape &shape, Inputs &in, Results &out, bool isPlanned,
                  const Check &check) {
    plr_lane *lane = rank.lane();
    const int64_t ranks = plr_group_size(group), local = shape.experts / ranks;
    std::optional<Block> host, device, scratch;
    plr_plan *plan;
    if (isPlanned) {
      host.emplace(rank, getPlanHostBytes(ranks, shape), PLR_HOST);
      device.emplace(rank, plr_footprint_plan_device(shape.tokens, shape.top_k));
      const int64_t sent = (shape.tokens + shape.chunks - 1) / shape.chunks * shape.top_k;
      scratch.emplace(
          rank, std::max(plr_footprint_exchange(ranks, sent, 4 * k, 1), plr_footprint_return_experts(ranks, k * n)));
      plr_plan_fill(lane, &layerTag, group, &shape, in.ids.data(), host->pointer, host->bytes, device->pointer,
                    device->bytes);
      ASSERT_EQ(plr_fence(plr_record(lane)), PLR_OK) << rank.message();
      plan = static_cast<plr_plan *>(host->pointer);
    } else {
      plan = plr_plan_create(lane, &layerTag, group, &shape, in.ids.data());
      ASSERT_NE(plan, nullptr) << rank.message();
    }
    void *const memory = scratch ? scratch->pointer : nullptr;
    const int64_t memoryBytes = scratch ? scratch->bytes : PLR_FROM_POOL;
    int64_t most = shape.capacity;
    for (int64_t i = 0; shape.capacity == 0 && i < plr_plan_iterations(plan); ++i)
      most = std::max(most, plr_plan_rows(plan, i));

    Block helpers(rank, shape.helper_slots * k * n * 4), helperGrads(rank, shape.helper_slots * k * n * 4);
    Block rows(rank, most * k * 4), values(rank, most * 4), products(rank, most * n * 4), grads(rank, most * n * 4);
    plr_migrate_experts(lane, &layerTag, plan, PLR_F32, k * n, in.weights.data(), helpers.pointer);
    plr_zero(lane, &layerTag, helperGrads.pointer, helperGrads.bytes);
    const std::vector<unsigned char> nan(static_cast<size_t>(most * k * 4), 0xff);
    for (int64_t i = 0; i < shape.chunks * shape.leaves; ++i) {
      for (const Block *block : {&rows, &values, &products, &grads})
        if (block->bytes > 0)
          plr_copy(lane, &layerTag, block->pointer, nan.data(), block->bytes);
      plr_dispatch(lane, &layerTag, plan, i, PLR_F32, k, in.x.data(), in.values.floats(), rows.pointer, values.floats(),
                   memory, memoryBytes);
      if (i < plr_plan_iterations(plan)) {
        plr_synchronize(rank);
        check(plan, i, rows.floats(), values.floats());
      }
      plr_grouped_gemm(lane, &layerTag, plan, i, 0, PLR_F32, n, k, rows.pointer, in.weights.data(), helpers.pointer,
                       products.pointer, nullptr, PLR_FROM_POOL);
      plr_dispatch(lane, &layerTag, plan, i, PLR_F32, n, in.dy.data(), nullptr, grads.pointer, nullptr, memory,
                   memoryBytes);
      plr_grouped_gemm_grad(lane, &layerTag, plan, i, 1, PLR_F32, PLR_F32, k, n, rows.pointer, grads.pointer,
                            out.grads.data(), helperGrads.pointer, nullptr, PLR_FROM_POOL);
      plr_combine(lane, &layerTag, plan, i, PLR_F32, n, products.pointer, values.floats(), out.y.data(),
                  out.values.floats(), memory, memoryBytes);
    }
    plr_return_expert_grads(lane, &layerTag, plan, k * n, helperGrads.floats(), out.grads.floats(), memory,
                            memoryBytes);
    if (!isPlanned)
      plr_plan_release(plan);
    ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
    EXPECT_EQ(local * k * n, out.grads.size());
  }
};

} // namespace plateau::rt::test

#endif // PLATEAU_RUNTIME_TEST_CHUNKED_LAYER_H

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// Plans of several iterations with balance: against the truth, row by row, and against the layer without either.
#include "chunked_layer.h"
#include "common/plan.h"
#include "plan_truth.h"

using namespace plateau::rt::test;

namespace {

struct Case {
  std::string name;
  plr_plan_shape shape; ///< But for the tokens, which each rank has of its own.
  std::vector<std::vector<int32_t>> ids;
  bool areWhole = true, isPlanned = true;

  int64_t getRanks() const { return static_cast<int64_t>(ids.size()); }
  plr_plan_shape getShape(int32_t rank) const {
    plr_plan_shape result = shape;
    result.tokens = static_cast<int64_t>(ids[rank].size()) / shape.top_k;
    return result;
  }
};

/// The gradient of a weight, and what its rounding may come to.
struct GradientTruth {
  std::vector<double> sums, bounds;
};

/// Σ x[t] ⊗ dy[t] over the routes of each of a rank's experts.
GradientTruth getGradients(const Case &c, const PlanTruth &truth, const std::vector<ChunkedLayer::Inputs> &inputs,
                           int64_t rank) {
  constexpr int64_t k = ChunkedLayer::k, n = ChunkedLayer::n;
  const int64_t local = c.shape.experts / c.getRanks();
  GradientTruth result = {std::vector<double>(local * k * n), std::vector<double>(local * k * n)};
  for (const RouteTruth &route : truth.routes)
    if (route.expert / local == rank)
      for (int64_t i = 0; i < k * n; ++i) {
        double product =
            inputs[route.source].x[route.token * k + i / n] * inputs[route.source].dy[route.token * n + i % n];
        result.sums[route.expert % local * k * n + i] += product;
        result.bounds[route.expert % local * k * n + i] += std::abs(product);
      }
  for (int64_t i = 0; i < local * k * n; ++i)
    result.bounds[i] *= static_cast<double>(truth.loads[rank * local + i / (k * n)] + 4) * 0x1p-24;
  return result;
}

void expectRows(const PlanTruth &truth, const std::vector<ChunkedLayer::Inputs> &inputs, int64_t topK, int32_t rank,
                const plr_plan *plan, int64_t iteration, const float *rows, const float *values) {
  const std::vector<RouteTruth> received = truth.getReceived(rank, iteration);
  ASSERT_EQ(plr_plan_rows(plan, iteration), static_cast<int64_t>(received.size())) << "iteration " << iteration;
  for (size_t i = 0; i < received.size(); ++i) {
    const RouteTruth &route = received[i];
    const ChunkedLayer::Inputs &source = inputs[route.source];
    for (int64_t column = 0; column < ChunkedLayer::k; ++column)
      ASSERT_EQ(rows[i * ChunkedLayer::k + column], source.x[route.token * ChunkedLayer::k + column])
          << "iteration " << iteration << " row " << i;
    ASSERT_EQ(values[i], source.values[route.token * topK + route.slot]) << "iteration " << iteration << " row " << i;
  }
  for (int64_t slot = 0; slot < plan->slots; ++slot)
    ASSERT_EQ(plan->getOffsets(iteration)[slot + 1] - plan->getOffsets(iteration)[slot],
              std::count_if(received.begin(), received.end(),
                            [&](const RouteTruth &route) { return route.expertSlot == slot; }));
}

void expectRecord(const Case &c, const PlanTruth &truth, int32_t rank, const plr_plan_record &record) {
  const int64_t ranks = c.getRanks(), local = c.shape.experts / ranks, chunks = c.shape.chunks;
  int64_t maxLoad = 0, nativeMaxLoad = 0, maxReceived = 0, maxChunk = 0, moves = 0;
  double ratio = 0;
  for (int64_t to = 0; to < ranks; ++to) {
    auto all = [&](const RouteTruth &route) { return route.rank == to; };
    maxLoad = std::max(maxLoad, truth.count(all));
    nativeMaxLoad = std::max(nativeMaxLoad, truth.count([&](auto &route) { return route.expert / local == to; }));
    for (int64_t i = 0; i < truth.iterations; ++i)
      maxReceived = std::max(maxReceived, truth.count([&](auto &route) { return all(route) && route.iteration == i; }));
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      auto ofChunk = [&](const RouteTruth &route) { return route.token % chunks == chunk; };
      maxChunk = std::max(maxChunk, truth.count([&](auto &route) { return all(route) && ofChunk(route); }));
      double sent = static_cast<double>(truth.count([&](auto &r) { return r.source == rank && ofChunk(r); })),
             there =
                 static_cast<double>(truth.count([&](auto &r) { return r.source == rank && ofChunk(r) && all(r); }));
      if (sent > 0)
        ratio = std::max(ratio, there * static_cast<double>(ranks) / sent);
    }
    moves += static_cast<int64_t>(truth.helped[to].size());
  }
  EXPECT_EQ(record.tag, &layerTag);
  EXPECT_EQ(record.iterations, truth.iterations);
  EXPECT_EQ(record.chunks, chunks);
  EXPECT_EQ(record.capacity, c.shape.capacity);
  EXPECT_EQ(record.moves, moves);
  EXPECT_EQ(record.max_load, maxLoad);
  EXPECT_EQ(record.total_load, static_cast<int64_t>(truth.routes.size()));
  EXPECT_EQ(record.native_max_load, nativeMaxLoad);
  EXPECT_EQ(record.max_received, maxReceived);
  EXPECT_EQ(record.max_chunk_received, maxChunk);
  EXPECT_DOUBLE_EQ(record.send_ratio, ratio);
}

/// Runs a case on all ranks, and the layer without iterations and balance; returns the iterations.
int64_t runCase(Ranks &run, const Case &c) {
  const int64_t ranks = c.getRanks(), local = c.shape.experts / ranks;
  const PlanTruth truth(ranks, c.shape, c.ids);
  std::vector<ChunkedLayer::Inputs> inputs;
  for (int32_t rank = 0; rank < ranks; ++rank)
    inputs.emplace_back(c.ids[rank], c.getShape(rank).tokens, local, rank, c.areWhole);
  SCOPED_TRACE(c.name);
  run.runWell([&](Rank &rank, int32_t number) {
    SCOPED_TRACE(c.name + ", rank " + std::to_string(number));
    const plr_plan_shape shape = c.getShape(number), plain = makeShape(shape.tokens, shape.top_k, shape.experts);
    plr_group *world = getWorld(rank, ranks);
    ChunkedLayer::Inputs mine = inputs[number];
    ChunkedLayer::Results chunked(shape.tokens, shape.top_k, local), whole = chunked;
    plr_reset_peak(rank);
    const int64_t before = rank.report().live_bytes;
    ChunkedLayer::run(rank, world, shape, mine, chunked, c.isPlanned,
                      [&](const plr_plan *plan, int64_t iteration, const float *rows, const float *values) {
                        EXPECT_EQ(plr_plan_iterations(plan), truth.iterations);
                        expectRows(truth, inputs, shape.top_k, number, plan, iteration, rows, values);
                      });
    plr_plan_record record;
    ASSERT_EQ(plr_plan_records(rank, 0, &record, 1), 1);
    expectRecord(c, truth, number, record);
    ChunkedLayer::run(rank, world, plain, mine, whole, c.isPlanned, [](auto...) {});
    EXPECT_EQ(rank.report().live_bytes, before);

    EXPECT_TRUE(chunked.y.sameBits(whole.y));
    EXPECT_TRUE(chunked.values.sameBits(whole.values));
    if (c.areWhole)
      for (int64_t i = 0; i < chunked.grads.size(); ++i) // The sign of zero depends on the order.
        ASSERT_EQ(chunked.grads[i], whole.grads[i]);
    const GradientTruth gradients = getGradients(c, truth, inputs, number);
    for (int64_t i = 0; i < chunked.grads.size(); ++i)
      ASSERT_NEAR(chunked.grads[i], gradients.sums[i], c.areWhole ? 0 : gradients.bounds[i]);
  });
  return truth.iterations;
}

/// Draws cases for some ranks.
class Draw {
public:
  explicit Draw(uint32_t seed) : generator(seed) {}

  int64_t operator()(int64_t most) {
    return static_cast<int64_t>(generator() % static_cast<uint32_t>(std::max<int64_t>(most, 0) + 1));
  }

  Case make(int64_t ranks, int64_t chunks, std::string name) {
    Draw &draw = *this;
    Case c;
    c.name = std::move(name);
    const int64_t local = 1 + draw(2), experts = ranks * local;
    plr_plan_shape &s = c.shape = makeShape(0, 1 + draw(3), experts);
    s.chunks = chunks;
    s.leaves = 1 + draw(3);
    if (draw(4) > 0) {
      s.helper_slots = std::min(draw(4), experts - local);
      s.alpha_numerator = 1 + draw(3);
      s.alpha_denominator = 1 + draw(2);
      s.min_rows = 1 + draw(4);
      s.threshold_numerator = 5 + draw(15);
      s.threshold_denominator = 10;
    }
    const int64_t kind = draw(4), hot = draw(experts - 1), most = 4 + draw(40);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      std::vector<int32_t> ids(draw(5) == 0 ? 0 : draw(most) * s.top_k);
      for (int32_t &id : ids)
        switch (kind) {
        case 0: // Any, with duplicates, and now and then none.
          id = static_cast<int32_t>(draw(experts)) - 1;
          break;
        case 1: // Mostly one expert.
          id = static_cast<int32_t>(draw(5) ? hot : draw(experts - 1));
          break;
        case 2: // One expert takes everything.
          id = static_cast<int32_t>(hot);
          break;
        case 3: // Half of the experts have nothing.
          id = static_cast<int32_t>(draw((experts - 1) / 2));
          break;
        default: // Most slots have none.
          id = draw(3) ? -1 : static_cast<int32_t>(draw(experts - 1));
        }
      c.ids.push_back(ids);
    }
    c.areWhole = draw(1);
    c.isPlanned = draw(1);
    // From the smallest capacity that is legal on.
    const int64_t least = std::max<int64_t>(PlanTruth(ranks, s, c.ids).smallestCapacity, 1);
    const int64_t more[] = {0, 1, least, 100000};
    s.capacity = least + more[draw(3)];
    if (s.capacity > 100000) // As good as none.
      s.capacity = s.leaves > 1 ? static_cast<int64_t>(ranks * most * s.top_k + 1) : 0;
    return c;
  }

private:
  std::mt19937 generator;
};

class ChunkedPlans : public testing::TestWithParam<int> {
protected:
  int32_t ranks = GetParam();
  plr_config config = [] {
    plr_config config = makeConfig();
    config.gemm = PLR_GEMM_REFERENCE;
    config.poison = 1;
    return config;
  }();
};

} // namespace

TEST_P(ChunkedPlans, AreWhatTheirDefinitionSays) {
  Ranks run(ranks, 600, config);
  Draw draw(100 + ranks);
  int64_t above = 0;
  for (int round = 0; round < 65; ++round) {
    Case c = draw.make(ranks, 1 + round % 13, "round " + std::to_string(round));
    above += runCase(run, c) > c.shape.chunks;
    if (HasFailure())
      return;
  }
  EXPECT_GT(above, 5); // Capacity has cut chunks.
}

// At the smallest capacity that any routing needs, one row of each slot from each rank, every leaf is an iteration.
TEST_P(ChunkedPlans, HoldOneExpertThatTakesEverything) {
  Ranks run(ranks, 600, config);
  for (bool isBalanced : {false, true}) {
    Case c;
    c.name = "one expert";
    const int64_t tokens = 12, topK = 2, chunks = 3;
    c.shape = makeShape(0, topK, 2 * ranks);
    c.shape.chunks = chunks;
    c.shape.leaves = tokens / chunks; // One token each.
    c.shape.capacity = ranks * topK;
    if (isBalanced) {
      c.shape.helper_slots = ranks > 1 ? 1 : 0;
      c.shape.alpha_numerator = 1;
    }
    c.ids.assign(ranks, std::vector<int32_t>(tokens * topK, 2 * ranks - 1));
    const int64_t iterations = runCase(run, c);
    if (!isBalanced)
      EXPECT_EQ(iterations, tokens);
    if (isBalanced && ranks > 1) // The rows of a leaf go to several ranks, so more leaves fit.
      EXPECT_LT(iterations, tokens);
  }
}

// The sizes of the groups of a known fault: experts without rows have a gradient of exactly 0.
TEST_P(ChunkedPlans, LeaveTheGradientsOfUnusedExpertsZero) {
  Ranks run(ranks, 600, config);
  Case c;
  c.name = "unused experts";
  c.shape = makeShape(0, 1, 6 * ranks);
  c.shape.chunks = 2;
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (int32_t expert : {0, 0, 0, 2, 2, 2, 2, 2, 3, 3, 5})
      (rank == static_cast<int64_t>(c.ids.size()) ? c.ids.emplace_back() : c.ids.back()).push_back(expert);
  for (int round = 0; round < 3; ++round)
    runCase(run, c);
}

INSTANTIATE_TEST_SUITE_P(Ranks, ChunkedPlans, testing::Values(1, 2, 3, 4, 8), testing::PrintToStringParamName());

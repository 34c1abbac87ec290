//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "SyntheticStep.h"
#include <random>

using namespace mlir::plateau::planning;

namespace {
constexpr int64_t tokens = 4096, width = 2048, hidden = 768, vocabulary = 32768, experts = 16, chosen = 4, element = 2;
constexpr unsigned compute = 0, comm = 1, sums = 2, d2h = 3, h2d = 4;

class Step {
public:
  explicit Step(SyntheticOptions options)
      : problem(options.offload ? 5 : 2), sumLane(options.offload ? sums : comm), options(options) {}
  bool hasGradientSlots() const { return options.gradientSlots; }

  /// The next call waits for the last access of `buffer`.
  void waitFor(int32_t buffer) { extra.push_back(accesses[buffer].back()); }

  int32_t buffer(int64_t bytes) {
    accesses.emplace_back();
    return problem.addBuffer(bytes);
  }
  /// A call that reads some buffers and writes one, after the last access on the other lane of each.
  void call(unsigned lane, std::vector<int32_t> reads, std::vector<int32_t> writes) {
    std::vector<int32_t> waits = std::move(extra), all = reads;
    extra.clear();
    all.insert(all.end(), writes.begin(), writes.end());
    for (int32_t buffer : all)
      for (auto access = accesses[buffer].rbegin(); access != accesses[buffer].rend(); ++access)
        if (problem.getCalls()[*access].lane != lane) {
          waits.push_back(*access);
          break;
        }
    int32_t added = problem.addCall(lane, waits);
    for (int32_t buffer : all)
      accesses[buffer].push_back(added);
  }
  int32_t make(unsigned lane, int64_t bytes, std::vector<int32_t> reads) {
    int32_t made = buffer(bytes);
    call(lane, std::move(reads), {made});
    return made;
  }
  unsigned getSumLane() const { return sumLane; }
  ArenaProblem finish() {
    for (size_t i = 0; i < accesses.size(); ++i)
      problem.addLife(i, accesses[i]);
    problem.finalize();
    return std::move(problem);
  }

private:
  ArenaProblem problem;
  std::vector<int32_t> extra;
  std::vector<std::vector<int32_t>> accesses;
  unsigned sumLane;
  SyntheticOptions options;
};

/// What a layer's forward pass leaves for its backward pass.
struct Layer {
  std::vector<int32_t> saved;
  int32_t output;
};
} // namespace

static Layer forward(Step &step, int32_t x, std::mt19937 &random) {
  int64_t activation = tokens * width * element, rows = tokens * chosen;
  Layer layer;
  std::vector<int32_t> &saved = layer.saved;
  auto keep = [&](int32_t buffer) {
    saved.push_back(buffer);
    return buffer;
  };
  int32_t norm = keep(step.make(compute, activation, {x}));
  int32_t scale = keep(step.make(compute, tokens * 4, {x}));
  int32_t q = keep(step.make(compute, activation, {norm})), k = keep(step.make(compute, activation / 4, {norm}));
  int32_t v = keep(step.make(compute, activation / 4, {norm}));
  for (int i = 0; i < 12; ++i) // Small ones: tables of rotary positions, biases, casts.
    keep(step.make(compute, 64 * (1 + random() % 2000), {i % 2 ? q : k}));
  int32_t attention = keep(step.make(compute, activation, {q, k, v}));
  int32_t sums = keep(step.make(compute, tokens * 16 * 4, {attention}));
  int32_t projected = step.make(compute, activation, {attention, sums});
  int32_t residual = keep(step.make(compute, activation, {x, projected}));
  int32_t normed = keep(step.make(compute, activation, {residual, scale}));
  int32_t logits = keep(step.make(compute, tokens * experts * 4, {normed}));
  int32_t ids = keep(step.make(compute, rows * 8, {logits})), weights = keep(step.make(compute, rows * 4, {logits}));
  int32_t counts = keep(step.make(comm, experts * 8 * 8, {ids}));
  int32_t sent = step.make(compute, rows * width * element, {normed, ids, counts});
  int32_t received = keep(step.make(comm, rows * width * element * 5 / 4, {sent, counts}));
  int32_t w13 = keep(step.make(compute, rows * hidden * 2 * element * 5 / 4, {received}));
  int32_t gated = keep(step.make(compute, rows * hidden * element * 5 / 4, {w13}));
  int32_t out = step.make(compute, rows * width * element * 5 / 4, {gated});
  int32_t scaled = step.make(compute, rows * width * element * 5 / 4, {out, weights});
  int32_t returned = step.make(comm, rows * width * element, {scaled, counts});
  for (int i = 0; i < 20; ++i)
    step.make(compute, 64 * (1 + random() % 500), {i % 3 ? gated : counts});
  int32_t combined = step.make(compute, activation, {returned, ids});
  layer.output = step.make(compute, activation, {combined, residual});
  return layer;
}

static int32_t backward(Step &step, Layer &layer, int32_t dy, int32_t &lastSum, std::mt19937 &random) {
  int64_t activation = tokens * width * element, rows = tokens * chosen;
  auto sumOverRanks = [&](int64_t bytes, std::vector<int32_t> reads) {
    int32_t local = step.make(compute, bytes * 2, std::move(reads)); // In f32.
    int32_t stored = step.make(compute, step.hasGradientSlots() ? bytes : 0, {local});
    step.call(step.getSumLane(), {stored}, {stored});
    lastSum = stored;
  };
  auto &saved = layer.saved;
  int32_t sent = step.make(compute, rows * width * element, {dy, saved[saved.size() - 5]});
  int32_t received = step.make(comm, rows * width * element * 5 / 4, {sent});
  int32_t dgated = step.make(compute, rows * hidden * element * 5 / 4, {received});
  for (int expert = 0; expert < 16; ++expert)
    sumOverRanks(hidden * width * element, {received, saved.back()});
  int32_t dw13 = step.make(compute, rows * hidden * 2 * element * 5 / 4, {dgated, saved[saved.size() - 2]});
  for (int expert = 0; expert < 16; ++expert)
    sumOverRanks(2 * hidden * width * element, {dw13, saved[saved.size() - 3]});
  int32_t drows = step.make(compute, rows * width * element * 5 / 4, {dw13});
  int32_t back = step.make(comm, rows * width * element, {drows});
  int32_t dnormed = step.make(compute, activation, {back});
  int32_t dresidual = step.make(compute, activation, {dnormed, dy, saved[20]});
  int32_t dattention = step.make(compute, activation, {dresidual});
  sumOverRanks(width * width * element, {dresidual, saved[17]});
  int32_t dq = step.make(compute, activation, {dattention, saved[2], saved[17]});
  int32_t dk = step.make(compute, activation / 4, {dattention, saved[3]});
  int32_t dv = step.make(compute, activation / 4, {dattention, saved[4]});
  for (int32_t d : {dq, dk, dv})
    sumOverRanks(width * width * element, {d, saved[0]});
  for (int i = 5; i < 17; ++i)
    step.make(compute, 64 * (1 + random() % 2000), {saved[i], dq});
  int32_t dnorm = step.make(compute, activation, {dq, dk, dv});
  return step.make(compute, activation, {dnorm, dresidual, saved[1]});
}

ArenaProblem mlir::plateau::planning::makeSyntheticStep(SyntheticOptions options) {
  int layers = options.layers;
  bool offload = options.offload;
  std::mt19937 random(1);
  Step step(options);
  int64_t activation = tokens * width * element;
  int32_t x = step.make(compute, activation, {});
  std::vector<int32_t> inputs;
  for (int layer = 0; layer < layers; ++layer) {
    inputs.push_back(x);
    if (offload) {
      step.call(d2h, {x}, {});
      if (layer >= 2)
        step.waitFor(inputs[layer - 2]);
    }
    x = forward(step, x, random).output;
  }
  int32_t logits = step.make(compute, tokens / 4 * vocabulary * 4, {x});
  int32_t loss = step.make(compute, tokens * 4, {logits});
  int32_t dlogits = step.make(compute, tokens / 4 * vocabulary * 4, {logits, loss});
  int32_t dx = step.make(compute, activation, {dlogits});
  std::vector<int32_t> lastSums(layers), fetched(layers);
  auto fetch = [&](int layer) {
    if (offload) {
      step.waitFor(layer + 2 < layers ? fetched[layer + 2] : inputs[layer]);
      fetched[layer] = step.make(h2d, activation, {});
    } else {
      fetched[layer] = inputs[layer];
    }
  };
  fetch(layers - 1);
  for (int layer = layers; layer-- > 0;) {
    if (layer > 0)
      fetch(layer - 1);
    if (layer + 2 < layers)
      step.waitFor(lastSums[layer + 2]);
    Layer again = forward(step, fetched[layer], random);
    dx = backward(step, again, dx, lastSums[layer], random);
  }
  step.call(compute, {dx, lastSums[0]}, {});
  return step.finish();
}

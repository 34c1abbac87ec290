//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/plan.h"
#include "host/gemm.h"
#include "host/scratch.h"
#include "host/simd/variants.h"
#include <algorithm>
#include <array>
#include <cstring>

using namespace plateau::rt;
using namespace plateau::rt::host;

namespace {

/// The library's products have static sizes, and the rows of an expert differ from step to step. So products over many
/// rows are put together from pieces of few sizes, each of which is made once. Where rows are the result's, their bits
/// do not depend on the piece.
///
/// The sizes: every one up to 64, where the cost of one more piece shows; multiples of 16; and 256 at most.
class Pieces {
public:
  static constexpr int64_t largest = 256, grid = 16, exact = 64;
  static constexpr int64_t count = exact + (largest - exact) / grid;

  /// Rows of the next piece when `rows` > 0 are left.
  static int64_t next(int64_t rows) { return rows <= exact ? rows : std::min(rows, largest) / grid * grid; }
  /// Of the sizes, from 0 on.
  static int64_t number(int64_t rows) { return rows <= exact ? rows - 1 : exact + (rows - exact) / grid - 1; }

  /// body(first, rows) for the pieces of the rows begin ... end − 1.
  template <typename Body>
  static void forEach(int64_t begin, int64_t end, const Body &body) {
    while (begin < end) {
      int64_t rows = next(end - begin);
      body(begin, rows);
      begin += rows;
    }
  }
};

/// The products of the pieces' sizes, as far as a call needs them.
struct Products {
  std::array<PreparedGemm *, Pieces::count> ofPiece = {};
  int64_t scratchBytes = 0; ///< Of the one that needs most.

  /// `shape` is that of a piece of `rows` rows. A product that the library does not have fails the context.
  void prepare(Call &call, const GemmShape &shape, int64_t rows) {
    PreparedGemm *&product = ofPiece[Pieces::number(rows)];
    if (product || call.isRefused())
      return;
    plr_context &context = call.getContext();
    if (!context.gemms)
      context.gemms = std::make_unique<GemmCache>();
    std::string message;
    product = context.gemms->get(shape, call.getLane().kind, message);
    if (product)
      scratchBytes = std::max(scratchBytes, product->getScratchBytes());
    else
      call.fail(PLR_INTERNAL, "no product of m = " + std::to_string(shape.m) + ", n = " + std::to_string(shape.n) +
                                  ", k = " + std::to_string(shape.k) + ": " + message);
  }

  const char *run(int64_t rows, const void *a, const void *b, void *c, void *scratch) const {
    return ofPiece[Pieces::number(rows)]->run(a, b, c, scratch);
  }
};

/// Row offsets of a plan's experts. A task has its own copy, behind its body: the plan may be gone when the lane runs.
struct Offsets {
  int64_t experts;
  const int64_t *data;

  explicit Offsets(const plr_plan &plan) : experts(plan.getLocalExperts()), data(plan.expertOffsets.data()) {}
  Offsets(int64_t experts, const Running &running) : experts(experts), data(static_cast<int64_t *>(running.extra)) {}

  size_t getBytes() const { return static_cast<size_t>(experts + 1) * sizeof(int64_t); }
  int64_t begin(int64_t expert) const { return data[expert]; }
  int64_t end(int64_t expert) const { return data[expert + 1]; }
};

} // namespace

static int64_t sizeOf(plr_type type) { return type == PLR_BF16 ? 2 : 4; }

static const void *advance(const void *data, int64_t elements, plr_type type) {
  return static_cast<const char *>(data) + elements * sizeOf(type);
}
static void *advance(void *data, int64_t elements, plr_type type) {
  return static_cast<char *>(data) + elements * sizeOf(type);
}

static void checkPlan(Call &call, const plr_plan *plan) {
  call.require(plan, "the plan is null");
  if (call.isRefused())
    return;
  call.require(&plan->context == &call.getContext(), "the plan is another context's");
  constexpr int64_t most = plr_lane::maxExtraBytes / sizeof(int64_t) - 1;
  if (plan->getLocalExperts() > most)
    call.refuse("the rank has " + std::to_string(plan->getLocalExperts()) +
                " experts, but a grouped product takes at most " + std::to_string(most));
}

//===----------------------------------------------------------------------===//
// Rows times weights
//===----------------------------------------------------------------------===//

/// `shape` is that of a product but for m.
static void enqueueProducts(Call &call, const Offsets &offsets, GemmShape shape, const void *rows, const void *weights,
                            void *result) {
  const plr_type type = shape.type;
  const int64_t experts = offsets.experts, matrix = shape.n * shape.k;
  if (call.getContext().config.gemm == PLR_GEMM_REFERENCE) {
    call.enqueue(
        [=](const Running &running) -> Outcome {
          Offsets offsets(experts, running);
          GemmShape ofExpert = shape;
          for (int64_t e = 0; e < experts; ++e) {
            int64_t begin = offsets.begin(e);
            ofExpert.m = offsets.end(e) - begin;
            referenceGemm(ofExpert, advance(rows, begin * shape.k, type), advance(weights, e * matrix, type),
                          advance(result, begin * shape.n, type));
          }
          return {};
        },
        offsets.data, offsets.getBytes());
    return;
  }
  Products products;
  for (int64_t e = 0; e < experts; ++e)
    Pieces::forEach(offsets.begin(e), offsets.end(e), [&](int64_t, int64_t count) {
      shape.m = count;
      products.prepare(call, shape, count);
    });
  if (call.isRefused())
    return;
  Scratch scratch(call, products.scratchBytes);
  scratch.enqueue(
      [=, scratch = scratch.get()](const Running &running) -> Outcome {
        Offsets offsets(experts, running);
        const char *fault = nullptr;
        for (int64_t e = 0; e < experts && !fault; ++e)
          Pieces::forEach(offsets.begin(e), offsets.end(e), [&](int64_t first, int64_t count) {
            if (!fault)
              fault = products.run(count, advance(rows, first * shape.k, type), advance(weights, e * matrix, type),
                                   advance(result, first * shape.n, type), scratch);
          });
        return fault ? Outcome{PLR_INTERNAL, fault} : Outcome{};
      },
      offsets.data, offsets.getBytes());
}

/// Writes the call's products into its span.
static void describe(Call &call, const plr_plan &plan, const std::array<int64_t, 8> &shape) {
  plr_span *span = call.takeSpan();
  if (!span)
    return;
  std::copy(shape.begin(), shape.end(), span->shape);
  span->flops = 2 * shape[5] * shape[6] * shape[7];
  for (int64_t e = 0; e < plan.getLocalExperts(); ++e)
    span->products += plan.expertOffsets[e] < plan.expertOffsets[e + 1];
}

extern "C" plr_status plr_grouped_gemm(plr_lane *lane, const plr_tag *tag, const plr_plan *plan,
                                       int32_t transpose_weights, plr_type type, int64_t n, int64_t k, const void *rows,
                                       const void *weights, void *result) {
  return enter(lane, "plr_grouped_gemm", tag, [&](Call &call) {
    checkPlan(call, plan);
    call.flag("transpose_weights", transpose_weights);
    call.type("type", type);
    call.size("n", n);
    call.size("k", k);
    if (call.isRefused())
      return;
    int64_t count = plan->getRows();
    call.tensor("rows", rows, {count, k});
    call.tensor("weights", weights, {plan->getLocalExperts(), n, k});
    call.tensor("result", result, {count, n});
    if (call.isRefused())
      return;
    describe(call, *plan, {0, transpose_weights, 0, type, type, count, n, k});
    if (count > 0 && n > 0 && k > 0) {
      GemmShape shape = {false, transpose_weights != 0, false, type, type, 0, n, k};
      enqueueProducts(call, Offsets(*plan), shape, rows, weights, result);
      return;
    }
    // No elements, or sums of nothing.
    size_t bytes = static_cast<size_t>(count * n * sizeOf(type));
    call.enqueue([=](const Running &) -> Outcome {
      if (bytes > 0)
        std::memset(result, 0, bytes);
      return {};
    });
  });
}

//===----------------------------------------------------------------------===//
// Gradients of the weights
//===----------------------------------------------------------------------===//

static void enqueueReferenceSums(Call &call, const Offsets &offsets, const GemmShape &shape, const void *a,
                                 const void *b, void *result) {
  call.enqueue(
      [=, experts = offsets.experts](const Running &running) -> Outcome {
        Offsets offsets(experts, running);
        GemmShape ofExpert = shape;
        for (int64_t e = 0; e < experts; ++e) {
          int64_t begin = offsets.begin(e);
          ofExpert.k = offsets.end(e) - begin;
          if (ofExpert.k > 0 || !shape.accumulate)
            referenceGemm(ofExpert, advance(a, begin * shape.m, shape.type), advance(b, begin * shape.n, shape.type),
                          advance(result, e * shape.m * shape.n, shape.resultType));
        }
        return {};
      },
      offsets.data, offsets.getBytes());
}

/// `shape` is that of a product but for k. The pieces of an expert add up in f32: in the result itself, or in scratch
/// memory when the result is bf16.
static void enqueueSums(Call &call, const Offsets &offsets, const GemmShape &shape, const void *a, const void *b,
                        void *result) {
  const int64_t experts = offsets.experts, matrix = shape.m * shape.n;
  const bool rounds = shape.resultType == PLR_BF16, overwrites = rounds || !shape.accumulate;
  Products first, others;
  for (int64_t e = 0; e < experts; ++e)
    Pieces::forEach(offsets.begin(e), offsets.end(e), [&](int64_t begin, int64_t count) {
      GemmShape ofPiece = shape;
      ofPiece.resultType = PLR_F32;
      ofPiece.k = count;
      ofPiece.accumulate = begin != offsets.begin(e) || !overwrites;
      (ofPiece.accumulate ? others : first).prepare(call, ofPiece, count);
    });
  if (call.isRefused())
    return;
  constexpr int64_t line = 64;
  const int64_t sumBytes = rounds ? (matrix * 4 + line - 1) / line * line : 0;
  Scratch scratch(call, sumBytes + std::max(first.scratchBytes, others.scratchBytes));
  scratch.enqueue(
      [=, sums = scratch.get()](const Running &running) -> Outcome {
        Offsets offsets(experts, running);
        void *scratch = sums ? static_cast<char *>(sums) + sumBytes : nullptr;
        const char *fault = nullptr;
        for (int64_t e = 0; e < experts && !fault; ++e) {
          void *ofExpert = advance(result, e * matrix, shape.resultType);
          if (offsets.begin(e) == offsets.end(e)) {
            if (!shape.accumulate)
              std::memset(ofExpert, 0, static_cast<size_t>(matrix * sizeOf(shape.resultType)));
            continue;
          }
          Pieces::forEach(offsets.begin(e), offsets.end(e), [&](int64_t begin, int64_t count) {
            const Products &products = begin != offsets.begin(e) || !overwrites ? others : first;
            if (!fault)
              fault = products.run(count, advance(a, begin * shape.m, shape.type),
                                   advance(b, begin * shape.n, shape.type), rounds ? sums : ofExpert, scratch);
          });
          if (rounds && !fault)
            bestVariant().roundSums(PLR_BF16, matrix, shape.accumulate, static_cast<float *>(sums), ofExpert);
        }
        return fault ? Outcome{PLR_INTERNAL, fault} : Outcome{};
      },
      offsets.data, offsets.getBytes());
}

extern "C" plr_status plr_grouped_gemm_grad(plr_lane *lane, const plr_tag *tag, const plr_plan *plan,
                                            int32_t accumulate, plr_type type, plr_type result_type, int64_t m,
                                            int64_t n, const void *a, const void *b, void *result) {
  return enter(lane, "plr_grouped_gemm_grad", tag, [&](Call &call) {
    checkPlan(call, plan);
    call.flag("accumulate", accumulate);
    call.type("type", type);
    call.type("result_type", result_type);
    call.require(type == PLR_BF16 || result_type == PLR_F32, "f32 operands give an f32 result, not a bf16 one");
    call.size("m", m);
    call.size("n", n);
    if (call.isRefused())
      return;
    int64_t count = plan->getRows();
    call.tensor("a", a, {count, m});
    call.tensor("b", b, {count, n});
    call.tensor("result", result, {plan->getLocalExperts(), m, n});
    if (call.isRefused())
      return;
    describe(call, *plan, {1, 0, accumulate, type, result_type, m, n, count});
    GemmShape shape = {true, false, accumulate != 0, type, result_type, m, n, 0};
    if (m == 0 || n == 0)
      call.enqueue([](const Running &) -> Outcome { return {}; });
    else if (call.getContext().config.gemm == PLR_GEMM_REFERENCE)
      enqueueReferenceSums(call, Offsets(*plan), shape, a, b, result);
    else
      enqueueSums(call, Offsets(*plan), shape, a, b, result);
  });
}

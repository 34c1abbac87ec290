//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/gemm.h"
#include "host/pieces.h"
#include "host/plan_use.h"
#include "host/scratch.h"
#include "host/simd/variants.h"
#include <algorithm>
#include <array>
#include <cstring>

using namespace plateau::rt;
using namespace plateau::rt::host;

namespace {

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
    product = context.gemms->get(shape, call.getLane().kind, call.isPreparing(), message);
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

/// Row offsets of the expert slots in an iteration of a plan. A task has its own copy, behind its body: the plan may be
/// gone when the lane runs.
struct Offsets {
  int64_t experts;
  const int64_t *data;

  Offsets(const plr_plan &plan, int64_t iteration) : experts(plan.slots), data(plan.getOffsets(iteration)) {}
  Offsets(int64_t experts, const Running &running) : experts(experts), data(static_cast<int64_t *>(running.extra)) {}

  size_t getBytes() const { return static_cast<size_t>(experts + 1) * sizeof(int64_t); }
  int64_t begin(int64_t expert) const { return data[expert]; }
  int64_t end(int64_t expert) const { return data[expert + 1]; }
};

/// Matrices of the expert slots: of the rank's own experts in one place, of helper slots in another.
template <typename Pointer>
struct Matrices {
  Pointer own, helpers;
  int64_t ownCount, bytes; ///< `bytes` of a matrix.

  Pointer operator[](int64_t slot) const {
    using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const char, char>;
    return slot < ownCount ? static_cast<Byte *>(own) + slot * bytes
                           : static_cast<Byte *>(helpers) + (slot - ownCount) * bytes;
  }
};

} // namespace

static int64_t sizeOf(plr_type type) { return type == PLR_BF16 ? 2 : 4; }

static const void *advance(const void *data, int64_t elements, plr_type type) {
  return static_cast<const char *>(data) + elements * sizeOf(type);
}
static void *advance(void *data, int64_t elements, plr_type type) {
  return static_cast<char *>(data) + elements * sizeOf(type);
}

static void checkSlots(Call &call, const plr_plan *plan, int64_t iteration) {
  checkPlan(call, plan, iteration);
  if (call.isRefused() || call.isPreparing())
    return;
  constexpr int64_t most = plr_lane::maxExtraBytes / sizeof(int64_t) - 1;
  if (plan->slots > most)
    call.refuse("the rank has " + std::to_string(plan->slots) + " experts, but a grouped product takes at most " +
                std::to_string(most));
}

//===----------------------------------------------------------------------===//
// Rows times weights
//===----------------------------------------------------------------------===//

/// Makes what any number of rows needs. `shape` is that of a product but for m.
static void prepareProducts(Call &call, GemmShape shape) {
  if (shape.n == 0 || shape.k == 0 || call.getContext().config.gemm == PLR_GEMM_REFERENCE)
    return;
  Products products;
  Pieces::forEachSize(2 * Pieces::largest, [&](int64_t rows, bool) {
    shape.m = rows;
    products.prepare(call, shape, rows);
  });
}

/// `shape` is that of a product but for m.
static void enqueueProducts(Call &call, const Offsets &offsets, GemmShape shape, const void *rows,
                            const Matrices<const void *> &weights, void *result, const Workspace &workspace) {
  const plr_type type = shape.type;
  const int64_t experts = offsets.experts;
  if (call.getContext().config.gemm == PLR_GEMM_REFERENCE) {
    call.enqueue(
        [=](const Running &running) -> Outcome {
          Offsets offsets(experts, running);
          GemmShape ofExpert = shape;
          for (int64_t e = 0; e < experts; ++e) {
            int64_t begin = offsets.begin(e);
            ofExpert.m = offsets.end(e) - begin;
            referenceGemm(ofExpert, advance(rows, begin * shape.k, type), weights[e],
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
  Scratch scratch(call, workspace, products.scratchBytes);
  scratch.enqueue(
      [=, scratch = scratch.get()](const Running &running) -> Outcome {
        Offsets offsets(experts, running);
        const char *fault = nullptr;
        for (int64_t e = 0; e < experts && !fault; ++e)
          Pieces::forEach(offsets.begin(e), offsets.end(e), [&](int64_t first, int64_t count) {
            if (!fault)
              fault = products.run(count, advance(rows, first * shape.k, type), weights[e],
                                   advance(result, first * shape.n, type), scratch);
          });
        return fault ? Outcome{PLR_INTERNAL, fault} : Outcome{};
      },
      offsets.data, offsets.getBytes());
}

/// Writes the call's products into its span.
static void describe(Call &call, const Offsets &offsets, const std::array<int64_t, 8> &shape) {
  plr_span *span = call.takeSpan();
  if (!span)
    return;
  std::copy(shape.begin(), shape.end(), span->shape);
  span->flops = 2 * shape[5] * shape[6] * shape[7];
  for (int64_t e = 0; e < offsets.experts; ++e)
    span->products += offsets.begin(e) < offsets.end(e);
}

extern "C" plr_status plr_grouped_gemm(plr_lane *lane, const plr_tag *tag, const plr_plan *plan, int64_t iteration,
                                       int32_t transpose_weights, plr_type type, int64_t n, int64_t k, const void *rows,
                                       const void *weights, const void *helpers, void *result, void *workspace,
                                       int64_t workspace_bytes) {
  return enter(lane, "plr_grouped_gemm", tag, [&](Call &call) {
    checkSlots(call, plan, iteration);
    call.flag("transpose_weights", transpose_weights);
    call.type("type", type);
    call.size("n", n);
    call.size("k", k);
    const Workspace given = {workspace, workspace_bytes};
    given.check(call);
    if (call.isRefused())
      return;
    const GemmShape shape = {false, transpose_weights != 0, false, type, type, 0, n, k};
    if (call.isPreparing()) {
      prepareProducts(call, shape);
      return;
    }
    if (iteration >= plan->iterations)
      return;
    int64_t count = plan->getRows(iteration);
    call.tensor("rows", rows, {count, k});
    call.tensor("weights", weights, {plan->localExperts, n, k});
    call.tensor("helpers", helpers, {plan->shape.helper_slots, n, k});
    call.tensor("result", result, {count, n});
    if (call.isRefused())
      return;
    const Offsets offsets(*plan, iteration);
    describe(call, offsets, {0, transpose_weights, 0, type, type, count, n, k});
    if (count > 0 && n > 0 && k > 0) {
      enqueueProducts(call, offsets, shape, rows, {weights, helpers, plan->localExperts, n * k * sizeOf(type)}, result,
                      given);
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
                                 const void *b, const Matrices<void *> &result) {
  call.enqueue(
      [=, experts = offsets.experts](const Running &running) -> Outcome {
        Offsets offsets(experts, running);
        GemmShape ofExpert = shape;
        for (int64_t e = 0; e < experts; ++e) {
          int64_t begin = offsets.begin(e);
          ofExpert.k = offsets.end(e) - begin;
          if (ofExpert.k > 0 || !shape.accumulate)
            referenceGemm(ofExpert, advance(a, begin * shape.m, shape.type), advance(b, begin * shape.n, shape.type),
                          result[e]);
        }
        return {};
      },
      offsets.data, offsets.getBytes());
}

/// Makes what any number of rows needs. `shape` is that of a product but for k.
static void prepareSums(Call &call, const GemmShape &shape) {
  if (shape.m == 0 || shape.n == 0 || call.getContext().config.gemm == PLR_GEMM_REFERENCE)
    return;
  Products first, others;
  Pieces::forEachSize(2 * Pieces::largest, [&](int64_t rows, bool isFirst) {
    GemmShape piece = getSumPiece(shape, rows, isFirst);
    (piece.accumulate ? others : first).prepare(call, piece, rows);
  });
}

/// `shape` is that of a product but for k.
static void enqueueSums(Call &call, const Offsets &offsets, const GemmShape &shape, const void *a, const void *b,
                        const Matrices<void *> &result, const Workspace &workspace) {
  const int64_t experts = offsets.experts, matrix = shape.m * shape.n;
  const bool rounds = shape.resultType == PLR_BF16;
  Products first, others;
  for (int64_t e = 0; e < experts; ++e)
    Pieces::forEach(offsets.begin(e), offsets.end(e), [&](int64_t begin, int64_t count) {
      GemmShape ofPiece = getSumPiece(shape, count, begin == offsets.begin(e));
      (ofPiece.accumulate ? others : first).prepare(call, ofPiece, count);
    });
  if (call.isRefused())
    return;
  const int64_t sumBytes = getSumBytes(shape);
  Scratch scratch(call, workspace, sumBytes + std::max(first.scratchBytes, others.scratchBytes));
  scratch.enqueue(
      [=, sums = scratch.get()](const Running &running) -> Outcome {
        Offsets offsets(experts, running);
        void *scratch = sums ? static_cast<char *>(sums) + sumBytes : nullptr;
        const char *fault = nullptr;
        for (int64_t e = 0; e < experts && !fault; ++e) {
          void *ofExpert = result[e];
          if (offsets.begin(e) == offsets.end(e)) {
            if (!shape.accumulate)
              std::memset(ofExpert, 0, static_cast<size_t>(matrix * sizeOf(shape.resultType)));
            continue;
          }
          Pieces::forEach(offsets.begin(e), offsets.end(e), [&](int64_t begin, int64_t count) {
            const bool adds = getSumPiece(shape, count, begin == offsets.begin(e)).accumulate;
            const Products &products = adds ? others : first;
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

extern "C" plr_status plr_grouped_gemm_grad(plr_lane *lane, const plr_tag *tag, const plr_plan *plan, int64_t iteration,
                                            int32_t accumulate, plr_type type, plr_type result_type, int64_t m,
                                            int64_t n, const void *a, const void *b, void *result, void *helper_result,
                                            void *workspace, int64_t workspace_bytes) {
  return enter(lane, "plr_grouped_gemm_grad", tag, [&](Call &call) {
    checkSlots(call, plan, iteration);
    call.flag("accumulate", accumulate);
    call.type("type", type);
    call.type("result_type", result_type);
    call.require(type == PLR_BF16 || result_type == PLR_F32, "f32 operands give an f32 result, not a bf16 one");
    call.size("m", m);
    call.size("n", n);
    const Workspace given = {workspace, workspace_bytes};
    given.check(call);
    if (call.isRefused())
      return;
    const GemmShape shape = {true, false, accumulate != 0, type, result_type, m, n, 0};
    if (call.isPreparing()) {
      prepareSums(call, shape);
      return;
    }
    if (iteration >= plan->iterations)
      return;
    int64_t count = plan->getRows(iteration);
    call.tensor("a", a, {count, m});
    call.tensor("b", b, {count, n});
    call.tensor("result", result, {plan->localExperts, m, n});
    call.tensor("helper_result", helper_result, {plan->shape.helper_slots, m, n});
    if (call.isRefused())
      return;
    const Offsets offsets(*plan, iteration);
    const Matrices<void *> results = {result, helper_result, plan->localExperts, m * n * sizeOf(result_type)};
    describe(call, offsets, {1, 0, accumulate, type, result_type, m, n, count});
    if (m == 0 || n == 0)
      call.enqueue([](const Running &) -> Outcome { return {}; });
    else if (call.getContext().config.gemm == PLR_GEMM_REFERENCE)
      enqueueReferenceSums(call, offsets, shape, a, b, results);
    else
      enqueueSums(call, offsets, shape, a, b, results, given);
  });
}

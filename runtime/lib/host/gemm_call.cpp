//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/gemm.h"
#include "host/scratch.h"
#include <cstring>

using namespace plateau::rt;
using namespace plateau::rt::host;

/// k = 0: a sum of nothing. m or n = 0: no elements. The library is asked for neither.
static void enqueueEmpty(Call &call, const GemmShape &shape, void *c) {
  size_t bytes = shape.accumulate ? 0 : static_cast<size_t>(shape.m * shape.n) * (shape.resultType == PLR_BF16 ? 2 : 4);
  call.enqueue([=](const Running &) -> Outcome {
    if (bytes > 0)
      std::memset(c, 0, bytes);
    return {};
  });
}

static void enqueueGemm(Call &call, const GemmShape &shape, const void *a, const void *b, void *c,
                        const Workspace &workspace) {
  plr_context &context = call.getContext();
  if (context.config.gemm == PLR_GEMM_REFERENCE) {
    call.enqueue([=](const Running &) -> Outcome {
      referenceGemm(shape, a, b, c);
      return {};
    });
    return;
  }
  if (!context.gemms)
    context.gemms = std::make_unique<GemmCache>();
  std::string message;
  PreparedGemm *gemm = context.gemms->get(shape, call.getLane().kind, call.isPreparing(), message);
  if (!gemm) {
    call.fail(PLR_INTERNAL, "no product of m = " + std::to_string(shape.m) + ", n = " + std::to_string(shape.n) +
                                ", k = " + std::to_string(shape.k) + ": " + message);
    return;
  }
  Scratch scratch(call, workspace, gemm->getScratchBytes());
  scratch.enqueue([=, scratch = scratch.get()](const Running &) -> Outcome {
    if (const char *fault = gemm->run(a, b, c, scratch))
      return {PLR_INTERNAL, fault};
    return {};
  });
}

extern "C" plr_status plr_gemm(plr_lane *lane, const plr_tag *tag, int32_t transpose_a, int32_t transpose_b,
                               int32_t accumulate, plr_type type, plr_type result_type, int64_t m, int64_t n, int64_t k,
                               const void *a, const void *b, void *c, void *workspace, int64_t workspace_bytes) {
  return enter(lane, "plr_gemm", tag, [&](Call &call) {
    call.flag("transpose_a", transpose_a);
    call.flag("transpose_b", transpose_b);
    call.flag("accumulate", accumulate);
    call.type("type", type);
    call.type("result_type", result_type);
    call.require(type == PLR_BF16 || result_type == PLR_F32, "f32 operands give an f32 result, not a bf16 one");
    call.size("m", m);
    call.size("n", n);
    call.size("k", k);
    call.tensor("a", a, {m, k});
    call.tensor("b", b, {k, n});
    call.tensor("c", c, {m, n});
    const Workspace given = {workspace, workspace_bytes};
    given.check(call);
    if (call.isRefused())
      return;
    if (plr_span *span = call.takeSpan()) {
      const int64_t shape[8] = {transpose_a, transpose_b, accumulate, type, result_type, m, n, k};
      std::memcpy(span->shape, shape, sizeof shape);
      span->flops = 2 * m * n * k;
      span->products = 1;
    }
    GemmShape shape = {transpose_a != 0, transpose_b != 0, accumulate != 0, type, result_type, m, n, k};
    if (m == 0 || n == 0 || k == 0)
      enqueueEmpty(call, shape, c);
    else
      enqueueGemm(call, shape, a, b, c, given);
  });
}

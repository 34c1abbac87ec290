//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Matrix products: what a call asks for, and the two ways to compute it.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUNTIME_HOST_GEMM_H
#define PLATEAU_RUNTIME_HOST_GEMM_H

#include "plateau/runtime.h"
#include <cstddef>
#include <memory>
#include <string>

namespace plateau::rt::host {

/// The arguments of plr_gemm but the pointers.
struct GemmShape {
  bool transposeA, transposeB, accumulate;
  plr_type type, resultType;
  int64_t m, n, k;

  bool operator==(const GemmShape &other) const {
    return transposeA == other.transposeA && transposeB == other.transposeB && accumulate == other.accumulate &&
           type == other.type && resultType == other.resultType && m == other.m && n == other.n && k == other.k;
  }
};

/// A product of one shape, ready to run on one lane.
class PreparedGemm {
public:
  virtual ~PreparedGemm() = default;
  virtual int64_t getScratchBytes() const = 0;
  /// What went wrong in the library; null when nothing did. `scratch` may be null when no bytes are needed.
  virtual const char *run(const void *a, const void *b, void *c, void *scratch) = 0;
};

/// The products that oneDNN's matmul primitive computes for a context: made by the calling thread at first use and
/// kept.
class GemmCache {
public:
  GemmCache();
  ~GemmCache();

  /// m, n and k are positive. Valid until the next limit(), and beyond it when a call has asked for it with `keep`.
  /// Null, and the reason, when the library has no such product.
  PreparedGemm *get(const GemmShape &shape, plr_lane_kind lane, bool keep, std::string &message);

  /// Shapes whose products are kept.
  size_t getSize() const;

  /// Drops what is not kept when there is more of it than a program of steady shapes makes. The lanes must be idle.
  void limit(size_t most = 4096);

private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation;
};

/// Scratch bytes of products that nobody has asked a cache for.
class GemmScratchSizes {
public:
  GemmScratchSizes();
  ~GemmScratchSizes();
  /// m, n and k are positive. −1 when the library has no such product.
  int64_t get(const GemmShape &shape);

private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation; ///< Made by the first question.
};

/// Each element is summed in f32 over k in ascending order, every product and sum rounded, then added to what it held
/// when accumulating, then rounded once to the result's type. So its bits depend on its row, its column and nothing
/// else.
void referenceGemm(const GemmShape &shape, const void *a, const void *b, void *c);

} // namespace plateau::rt::host

#endif // PLATEAU_RUNTIME_HOST_GEMM_H

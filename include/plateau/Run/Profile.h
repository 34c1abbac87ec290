//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// What spans say: where the time of the steps went, and the shapes of their matrix products.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_PROFILE_H
#define PLATEAU_RUN_PROFILE_H

#include "plateau/runtime.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <vector>

namespace mlir::plateau::run {

/// Spans of each rank.
using RankSpans = std::vector<std::vector<plr_span>>;

/// Writes a line for each shape of matrix product, most time first: transpose_a transpose_b accumulate type result_type
/// m n k count nanoseconds (types f32 or bf16): what plateau-gemm-bench reads.
llvm::Error writeGemmShapes(llvm::StringRef path, const RankSpans &spans);

/// Prints the share of matrix products in `seconds` of steps, and the rates of matrix products and attention.
void printProfile(llvm::raw_ostream &os, const RankSpans &spans, double seconds);

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_PROFILE_H

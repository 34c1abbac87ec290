//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// A layer's experts as a function on tensors, as text.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_BENCH_DISPATCHTEXT_H
#define PLATEAU_BENCH_DISPATCHTEXT_H

#include "plateau/Bench/DispatchOptions.h"

namespace mlir::plateau::bench {

/// Arguments of the layer. Weights are those of a rank's own experts; rows has room for y and the gradient by x, Grads
/// for those by the weights of routes and of experts.
namespace dispatch_argument {
enum : unsigned { X, RouteWeights, Ids, W13, W2, Rows, OutputGrad, Grads };
} // namespace dispatch_argument

/// The text of a module with one function, @layer: y = Σ over a token's slots of weight · W2 · swiglu(W13 · x), in a
/// checkpoint region, and the gradients from that of y as a step with a checkpoint a layer has them. `forwardOnly`:
/// y alone, and the last two arguments are not there.
std::string getLayerText(const DispatchOptions &options);

/// The text of a module whose function, @plan, makes this plan of ids, its first argument. A number for each slot, the
/// second, travels to where the rows of the first iteration are computed, and back: a plan that nothing reads is not
/// made.
std::string getPlanText(const DispatchOptions &options, llvm::StringRef planType, llvm::StringRef balance,
                        bool hasIterations);

/// Likewise for a plan with one iteration; @plan has a result beside, for each slot the rank that computes its row.
/// After ids come ones [tokens, 1] and, for each expert of a rank and for each helper slot, the number of the rank:
/// [experts, 1, 1] and, when there are such, [helper slots, 1, 1].
std::string getDestinationsText(const DispatchOptions &options, llvm::StringRef planType, llvm::StringRef balance,
                                int64_t helperSlots);

} // namespace mlir::plateau::bench

#endif // PLATEAU_BENCH_DISPATCHTEXT_H

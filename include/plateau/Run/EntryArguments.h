//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The arguments on which one function runs.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_ENTRYARGUMENTS_H
#define PLATEAU_RUN_ENTRYARGUMENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace mlir::plateau::run {

using Bytes = std::vector<char>;
/// The bytes of arguments or results: [rank][index].
using RankBytes = std::vector<std::vector<Bytes>>;

/// The arguments of `function` on each of `ranks` ranks, static tensors of f32, bf16 or i32.
///
/// With an attribute plateau.values (dense elements of the argument's type, or of that type with a dimension for the
/// ranks in front) these are the contents. Otherwise numbers come from the stream of (seed, "argument<index>") on the
/// first rank, and (seed, "argument<index>.<rank>") on the others: floats are standard normal, integers are below
/// plateau.below (2 when it is not given). By moe.role, positions count from 0, starts are 0, the step is 1, and the
/// learning rate and second moments are magnitudes of normal numbers.
///
/// The learning rate, the step and what carries plateau.same are the same on all ranks; so are parameters
/// (moe.parameter, or the tensors of a moe.layout), unless a grid divides them: then ranks with the same part have the
/// same numbers, and the part takes the place of the rank in the stream's name. Rows of padding are zero.
llvm::Expected<RankBytes> drawArguments(func::FuncOp function, uint64_t seed, int ranks);

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_ENTRYARGUMENTS_H

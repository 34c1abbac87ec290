//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Which leaves of the tokens an iteration takes. Whole numbers in, whole numbers out.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_LIB_INTERPRETER_CHUNKCUT_H
#define PLATEAU_LIB_INTERPRETER_CHUNKCUT_H

#include <cstdint>
#include <vector>

namespace mlir::plateau::interpreter {

/// [leaf][rank]: the rows that a rank receives of a leaf, from all ranks.
using LeafRows = std::vector<std::vector<int64_t>>;

/// The iteration of each leaf: chunks in order, and in a chunk as many leaves in order as keep the rows of each rank
/// within `capacity` (0: all). No leaf alone may have more.
std::vector<int64_t> cutChunks(const LeafRows &rows, int64_t chunks, int64_t capacity);

} // namespace mlir::plateau::interpreter

#endif // PLATEAU_LIB_INTERPRETER_CHUNKCUT_H

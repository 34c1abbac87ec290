//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "ChunkCut.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::plateau;
using namespace mlir::plateau::interpreter;

std::vector<int64_t> interpreter::cutChunks(const LeafRows &rows, int64_t chunks, int64_t capacity) {
  auto leaves = static_cast<int64_t>(rows.size());
  std::vector<int64_t> iterations(leaves);
  int64_t iteration = -1;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    ++iteration;
    std::vector<int64_t> received(rows.front().size());
    for (int64_t leaf = chunk; leaf < leaves; leaf += chunks) {
      bool fits = llvm::all_of(llvm::zip_equal(received, rows[leaf]),
                               [&](auto counts) { return std::get<0>(counts) + std::get<1>(counts) <= capacity; });
      if (capacity && !fits) {
        ++iteration;
        received.assign(received.size(), 0);
      }
      for (auto [sum, count] : llvm::zip_equal(received, rows[leaf]))
        sum += count;
      iterations[leaf] = iteration;
    }
  }
  return iterations;
}

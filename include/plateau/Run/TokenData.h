//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Training text as a flat file of token ids, cut into the batches of a run.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_RUN_TOKENDATA_H
#define PLATEAU_RUN_TOKENDATA_H

#include "plateau/Run/StepSignature.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>

namespace mlir::plateau::run {

/// One rank's arguments of one step, `BatchShape::tokens` numbers each.
struct RankBatch {
  std::vector<int32_t> tokens, labels, positions, starts;
};

/// A file of little-endian 32-bit token ids, mapped into memory.
///
/// Batch b is the R·N tokens from number b·R·N on; rank r has those from b·R·N + r·N on. The label of a token is the
/// token that follows it in the file. Step k (from 0) reads batch k modulo the number of whole batches, so a run longer
/// than the file starts again at its front, and any number of ranks with the same R·N reads the same global batch.
///
/// A sequence is `sequence` tokens that stand together: positions count from 0 in it and `starts` is its first row on
/// the rank. With `documentEnd`, a token of that id is the last of its document: positions and starts begin anew after
/// it, and its label, which would be the first token of another document, is `ignoreIndex`.
///
/// Where ranks have numbers of tokens of their own, a batch has their sum, rank after rank. The rows of a rank after
/// its tokens are padding: token and position 0, label `ignoreIndex`, and `starts` the row itself.
class TokenData {
public:
  static llvm::Expected<TokenData> open(llvm::StringRef path, const BatchShape &batch,
                                        std::optional<int64_t> documentEnd, int32_t ignoreIndex);

  /// Whole batches in the file.
  int64_t getBatches() const { return batches; }

  /// Fails when an id that the steps `first` … `first + steps − 1` read is not in [0, vocabulary).
  llvm::Error checkIds(int64_t first, int64_t steps, int64_t vocabulary) const;

  RankBatch getBatch(int64_t step, int rank) const;

private:
  llvm::Error checkRange(int64_t begin, int64_t end, int64_t vocabulary) const;

  std::string path;
  std::unique_ptr<llvm::MemoryBuffer> file;
  llvm::ArrayRef<llvm::support::ulittle32_t> ids;
  BatchShape batch;
  int64_t batches = 0;
  std::optional<int64_t> documentEnd;
  int32_t ignoreIndex = 0;
};

} // namespace mlir::plateau::run

#endif // PLATEAU_RUN_TOKENDATA_H

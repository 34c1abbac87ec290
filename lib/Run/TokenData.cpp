//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/TokenData.h"
#include "plateau/Run/Error.h"
#include "plateau/Run/Files.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::run;

llvm::Expected<TokenData> TokenData::open(llvm::StringRef path, const BatchShape &batch,
                                          std::optional<int64_t> documentEnd, int32_t ignoreIndex) {
  auto file = readFile(path);
  if (!file)
    return makeError("{0}: cannot read the token ids: {1}", path, llvm::toString(file.takeError()));
  size_t bytes = (*file)->getBufferSize();
  if (bytes % 4 != 0)
    return makeError("{0}: {1} bytes are no whole number of 32-bit token ids ({2} bytes over)", path, bytes, bytes % 4);

  TokenData data;
  data.path = path.str();
  data.ids = {reinterpret_cast<const llvm::support::ulittle32_t *>((*file)->getBufferStart()), bytes / 4};
  data.file = std::move(*file);
  data.batch = batch;
  data.documentEnd = documentEnd;
  data.ignoreIndex = ignoreIndex;
  int64_t tokens = data.ids.size(), needed = batch.getGlobalTokens() + 1;
  if (tokens < needed && !batch.rankTokens.empty())
    return makeError(
        "{0}: holds {1} tokens; one batch (--rank-tokens {2:$[,]}) and the label of its last token need {3}", path,
        tokens, llvm::make_range(batch.rankTokens.begin(), batch.rankTokens.end()), needed);
  if (tokens < needed)
    return makeError(
        "{0}: holds {1} tokens; one batch (ranks {2}, tokens {3}) and the label of its last token need {4}", path,
        tokens, batch.ranks, batch.tokens, needed);
  data.batches = (tokens - 1) / batch.getGlobalTokens();
  return data;
}

llvm::Error TokenData::checkRange(int64_t begin, int64_t end, int64_t vocabulary) const {
  for (int64_t i = begin; i < end; ++i)
    if (ids[i] >= static_cast<uint64_t>(vocabulary))
      return makeError("{0}: token id {1} at byte {2} is not in the vocabulary of {3}", path, uint32_t(ids[i]), i * 4,
                       vocabulary);
  return llvm::Error::success();
}

llvm::Error TokenData::checkIds(int64_t first, int64_t steps, int64_t vocabulary) const {
  if (steps <= 0)
    return llvm::Error::success();
  int64_t size = batch.getGlobalTokens();
  if (steps >= batches)
    return checkRange(0, batches * size + 1, vocabulary);
  int64_t begin = first % batches, end = begin + steps;
  // The part before the end of the file, then the part after its front. Each reads one token more, for the last label.
  if (auto error = checkRange(begin * size, std::min(end, batches) * size + 1, vocabulary))
    return error;
  return end > batches ? checkRange(0, (end - batches) * size + 1, vocabulary) : llvm::Error::success();
}

RankBatch TokenData::getBatch(int64_t step, int rank) const {
  int64_t begin = (step % batches) * batch.getGlobalTokens() + batch.getTokensBefore(rank);
  RankBatch result;
  for (std::vector<int32_t> *column : {&result.tokens, &result.labels, &result.positions, &result.starts})
    column->resize(batch.tokens);
  int64_t start = 0, microTokens = batch.tokens / batch.microBatches;
  bool afterEnd = false;
  for (int64_t row = batch.getTokens(rank); row < batch.tokens; ++row) {
    result.labels[row] = ignoreIndex;
    result.starts[row] = row; // A row of padding sees itself alone.
  }
  for (int64_t row = 0; row < batch.getTokens(rank); ++row) {
    if (row % batch.sequence == 0 || afterEnd)
      start = row;
    uint32_t token = ids[begin + row];
    afterEnd = documentEnd && token == *documentEnd;
    result.tokens[row] = token;
    result.labels[row] = afterEnd ? ignoreIndex : static_cast<int32_t>(ids[begin + row + 1]);
    result.positions[row] = row - start;
    result.starts[row] = start % microTokens; // Rows count from the front of a micro-batch.
  }
  return result;
}

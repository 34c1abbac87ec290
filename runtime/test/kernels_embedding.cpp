//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/kernels.h"
#include "kernels_support.h"
#include "plateau/runtime_footprint.h"

using namespace plateau::rt;
using namespace plateau::rt::test;

namespace {

class Embedding : public KernelTest {};

TEST_P(Embedding, SumsRowsInOrder) {
  for (int64_t columns : {1, 5, 16, 33, 64}) {
    Tensor cotangent = randomTensor(type, 40 * columns, 1), result(type, columns), workspace(PLR_F32, columns);
    const int32_t rows[] = {0, 3, 4, 9, 39};
    std::vector<double> expected(columns);
    for (int32_t row : rows)
      for (int64_t j = 0; j < columns; ++j)
        expected[j] += cotangent[row * columns + j];
    variant->embeddingSum(type, columns, 5, rows, cotangent.data(), result.data(), workspace.floats());
    expectClose(type, result, expected, 1e-6, "sum");
    EXPECT_TRUE(workspace.endIsIntact());
  }
}

// 1024 rows of 1/256 are 4; a running sum in bf16 would stop at 1.
TEST_P(Embedding, SumsInF32) {
  Tensor cotangent(type, 1024), result(type, 1), workspace(PLR_F32, 1);
  std::vector<int32_t> rows(1024);
  for (int32_t i = 0; i < 1024; ++i) {
    rows[i] = i;
    cotangent.set(i, 1.0 / 256);
  }
  variant->embeddingSum(type, 1, 1024, rows.data(), cotangent.data(), result.data(), workspace.floats());
  EXPECT_EQ(result[0], 4);
}

PLATEAU_KERNEL_TEST(Embedding);

class EmbeddingOps : public testing::TestWithParam<plr_type> {};

TEST_P(EmbeddingOps, LooksUpRows) {
  plr_type type = GetParam();
  Tensor table = randomTensor(type, 7 * 5, 1), result(type, 4 * 5);
  const int32_t ids[] = {6, 0, 3, 6};
  EXPECT_EQ(host::embedding(type, 4, 5, 7, table.data(), ids, result.data()), "");
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 5; ++j)
      EXPECT_EQ(result[i * 5 + j], table[ids[i] * 5 + j]);
  EXPECT_TRUE(result.endIsIntact());
}

TEST_P(EmbeddingOps, GradientWritesAllRows) {
  plr_type type = GetParam();
  const int64_t rows = 50, columns = 19, vocabulary = 23;
  std::mt19937 generator(3);
  std::vector<int32_t> ids(rows);
  for (int32_t &id : ids)
    id = static_cast<int32_t>(generator() % 12) * 2;
  Tensor cotangent = randomTensor(type, rows * columns, 1), result(type, vocabulary * columns);
  Tensor workspace(PLR_F32, plr_footprint_embedding_grad(rows, vocabulary, columns) / 4);
  ASSERT_EQ(host::embeddingGrad(type, rows, columns, vocabulary, cotangent.data(), ids.data(), result.data(),
                                workspace.data()),
            "");
  std::vector<double> expected(vocabulary * columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      expected[ids[i] * columns + j] += cotangent[i * columns + j];
  expectClose(type, result, expected, 1e-6, "gradient");
  EXPECT_TRUE(workspace.endIsIntact());
  for (int64_t j = 0; j < columns; ++j) {
    EXPECT_EQ(result[1 * columns + j], 0);
    EXPECT_FALSE(std::signbit(result[1 * columns + j]));
  }
}

TEST_P(EmbeddingOps, NoRows) {
  plr_type type = GetParam();
  Tensor result(type, 12), workspace(PLR_F32, plr_footprint_embedding_grad(0, 3, 4) / 4);
  EXPECT_EQ(host::embedding(type, 0, 4, 3, nullptr, nullptr, nullptr), "");
  EXPECT_EQ(host::embeddingGrad(type, 0, 4, 3, nullptr, nullptr, result.data(), workspace.data()), "");
  for (int64_t i = 0; i < 12; ++i)
    EXPECT_EQ(result[i], 0);
}

TEST_P(EmbeddingOps, ShardsMakeUpTheTable) {
  plr_type type = GetParam();
  // 23 rows in shards of 9: the last one has 4 rows behind the table.
  const int64_t rows = 50, columns = 19, vocabulary = 23, shardRows = 9;
  std::mt19937 generator(3);
  std::vector<int32_t> ids(rows);
  for (int32_t &id : ids)
    id = static_cast<int32_t>(generator() % vocabulary);
  Tensor table = randomTensor(type, 27 * columns, 1), cotangent = randomTensor(type, rows * columns, 2);
  for (int32_t first : {0, 9, 18}) {
    Tensor shard = table.slice(first * columns, shardRows * columns), result(type, rows * columns);
    Tensor sums = randomTensor(PLR_F32, shardRows * columns, 4), before = sums;
    EXPECT_EQ(host::embeddingShard(type, rows, columns, shardRows, vocabulary, &first, shard.data(), ids.data(),
                                   result.data()),
              "");
    host::embeddingShardGrad(type, rows, columns, shardRows, &first, cotangent.data(), ids.data(), sums.floats());
    EXPECT_TRUE(result.endIsIntact() && sums.endIsIntact());
    for (int64_t i = 0; i < rows * columns; ++i) {
      const int32_t id = ids[i / columns];
      ASSERT_EQ(result[i], id >= first && id < first + shardRows ? table[id * columns + i % columns] : 0) << i;
    }
    // Rows ascending, in f32: exactly these roundings.
    for (int64_t i = 0; i < shardRows * columns; ++i) {
      float sum = static_cast<float>(before[i]);
      for (int64_t row = 0; row < rows; ++row)
        if (ids[row] == first + i / columns)
          sum += static_cast<float>(cotangent[row * columns + i % columns]);
      ASSERT_EQ(sums[i], sum) << i;
    }
  }
}

TEST_P(EmbeddingOps, ShardOfNoRows) {
  plr_type type = GetParam();
  const int32_t ids[] = {1, 2}, first = 0;
  Tensor result(type, 6);
  EXPECT_EQ(host::embeddingShard(type, 2, 3, 0, 4, &first, nullptr, ids, result.data()), "");
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(result[i], 0);
  host::embeddingShardGrad(type, 0, 3, 4, &first, nullptr, nullptr, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Types, EmbeddingOps, testing::Values(PLR_F32, PLR_BF16),
                         [](const auto &info) { return nameOf(info.param); });

TEST(EmbeddingFaults, IdOutOfRange) {
  float data[64] = {};
  const int32_t above[] = {1, 2, 0, 17000}, negative[] = {0, -1};
  EXPECT_EQ(host::embedding(PLR_F32, 4, 1, 16384, data, above, data),
            "row 3 has token id 17000, but the table has 16384 rows");
  EXPECT_EQ(host::embeddingGrad(PLR_F32, 2, 1, 3, data, negative, data, data),
            "row 1 has token id -1, but the table has 3 rows");
}

// The sums of other ranks' ids are left alone, whatever the ids are.
TEST(EmbeddingFaults, ShardsReachNothingOutside) {
  float cotangent[6] = {1, 1, 1, 1, 1, 1}, shard[2] = {7, 8};
  const int32_t ids[] = {INT32_MIN, -1, 9, 10, 12, INT32_MAX}, first = 10, low = INT32_MIN, negative[] = {-1};
  Tensor sums = tensorOf({0, 0});
  host::embeddingShardGrad(PLR_F32, 6, 1, 2, &first, cotangent, ids, sums.floats());
  EXPECT_TRUE(sums.endIsIntact());
  EXPECT_EQ(sums[0], 1);
  EXPECT_EQ(sums[1], 0);
  host::embeddingShardGrad(PLR_F32, 1, 1, 2, &low, cotangent, ids + 5, sums.floats());
  EXPECT_EQ(sums[0], 1);
  EXPECT_EQ(host::embeddingShard(PLR_F32, 1, 1, 2, 20, &first, shard, negative, cotangent),
            "row 0 has token id -1, but the table has 20 rows");
}

TEST(EmbeddingOffsets, ShardsBeyond32Bits) {
  const int64_t shardRows = 5000000, columns = 1024;
  SparseFloats sums(shardRows * columns);
  ASSERT_TRUE(sums.data()) << "this machine gives out no address space of " << shardRows * columns * 4 << " bytes";
  const int32_t id = 6999999, first = 2000000;
  std::vector<float> cotangent(columns, 3), result(columns, NAN);
  host::embeddingShardGrad(PLR_F32, 1, columns, shardRows, &first, cotangent.data(), &id, sums.data());
  EXPECT_EQ(sums.data()[shardRows * columns - 1], 3);
  EXPECT_EQ(host::embeddingShard(PLR_F32, 1, columns, shardRows, 8000000, &first, sums.data(), &id, result.data()), "");
  EXPECT_EQ(result, cotangent);
}

TEST(EmbeddingOffsets, Beyond32Bits) {
  const int64_t vocabulary = 5000000, columns = 1024;
  SparseFloats table(vocabulary * columns);
  ASSERT_TRUE(table.data()) << "this machine gives out no address space of " << vocabulary * columns * 4 << " bytes";
  table.data()[(vocabulary - 1) * columns + 5] = 3;
  const int32_t ids[] = {static_cast<int32_t>(vocabulary - 1)};
  std::vector<float> result(columns, NAN);
  EXPECT_EQ(host::embedding(PLR_F32, 1, columns, vocabulary, table.data(), ids, result.data()), "");
  EXPECT_EQ(result[5], 3);
  EXPECT_EQ(result[6], 0);
}

} // namespace

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

struct Shape {
  int64_t rows, queryHeads, keyHeads, headSize;
};

std::vector<int32_t> startsOf(const std::vector<int64_t> &documents) {
  std::vector<int32_t> starts;
  for (int64_t length : documents)
    starts.insert(starts.end(), length, static_cast<int32_t>(starts.size()));
  return starts;
}

/// The equations, in double.
struct Reference {
  Shape shape;
  double scale;
  std::vector<int32_t> starts;
  std::vector<double> query, key, value;

  double score(int64_t i, int64_t j, int64_t head) const {
    int64_t keyHead = head / (shape.queryHeads / shape.keyHeads);
    double sum = 0;
    for (int64_t d = 0; d < shape.headSize; ++d)
      sum += query[(i * shape.queryHeads + head) * shape.headSize + d] *
             key[(j * shape.keyHeads + keyHead) * shape.headSize + d];
    return scale * sum;
  }

  /// Probabilities of row i and the logarithm of their denominator.
  std::vector<double> softmax(int64_t i, int64_t head, double &lse) const {
    std::vector<double> scores;
    for (int64_t j = starts[i]; j <= i; ++j)
      scores.push_back(score(i, j, head));
    double top = *std::max_element(scores.begin(), scores.end()), total = 0;
    for (double s : scores)
      total += std::exp(s - top);
    lse = top + std::log(total);
    for (double &s : scores)
      s = std::exp(s - lse);
    return scores;
  }

  void forward(std::vector<double> &output, std::vector<double> &lse) const {
    output.assign(query.size(), 0);
    lse.assign(shape.rows * shape.queryHeads, 0);
    for (int64_t i = 0; i < shape.rows; ++i)
      for (int64_t head = 0; head < shape.queryHeads; ++head) {
        int64_t keyHead = head / (shape.queryHeads / shape.keyHeads);
        std::vector<double> p = softmax(i, head, lse[i * shape.queryHeads + head]);
        for (int64_t j = starts[i]; j <= i; ++j)
          for (int64_t d = 0; d < shape.headSize; ++d)
            output[(i * shape.queryHeads + head) * shape.headSize + d] +=
                p[j - starts[i]] * value[(j * shape.keyHeads + keyHead) * shape.headSize + d];
      }
  }

  /// From the output as it was stored: delta is defined by it.
  void backward(const std::vector<double> &cotangent, const std::vector<double> &output, std::vector<double> &queryGrad,
                std::vector<double> &keyGrad, std::vector<double> &valueGrad) const {
    queryGrad.assign(query.size(), 0);
    keyGrad.assign(key.size(), 0);
    valueGrad.assign(value.size(), 0);
    for (int64_t i = 0; i < shape.rows; ++i)
      for (int64_t head = 0; head < shape.queryHeads; ++head) {
        int64_t keyHead = head / (shape.queryHeads / shape.keyHeads);
        int64_t at = (i * shape.queryHeads + head) * shape.headSize;
        double lse, delta = 0;
        std::vector<double> p = softmax(i, head, lse), dp(p.size());
        for (int64_t j = starts[i]; j <= i; ++j) {
          int64_t from = (j * shape.keyHeads + keyHead) * shape.headSize;
          double sum = 0;
          for (int64_t d = 0; d < shape.headSize; ++d) {
            valueGrad[from + d] += p[j - starts[i]] * cotangent[at + d];
            sum += value[from + d] * cotangent[at + d];
          }
          dp[j - starts[i]] = sum;
        }
        for (int64_t d = 0; d < shape.headSize; ++d)
          delta += cotangent[at + d] * output[at + d];
        for (int64_t j = starts[i]; j <= i; ++j) {
          int64_t from = (j * shape.keyHeads + keyHead) * shape.headSize;
          double ds = scale * p[j - starts[i]] * (dp[j - starts[i]] - delta);
          for (int64_t d = 0; d < shape.headSize; ++d) {
            queryGrad[at + d] += ds * key[from + d];
            keyGrad[from + d] += ds * query[at + d];
          }
        }
      }
  }
};

/// Inputs and results of forward and backward.
struct Problem {
  Shape shape;
  plr_type type;
  float scale;
  std::vector<int32_t> starts;
  Tensor query, key, value, cotangent, output, lse, queryGrad, keyGrad, valueGrad;

  Problem(plr_type type, Shape s, std::vector<int32_t> starts, double size = 1)
      : shape(s), type(type), scale(static_cast<float>(1 / std::sqrt(double(s.headSize)))), starts(std::move(starts)),
        query(randomTensor(type, s.rows * s.queryHeads * s.headSize, 1, size)),
        key(randomTensor(type, s.rows * s.keyHeads * s.headSize, 2, size)),
        value(randomTensor(type, s.rows * s.keyHeads * s.headSize, 3)),
        cotangent(randomTensor(type, s.rows * s.queryHeads * s.headSize, 4)), output(type, query.size()),
        lse(PLR_F32, s.rows * s.queryHeads), queryGrad(type, query.size()), keyGrad(type, key.size()),
        valueGrad(type, value.size()) {}

  void forward(const host::Variant &variant) {
    Tensor workspace(PLR_F32,
                     plr_footprint_attention(shape.rows, shape.queryHeads, shape.keyHeads, shape.headSize) / 4);
    variant.attention(type, shape.rows, shape.queryHeads, shape.keyHeads, shape.headSize, scale, query.data(),
                      key.data(), value.data(), starts.data(), output.data(), lse.floats(), workspace.floats());
    EXPECT_TRUE(workspace.endIsIntact());
  }

  void backward(const host::Variant &variant) {
    Tensor workspace(PLR_F32,
                     plr_footprint_attention_grad(shape.rows, shape.queryHeads, shape.keyHeads, shape.headSize) / 4);
    variant.attentionGrad(type, shape.rows, shape.queryHeads, shape.keyHeads, shape.headSize, scale, cotangent.data(),
                          query.data(), key.data(), value.data(), starts.data(), output.data(), lse.floats(),
                          queryGrad.data(), keyGrad.data(), valueGrad.data(), workspace.floats());
    EXPECT_TRUE(workspace.endIsIntact());
  }

  Reference reference() const { return Reference{shape, scale, starts, query.values(), key.values(), value.values()}; }
};

void compare(const host::Variant &variant, Problem &problem) {
  Reference reference = problem.reference();
  std::vector<double> output, lse, queryGrad, keyGrad, valueGrad;
  reference.forward(output, lse);
  problem.forward(variant);
  expectClose(problem.type, problem.output, output, 2e-6, "output");
  expectClose(PLR_F32, problem.lse, lse, 2e-6, "lse");
  problem.backward(variant);
  reference.backward(problem.cotangent.values(), problem.output.values(), queryGrad, keyGrad, valueGrad);
  expectClose(problem.type, problem.queryGrad, queryGrad, 5e-6, "query gradient");
  expectClose(problem.type, problem.keyGrad, keyGrad, 5e-6, "key gradient");
  expectClose(problem.type, problem.valueGrad, valueGrad, 5e-6, "value gradient");
}

class Attention : public KernelTest {};

TEST_P(Attention, AgreesWithTheEquations) {
  const Shape shapes[] = {{1, 1, 1, 1},    {2, 2, 1, 5},     {7, 3, 3, 8},    {33, 4, 2, 16},
                          {65, 2, 2, 80},  {100, 6, 2, 5},   {130, 4, 1, 64}, {64, 1, 1, 96},
                          {200, 2, 1, 33}, {257, 2, 1, 128}, {3, 8, 2, 17},   {128, 2, 2, 31}};
  for (const Shape &shape : shapes) {
    SCOPED_TRACE(testing::Message() << shape.rows << " rows, heads " << shape.queryHeads << ":" << shape.keyHeads
                                    << " of " << shape.headSize);
    Problem problem(type, shape, startsOf({shape.rows}));
    compare(*variant, problem);
  }
}

TEST_P(Attention, SeesNoOtherDocument) {
  const std::vector<std::vector<int64_t>> packings = {{64, 64},     {1, 1, 1},     {5, 70, 1, 33, 2},
                                                      {63, 65, 40}, {128, 3, 100}, {31, 32, 33}};
  for (const std::vector<int64_t> &documents : packings) {
    std::vector<int32_t> starts = startsOf(documents);
    Problem problem(type, {int64_t(starts.size()), 4, 2, 24}, starts);
    compare(*variant, problem);
  }
}

// Each document alone gives the same bits as packed with others.
TEST_P(Attention, PackedEqualsApart) {
  const std::vector<int64_t> documents = {37, 1, 130, 64, 3};
  std::vector<int32_t> starts = startsOf(documents);
  Problem packed(type, {int64_t(starts.size()), 4, 2, 40}, starts);
  packed.forward(*variant);
  packed.backward(*variant);
  int64_t begin = 0, query = 4 * 40, key = 2 * 40;
  for (int64_t length : documents) {
    Problem apart(type, {length, 4, 2, 40}, startsOf({length}));
    apart.query = packed.query.slice(begin * query, length * query);
    apart.key = packed.key.slice(begin * key, length * key);
    apart.value = packed.value.slice(begin * key, length * key);
    apart.cotangent = packed.cotangent.slice(begin * query, length * query);
    apart.forward(*variant);
    apart.backward(*variant);
    EXPECT_TRUE(apart.output.sameBits(packed.output.slice(begin * query, length * query)));
    EXPECT_TRUE(apart.lse.sameBits(packed.lse.slice(begin * 4, length * 4)));
    EXPECT_TRUE(apart.queryGrad.sameBits(packed.queryGrad.slice(begin * query, length * query)));
    EXPECT_TRUE(apart.keyGrad.sameBits(packed.keyGrad.slice(begin * key, length * key)));
    EXPECT_TRUE(apart.valueGrad.sameBits(packed.valueGrad.slice(begin * key, length * key)));
    begin += length;
  }
}

// A document that is not finite leaves the others as they are.
TEST_P(Attention, KeepsNaNInItsDocument) {
  std::vector<int32_t> starts = startsOf({20, 30, 50});
  Problem problem(type, {100, 2, 1, 16}, starts), clean = problem;
  for (int64_t i = 20; i < 50; ++i) {
    problem.query.set(i * 32, NAN);
    problem.key.set(i * 16 + 3, infinity);
    problem.value.set(i * 16 + 5, NAN);
    problem.cotangent.set(i * 32 + 1, NAN);
  }
  problem.forward(*variant);
  problem.backward(*variant);
  clean.forward(*variant);
  clean.backward(*variant);
  for (auto [begin, length] : {std::pair<int64_t, int64_t>{0, 20}, {50, 50}}) {
    EXPECT_TRUE(problem.output.slice(begin * 32, length * 32).sameBits(clean.output.slice(begin * 32, length * 32)));
    EXPECT_TRUE(
        problem.queryGrad.slice(begin * 32, length * 32).sameBits(clean.queryGrad.slice(begin * 32, length * 32)));
    EXPECT_TRUE(problem.keyGrad.slice(begin * 16, length * 16).sameBits(clean.keyGrad.slice(begin * 16, length * 16)));
    EXPECT_TRUE(
        problem.valueGrad.slice(begin * 16, length * 16).sameBits(clean.valueGrad.slice(begin * 16, length * 16)));
  }
  EXPECT_TRUE(std::isnan(problem.output[20 * 32]));
}

// Starts need not be those of documents: any row up to the row itself.
TEST_P(Attention, TakesAnyStarts) {
  std::mt19937 generator(7);
  std::vector<int32_t> starts;
  for (int32_t i = 0; i < 180; ++i)
    starts.push_back(i % 5 && i > 1 ? starts.back() : int32_t(generator() % uint32_t(i + 1)));
  Problem problem(type, {180, 2, 1, 20}, starts);
  compare(*variant, problem);
}

TEST_P(Attention, SoftmaxOfLargeScores) {
  Problem problem(type, {150, 2, 1, 32}, startsOf({150}), 30);
  Reference reference = problem.reference();
  std::vector<double> output, lse;
  reference.forward(output, lse);
  problem.forward(*variant);
  expectClose(type, problem.output, output, 2e-3, "output");
  expectClose(PLR_F32, problem.lse, lse, 2e-6, "lse");
}

TEST_P(Attention, NoRows) {
  Problem problem(type, {0, 4, 2, 16}, {});
  problem.forward(*variant);
  problem.backward(*variant);
}

TEST_P(Attention, GradientIsThatOfTheForwardEquations) {
  Problem problem(type, {11, 4, 2, 3}, startsOf({4, 7}));
  Reference reference = problem.reference();
  std::vector<double> cotangent = problem.cotangent.values();
  auto loss = [&] {
    std::vector<double> output, lse;
    reference.forward(output, lse);
    double sum = 0;
    for (size_t i = 0; i < output.size(); ++i)
      sum += output[i] * cotangent[i];
    return sum;
  };
  problem.forward(*variant);
  problem.backward(*variant);
  // In bf16 delta comes from the rounded output, 2^-9 off for each element.
  double tolerance = type == PLR_BF16 ? 2e-2 : 3e-6;
  expectClose(type, problem.queryGrad, differences(loss, reference.query), tolerance, "query gradient");
  expectClose(type, problem.keyGrad, differences(loss, reference.key), tolerance, "key gradient");
  expectClose(type, problem.valueGrad, differences(loss, reference.value), tolerance, "value gradient");
}

TEST_P(Attention, SameBitsAgain) {
  Problem a(type, {140, 4, 2, 64}, startsOf({100, 40})), b = a;
  a.forward(*variant);
  a.backward(*variant);
  b.forward(*variant);
  b.backward(*variant);
  EXPECT_TRUE(a.output.sameBits(b.output) && a.queryGrad.sameBits(b.queryGrad) && a.keyGrad.sameBits(b.keyGrad) &&
              a.valueGrad.sameBits(b.valueGrad));
}

PLATEAU_KERNEL_TEST(Attention);

TEST(AttentionFaults, StartOutOfRange) {
  const int32_t after[] = {0, 0, 3}, negative[] = {0, -1, 0};
  float data[16] = {}, workspace[1];
  EXPECT_EQ(host::attention(PLR_F32, 3, 1, 1, 1, 1, data, data, data, after, data, data, workspace),
            "row 2 has document start 3, but a document starts at a row from 0 to the row itself");
  EXPECT_EQ(host::attentionGrad(PLR_F32, 3, 1, 1, 1, 1, data, data, data, data, negative, data, data, data, data, data,
                                workspace),
            "row 1 has document start -1, but a document starts at a row from 0 to the row itself");
}

TEST(AttentionFootprint, ForwardDoesNotDependOnRows) {
  EXPECT_EQ(plr_footprint_attention(64, 4, 2, 64), plr_footprint_attention(int64_t(1) << 40, 4, 2, 64));
  // One f32 number for each row, key head size and gradient: linear in the rows, whatever the heads.
  EXPECT_EQ(plr_footprint_attention_grad(1001, 4, 2, 64) - plr_footprint_attention_grad(1000, 4, 2, 64), 4 * 2 * 64);
}

} // namespace

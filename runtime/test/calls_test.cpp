//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

// Every call of the C ABI reaches its kernel with its arguments in the right places, refuses what no correct program
// asks for, and says where bad data were met. What the kernels compute is tested with the kernels.
#include "plateau/runtime_footprint.h"
#include "rank.h"
#include <cmath>
#include <limits>

using namespace plateau::rt::test;

namespace {
constexpr plr_tag embeddingTag = {"moe.embedding embed_tokens", -1, PLR_EMBEDDING, PLR_FORWARD};
constexpr plr_tag optimizerTag = {"moe.adamw", -1, PLR_OPTIMIZER, PLR_OPTIMIZER_PHASE};

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;
} // namespace

TEST(Calls, Embedding) {
  Rank rank;
  Floats table = {1, 2, 3, 4, 5, 6}, result(4), cotangent = {1, 10, 2, 20}, gradient(6, -1);
  Ints ids = {2, 0};
  plr_embedding(rank.lane(), &embeddingTag, PLR_F32, 2, 2, 3, table.data(), ids.data(), result.data());
  Ints same = {2, 2};
  std::vector<char> workspace(plr_footprint_embedding_grad(2, 3, 2));
  plr_embedding_grad(rank.lane(), &embeddingTag, PLR_F32, 2, 2, 3, cotangent.data(), same.data(), gradient.data(),
                     workspace.data(), static_cast<int64_t>(workspace.size()));
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  EXPECT_EQ(result, (Floats{5, 6, 1, 2}));
  EXPECT_EQ(gradient, (Floats{0, 0, 0, 0, 3, 30}));
}

TEST(Calls, EmbeddingNamesRowAndId) {
  Floats table(6), result(4);
  Ints ids = {2, 17000};
  std::string message = failWith(PLR_BAD_DATA, [&](plr_lane *lane) {
    plr_embedding(lane, &embeddingTag, PLR_F32, 2, 2, 3, table.data(), ids.data(), result.data());
  });
  EXPECT_CONTAINS(message, "rank 0: lane compute: plr_embedding of moe.embedding embed_tokens (embedding, forward): ");
  EXPECT_CONTAINS(message, "row 1");
  EXPECT_CONTAINS(message, "17000");
}

TEST(Calls, EmbeddingGradChecksItsWorkspace) {
  Floats cotangent(4), gradient(6);
  Ints ids = {2, 1};
  int64_t needed = plr_footprint_embedding_grad(2, 3, 2);
  std::vector<char> workspace(needed);
  auto call = [&](void *pointer, int64_t bytes) {
    return failWith(PLR_INVALID_ARGUMENT, [&](plr_lane *lane) {
      plr_embedding_grad(lane, &embeddingTag, PLR_F32, 2, 2, 3, cotangent.data(), ids.data(), gradient.data(), pointer,
                         bytes);
    });
  };
  EXPECT_CONTAINS(call(workspace.data(), needed - 1), "the workspace has " + std::to_string(needed - 1) +
                                                          " bytes, but " + std::to_string(needed) + " are needed");
  EXPECT_CONTAINS(call(nullptr, needed), "the workspace is null");
}

// Mean of squares (9 + 16) / 2 = 12.5, so that the row becomes 3 and 4 times the square root of 2/25.
TEST(Calls, RmsNorm) {
  Rank rank;
  Floats input = {3, 4}, weight = {1, 2}, output(2), inverse(1), cotangent = {1, 0}, inputGrad(2), weightGrad(2);
  double r = std::sqrt(2.0) / 5;
  std::vector<char> workspace(plr_footprint_rms_norm_grad(2));
  plr_rms_norm(rank.lane(), &denseTag, PLR_F32, 1, 2, 0, input.data(), weight.data(), output.data(), inverse.data());
  plr_rms_norm_grad(rank.lane(), &denseTag, PLR_F32, 1, 2, cotangent.data(), input.data(), weight.data(),
                    inverse.data(), inputGrad.data(), weightGrad.data(), workspace.data(),
                    static_cast<int64_t>(workspace.size()));
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  EXPECT_NEAR(inverse[0], r, 1e-7);
  EXPECT_NEAR(output[0], 3 * r, 1e-6);
  EXPECT_NEAR(output[1], 8 * r, 1e-6);
  // d(x0 r)/dx0 = r - x0² r³ / 2, d(x0 r)/dx1 = -x0 x1 r³ / 2.
  EXPECT_NEAR(inputGrad[0], r - 9 * r * r * r / 2, 1e-6);
  EXPECT_NEAR(inputGrad[1], -12 * r * r * r / 2, 1e-6);
  EXPECT_NEAR(weightGrad[0], 3 * r, 1e-6);
  EXPECT_NEAR(weightGrad[1], 0, 1e-6);
  EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT,
                           [&](plr_lane *lane) {
                             plr_rms_norm_grad(lane, &denseTag, PLR_F32, 1, 2, cotangent.data(), input.data(),
                                               weight.data(), inverse.data(), inputGrad.data(), weightGrad.data(),
                                               workspace.data(), 3);
                           }),
                  "the workspace has 3 bytes, but");
  EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT,
                           [&](plr_lane *lane) {
                             plr_rms_norm(lane, &denseTag, PLR_F32, 1, 0, 0, input.data(), weight.data(), output.data(),
                                          inverse.data());
                           }),
                  "columns is 0, but must be at least 1");
  EXPECT_CONTAINS(failWith(PLR_INVALID_ARGUMENT,
                           [&](plr_lane *lane) {
                             plr_rms_norm(lane, &denseTag, PLR_F32, 1, 2, NAN, input.data(), weight.data(),
                                          output.data(), inverse.data());
                           }),
                  "epsilon must be a number");
}

TEST(Calls, Rotary) {
  Rank rank;
  Ints positions = {0, 1};
  Floats cos(2), sin(2), input = {1, 2, 1, 2}, turned(4), back(4);
  plr_rotary_table(rank.lane(), &attentionTag, 2, 1, 10000, positions.data(), cos.data(), sin.data());
  plr_rotary(rank.lane(), &attentionTag, PLR_F32, 2, 1, 1, 0, input.data(), cos.data(), sin.data(), turned.data());
  plr_rotary(rank.lane(), &attentionTag, PLR_F32, 2, 1, 1, 1, turned.data(), cos.data(), sin.data(), back.data());
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  EXPECT_EQ(cos[0], 1);
  EXPECT_EQ(sin[0], 0);
  EXPECT_NEAR(cos[1], std::cos(1.0), 1e-7);
  EXPECT_NEAR(sin[1], std::sin(1.0), 1e-7);
  EXPECT_EQ(turned[0], 1);
  EXPECT_EQ(turned[1], 2);
  EXPECT_NEAR(turned[2], std::cos(1.0) - 2 * std::sin(1.0), 1e-6);
  EXPECT_NEAR(turned[3], 2 * std::cos(1.0) + std::sin(1.0), 1e-6);
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(back[i], input[i], 1e-6);
}

namespace {
/// Three rows of two query heads and one key head of four numbers. Row 2 starts a document.
struct AttentionCase {
  int64_t rows = 3, queryHeads = 2, keyHeads = 1, headSize = 4;
  Floats query = Floats(24, 0.5f), key = Floats(12, 1), value = {1, 1, 1, 1, 3, 3, 3, 3, 7, 7, 7, 7};
  Ints starts = {0, 0, 2};
  Floats output = Floats(24), lse = Floats(6), cotangent = Floats(24, 1), queryGrad = Floats(24), keyGrad = Floats(12),
         valueGrad = Floats(12);
  std::vector<char> workspace = std::vector<char>(plr_footprint_attention(3, 2, 1, 4));
  std::vector<char> gradWorkspace = std::vector<char>(plr_footprint_attention_grad(3, 2, 1, 4));

  plr_status forward(plr_lane *lane, int64_t missing = 0) {
    return plr_attention(lane, &attentionTag, PLR_F32, rows, queryHeads, keyHeads, headSize, 0.25f, query.data(),
                         key.data(), value.data(), starts.data(), output.data(), lse.data(), workspace.data(),
                         static_cast<int64_t>(workspace.size()) - missing);
  }
  plr_status backward(plr_lane *lane, int64_t missing = 0) {
    return plr_attention_grad(lane, &attentionTag, PLR_F32, rows, queryHeads, keyHeads, headSize, 0.25f,
                              cotangent.data(), query.data(), key.data(), value.data(), starts.data(), output.data(),
                              lse.data(), queryGrad.data(), keyGrad.data(), valueGrad.data(), gradWorkspace.data(),
                              static_cast<int64_t>(gradWorkspace.size()) - missing);
  }
};
} // namespace

// All keys are alike, so a row's output is the mean of the values it sees. Every score is 0.25 * 4 * 0.5 = 0.5.
TEST(Calls, Attention) {
  plr_config config = makeConfig();
  config.trace = 1;
  Rank rank(config);
  AttentionCase a;
  a.forward(rank.lane());
  a.backward(rank.lane());
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  const float means[] = {1, 2, 7};
  for (int i = 0; i < 24; ++i)
    EXPECT_NEAR(a.output[i], means[i / 8], 1e-5);
  const double lse[] = {0.5, 0.5 + std::log(2.0), 0.5};
  for (int i = 0; i < 6; ++i)
    EXPECT_NEAR(a.lse[i], lse[i / 2], 1e-5);
  // The weights of a value: row 0 gives it 1 and row 1 a half, on two heads; row 2 sees itself only.
  const float weights[] = {3, 1, 2};
  for (int i = 0; i < 12; ++i)
    EXPECT_NEAR(a.valueGrad[i], weights[i / 4], 1e-5);
  // Pairs that see each other: 1 + 2 + 1.
  plr_span spans[2];
  ASSERT_EQ(plr_trace(rank, 0, spans, 2), 2);
  EXPECT_EQ(spans[0].flops, 4 * 4 * 2 * 4);
  EXPECT_EQ(spans[1].flops, 10 * 4 * 2 * 4);
}

TEST(Calls, AttentionRefusals) {
  auto refuse = [](plr_status status, auto change, auto call, const std::string &part) {
    AttentionCase a;
    change(a);
    EXPECT_CONTAINS(failWith(status, [&](plr_lane *lane) { call(a, lane); }), part);
  };
  auto forward = [](AttentionCase &a, plr_lane *lane) { a.forward(lane); };
  auto backward = [](AttentionCase &a, plr_lane *lane) { a.backward(lane); };
  auto nothing = [](AttentionCase &) {};
  refuse(
      PLR_BAD_DATA, [](AttentionCase &a) { a.starts[1] = 2; }, forward,
      "plr_attention of linalg.matmul q_proj (layer 3, attention, forward): row 1");
  refuse(PLR_BAD_DATA, [](AttentionCase &a) { a.starts[2] = -1; }, backward, "row 2");
  refuse(
      PLR_INVALID_ARGUMENT, [](AttentionCase &a) { a.keyHeads = 3; }, forward,
      "query_heads is 2, which is no multiple of key_heads, 3");
  refuse(PLR_INVALID_ARGUMENT, [](AttentionCase &a) { a.headSize = 0; }, backward, "head_size is 0");
  refuse(
      PLR_INVALID_ARGUMENT, nothing, [](AttentionCase &a, plr_lane *lane) { a.forward(lane, 1); },
      "the workspace has " + std::to_string(plr_footprint_attention(3, 2, 1, 4) - 1) + " bytes, but " +
          std::to_string(plr_footprint_attention(3, 2, 1, 4)) + " are needed");
  refuse(
      PLR_INVALID_ARGUMENT, nothing, [](AttentionCase &a, plr_lane *lane) { a.backward(lane, 1); },
      std::to_string(plr_footprint_attention_grad(3, 2, 1, 4)) + " are needed");
}

// Equal scores over four columns; one of three labels is left out.
TEST(Calls, Loss) {
  Rank rank;
  Floats scores(12, 2.5f), logProbs(12), lse(3), count(1), losses(3), loss(1), one = {1}, cotangents(3), gradient(12),
                                                                               scoreGrad(12);
  Ints labels = {1, -100, 3};
  {
    plr_vocabulary options = {4, -100, 0, 0, 0};
    plr_log_softmax(rank.lane(), &lossTag, &options, 3, 4, scores.data(), nullptr, logProbs.data(), lse.data());
    plr_count_labels(rank.lane(), &lossTag, 3, -100, labels.data(), count.data());
    plr_nll(rank.lane(), &lossTag, &options, 3, 4, logProbs.data(), lse.data(), labels.data(), losses.data());
    plr_mean_loss(rank.lane(), &lossTag, 3, losses.data(), nullptr, count.data(), loss.data());
    plr_mean_loss_grad(rank.lane(), &lossTag, 3, one.data(), nullptr, count.data(), cotangents.data());
    plr_nll_grad(rank.lane(), &lossTag, &options, 3, 4, cotangents.data(), nullptr, labels.data(), gradient.data(),
                 nullptr);
    plr_log_softmax_grad(rank.lane(), &lossTag, &options, 3, 4, gradient.data(), nullptr, logProbs.data(), lse.data(),
                         scoreGrad.data(), nullptr);
    options = {}; // The calls have copied them.
  }
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  EXPECT_EQ(count[0], 2);
  EXPECT_NEAR(loss[0], std::log(4.0), 1e-6);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) {
      double picked = labels[i] == j ? 1 : 0, used = labels[i] >= 0 ? 0.5 : 0;
      EXPECT_NEAR(logProbs[i * 4 + j], -std::log(4.0), 1e-6);
      EXPECT_NEAR(gradient[i * 4 + j], -picked * used, 1e-6);
      EXPECT_NEAR(scoreGrad[i * 4 + j], (0.25 - picked) * used, 1e-6);
    }
}

TEST(Calls, LossNamesRowAndLabel) {
  Floats logProbs(12), losses(3);
  Ints labels = {1, 2, 4};
  const plr_vocabulary options = {4, -100, 0, 0, 0};
  std::string message = failWith(PLR_BAD_DATA, [&](plr_lane *lane) {
    plr_nll(lane, &lossTag, &options, 3, 4, logProbs.data(), nullptr, labels.data(), losses.data());
  });
  EXPECT_CONTAINS(message, "plr_nll of moe.nll (vocabulary, forward): row 2");
}

// The first step of AdamW without decay moves each parameter by the learning rate against its gradient's sign; with
// decay, parameters shrink by learning rate times decay too. Element 1 lies between the ranges.
TEST(Calls, Optimizer) {
  Rank rank;
  Floats parameters = {1, 1, 1}, gradients = {3, 100, -4}, first(3), second(3), norm(1), factor(1), rate = {0.125f};
  Ints step = {1};
  const int64_t pairs[] = {0, 1, 2, 1}, triples[] = {0, 1, 1, 2, 1, 0};
  double squares = -1;
  const double more = 0;
  {
    std::vector<const double *> parts = {&squares, &more};
    plr_sum_squares(rank.lane(), &optimizerTag, PLR_F32, 2, pairs, gradients.data(), &squares);
    plr_grad_norm(rank.lane(), &optimizerTag, 2, parts.data(), norm.data());
    parts = {nullptr, nullptr}; // The call has copied them.
  }
  plr_clip_factor(rank.lane(), &optimizerTag, 2.5f, norm.data(), factor.data());
  plr_adamw(rank.lane(), &optimizerTag, PLR_F32, PLR_F32, 2, triples, 0.9, 0.95, 1e-8, 0.5, parameters.data(),
            gradients.data(), first.data(), second.data(), nullptr, factor.data(), rate.data(), step.data());
  ASSERT_EQ(plr_synchronize(rank), PLR_OK) << rank.message();
  EXPECT_EQ(squares, 25);
  EXPECT_EQ(norm[0], 5);
  EXPECT_EQ(factor[0], 0.5);
  EXPECT_NEAR(parameters[0], 1 - 0.125 * 0.5 - 0.125, 1e-6);
  EXPECT_EQ(parameters[1], 1);
  EXPECT_NEAR(parameters[2], 1 + 0.125, 1e-6);
  EXPECT_NEAR(first[0], 0.1 * 1.5, 1e-7);
  EXPECT_EQ(first[1], 0);
  EXPECT_NEAR(second[2], 0.05 * 4, 1e-7);
}

TEST(Calls, OptimizerRefusals) {
  Floats numbers(4);
  Ints step = {1};
  auto adamw = [&](plr_type type, std::vector<int64_t> ranges, double beta1, float *master) {
    return failWith(PLR_INVALID_ARGUMENT, [&](plr_lane *lane) {
      plr_adamw(lane, &optimizerTag, type, PLR_F32, static_cast<int64_t>(ranges.size() / 3), ranges.data(), beta1, 0.9,
                1e-8, 0, numbers.data(), numbers.data(), numbers.data(), numbers.data(), master, numbers.data(),
                numbers.data(), step.data());
    });
  };
  EXPECT_CONTAINS(adamw(PLR_F32, {0, 1, 0}, 0.9, numbers.data()), "master must be null");
  EXPECT_CONTAINS(adamw(PLR_BF16, {0, 1, 0}, 0.9, nullptr), "master is null");
  EXPECT_CONTAINS(adamw(PLR_F32, {0, 1, 0}, 1, nullptr), "beta1 must be at least 0 and less than 1");
  EXPECT_CONTAINS(adamw(PLR_F32, {0, 1, 0, -1, 2, 0}, 0.9, nullptr), "segment 1 has offset -1 and length 2");
  EXPECT_CONTAINS(adamw(PLR_F32, {0, 1, 5}, 0.9, nullptr), "segment 0 has decay 5");
  const int64_t range[] = {0, 1, 0};
  step[0] = 0;
  numbers[0] = 1; // A factor.
  EXPECT_CONTAINS(failWith(PLR_BAD_DATA,
                           [&](plr_lane *lane) {
                             plr_adamw(lane, &optimizerTag, PLR_F32, PLR_F32, 1, range, 0.9, 0.9, 1e-8, 0,
                                       numbers.data(), numbers.data(), numbers.data(), numbers.data(), nullptr,
                                       numbers.data(), numbers.data(), step.data());
                           }),
                  "the number of the update is 0, but the first is 1");
  EXPECT_CONTAINS(
      failWith(PLR_INVALID_ARGUMENT,
               [&](plr_lane *lane) { plr_clip_factor(lane, &optimizerTag, -1, numbers.data(), numbers.data()); }),
      "max_norm must be positive");
  double sum = 1;
  const double *parts[] = {&sum, nullptr};
  auto norm = [&](int64_t count, const double *const *squares) {
    return failWith(PLR_INVALID_ARGUMENT,
                    [&](plr_lane *lane) { plr_grad_norm(lane, &optimizerTag, count, squares, numbers.data()); });
  };
  EXPECT_CONTAINS(norm(2, parts), "squares[1] is null");
  EXPECT_CONTAINS(norm(1, nullptr), "squares is null");
  EXPECT_CONTAINS(norm(5000, parts), "count is 5000, but a norm takes at most 4096 sums of squares");
  const int64_t bad[] = {-1, 2};
  EXPECT_CONTAINS(
      failWith(PLR_INVALID_ARGUMENT,
               [&](plr_lane *lane) { plr_sum_squares(lane, &optimizerTag, PLR_F32, 1, bad, numbers.data(), &sum); }),
      "segment 0 has offset -1 and length 2");
}

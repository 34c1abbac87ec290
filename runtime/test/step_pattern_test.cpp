//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The order in which a training step takes and frees memory: what backward needs piles up in forward and goes away in
// backward, between buffers that live for one or two calls only. Holes must not add more than a few percent to the
// peak.

#include "rank.h"
#include <map>

using namespace plateau::rt::test;

namespace {

/// Named buffers of one rank.
class Buffers {
public:
  explicit Buffers(plr_context *context) : context(context) {}

  void take(const std::string &name, int64_t elements) {
    ASSERT_EQ(live.count(name), 0u) << name;
    live[name] = plr_allocate(context, PLR_DEVICE, elements * 4, &denseTag);
    ASSERT_NE(live[name], nullptr) << name;
  }
  void free(std::initializer_list<const char *> names, const std::string &prefix = "") {
    for (const char *name : names) {
      ASSERT_EQ(live.count(prefix + name), 1u) << prefix + name;
      plr_release(context, PLR_DEVICE, live[prefix + name]);
      live.erase(prefix + name);
    }
  }
  /// Taken and freed again within one call.
  void scratch(int64_t elements) {
    take("scratch", elements);
    free({"scratch"});
  }

private:
  plr_context *context;
  std::map<std::string, void *> live;
};

struct Sizes {
  int64_t rows, hidden, queries, keys, gates, vocabulary;
  int layers;
  bool checkpoint;
};

} // namespace

/// Leaves what backward needs of the layer: all of it, or none when `keep` is false.
static void runLayerForward(Buffers &b, const Sizes &s, const std::string &layer, bool keep) {
  b.take(layer + "normed", s.rows * s.hidden);
  b.take(layer + "inverse", s.rows);
  b.take(layer + "q", s.rows * s.queries);
  b.scratch(16000);
  b.take(layer + "k", s.rows * s.keys);
  b.scratch(16000);
  b.take(layer + "v", s.rows * s.keys);
  b.scratch(16000);
  b.take("q turned", s.rows * s.queries);
  b.take(layer + "q rotated", s.rows * s.queries);
  b.free({"q turned"});
  b.take("k turned", s.rows * s.keys);
  b.take(layer + "k rotated", s.rows * s.keys);
  b.free({"k turned"});
  b.take(layer + "attended", s.rows * s.queries);
  b.take(layer + "lse", s.rows * 8);
  b.scratch(40000);
  b.take("projected", s.rows * s.hidden);
  b.take(layer + "middle", s.rows * s.hidden);
  b.free({"projected"});
  b.take(layer + "normed 2", s.rows * s.hidden);
  b.take(layer + "inverse 2", s.rows);
  b.take(layer + "gate", s.rows * s.gates);
  b.take(layer + "up", s.rows * s.gates);
  b.take(layer + "product", s.rows * s.gates);
  if (!keep)
    b.free({"gate", "up"}, layer);
  b.take("down", s.rows * s.hidden);
  if (!keep)
    b.free({"product"}, layer);
  b.take("x of " + layer, s.rows * s.hidden);
  b.free({"down"});
  if (!keep)
    b.free({"normed", "inverse", "q", "k", "v", "q rotated", "k rotated", "attended", "lse", "middle", "normed 2",
            "inverse 2"},
           layer);
}

/// Takes "dx" and gives it back anew.
static void runLayerBackward(Buffers &b, const Sizes &s, const std::string &layer) {
  b.take("d product", s.rows * s.gates);
  b.scratch(200000);
  b.free({"product"}, layer);
  b.take("d gate", s.rows * s.gates);
  b.take("d up", s.rows * s.gates);
  b.free({"d product"});
  b.free({"gate", "up"}, layer);
  b.take("d normed", s.rows * s.hidden);
  b.take("d normed other", s.rows * s.hidden);
  b.scratch(200000);
  b.free({"d gate", "d up"});
  b.take("d normed sum", s.rows * s.hidden);
  b.free({"d normed", "d normed other"});
  b.free({"normed 2"}, layer);
  b.take("d middle", s.rows * s.hidden);
  b.free({"d normed sum"});
  b.free({"inverse 2", "middle"}, layer);
  b.take("d middle sum", s.rows * s.hidden);
  b.free({"d middle", "dx"});
  b.take("d attended", s.rows * s.queries);
  b.take("dq", s.rows * s.queries);
  b.take("dk", s.rows * s.keys);
  b.take("dv", s.rows * s.keys);
  b.scratch(s.rows * 64 * 2 + 60000);
  b.free({"d attended"});
  b.free({"attended", "lse", "q rotated", "k rotated", "v"}, layer);
  b.take("dq turned", s.rows * s.queries);
  b.free({"dq"});
  b.take("dk turned", s.rows * s.keys);
  b.free({"dk"});
  b.free({"q", "k"}, layer);
  b.take("d normed", s.rows * s.hidden);
  b.scratch(200000);
  b.free({"dq turned", "dk turned", "dv"});
  b.free({"normed"}, layer);
  b.take("d input", s.rows * s.hidden);
  b.free({"d normed"});
  b.free({"inverse"}, layer);
  b.take("dx", s.rows * s.hidden);
  b.free({"d middle sum", "d input"});
}

static void runStep(Buffers &b, const Sizes &s) {
  b.take("x", s.rows * s.hidden);
  auto name = [](int layer) { return "layer " + std::to_string(layer) + " "; };
  for (int layer = 0; layer < s.layers; ++layer)
    runLayerForward(b, s, name(layer), !s.checkpoint);
  b.take("normed", s.rows * s.hidden);
  b.take("logits", s.rows * s.vocabulary);
  b.take("log probs", s.rows * s.vocabulary);
  b.free({"logits"});
  b.take("d log probs", s.rows * s.vocabulary);
  b.take("d logits", s.rows * s.vocabulary);
  b.free({"log probs", "d log probs"});
  b.take("d normed", s.rows * s.hidden);
  b.scratch(200000);
  b.free({"d logits"});
  b.take("dx", s.rows * s.hidden);
  b.free({"d normed", "normed"});
  for (int layer = s.layers - 1; layer >= 0; --layer) {
    b.free({("x of " + name(layer)).c_str()});
    if (s.checkpoint) {
      runLayerForward(b, s, name(layer), true);
      b.free({("x of " + name(layer)).c_str()});
    }
    runLayerBackward(b, s, name(layer));
  }
  b.free({"dx", "x"});
}

TEST(StepPattern, HolesStaySmall) {
  const Sizes models[] = {{1024, 256, 256, 128, 768, 16384, 4, false},  {1024, 256, 256, 128, 768, 16384, 4, true},
                          {1024, 256, 256, 128, 768, 1003, 24, false},  {1024, 256, 256, 128, 768, 1003, 24, true},
                          {1000, 192, 384, 96, 500, 1003, 3, false},    {1000, 192, 384, 96, 500, 1003, 3, true},
                          {2048, 1024, 1024, 256, 2816, 4096, 8, true}, {512, 128, 128, 128, 384, 2000, 12, false}};
  for (const Sizes &model : models) {
    plr_config config = makeConfig();
    config.device_bytes = int64_t(4) << 30;
    Rank rank(config);
    Buffers buffers(rank);
    buffers.take("state", 5000000);
    runStep(buffers, model);
    plr_reset_peak(rank);
    runStep(buffers, model);
    buffers.free({"state"});
    plr_space_report report = rank.report();
    EXPECT_EQ(report.live_bytes, 0);
    double excess = static_cast<double>(report.extent_bytes) / static_cast<double>(report.peak_bytes) - 1;
    EXPECT_LE(excess, 0.04) << "rows " << model.rows << " layers " << model.layers << " checkpoint " << model.checkpoint
                            << ": peak " << report.peak_bytes << " extent " << report.extent_bytes;
  }
}

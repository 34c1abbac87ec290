//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The runtime's grouped products against a bare loop of the oneDNN primitive over the experts, made for the exact row
// counts beforehand; one thread each, on the same memory.
//===----------------------------------------------------------------------===//

#include "common/plan.h"
#include "host/threads.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <numeric>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

constexpr plr_tag tag = {"grouped-gemm-bench", -1, PLR_EXPERTS, PLR_FORWARD};

/// rows [received, left] and weights [left, right] of each expert, or their gradient.
struct Shape {
  enum Kind { Forward, ForwardTransposed, Gradient } kind;
  plr_type type;
  int64_t left, right;
  std::vector<int64_t> counts;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

class Runtime {
public:
  Runtime() {
    plr_config config = {};
    config.abi_version = PLR_ABI_VERSION;
    config.ranks = 1;
    config.device_bytes = int64_t(1) << 31;
    config.trace = 1;
    char message[512];
    if (plr_context_create(&config, &context, message, sizeof message) != PLR_OK)
      throw std::runtime_error(message);
  }
  ~Runtime() { plr_context_destroy(context); }
  Runtime(const Runtime &) = delete;
  Runtime &operator=(const Runtime &) = delete;

  /// Memory filled with small numbers of either type.
  void *allocate(plr_type type, int64_t elements) {
    void *pointer = plr_allocate(context, PLR_DEVICE, elements * 4, &tag);
    check();
    for (int64_t i = 0; i < elements; ++i) {
      float value = static_cast<float>(i * 37 % 101) / 64 - 0.75f;
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      if (type == PLR_BF16)
        static_cast<uint16_t *>(pointer)[i] = static_cast<uint16_t>(bits >> 16);
      else
        static_cast<float *>(pointer)[i] = value;
    }
    return pointer;
  }
  void release(void *pointer) { plr_release(context, PLR_DEVICE, pointer); }
  void check() {
    const char *message;
    if (plr_context_error(context, &message) != PLR_OK)
      throw std::runtime_error(message);
  }
  /// Seconds inside one call: the least of `count` in a row, as what others take of a shared machine does not count.
  double run(const Shape &s, const void *a, const void *b, void *c, int count) {
    const int64_t experts = static_cast<int64_t>(s.counts.size());
    std::vector<int64_t> memory(plr_footprint_plan_host(1, experts, 0, 1, 1) / sizeof(int64_t));
    plr_plan *plan = plr_plan::layOut(memory.data(), *context, nullptr, 1, {0, 1, experts, 0, 1, 1, 0, 0, 1, 1, 1, 1});
    plan->iterations = 1;
    for (int64_t e = 0; e < experts; ++e)
      plan->slotOffsets[e + 1] = plan->slotOffsets[e] + s.counts[e];
    plan->complete = plr_plan::mark;
    plr_trace_clear(context);
    plr_lane *lane = plr_get_lane(context, PLR_COMPUTE);
    for (int i = 0; i < count; ++i)
      if (s.kind == Shape::Gradient)
        plr_grouped_gemm_grad(lane, &tag, plan, 0, 0, s.type, PLR_F32, s.left, s.right, a, b, c, nullptr, nullptr,
                              PLR_FROM_POOL);
      else
        plr_grouped_gemm(lane, &tag, plan, 0, s.kind == Shape::ForwardTransposed, s.type, s.right, s.left, a, b,
                         nullptr, c, nullptr, PLR_FROM_POOL);
    plr_synchronize(context);
    check();
    std::vector<plr_span> spans(count);
    plr_trace(context, 0, spans.data(), count);
    std::vector<double> times;
    for (const plr_span &span : spans)
      times.push_back(static_cast<double>(span.end_ns - span.start_ns) * 1e-9);
    return *std::min_element(times.begin(), times.end());
  }

private:
  plr_context *context = nullptr;
};

/// One primitive for each expert with rows.
class Bare {
public:
  Bare(const Shape &s, void *a, void *b, void *c) {
    using Tag = dnnl::memory::format_tag;
    auto type = s.type == PLR_BF16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
    auto at = [&](void *pointer, int64_t elements, plr_type of) {
      return static_cast<char *>(pointer) + elements * (of == PLR_BF16 ? 2 : 4);
    };
    int64_t row = 0;
    for (size_t e = 0; e < s.counts.size(); row += s.counts[e++]) {
      int64_t rows = s.counts[e], matrix = static_cast<int64_t>(e) * s.left * s.right;
      if (rows == 0)
        continue;
      if (s.kind == Shape::Gradient)
        add({{s.left, rows}, type, Tag::ba}, {{rows, s.right}, type, Tag::ab},
            {{s.left, s.right}, dnnl::memory::data_type::f32, Tag::ab}, at(a, row * s.left, s.type),
            at(b, row * s.right, s.type), at(c, matrix, PLR_F32));
      else
        add({{rows, s.left}, type, Tag::ab}, {{s.left, s.right}, type, s.kind == Shape::Forward ? Tag::ab : Tag::ba},
            {{rows, s.right}, type, Tag::ab}, at(a, row * s.left, s.type), at(b, matrix, s.type),
            at(c, row * s.right, s.type));
    }
  }
  /// As Runtime::run.
  double run(int count) {
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
      double start = now();
      for (size_t e = 0; e < primitives.size(); ++e)
        primitives[e].execute(stream, arguments[e]);
      times.push_back(now() - start);
    }
    stream.wait();
    return *std::min_element(times.begin(), times.end());
  }

private:
  void add(const dnnl::memory::desc &a, const dnnl::memory::desc &b, const dnnl::memory::desc &c, void *aData,
           void *bData, void *cData) {
    primitives.emplace_back(dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, c), engine));
    arguments.push_back({{DNNL_ARG_SRC, dnnl::memory(a, engine, aData)},
                         {DNNL_ARG_WEIGHTS, dnnl::memory(b, engine, bData)},
                         {DNNL_ARG_DST, dnnl::memory(c, engine, cData)}});
  }

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::vector<dnnl::matmul> primitives;
  std::vector<std::unordered_map<int, dnnl::memory>> arguments;
};

} // namespace

/// Prints the shape's line; returns the ratio.
static double measure(const Shape &s, int pairs) {
  int64_t rows = std::accumulate(s.counts.begin(), s.counts.end(), int64_t(0));
  int64_t weights = static_cast<int64_t>(s.counts.size()) * s.left * s.right;
  Runtime runtime;
  bool gradient = s.kind == Shape::Gradient;
  void *a = runtime.allocate(s.type, rows * s.left);
  void *b = runtime.allocate(s.type, gradient ? rows * s.right : weights);
  void *c = runtime.allocate(PLR_F32, gradient ? weights : rows * s.right);
  Bare bare(s, a, b, c);
  double start = now();
  runtime.run(s, a, b, c, 1);
  double first = now() - start;
  double once = std::max(bare.run(3), 1e-7);
  int count = static_cast<int>(std::clamp(0.03 / once, 3.0, 2000.0));
  std::vector<double> ratios, times;
  for (int i = 0; i < pairs; ++i) {
    // Each side goes first in turn, so that a machine that slows down favours none.
    double one = i % 2 ? bare.run(count) : runtime.run(s, a, b, c, count);
    double two = i % 2 ? runtime.run(s, a, b, c, count) : bare.run(count);
    times.push_back(i % 2 ? two : one);
    ratios.push_back(i % 2 ? one / two : two / one);
  }
  const char *kinds[] = {"rows*w", "rows*w^T", "gradient"};
  std::string counts;
  for (int64_t number : s.counts)
    counts += " " + std::to_string(number);
  double work = 2e-9 * static_cast<double>(rows * s.left * s.right);
  std::printf("%-8s %-4s %5lld x %-5lld ratio %.3f  %7.1f GFLOP/s  first call %6.2f ms  rows%s\n", kinds[s.kind],
              s.type == PLR_BF16 ? "bf16" : "f32", static_cast<long long>(s.left), static_cast<long long>(s.right),
              median(ratios), work / median(times), first * 1e3, counts.c_str());
  std::fflush(stdout);
  return median(ratios);
}

int main(int argc, char **argv) {
  int pairs = argc > 1 ? std::atoi(argv[1]) : 9;
  if (argc > 2 || pairs < 9 || pairs > 10000) {
    std::fputs("usage: plateau-grouped-gemm-bench [PAIRS]\n"
               "Times the grouped products and a bare loop of oneDNN primitives in alternating pairs (9, or more).\n",
               stderr);
    return 2;
  }
  plateau::rt::host::useOneThread();
  const std::vector<int64_t> counts[] = {{1024, 1024},
                                         {1013, 1035},
                                         {1741, 307},
                                         {0, 2048},
                                         {300, 17, 95, 0, 410, 64, 121, 17},
                                         {33, 5, 0, 70, 18, 2, 40, 24}};
  try {
    double sum = 0;
    int shapes = 0;
    for (plr_type type : {PLR_F32, PLR_BF16})
      for (Shape::Kind kind : {Shape::Forward, Shape::ForwardTransposed, Shape::Gradient})
        for (auto [left, right] : {std::pair<int64_t, int64_t>{256, 512}, {256, 256}})
          for (const std::vector<int64_t> &ofExperts : counts) {
            sum += std::log(measure({kind, type, left, right, ofExperts}, pairs));
            ++shapes;
          }
    std::printf("%d shapes, geometric mean of the ratios %.4f\n", shapes, std::exp(sum / shapes));
    return 0;
  } catch (const std::exception &exception) {
    std::fprintf(stderr, "plateau-grouped-gemm-bench: error: %s\n", exception.what());
    return 1;
  }
}

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// plateau-attention-bench: the rate of attention forward and backward beside oneDNN's f32 product, on one thread. The
// two run in turn, so that what else the machine does meets both alike; the ratio is taken pair by pair. Operations of
// attention are those of the pairs that are seen: 4 · head size for each pair and head forward, 10 · head size
// backward.
//===----------------------------------------------------------------------===//

#include "host/kernels.h"
#include "host/simd/variants.h"
#include "host/threads.h"
#include "plateau/runtime_footprint.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <string>
#include <time.h>
#include <unordered_map>
#include <vector>

using namespace plateau::rt;

namespace {

/// Processor time of this thread: what others take of a shared machine does not count.
double threadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double secondsOf(const std::function<void()> &work) {
  double begin = threadSeconds();
  work();
  return threadSeconds() - begin;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<float> randomFloats(int64_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(generator);
  return values;
}

/// oneDNN's product of two square f32 matrices.
class Product {
public:
  explicit Product(int64_t size)
      : size(size), engine(dnnl::engine::kind::cpu, 0), stream(engine), a(randomFloats(size * size, 1)),
        b(randomFloats(size * size, 2)), c(size * size) {
    dnnl::memory::desc shape({size, size}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::ab);
    dnnl::matmul::desc product(shape, shape, shape);
    primitive = dnnl::matmul(dnnl::matmul::primitive_desc(product, engine));
    arguments = {{DNNL_ARG_SRC, dnnl::memory(shape, engine, a.data())},
                 {DNNL_ARG_WEIGHTS, dnnl::memory(shape, engine, b.data())},
                 {DNNL_ARG_DST, dnnl::memory(shape, engine, c.data())}};
  }
  double operations() const { return 2.0 * size * size * size; }
  void run() {
    primitive.execute(stream, arguments);
    stream.wait();
  }

private:
  int64_t size;
  dnnl::engine engine;
  dnnl::stream stream;
  std::vector<float> a, b, c;
  dnnl::matmul primitive;
  std::unordered_map<int, dnnl::memory> arguments;
};

struct Shape {
  int64_t rows, documents, queryHeads, keyHeads, headSize;
};

/// Attention forward and backward on random numbers.
class Attention {
public:
  Attention(const Shape &shape, plr_type type) : s(shape), type(type), starts(shape.rows) {
    int64_t length = (s.rows + s.documents - 1) / s.documents;
    for (int64_t row = 0; row < s.rows; ++row) {
      starts[row] = static_cast<int32_t>(row / length * length);
      pairs += row - starts[row] + 1;
    }
    int64_t queries = s.rows * s.queryHeads * s.headSize, keys = s.rows * s.keyHeads * s.headSize;
    const int64_t counts[] = {queries, keys, keys, queries, queries, queries, keys, keys};
    for (int64_t count : counts) {
      tensors.push_back(randomFloats(count, static_cast<uint32_t>(tensors.size())));
      // The upper halves of f32 numbers are bf16 numbers of the same distribution.
      if (type == PLR_BF16) {
        uint16_t *halves = reinterpret_cast<uint16_t *>(tensors.back().data());
        for (int64_t i = 0; i < count; ++i)
          halves[i] = halves[2 * i + 1];
      }
    }
    lse.resize(s.rows * s.queryHeads);
    int64_t bytes = std::max(plr_footprint_attention(s.rows, s.queryHeads, s.keyHeads, s.headSize),
                             plr_footprint_attention_grad(s.rows, s.queryHeads, s.keyHeads, s.headSize));
    workspace = static_cast<float *>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  }
  ~Attention() { std::free(workspace); }
  Attention(const Attention &) = delete;
  Attention &operator=(const Attention &) = delete;

  double forwardOperations() const { return 4.0 * s.headSize * s.queryHeads * pairs; }
  double backwardOperations() const { return 10.0 * s.headSize * s.queryHeads * pairs; }
  void forward() {
    host::attention(type, s.rows, s.queryHeads, s.keyHeads, s.headSize, scale(), tensors[0].data(), tensors[1].data(),
                    tensors[2].data(), starts.data(), tensors[4].data(), lse.data(), workspace);
  }
  void backward() {
    host::attentionGrad(type, s.rows, s.queryHeads, s.keyHeads, s.headSize, scale(), tensors[3].data(),
                        tensors[0].data(), tensors[1].data(), tensors[2].data(), starts.data(), tensors[4].data(),
                        lse.data(), tensors[5].data(), tensors[6].data(), tensors[7].data(), workspace);
  }

private:
  float scale() const { return 1 / std::sqrt(static_cast<float>(s.headSize)); }
  Shape s;
  plr_type type;
  std::vector<int32_t> starts;
  int64_t pairs = 0;
  std::vector<std::vector<float>> tensors;
  std::vector<float> lse;
  float *workspace;
};

void measure(const Shape &shape, plr_type type, int pairs, bool json) {
  Attention attention(shape, type);
  Product product(1024);
  attention.forward();
  attention.backward();
  product.run();
  std::vector<double> forward, backward, both, products, ratios;
  for (int pair = 0; pair < pairs; ++pair) {
    double f = secondsOf([&] { attention.forward(); }), b = secondsOf([&] { attention.backward(); });
    double p = secondsOf([&] { product.run(); });
    forward.push_back(attention.forwardOperations() / f / 1e9);
    backward.push_back(attention.backwardOperations() / b / 1e9);
    both.push_back((attention.forwardOperations() + attention.backwardOperations()) / (f + b) / 1e9);
    products.push_back(product.operations() / p / 1e9);
    ratios.push_back(both.back() / products.back());
  }
  double low = *std::min_element(ratios.begin(), ratios.end()), high = *std::max_element(ratios.begin(), ratios.end());
  const char *format =
      json ? "{\"variant\": \"%s\", \"type\": \"%s\", \"rows\": %lld, \"documents\": %lld, \"query_heads\": %lld, "
             "\"key_heads\": %lld, \"head_size\": %lld, \"forward_gflops\": %.1f, \"backward_gflops\": %.1f, "
             "\"attention_gflops\": %.1f, \"product_gflops\": %.1f, \"ratio\": %.3f, \"ratio_low\": %.3f, "
             "\"ratio_high\": %.3f, \"pairs\": %d}\n"
           : "%s %s, %lld rows, %lld documents, heads %lld:%lld of %lld: forward %.1f, backward %.1f, both %.1f "
             "GFLOP/s; "
             "oneDNN product %.1f GFLOP/s; ratio %.3f (%.3f to %.3f over %d pairs)\n";
  std::printf(format, host::bestVariant().name, type == PLR_BF16 ? "bf16" : "f32", (long long)shape.rows,
              (long long)shape.documents, (long long)shape.queryHeads, (long long)shape.keyHeads,
              (long long)shape.headSize, median(forward), median(backward), median(both), median(products),
              median(ratios), low, high, pairs);
  std::fflush(stdout);
}

int usage(const char *program, const std::string &fault) {
  std::fprintf(
      stderr,
      "%s: %s\n"
      "usage: %s [--json] [--pairs N] [--type f32|bf16] [--rows N --documents N --query-heads N --key-heads N "
      "--head-size N]\n"
      "Without a shape it runs 1024 rows in 2 documents with heads 4:2 of 64, and one document of 4096 rows with\n"
      "heads 4:2 of 128.\n",
      program, fault.c_str(), program);
  return 2;
}

} // namespace

int main(int count, char **arguments) {
  bool json = false, given = false;
  int64_t pairs = 9;
  plr_type type = PLR_F32;
  Shape shape = {1024, 2, 4, 2, 64};
  const std::pair<const char *, int64_t *> numbers[] = {{"--pairs", &pairs},
                                                        {"--rows", &shape.rows},
                                                        {"--documents", &shape.documents},
                                                        {"--query-heads", &shape.queryHeads},
                                                        {"--key-heads", &shape.keyHeads},
                                                        {"--head-size", &shape.headSize}};
  for (int i = 1; i < count; ++i) {
    std::string name = arguments[i];
    if (name == "--json") {
      json = true;
      continue;
    }
    if (i + 1 == count)
      return usage(arguments[0], "'" + name + "' is no option, or lacks its value");
    std::string value = arguments[++i];
    if (name == "--type" && (value == "f32" || value == "bf16")) {
      type = value == "bf16" ? PLR_BF16 : PLR_F32;
      continue;
    }
    auto number =
        std::find_if(std::begin(numbers), std::end(numbers), [&](auto &entry) { return name == entry.first; });
    char *end = nullptr;
    if (number == std::end(numbers) || (*number->second = std::strtoll(value.c_str(), &end, 10)) < 1 || *end ||
        *number->second > 1 << 20)
      return usage(arguments[0],
                   "'" + name + " " + value + "' is not understood: a number from 1 to 1048576 is expected");
    given |= number->second != &pairs;
  }
  if (shape.queryHeads % shape.keyHeads != 0)
    return usage(arguments[0], "the number of key heads does not divide that of query heads");

  host::useOneThread();
  measure(shape, type, static_cast<int>(pairs), json);
  if (!given)
    measure({4096, 1, 4, 2, 128}, type, static_cast<int>(pairs), json);
  return 0;
}

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The runtime's products against a bare loop of the same oneDNN primitive, one thread each, on the same memory.
//
// A shape is a line "transpose_a transpose_b accumulate type result_type m n k" (types f32 or bf16), as
// plateau-run --gemm-shapes writes it; the count and the nanoseconds that it adds are not read.
//===----------------------------------------------------------------------===//

#include "host/threads.h"
#include "plateau/runtime.h"
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <oneapi/dnnl/dnnl.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

constexpr plr_tag tag = {"gemm-bench", -1, PLR_DENSE, PLR_FORWARD};

struct Shape {
  int32_t transposeA, transposeB, accumulate;
  plr_type type, resultType;
  int64_t m, n, k;
};

struct Options {
  std::string file;
  int pairs = 9;
  double milliseconds = 30; ///< Of one side of a pair, about.
  bool json = false;
};

struct Result {
  double ratio, lowest, highest; ///< Bare time by the runtime's time: median and ends of the pairs.
  double runtimeRate, bareRate;  ///< GFLOP/s, medians.
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// A context whose device space holds what the shape needs.
class Runtime {
public:
  explicit Runtime(const Shape &shape) {
    plr_config config = {};
    config.abi_version = PLR_ABI_VERSION;
    config.ranks = 1;
    config.device_bytes = 4 * (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n) + (int64_t(1) << 28);
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
  void check() {
    const char *message;
    if (plr_context_error(context, &message) != PLR_OK)
      throw std::runtime_error(message);
  }
  /// Seconds inside one product: the median of `count` in a row.
  double run(const Shape &s, const void *a, const void *b, void *c, int count) {
    plr_trace_clear(context);
    plr_lane *lane = plr_get_lane(context, PLR_COMPUTE);
    for (int i = 0; i < count; ++i)
      plr_gemm(lane, &tag, s.transposeA, s.transposeB, s.accumulate, s.type, s.resultType, s.m, s.n, s.k, a, b, c,
               nullptr, PLR_FROM_POOL);
    plr_synchronize(context);
    check();
    std::vector<plr_span> spans(count);
    plr_trace(context, 0, spans.data(), count);
    std::vector<double> times;
    for (const plr_span &span : spans)
      times.push_back(static_cast<double>(span.end_ns - span.start_ns) * 1e-9);
    return median(times);
  }

private:
  plr_context *context = nullptr;
};

/// The same product, with nothing around it.
class Bare {
public:
  Bare(const Shape &shape, void *a, void *b, void *c) {
    using Tag = dnnl::memory::format_tag;
    auto matrix = [](int64_t rows, int64_t columns, plr_type type, int32_t transposed) {
      return dnnl::memory::desc({rows, columns},
                                type == PLR_BF16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32,
                                transposed ? Tag::ba : Tag::ab);
    };
    dnnl::primitive_attr attributes;
    if (shape.accumulate) {
      dnnl::post_ops sum;
      sum.append_sum(1);
      attributes.set_post_ops(sum);
    }
    dnnl::matmul::primitive_desc description(dnnl::matmul::desc(matrix(shape.m, shape.k, shape.type, shape.transposeA),
                                                                matrix(shape.k, shape.n, shape.type, shape.transposeB),
                                                                matrix(shape.m, shape.n, shape.resultType, 0)),
                                             attributes, engine);
    primitive = dnnl::matmul(description);
    arguments = {{DNNL_ARG_SRC, dnnl::memory(description.src_desc(), engine, a)},
                 {DNNL_ARG_WEIGHTS, dnnl::memory(description.weights_desc(), engine, b)},
                 {DNNL_ARG_DST, dnnl::memory(description.dst_desc(), engine, c)}};
  }
  /// As Runtime::run.
  double run(int count) {
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
      auto start = std::chrono::steady_clock::now();
      primitive.execute(stream, arguments);
      times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    stream.wait();
    return median(times);
  }

private:
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul primitive;
  std::unordered_map<int, dnnl::memory> arguments;
};

} // namespace

static Result measure(const Shape &shape, const Options &options) {
  Runtime runtime(shape);
  void *a = runtime.allocate(shape.type, shape.m * shape.k), *b = runtime.allocate(shape.type, shape.k * shape.n),
       *c = runtime.allocate(shape.resultType, shape.m * shape.n);
  Bare bare(shape, a, b, c);
  runtime.run(shape, a, b, c, 2);
  bare.run(2);
  double once = std::max(bare.run(3), 1e-7);
  int count = static_cast<int>(std::clamp(options.milliseconds * 1e-3 / once, 3.0, 2000.0));
  std::vector<double> ratios, runtimeTimes, bareTimes;
  for (int i = 0; i < options.pairs; ++i) {
    // Each side goes first in turn, so that a machine that slows down favours none.
    double first = i % 2 ? bare.run(count) : runtime.run(shape, a, b, c, count);
    double second = i % 2 ? runtime.run(shape, a, b, c, count) : bare.run(count);
    runtimeTimes.push_back(i % 2 ? second : first);
    bareTimes.push_back(i % 2 ? first : second);
    ratios.push_back(bareTimes.back() / runtimeTimes.back());
  }
  double work = 2e-9 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  auto [lowest, highest] = std::minmax_element(ratios.begin(), ratios.end());
  return {median(ratios), *lowest, *highest, work / median(runtimeTimes), work / median(bareTimes)};
}

static const char *getTypeName(plr_type type) { return type == PLR_BF16 ? "bf16" : "f32"; }

static void print(const Shape &s, const Result &r, bool json) {
  std::printf(
      json ? "{\"transpose_a\": %d, \"transpose_b\": %d, \"accumulate\": %d, \"type\": \"%s\", "
             "\"result_type\": \"%s\", \"m\": %lld, \"n\": %lld, \"k\": %lld, \"ratio\": %.4f, "
             "\"ratio_lowest\": %.4f, \"ratio_highest\": %.4f, \"runtime_gflops\": %.2f, \"bare_gflops\": %.2f}\n"
           : "%d %d %d %-4s %-4s %7lld %7lld %7lld   ratio %.3f (%.3f ... %.3f)   %7.1f GFLOP/s, bare %7.1f\n",
      s.transposeA, s.transposeB, s.accumulate, getTypeName(s.type), getTypeName(s.resultType),
      static_cast<long long>(s.m), static_cast<long long>(s.n), static_cast<long long>(s.k), r.ratio, r.lowest,
      r.highest, r.runtimeRate, r.bareRate);
  std::fflush(stdout);
}

/// Throws with the line's number when the line is no shape.
static Shape parseShape(const std::string &line, int number) {
  Shape shape = {};
  std::string type, resultType, count, nanoseconds, rest;
  std::istringstream stream(line);
  stream >> shape.transposeA >> shape.transposeB >> shape.accumulate >> type >> resultType >> shape.m >> shape.n >>
      shape.k;
  auto isFlag = [](int32_t value) { return value == 0 || value == 1; };
  auto isType = [](const std::string &name) { return name == "f32" || name == "bf16"; };
  constexpr int64_t most = int64_t(1) << 24;
  auto isSize = [](int64_t value) { return value > 0 && value <= most; };
  auto isNumber = [](const std::string &text) { return text.find_first_not_of("0123456789") == std::string::npos; };
  bool isComplete = bool(stream);
  stream >> count >> nanoseconds >> rest;
  if (!isComplete || !isNumber(count) || !isNumber(nanoseconds) || !rest.empty() || !isFlag(shape.transposeA) ||
      !isFlag(shape.transposeB) || !isFlag(shape.accumulate) || !isType(type) || !isType(resultType) ||
      !isSize(shape.m) || !isSize(shape.n) || !isSize(shape.k))
    throw std::runtime_error("line " + std::to_string(number) + ": '" + line +
                             "' is no shape: expected transpose_a transpose_b accumulate (0 or 1), type result_type "
                             "(f32 or bf16), m n k (1 ... " +
                             std::to_string(most) + ")");
  shape.type = type == "bf16" ? PLR_BF16 : PLR_F32;
  shape.resultType = resultType == "bf16" ? PLR_BF16 : PLR_F32;
  return shape;
}

static std::vector<Shape> readShapes(const std::string &file) {
  std::ifstream opened;
  if (!file.empty()) {
    opened.open(file);
    if (!opened)
      throw std::runtime_error("cannot open '" + file + "': " + std::strerror(errno));
  }
  std::istream &stream = file.empty() ? std::cin : opened;
  std::vector<Shape> shapes;
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number)
    if (size_t begin = line.find_first_not_of(" \t\r"); begin != std::string::npos && line[begin] != '#')
      shapes.push_back(parseShape(line, number));
  if (shapes.empty())
    throw std::runtime_error("there are no shapes in " + (file.empty() ? "standard input" : "'" + file + "'"));
  return shapes;
}

static const char *const usage =
    "usage: plateau-gemm-bench [--json] [--pairs N] [--milliseconds T] [FILE]\n"
    "Times plr_gemm and the bare oneDNN primitive in N alternating pairs (9, or more), about T ms (30) a side, for "
    "each\n"
    "line of FILE or standard input: transpose_a transpose_b accumulate type result_type m n k.\n";

/// False when the command line is bad.
static bool parseOptions(int argc, char **argv, Options &options) {
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--json")
      options.json = true;
    else if (argument == "--pairs" && i + 1 < argc)
      options.pairs = std::atoi(argv[++i]);
    else if (argument == "--milliseconds" && i + 1 < argc)
      options.milliseconds = std::atof(argv[++i]);
    else if (argument[0] != '-' && options.file.empty())
      options.file = argument;
    else
      return false;
  }
  return options.pairs >= 9 && options.pairs <= 10000 && options.milliseconds > 0;
}

int main(int argc, char **argv) {
  Options options;
  if (!parseOptions(argc, argv, options)) {
    std::fputs(usage, stderr);
    return 2;
  }
  plateau::rt::host::useOneThread();
  try {
    double sum = 0;
    std::vector<Shape> shapes = readShapes(options.file);
    for (const Shape &shape : shapes) {
      Result result = measure(shape, options);
      print(shape, result, options.json);
      sum += std::log(result.ratio);
    }
    std::printf(options.json ? "{\"shapes\": %zu, \"geometric_mean_ratio\": %.4f}\n"
                             : "%zu shapes, geometric mean of the ratios %.4f\n",
                shapes.size(), std::exp(sum / static_cast<double>(shapes.size())));
    return 0;
  } catch (const std::exception &exception) {
    std::fprintf(stderr, "plateau-gemm-bench: error: %s\n", exception.what());
    return 1;
  }
}

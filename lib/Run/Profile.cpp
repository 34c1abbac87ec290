//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Run/Profile.h"
#include "plateau/Interfaces/Component.h"
#include "plateau/Run/Error.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FileSystem.h"
#include <array>
#include <map>

using namespace mlir::plateau;
using namespace mlir::plateau::run;

/// Opens `path` for text, hands the stream to `write`, and tells whether all arrived.
static llvm::Error writeText(llvm::StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> write) {
  std::error_code code;
  llvm::raw_fd_ostream os(path, code, llvm::sys::fs::OF_Text);
  if (!code) {
    write(os);
    os.close();
    code = os.error();
    os.clear_error();
  }
  return code ? makeError("{0}: cannot be written: {1}", path, code.message()) : llvm::Error::success();
}

static bool isCall(const plr_span &span, llvm::StringRef call) { return span.call == call; }

llvm::Error run::writeGemmShapes(llvm::StringRef path, const RankSpans &spans) {
  struct Use {
    int64_t count = 0, nanoseconds = 0;
  };
  std::map<std::array<int64_t, 8>, Use> uses;
  for (const auto &list : spans)
    for (const plr_span &span : list) {
      if (span.products == 0)
        continue;
      std::array<int64_t, 8> shape;
      std::copy_n(span.shape, shape.size(), shape.begin());
      // A grouped product stands as one for each expert, of their mean number of rows to the next 256.
      if (!isCall(span, "plr_gemm")) {
        int64_t &rows = shape[isCall(span, "plr_grouped_gemm_grad") ? 7 : 5];
        rows = std::max<int64_t>((rows / span.products + 128) / 256 * 256, 64);
      }
      Use &use = uses[shape];
      use.count += span.products;
      use.nanoseconds += span.end_ns - span.start_ns;
    }
  std::vector<std::pair<std::array<int64_t, 8>, Use>> order(uses.begin(), uses.end());
  llvm::sort(order, [](const auto &a, const auto &b) {
    return std::pair(-a.second.nanoseconds, a.first) < std::pair(-b.second.nanoseconds, b.first);
  });
  return writeText(path, [&](llvm::raw_ostream &os) {
    os << "# transpose_a transpose_b accumulate type result_type m n k count nanoseconds\n";
    for (const auto &[shape, use] : order) {
      for (auto [index, number] : llvm::enumerate(shape)) {
        bool isType = index == 3 || index == 4;
        os << (!isType ? std::to_string(number) : number == PLR_BF16 ? "bf16" : "f32") << " ";
      }
      os << use.count << " " << use.nanoseconds << "\n";
    }
  });
}

void run::printProfile(llvm::raw_ostream &os, const RankSpans &spans, double seconds) {
  struct Sum {
    double seconds = 0, flops = 0;
    int64_t count = 0;
    double getRate() const { return seconds > 0 ? flops / seconds * 1e-9 : 0; }
  };
  llvm::MapVector<llvm::StringRef, Sum> calls;
  for (const auto &list : spans)
    for (const plr_span &span : list) {
      Sum &sum = calls[span.call];
      sum.seconds += (span.end_ns - span.start_ns) * 1e-9;
      sum.flops += span.flops;
      ++sum.count;
    }
  llvm::MapVector<Component, double> components;
  for (const auto &list : spans)
    for (const plr_span &span : list)
      if (span.tag)
        components[static_cast<Component>(span.tag->component)] += (span.end_ns - span.start_ns) * 1e-9;
  auto order = calls.takeVector();
  llvm::sort(order, [](const auto &a, const auto &b) {
    return std::pair(-a.second.seconds, a.first) < std::pair(-b.second.seconds, b.first);
  });
  double all = seconds * spans.size();
  os << "time of calls, all ranks: share of the steps, seconds, calls, GFLOP/s\n";
  Sum gemm, attention;
  for (const auto &[name, sum] : order) {
    os << llvm::formatv("  {0,-24} {1,6:f1} % {2,10:f3} {3,8}", name, 100 * sum.seconds / all, sum.seconds, sum.count);
    if (sum.flops > 0)
      os << llvm::formatv(" {0,9:f1}", sum.getRate());
    os << "\n";
    for (auto [prefix, total] :
         {std::pair("plr_gemm", &gemm), {"plr_grouped_gemm", &gemm}, {"plr_attention", &attention}})
      if (name.starts_with(prefix)) {
        total->seconds += sum.seconds;
        total->flops += sum.flops;
      }
  }
  auto shares = components.takeVector();
  llvm::sort(shares, [](const auto &a, const auto &b) {
    return std::pair(-a.second, a.first) < std::pair(-b.second, b.first);
  });
  os << "time of calls by component: share of the steps, seconds\n";
  for (const auto &[component, spent] : shares)
    os << llvm::formatv("  {0,-24} {1,6:f1} % {2,10:f3}\n", stringifyComponent(component), 100 * spent / all, spent);
  os << llvm::formatv("profile: GEMM share {0:f1} %, GEMM {1:f1} GFLOP/s, attention {2:f1} GFLOP/s",
                      100 * gemm.seconds / all, gemm.getRate(), attention.getRate());
  if (gemm.getRate() > 0)
    os << llvm::formatv(" ({0:f1} % of the GEMM rate)", 100 * attention.getRate() / gemm.getRate());
  os << "\n";
}

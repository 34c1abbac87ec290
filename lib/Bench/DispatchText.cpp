//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Bench/DispatchText.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::plateau;
using namespace mlir::plateau::bench;
using llvm::formatv;
using llvm::StringRef;

namespace {
/// Types of the layer's tensors.
struct Types {
  explicit Types(const DispatchOptions &options) {
    StringRef element = options.isBF16 ? "bf16" : "f32";
    int64_t n = options.tokens, h = options.hidden, i = options.expertHidden, e = options.getLocalExperts();
    x = formatv("tensor<{0}x{1}x{2}>", n, h, element);
    slots = formatv("tensor<{0}x{1}xf32>", n, options.topK);
    ids = formatv("tensor<{0}x{1}xi32>", n, options.topK);
    w13 = formatv("tensor<{0}x{1}x{2}x{3}>", e, 2 * i, h, element);
    w2 = formatv("tensor<{0}x{1}x{2}x{3}>", e, h, i, element);
    dw13 = formatv("tensor<{0}x{1}x{2}xf32>", e, 2 * i, h);
    dw2 = formatv("tensor<{0}x{1}x{2}xf32>", e, h, i);
    rows = formatv("tensor<?x{0}x{1}>", h, element);
    gateUp = formatv("tensor<?x{0}x{1}>", 2 * i, element);
    inner = formatv("tensor<?x{0}x{1}>", i, element);
    group = formatv("tensor<{0}x{1}>", (options.forwardOnly ? 1 : 2) * n * h, element);
    grads = formatv("tensor<{0}xf32>", n * options.topK + 3 * e * i * h);
    plan = formatv("!moe.plan<experts = {0}, ranks = {1}, tokens = {2}, top_k = {3}>", options.experts, options.ranks,
                   n, options.topK);
  }

  std::string x, slots, ids, w13, w2, dw13, dw2, rows, gateUp, inner, group, grads, plan;
};

/// Prints ops one by one, each with the scope of its memory.
class Printer {
public:
  Printer(llvm::raw_ostream &os, StringRef phase) : os(os), phase(phase) {}

  void operator()(StringRef component, const std::string &op) {
    os << "    " << op << " loc(fused<#moe.scope<" << phase << ", " << component << ">>[\"experts\"])\n";
  }

private:
  llvm::raw_ostream &os;
  StringRef phase;
};

struct Member {
  StringRef name;
  std::string shape;
  int64_t elements;
};
} // namespace

/// A layout whose members lie one behind the other.
static std::string getLayout(llvm::ArrayRef<Member> members) {
  std::string text = "<[";
  int64_t offset = 0;
  for (const Member &member : members) {
    text +=
        formatv("{0}<<\"{1}\", decay = false, mean = 0.0 : f64, deviation = 1.0 : f64>, offset = {2}, shape = [{3}]>",
                offset ? ", " : "", member.name, offset, member.shape);
    offset += member.elements;
  }
  return text + "]>";
}

static std::string getGrid(const DispatchOptions &options) {
  return formatv("shard.grid @experts(shape = {0})\n", options.ranks);
}

static void printForward(llvm::raw_ostream &os, const Types &t) {
  os << formatv(
      "  %y, %plan = moe.checkpoint (%a0 = %x : {0}, %a1 = %p : {1}, %a2 = %ids : {2}, %a3 = %w13 : {3}, %a4 = "
      "%w2 : {4}) -> ({0}, {5}) {{\n",
      t.x, t.slots, t.ids, t.w13, t.w2, t.plan);
  Printer print(os, "forward");
  print("routing", formatv("%made = moe.plan %a2 on @experts : {0} -> {1}", t.ids, t.plan));
  print("dispatch",
        formatv("%rows, %weights = moe.dispatch rows(%a0 : {0} -> {1}) values(%a1 : {2} -> tensor<?xf32>) by "
                "%made on @experts : {3}",
                t.x, t.rows, t.slots, t.plan));
  print("experts", formatv("%h = moe.grouped_matmul %rows, %a3 transpose by %made : ({0}, {1}, {2}) -> {3}", t.rows,
                           t.w13, t.plan, t.gateUp));
  print("experts", formatv("%a = moe.swiglu %h : {0} -> {1}", t.gateUp, t.inner));
  print("experts", formatv("%u = moe.grouped_matmul %a, %a4 transpose by %made : ({0}, {1}, {2}) -> {3}", t.inner, t.w2,
                           t.plan, t.rows));
  print("experts", formatv("%s = moe.scale_rows %u, %weights : {0}, tensor<?xf32>", t.rows));
  print("dispatch",
        formatv("%sum = moe.combine rows(%s : {0} -> {1}) by %made on @experts : {2}", t.rows, t.x, t.plan));
  print("dispatch", formatv("moe.yield %sum, %made : {0}, {1}", t.x, t.plan));
  os << "  }\n";
}

static void printBackward(llvm::raw_ostream &os, const Types &t) {
  os << formatv(
      "  %dx, %dp, %dw13, %dw2 = moe.checkpoint recompute (%a0 = %x : {0}, %a1 = %p : {1}, %a2 = %w13 : {2}, %a3 "
      "= %w2 : {3}, %a4 = %plan : {4}, %a5 = %dy : {0}) -> ({0}, {1}, {5}, {6}) {{\n",
      t.x, t.slots, t.w13, t.w2, t.plan, t.dw13, t.dw2);
  Printer print(os, "backward");
  print("dispatch",
        formatv("%rows, %weights = moe.dispatch rows(%a0 : {0} -> {1}) values(%a1 : {2} -> tensor<?xf32>) by "
                "%a4 on @experts : {3}",
                t.x, t.rows, t.slots, t.plan));
  print("experts", formatv("%h = moe.grouped_matmul %rows, %a2 transpose by %a4 : ({0}, {1}, {2}) -> {3}", t.rows,
                           t.w13, t.plan, t.gateUp));
  print("experts", formatv("%a = moe.swiglu %h : {0} -> {1}", t.gateUp, t.inner));
  print("dispatch", formatv("%g = moe.dispatch rows(%a5 : {0} -> {1}) by %a4 on @experts : {2}", t.x, t.rows, t.plan));
  print("experts", formatv("%gs = moe.scale_rows %g, %weights : {0}, tensor<?xf32>", t.rows));
  print("experts",
        formatv("%da = moe.grouped_matmul %g, %a3 by %a4 : ({0}, {1}, {2}) -> {3}", t.rows, t.w2, t.plan, t.inner));
  print("experts", formatv("%dweights = moe.row_dot %da, %a : {0} -> tensor<?xf32>", t.inner));
  print("experts", formatv("%das = moe.scale_rows %da, %weights : {0}, tensor<?xf32>", t.inner));
  print("experts", formatv("%dw2e = moe.grouped_matmul_grad %gs, %a by %a4 : ({0}, {1}, {2}) -> {3}", t.rows, t.inner,
                           t.plan, t.dw2));
  print("experts", formatv("%dh = moe.swiglu_grad %das, %h : {0}, {1}", t.inner, t.gateUp));
  print("experts", formatv("%drows = moe.grouped_matmul %dh, %a2 by %a4 : ({0}, {1}, {2}) -> {3}", t.gateUp, t.w13,
                           t.plan, t.rows));
  print("experts", formatv("%dw13e = moe.grouped_matmul_grad %dh, %rows by %a4 : ({0}, {1}, {2}) -> {3}", t.gateUp,
                           t.rows, t.plan, t.dw13));
  print("dispatch",
        formatv("%dxe, %dpe = moe.combine rows(%drows : {0} -> {1}) values(%dweights : tensor<?xf32> -> {2}) "
                "by %a4 on @experts : {3}",
                t.rows, t.x, t.slots, t.plan));
  print("dispatch", formatv("moe.yield %dxe, %dpe, %dw13e, %dw2e : {0}, {1}, {2}, {3}", t.x, t.slots, t.dw13, t.dw2));
  os << "  }\n";
}

std::string bench::getLayerText(const DispatchOptions &options) {
  Types t(options);
  int64_t n = options.tokens, h = options.hidden, i = options.expertHidden, e = options.getLocalExperts();
  Member y = {"y", formatv("{0}, {1}", n, h), n * h}, dx = {"dx", y.shape, y.elements},
         dp = {"dp", formatv("{0}, {1}", n, options.topK), n * options.topK},
         dw13 = {"dw13", formatv("{0}, {1}, {2}", e, 2 * i, h), 2 * e * i * h},
         dw2 = {"dw2", formatv("{0}, {1}, {2}", e, h, i), e * i * h};
  std::string text = getGrid(options);
  llvm::raw_string_ostream os(text);
  os << formatv(
      "func.func @layer(%x: {0}, %p: {1}, %ids: {2}, %w13: {3}, %w2: {4}, %group: {5} {{moe.donated = 0 : i64}", t.x,
      t.slots, t.ids, t.w13, t.w2, t.group);
  Printer print(os, options.forwardOnly ? "forward" : "backward");
  if (options.forwardOnly) {
    os << formatv(") -> {0} {{\n", t.group);
    printForward(os, t);
    print("dispatch",
          formatv("%rows = moe.pack %y into %group layout {0} : {1} into {2}", getLayout({y}), t.x, t.group));
    print("dispatch", formatv("return %rows : {0}", t.group));
  } else {
    os << formatv(", %dy: {0}, %grads: {1} {{moe.donated = 1 : i64}) -> ({2}, {1}) {{\n", t.x, t.grads, t.group);
    printForward(os, t);
    printBackward(os, t);
    print("dispatch", formatv("%rows = moe.pack %y, %dx into %group layout {0} : {1}, {1} into {2}", getLayout({y, dx}),
                              t.x, t.group));
    print("dispatch", formatv("%packed = moe.pack %dp, %dw13, %dw2 into %grads layout {0} : {1}, {2}, {3} into {4}",
                              getLayout({dp, dw13, dw2}), t.slots, t.dw13, t.dw2, t.grads));
    print("dispatch", formatv("return %rows, %packed : {0}, {1}", t.group, t.grads));
  }
  os << "}\n";
  return text;
}

static std::string getPlanOp(const Types &types, StringRef planType, StringRef balance) {
  return formatv("  %plan = moe.plan %ids{0}{1} on @experts : {2} -> {3}\n", balance.empty() ? "" : " balance ",
                 balance, types.ids, planType);
}

std::string bench::getPlanText(const DispatchOptions &options, StringRef planType, StringRef balance,
                               bool hasIterations) {
  Types types(options);
  StringRef at = hasIterations ? " at %first" : "", into = hasIterations ? " values_into(%values : " : "";
  std::string text = getGrid(options);
  llvm::raw_string_ostream os(text);
  os << formatv("func.func @plan(%ids: {0}, %values: {1}) -> {1} {{\n", types.ids, types.slots);
  os << "  %first = arith.constant 0 : index\n" << getPlanOp(types, planType, balance);
  os << formatv("  %rows = moe.dispatch values(%values : {0} -> tensor<?xf32>) by %plan{1} on @experts : {2}\n",
                types.slots, at, planType);
  os << formatv("  %home = moe.combine values(%rows : tensor<?xf32> -> {0}) by %plan{1}{2}{3}{4} on @experts : {5}\n",
                types.slots, at, into, hasIterations ? types.slots : "", hasIterations ? ")" : "", planType);
  os << "  return %home : " << types.slots << "\n}\n";
  return text;
}

std::string bench::getDestinationsText(const DispatchOptions &options, StringRef planType, StringRef balance,
                                       int64_t helperSlots) {
  Types types(options);
  std::string ones = formatv("tensor<{0}x1xf32>", options.tokens),
              own = formatv("tensor<{0}x1x1xf32>", options.getLocalExperts()),
              helpers = formatv("tensor<{0}x1x1xf32>", helperSlots);
  bool helps = helperSlots > 0;
  std::string text = getGrid(options);
  llvm::raw_string_ostream os(text);
  os << formatv("func.func @plan(%ids: {0}, %ones: {1}, %own: {2}", types.ids, ones, own);
  if (helps)
    os << ", %helpers: " << helpers;
  os << ") -> " << types.slots << " {\n" << getPlanOp(types, planType, balance);
  os << formatv("  %rows = moe.dispatch rows(%ones : {0} -> tensor<?x1xf32>) by %plan on @experts : {1}\n", ones,
                planType);
  os << formatv("  %numbers = moe.grouped_matmul %rows, %own{0} by %plan : (tensor<?x1xf32>, {1}, {2}{3}{4}) -> "
                "tensor<?x1xf32>\n",
                helps ? " helpers(%helpers)" : "", own, planType, helps ? ", " : "", helps ? helpers : "");
  os << "  %number = moe.row_dot %numbers, %rows : tensor<?x1xf32> -> tensor<?xf32>\n";
  os << formatv("  %destinations = moe.combine values(%number : tensor<?xf32> -> {0}) by %plan on @experts : {1}\n",
                types.slots, planType);
  os << "  return %destinations : " << types.slots << "\n}\n";
  return text;
}

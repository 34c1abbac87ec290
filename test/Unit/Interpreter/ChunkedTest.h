//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Texts of programs whose tokens go to experts in iterations, with helpers, beside the plain ones they stand for.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_TEST_UNIT_INTERPRETER_CHUNKEDTEST_H
#define PLATEAU_TEST_UNIT_INTERPRETER_CHUNKEDTEST_H

#include "RanksTest.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>

namespace mlir::plateau::test {

/// Sizes of a program with a plan. The ranks along the last axis of `grid` share the experts.
struct ChunkedLayout {
  std::vector<int64_t> grid;
  int64_t localExperts, tokens, topK;
  int64_t helperSlots = 0, chunks = 1, leaves = 1, capacity = 0;
  std::string balance = "alpha = 1 over 1, min_rows = 1, threshold = 1 over 1";

  int64_t getShards() const { return grid.back(); }
  int64_t getRanks() const { return ShapedType::getNumElements(grid); }
  int64_t getExperts() const { return getShards() * localExperts; }
  int64_t getSlots() const { return tokens * topK; }
  int64_t getIterations() const { return chunks * leaves; }
  bool isLoop() const { return getIterations() > 1; }

  /// The smallest capacity that holds one token of each source, all of whose slots may go to one rank.
  int64_t getLeastCapacity() const { return getShards() * topK; }
  /// Sets a capacity and as many leaves as let it hold any routing whatever.
  void setCapacity(int64_t rows) {
    capacity = rows;
    int64_t leafTokens = rows / getLeastCapacity(), chunkTokens = (tokens + chunks - 1) / chunks;
    leaves = std::max<int64_t>(1, (chunkTokens + leafTokens - 1) / leafTokens);
  }
  ChunkedLayout getPlain() const { return {grid, localExperts, tokens, topK}; }
};

class ChunkedTest : public RanksTest {
protected:
  ChunkedTest() { context.loadDialect<scf::SCFDialect>(); }

  static void replaceAll(std::string &text, StringRef from, const std::string &to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  }

  /// Aliases of types, the grid, and `text`, in which stand
  ///   $plan     the op that makes %plan from %ids
  ///   $at       the iteration %i, when there are several;            $I  the type of its operand
  ///   $Q        how many iterations there are at most
  ///   $help(N)  the helpers' weights %N_helpers, when there are any;  $H(T) the type !T_helpers of their operand
  static std::string expand(const ChunkedLayout &layout, std::string text, int64_t columns = 3, int64_t hidden = 2) {
    auto shape = [](std::initializer_list<int64_t> sizes, StringRef element = "f32") {
      return llvm::formatv("tensor<{0:$[x]}x{1}>", llvm::make_range(sizes.begin(), sizes.end()), element).str();
    };
    std::string prologue = llvm::formatv("!plan = !moe.plan<experts = {0}, ranks = {1}, tokens = {2}, top_k = {3}",
                                         layout.getExperts(), layout.getShards(), layout.tokens, layout.topK);
    for (auto [name, size, plain] : {std::tuple("helper_slots", layout.helperSlots, 0),
                                     {"chunks", layout.chunks, 1},
                                     {"leaves", layout.leaves, 1},
                                     {"capacity", layout.capacity, 0}})
      if (size != plain)
        prologue += llvm::formatv(", {0} = {1}", name, size);
    prologue += ">\n";
    for (const auto &[name, type] : {std::pair<StringRef, std::string>("tokens", shape({layout.tokens, columns})),
                                     {"slots", shape({layout.tokens, layout.topK})},
                                     {"ids", shape({layout.tokens, layout.topK}, "i32")},
                                     {"gates", shape({layout.localExperts, 2 * hidden, columns})},
                                     {"downs", shape({layout.localExperts, columns, hidden})},
                                     {"gates_helpers", shape({layout.helperSlots, 2 * hidden, columns})},
                                     {"downs_helpers", shape({layout.helperSlots, columns, hidden})},
                                     {"rows", "tensor<?x" + std::to_string(columns) + "xf32>"},
                                     {"wide", "tensor<?x" + std::to_string(2 * hidden) + "xf32>"},
                                     {"narrow", "tensor<?x" + std::to_string(hidden) + "xf32>"},
                                     {"values", "tensor<?xf32>"}})
      prologue += llvm::formatv("!{0} = {1}\n", name, type);
    prologue += llvm::formatv("shard.grid @experts(shape = {0:$[x]})\n",
                              llvm::make_range(layout.grid.begin(), layout.grid.end()));
    bool helps = layout.helperSlots > 0;
    for (StringRef name : {"gates", "downs"}) {
      replaceAll(text, ("$help(" + name + ")").str(), helps ? (" helpers(%" + name + "_helpers)").str() : "");
      replaceAll(text, ("$H(" + name + ")").str(), helps ? (", !" + name + "_helpers").str() : "");
    }
    replaceAll(text, "$plan",
               "%plan = moe.plan %ids" + (helps ? " balance <" + layout.balance + ">" : std::string()) +
                   " on @experts : !ids -> !plan");
    replaceAll(text, "$at", layout.isLoop() ? " at %i" : "");
    replaceAll(text, "$I", layout.isLoop() ? ", index" : "");
    replaceAll(text, "$Q", std::to_string(layout.getIterations()));
    return prologue + text;
  }

  /// A number that says where a slot is.
  static double getName(int64_t rank, int64_t token, int64_t slot) {
    return static_cast<double>(rank * 10000 + token * 100 + slot);
  }

  // --- Routings: the ids of each rank ---

  using Routing = std::vector<Numbers>;

  /// Ids from `least` on, with duplicates.
  Routing getRandomIds(const ChunkedLayout &layout, int64_t least = -1) {
    Routing ids(layout.getRanks(), Numbers(layout.getSlots()));
    for (Numbers &ofRank : ids)
      for (double &id : ofRank)
        id = static_cast<double>(static_cast<int64_t>(generator() % (layout.getExperts() - least)) + least);
    return ids;
  }

  /// One of the kinds of routing that are hard on a plan, by number.
  static constexpr int kinds = 7;
  Routing getHardIds(const ChunkedLayout &layout, int kind) {
    auto last = static_cast<double>(layout.getExperts() - 1);
    Routing ids = getRandomIds(layout);
    switch (kind) {
    case 0:
      return getRandomIds(layout, 0);
    case 1: // one expert takes everything, each token as often as it has slots
      return Routing(layout.getRanks(), Numbers(layout.getSlots(), last));
    case 2: // one expert takes each token once
      for (Numbers &ofRank : ids)
        for (size_t i = 0; i < ofRank.size(); ++i)
          ofRank[i] = i % layout.topK ? -1 : 0;
      return ids;
    case 3: // only two experts, often the first
      for (Numbers &ofRank : ids)
        for (double &id : ofRank)
          id = generator() % 4 ? 0 : last;
      return ids;
    case 4: // every second rank sends nothing
      for (size_t rank = 0; rank < ids.size(); rank += 2)
        ids[rank].assign(layout.getSlots(), -1);
      return ids;
    case 5: // nobody sends anything
      return Routing(layout.getRanks(), Numbers(layout.getSlots(), -1));
    default: // one rank's experts take most
      for (Numbers &ofRank : ids)
        for (double &id : ofRank)
          if (generator() % 8)
            id = static_cast<double>(generator() % layout.localExperts);
      return ids;
    }
  }
};

} // namespace mlir::plateau::test

#endif // PLATEAU_TEST_UNIT_INTERPRETER_CHUNKEDTEST_H

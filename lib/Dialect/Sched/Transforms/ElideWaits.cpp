//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "Dependences.h"
#include "plateau/Analysis/Order.h"
#include "plateau/Dialect/Sched/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::plateau::sched {
#define GEN_PASS_DEF_SCHEDELIDEWAITS
#include "plateau/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace mlir::plateau::sched

using namespace mlir;
using namespace mlir::plateau::sched;

namespace {
/// The waits of one op, and which of them stay.
struct Waits {
  SmallVector<int64_t, 1> nodes; ///< The executions of the op.
  SmallVector<bool, 4> isKept;   ///< By operand.
};

class Elision {
public:
  explicit Elision(Timeline &timeline);

  /// Removes what the rest implies, so that the order stays what it was; then what orders nothing that needs an order.
  void run();
  /// Returns how many it removes.
  int64_t apply();

private:
  enum class Use {
    Implied, ///< In each execution the lane, a fence or another wait has the call done.
    Needed,  ///< In some execution it alone orders two calls that access the same bytes.
    Unknown  ///< It alone gives an order, which may be needed elsewhere or not.
  };
  Use getUse(const Order &order, const Waits &waits, size_t operand) const;
  /// Whether all that memory needs in an order still is.
  bool areOrdered() const;
  void setWaits(const Waits &waits);

  Timeline &timeline;
  std::vector<SmallVector<int64_t, 2>> dependences;
  std::vector<int64_t> previous; ///< On the same lane; -1 without one.
  llvm::MapVector<Operation *, Waits> all;
};
} // namespace

Elision::Elision(Timeline &timeline) : timeline(timeline), dependences(getDependences(timeline)) {
  std::array<int64_t, Order::numLanes> last;
  last.fill(-1);
  for (auto [index, node] : llvm::enumerate(timeline.nodes)) {
    previous.push_back(-1);
    if (node.lane)
      previous.back() = std::exchange(last[static_cast<size_t>(*node.lane)], index);
    if (node.events.empty())
      continue;
    Waits &waits = all[node.op];
    waits.nodes.push_back(index);
    waits.isKept.assign(node.events.size(), true);
  }
}

Elision::Use Elision::getUse(const Order &order, const Waits &waits, size_t operand) const {
  Use use = Use::Implied;
  for (int64_t index : waits.nodes) {
    const Node &node = timeline.nodes[index];
    int64_t before = node.events[operand];
    if (before < 0 || order.isBeforeIssue(before, index))
      continue;
    auto implies = [&](int64_t other) { return other >= 0 && (other == before || order.isBefore(before, other)); };
    bool isImplied = implies(previous[index]);
    for (size_t other = 0; !isImplied && other < node.events.size(); ++other)
      isImplied = other != operand && waits.isKept[other] && implies(node.events[other]);
    if (isImplied)
      continue;
    if (llvm::is_contained(dependences[index], before))
      return Use::Needed;
    use = Use::Unknown;
  }
  return use;
}

bool Elision::areOrdered() const {
  Order order(timeline);
  for (auto [index, node] : llvm::enumerate(timeline.nodes)) {
    for (int64_t before : dependences[index])
      if (!order.isBefore(before, index))
        return false;
    for (const ReadRange &read : node.reads)
      for (const Piece &piece : read.pieces)
        if (read.isTable && piece.writer != Piece::initial && !order.isBeforeIssue(piece.writer, index))
          return false;
  }
  return true;
}

void Elision::setWaits(const Waits &waits) {
  for (int64_t index : waits.nodes) {
    Node &node = timeline.nodes[index];
    node.waits.clear();
    for (auto [event, isKept] : llvm::zip_equal(node.events, waits.isKept))
      if (isKept && event >= 0)
        node.waits.push_back(event);
    llvm::sort(node.waits);
    node.waits.erase(llvm::unique(node.waits), node.waits.end());
  }
}

void Elision::run() {
  // What is implied has a longest path in its place, no step of which is implied: all of it can go at once.
  Order order(timeline);
  SmallVector<std::pair<Operation *, size_t>> unknown;
  for (auto &[op, waits] : all)
    for (size_t operand = 0; operand < waits.isKept.size(); ++operand) {
      bool isLastOfFence = isa<FenceOp>(op) && llvm::count(waits.isKept, true) == 1; // F2
      Use use = isLastOfFence ? Use::Needed : getUse(order, waits, operand);
      if (use == Use::Implied)
        waits.isKept[operand] = false;
      else if (use == Use::Unknown && !isa<FenceOp>(op))
        unknown.push_back({op, operand});
    }
  for (auto &[op, waits] : all)
    setWaits(waits);
  if (unknown.empty() || !areOrdered())
    return;
  for (auto [op, operand] : unknown) {
    Waits &waits = all[op];
    waits.isKept[operand] = false;
    setWaits(waits);
    if (areOrdered())
      continue;
    waits.isKept[operand] = true;
    setWaits(waits);
  }
}

int64_t Elision::apply() {
  int64_t count = 0;
  for (auto &[op, waits] : all) {
    MutableOperandRange operands =
        isa<FenceOp>(op) ? cast<FenceOp>(op).getEventsMutable() : cast<LaneOpInterface>(op).getWaitsMutable();
    for (size_t operand = waits.isKept.size(); operand-- > 0;)
      if (!waits.isKept[operand]) {
        operands.erase(operand);
        ++count;
      }
  }
  return count;
}

namespace {
struct ElideWaits : mlir::plateau::sched::impl::SchedElideWaitsBase<ElideWaits> {
  void runOnOperation() override {
    Timeline::Options options;
    options.prefix = true;
    FailureOr<Timeline> timeline = Timeline::get(getOperation(), options);
    if (failed(timeline))
      return signalPassFailure();
    Elision elision(*timeline);
    elision.run();
    elidedCount += elision.apply();
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Happens-before, against reachability in the graph of its rules.
//===----------------------------------------------------------------------===//

#include "plateau/Analysis/Order.h"
#include "SchedTest.h"
#include <random>

using namespace mlir;
using namespace mlir::plateau::sched;

namespace {
/// Points in time: issue, start and end of each node. One of the host is its own issue, start and end.
std::vector<std::vector<bool>> getReach(const Timeline &line) {
  size_t count = line.nodes.size();
  std::vector<std::vector<bool>> reach(3 * count, std::vector<bool>(3 * count));
  auto add = [&](size_t from, size_t to) { reach[from][to] = true; };
  for (size_t node = 0; node < count; ++node) {
    add(3 * node, 3 * node + 1);
    add(3 * node + 1, 3 * node + 2);
    bool isReturn = isa<ReturnOp>(line.nodes[node].op);
    for (size_t before = 0; before < node; ++before) {
      bool isHost = !line.nodes[before].lane;
      add(isHost ? 3 * before + 2 : 3 * before, 3 * node); // The host goes on once a fence is passed.
      if ((line.nodes[node].lane && line.nodes[before].lane == line.nodes[node].lane) || isReturn)
        add(3 * before + 2, 3 * node + 1);
    }
    for (int64_t wait : line.nodes[node].waits)
      add(3 * wait + 2, 3 * node + 1);
  }
  for (size_t k = 0; k < 3 * count; ++k)
    for (size_t i = 0; i < 3 * count; ++i)
      if (reach[i][k])
        for (size_t j = 0; j < 3 * count; ++j)
          if (reach[k][j])
            reach[i][j] = true;
  return reach;
}

class OrderTest : public SchedTest {};

TEST_F(OrderTest, IsReachability) {
  // Any op of each kind will do: Order looks at lanes and waits.
  ProgramOp program = parse(R"(
    %e = sched.launch "f"([]) on compute tag #t
    sched.fence %e
    sched.return)");
  auto ops = llvm::map_to_vector(program.getBody().front(), [](Operation &op) { return &op; });
  Operation *launch = ops[4], *fence = ops[5], *ret = ops[6];
  std::mt19937 random(1);
  auto below = [&](int64_t bound) { return static_cast<int64_t>(random() % bound); };
  for (int round = 0; round < 500; ++round) {
    Timeline line;
    int64_t count = 2 + below(14);
    for (int64_t index = 0; index < count; ++index) {
      Node node;
      bool isLast = index == count - 1, isFence = !isLast && index > 0 && below(6) == 0;
      node.op = isLast ? ret : isFence ? fence : launch;
      if (node.op == launch)
        node.lane = static_cast<Lane>(below(4));
      for (int64_t waits = isLast ? 0 : isFence ? 1 + below(2) : below(3); waits > 0 && index > 0; --waits)
        if (int64_t wait = below(index); line.nodes[wait].lane)
          node.waits.push_back(wait);
      line.nodes.push_back(std::move(node));
    }
    std::vector<std::vector<bool>> reach = getReach(line);
    Order order(line);
    for (int64_t a = 0; a < count; ++a)
      for (int64_t b = 0; b < count; ++b) {
        EXPECT_EQ(order.isBefore(a, b), a != b && reach[3 * a + 2][3 * b + 1]) << round << ": " << a << ", " << b;
        EXPECT_EQ(order.isBeforeIssue(a, b), a != b && reach[3 * a + 2][3 * b]) << round << ": " << a << ", " << b;
      }
  }
}
} // namespace

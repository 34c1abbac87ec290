//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Planning/ArenaProblem.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cassert>
#include <string>

using namespace mlir::plateau::planning;

static void join(Clock &clock, const Clock &other) {
  for (unsigned lane = 0; lane < maxLanes; ++lane)
    clock[lane] = std::max(clock[lane], other[lane]);
}

int32_t ArenaProblem::addCall(unsigned lane, llvm::ArrayRef<int32_t> waits) {
  assert(lane < byLane.size() && "no such lane");
  Call call;
  call.lane = lane;
  call.position = byLane[lane].size();
  call.done = floor;
  if (!byLane[lane].empty())
    join(call.done, calls[byLane[lane].back()].done);
  call.done[lane] = call.position;
  for (int32_t wait : waits) {
    const Call &before = calls[wait];
    join(call.done, before.done);
    call.done[before.lane] = std::max(call.done[before.lane], before.position + 1);
  }
  byLane[lane].push_back(calls.size());
  calls.push_back(call);
  return calls.size() - 1;
}

void ArenaProblem::addFence(llvm::ArrayRef<int32_t> waits) {
  for (int32_t wait : waits) {
    const Call &before = calls[wait];
    join(floor, before.done);
    floor[before.lane] = std::max(floor[before.lane], before.position + 1);
  }
}

int32_t ArenaProblem::addBuffer(int64_t bytes, llvm::StringRef name) {
  sizes.push_back(llvm::alignTo(bytes, alignment));
  exactSizes.push_back(bytes);
  names.push_back(name.str());
  return sizes.size() - 1;
}

void ArenaProblem::addLife(int32_t buffer, llvm::ArrayRef<int32_t> accesses) {
  if (accesses.empty())
    return;
  Life life;
  life.buffer = buffer;
  life.begins.fill(std::numeric_limits<int32_t>::max());
  life.ends.fill(0);
  life.first = life.last = accesses.front();
  llvm::SmallVector<int32_t, maxLanes> firsts(byLane.size(), -1);
  for (int32_t access : accesses) {
    const Call &call = calls[access];
    life.ends[call.lane] = std::max(life.ends[call.lane], call.position + 1);
    life.first = std::min(life.first, access);
    life.last = std::max(life.last, access);
    int32_t &first = firsts[call.lane];
    if (first < 0 || call.position < calls[first].position)
      first = access;
  }
  for (int32_t first : firsts) {
    if (first < 0)
      continue;
    for (unsigned lane = 0; lane < maxLanes; ++lane)
      life.begins[lane] = std::min(life.begins[lane], calls[first].done[lane]);
    if (llvm::none_of(firsts, [&](int32_t other) { return other >= 0 && isBefore(other, first); }))
      life.starts.push_back(first);
  }
  lives.push_back(std::move(life));
}

/// Two lives without an order have spans [first, release] that overlap: the later one's first call does not come after
/// the earlier one, so it is at most the last call that does not.
template <typename Fn>
void ArenaProblem::forEachOverlap(Fn visit) const {
  std::vector<int32_t> order(lives.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  llvm::sort(order, [&](int32_t a, int32_t b) {
    return std::pair(lives[a].first, a) < std::pair(lives[b].first, b); // One order on every machine.
  });
  std::vector<int32_t> open;
  for (int32_t index : order) {
    const Life &life = lives[index];
    size_t kept = 0;
    for (int32_t other : open) {
      if (lives[other].release < life.first)
        continue;
      open[kept++] = other;
      if (lives[other].buffer != life.buffer && !isBefore(lives[other], life) && !isBefore(life, lives[other]))
        visit(lives[other].buffer, life.buffer);
    }
    open.resize(kept);
    open.push_back(index);
  }
}

void ArenaProblem::finalize() {
  constexpr int64_t mostListed = int64_t(1) << 26; // 512 MiB.
  int64_t numBuffers = sizes.size();
  firsts.assign(numBuffers, std::numeric_limits<int32_t>::max());
  releases.assign(numBuffers, -1);
  for (Life &life : lives) {
    // Calls of a lane come after the life from some position on.
    life.until.fill(0);
    life.release = life.last;
    for (unsigned lane = 0; lane < byLane.size(); ++lane) {
      auto after = std::partition_point(byLane[lane].begin(), byLane[lane].end(),
                                        [&](int32_t call) { return !isAtMost(life.ends, calls[call].done); });
      life.until[lane] = after - byLane[lane].begin();
      if (after != byLane[lane].begin())
        life.release = std::max(life.release, *std::prev(after));
    }
    firsts[life.buffer] = std::min(firsts[life.buffer], life.first);
    releases[life.buffer] = std::max(releases[life.buffer], life.release);
  }
  starts.assign(numBuffers + 1, 0);
  forEachOverlap([&](int32_t a, int32_t b) {
    ++starts[a + 1];
    ++starts[b + 1];
  });
  for (int64_t i = 0; i < numBuffers; ++i)
    starts[i + 1] += starts[i];
  isListed = starts.back() <= 2 * mostListed;
  if (!isListed)
    return;
  neighbours.resize(starts.back());
  std::vector<int64_t> ends(starts.begin(), std::prev(starts.end()));
  forEachOverlap([&](int32_t a, int32_t b) {
    neighbours[ends[a]++] = b;
    neighbours[ends[b]++] = a;
  });
  if (static_cast<int64_t>(lives.size()) <= numBuffers)
    return;
  // Buffers that meet in several lives.
  int64_t kept = 0;
  for (int64_t i = 0; i < numBuffers; ++i) {
    auto begin = neighbours.begin() + starts[i], end = neighbours.begin() + starts[i + 1];
    std::sort(begin, end);
    end = std::unique(begin, end);
    int64_t to = kept;
    kept = std::copy(begin, end, neighbours.begin() + kept) - neighbours.begin();
    starts[i] = to;
  }
  starts[numBuffers] = kept;
  neighbours.resize(kept);
}

void ArenaProblem::forEachConflict(int32_t buffer, llvm::function_ref<void(int32_t)> visit) const {
  if (isListed) {
    for (int64_t i = starts[buffer]; i < starts[buffer + 1]; ++i)
      visit(neighbours[i]);
    return;
  }
  // Rarely: nearly everything conflicts with everything.
  for (const Life &own : lives) {
    if (own.buffer != buffer)
      continue;
    for (const Life &other : lives)
      if (other.buffer != buffer && !isBefore(own, other) && !isBefore(other, own))
        visit(other.buffer);
  }
}

int64_t ArenaProblem::getTotalBytes() const {
  int64_t sum = 0;
  for (int64_t size : exactSizes)
    sum += size;
  return sum;
}

int64_t ArenaProblem::getArenaBytes(llvm::ArrayRef<int64_t> offsets) const {
  int64_t end = 0;
  for (auto [offset, size] : llvm::zip_equal(offsets, exactSizes))
    end = std::max(end, offset + size);
  return end;
}

std::string ArenaProblem::check(llvm::ArrayRef<int64_t> offsets) const {
  auto name = [&](int32_t buffer) { return "buffer " + std::to_string(buffer) + " '" + names[buffer] + "'"; };
  for (int32_t a = 0; a < getNumBuffers(); ++a)
    if (offsets[a] < 0 || offsets[a] % alignment != 0)
      return name(a) + " has offset " + std::to_string(offsets[a]);
  for (size_t i = 0; i < lives.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      int32_t a = lives[i].buffer, b = lives[j].buffer;
      if (a == b || offsets[a] >= offsets[b] + sizes[b] || offsets[b] >= offsets[a] + sizes[a])
        continue;
      if (!isBefore(lives[i], lives[j]) && !isBefore(lives[j], lives[i]))
        return name(a) + " and " + name(b) + " share bytes and have no order";
    }
  return {};
}

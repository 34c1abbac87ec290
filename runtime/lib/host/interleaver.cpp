//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "host/interleaver.h"
#include "common/context.h"

using namespace plateau::rt::host;

Interleaver::Interleaver(plr_context &context, uint64_t seed) : context(context), generator(seed) { drawPriorities(); }

void Interleaver::drawPriorities() {
  for (uint64_t &priority : priorities)
    priority = generator();
}

// Lanes that keep up, that fall behind a little, or that run only when somebody waits for them.
void Interleaver::drawBacklog() {
  const int64_t choices[] = {0, static_cast<int64_t>(1 + draw(4)), static_cast<int64_t>(1 + draw(40)), unlimited};
  mostBacklog = choices[draw(4)];
  pushesUntilDraw = 1 + draw(uint64_t(1) << draw(8));
}

int64_t Interleaver::countBacklog() const {
  int64_t count = 0;
  for (const std::unique_ptr<plr_lane> &lane : context.lanes)
    count += lane->countPending();
  return count;
}

void Interleaver::afterPush() {
  if (pushesUntilDraw == 0)
    drawBacklog();
  --pushesUntilDraw;
  while (mostBacklog != unlimited && countBacklog() > mostBacklog && runOne())
    ;
}

// Now and then any lane that can run; else the first by priorities that hold for a while, so that a lane may get far
// ahead of the others.
bool Interleaver::runOne() {
  std::array<plr_lane *, PLR_LANES> ready;
  size_t count = 0;
  for (const std::unique_ptr<plr_lane> &lane : context.lanes)
    if (lane->isReady())
      ready[count++] = lane.get();
  if (count == 0)
    return false;
  plr_lane *chosen = ready[draw(count)];
  if (draw(4) != 0)
    for (size_t i = 0; i < count; ++i)
      if (priorities[ready[i]->kind] > priorities[chosen->kind])
        chosen = ready[i];
  if (draw(8) == 0)
    drawPriorities();
  chosen->runOne();
  return true;
}

uint64_t Interleaver::getReturns() {
  std::lock_guard<std::mutex> lock(mutex);
  return returns;
}

void Interleaver::noteReturn() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ++returns;
  }
  returned.notify_all();
}

void Interleaver::waitForReturn(uint64_t known) {
  std::unique_lock<std::mutex> lock(mutex);
  returned.wait(lock, [&] { return returns != known; });
}

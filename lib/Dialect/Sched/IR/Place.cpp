//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/Sched/IR/Place.h"

using namespace mlir;
using namespace mlir::plateau::sched;

bool Place::operator==(const Place &other) const {
  auto isSame = [](const Term &a, const Term &b) { return a.index == b.index && a.strideBytes == b.strideBytes; };
  return root == other.root && offsetBytes == other.offsetBytes && bytes == other.bytes && ring == other.ring &&
         ringIndex == other.ringIndex && terms.size() == other.terms.size() && llvm::equal(terms, other.terms, isSame);
}

/// The place one iteration of the loop earlier.
static Place stepBack(Place place, LoopOp loop) {
  Value counter = loop.getCounter();
  for (Place::Term &term : place.terms)
    if (term.index == counter)
      place.offsetBytes -= term.strideBytes;
  if (place.ringIndex == counter)
    --place.ring;
  return place;
}

namespace {
/// What carried values are known to lie at while their loop's yield is looked at.
using Carried = llvm::SmallDenseMap<Value, Place, 4>;
} // namespace

static FailureOr<Place> getPlace(Value value, Carried &carried, unsigned depth);

/// A carried value lies where its loop's init lies when the body updates it there; otherwise one place of a ring behind
/// the yielded value.
static FailureOr<Place> getCarriedPlace(BlockArgument argument, Carried &carried, unsigned depth) {
  if (auto known = carried.find(argument); known != carried.end())
    return known->second;
  auto loop = dyn_cast<LoopOp>(argument.getOwner()->getParentOp());
  if (!loop || argument.getArgNumber() == 0)
    return failure();
  unsigned index = argument.getArgNumber() - 1;
  // What stands in a loop is verified before the loop is.
  auto yield = dyn_cast<YieldOp>(loop.getBody().front().back());
  if (!yield || index >= yield.getValues().size() || index >= loop.getInits().size())
    return failure();
  Value yielded = yield.getValues()[index];
  FailureOr<Place> init = getPlace(loop.getInits()[index], carried, depth + 1);
  if (failed(init))
    return failure();
  carried[argument] = *init; // The yielded value may be an update of the carried one.
  FailureOr<Place> next = getPlace(yielded, carried, depth + 1);
  carried.erase(argument);
  if (failed(next))
    return failure();
  return stepBack(*next, loop);
}

static FailureOr<Place> getPlace(Value value, Carried &carried, unsigned depth) {
  constexpr unsigned deepest = 4096; // No program nests or carries so deep; a cycle would.
  if (depth > deepest)
    return failure();
  if (auto argument = dyn_cast<BlockArgument>(value))
    return getCarriedPlace(argument, carried, depth);
  Operation *op = value.getDefiningOp();
  if (isa<SlotOp, BufferOp, ConstantOp, TableOp>(op)) {
    Place place;
    place.root = value;
    place.bytes = getBytes(value.getType());
    return place;
  }
  if (auto view = dyn_cast<ViewOp>(op)) {
    FailureOr<Place> place = getPlace(view.getSource(), carried, depth + 1);
    if (failed(place))
      return failure();
    place->offsetBytes += view.getOffset();
    place->bytes = getBytes(view.getType());
    if (view.getStride() != 0)
      place->terms.push_back({view.getIndex(), static_cast<int64_t>(view.getStride())});
    if (std::optional<int64_t> ring = view.getRing()) {
      place->ring = *ring;
      place->ringIndex = view.getIndex();
    }
    return place;
  }
  if (auto join = dyn_cast<JoinOp>(op))
    return getPlace(join.getPlace(), carried, depth + 1);
  if (auto update = dyn_cast<UpdateOp>(op))
    return getPlace(update.getSource(), carried, depth + 1);
  if (auto lane = dyn_cast<LaneOpInterface>(op)) {
    unsigned index = cast<OpResult>(value).getResultNumber();
    return index == 0 ? FailureOr<Place>() : getPlace(lane.getWrites()[index - 1], carried, depth + 1);
  }
  if (auto loop = dyn_cast<LoopOp>(op)) {
    unsigned index = cast<OpResult>(value).getResultNumber();
    if (loop.getTripCount() == 0)
      return getPlace(loop.getInits()[index], carried, depth + 1);
    FailureOr<Place> place = getCarriedPlace(loop.getCarried()[index], carried, depth + 1);
    if (failed(place))
      return failure();
    // The place that an iteration after the last one would find.
    for (Place::Term &term : place->terms)
      if (term.index == loop.getCounter())
        place->offsetBytes += term.strideBytes * loop.getTo();
    llvm::erase_if(place->terms, [&](const Place::Term &term) { return term.index == loop.getCounter(); });
    if (place->ringIndex == loop.getCounter()) {
      place->ring += loop.getTo();
      place->ringIndex = {};
    }
    return place;
  }
  return failure();
}

FailureOr<Place> Place::get(Value value) {
  Carried carried;
  FailureOr<Place> place = getPlace(value, carried, 0);
  if (failed(place))
    return failure();
  // Of the numbers that mean one place of a ring, the same one always.
  auto slot = place->root.getDefiningOp<SlotOp>();
  int64_t depth = slot ? slot.getRing() : 1;
  place->ring = ((place->ring % depth) + depth) % depth;
  return place;
}

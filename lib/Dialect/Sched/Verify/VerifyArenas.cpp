//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// AR1 ... AR4: slots lie in their arenas, and arenas hold nothing else.
//===----------------------------------------------------------------------===//

#include "plateau/Dialect/Sched/Verify/Checkers.h"
#include "plateau/Dialect/Sched/Verify/Passes.h"

using namespace mlir;
using namespace mlir::plateau::sched;

namespace mlir::plateau::sched {
#define GEN_PASS_DEF_SCHEDVERIFYARENAS
#include "plateau/Dialect/Sched/Verify/Passes.h.inc"
} // namespace mlir::plateau::sched

namespace {
struct Contents {
  ArenaOp arena;
  SlotOp last; ///< The one that ends highest.
  int64_t end = 0;
};

class ArenaCheck {
public:
  LogicalResult run(ProgramOp program) {
    for (ArenaOp arena : program.getOps<ArenaOp>())
      spaces[arena.getSpace()].arena = arena;
    program.walk([&](SlotOp slot) { check(slot); });
    bool areSlotsRight = !hasFaults;
    for (auto &[space, contents] : spaces)
      if (contents.arena && contents.arena.getBytes() && areSlotsRight)
        check(contents);
    if (hasFaults)
      (void)emitCount(program, "sched-verify-arenas", count, std::min(count, maxToldFaults));
    return success(!hasFaults);
  }

private:
  template <typename OpTy>
  std::optional<InFlightDiagnostic> fault(OpTy op) {
    hasFaults = true;
    if (++count > maxToldFaults)
      return std::nullopt;
    return op.emitError();
  }

  void check(SlotOp slot) {
    StringRef space = stringifySpace(slot.getSpace());
    std::optional<int64_t> offset = slot.getOffset();
    Contents &contents = spaces[slot.getSpace()];
    if (!offset) {
      if (auto diag = fault(slot))
        *diag << "AR1: the slot of " << slot.getTag().getOp() << ", " << slot.getBytes() << " bytes of " << space
              << " memory, has no offset";
      return;
    }
    int64_t end = *offset + slot.getBytes();
    if (!contents.arena || !contents.arena.getBytes()) {
      if (auto diag = fault(slot))
        *diag << "AR2: the slot of " << slot.getTag().getOp() << " has an offset, and the program has "
              << (contents.arena ? "no bytes for the " : "no ") << space << " arena";
      return;
    }
    int64_t bytes = *contents.arena.getBytes();
    if (end > bytes)
      if (auto diag = fault(slot)) {
        *diag << "AR3: the slot of " << slot.getTag().getOp() << " lies at bytes " << *offset << " ... " << end
              << " of the " << space << " arena, which has " << bytes;
        diag->attachNote(contents.arena.getLoc()) << "the arena";
      }
    if (end > contents.end) {
      contents.end = end;
      contents.last = slot;
    }
  }

  void check(Contents &contents) {
    int64_t bytes = *contents.arena.getBytes();
    if (bytes == contents.end)
      return;
    if (auto diag = fault(contents.arena)) {
      *diag << "AR4: the " << stringifySpace(contents.arena.getSpace()) << " arena has " << bytes
            << " bytes, and its slots end at " << contents.end;
      if (contents.last)
        diag->attachNote(contents.last.getLoc()) << "the slot that ends highest, of " << contents.last.getTag().getOp();
    }
  }

  std::map<Space, Contents> spaces;
  bool hasFaults = false;
  int64_t count = 0;
};
} // namespace

LogicalResult mlir::plateau::sched::verifyArenas(ProgramOp program) { return ArenaCheck().run(program); }

namespace {
struct VerifyArenas : plateau::sched::impl::SchedVerifyArenasBase<VerifyArenas> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(verifyArenas(getOperation())))
      return signalPassFailure();
    Timeline::Options options;
    options.prefix = true;
    if (hbmBytes >= 0 || hostBytes >= 0) {
      FailureOr<Timeline> timeline = Timeline::get(getOperation(), options);
      if (failed(timeline) || failed(verifyBudget(getOperation(), *timeline, hbmBytes, hostBytes)))
        return signalPassFailure();
    }
    markAllAnalysesPreserved();
  }
};
} // namespace

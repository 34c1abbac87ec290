//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// test-sched-mutate: every way to break a program must be refused.
//===----------------------------------------------------------------------===//

#include "Mutations.h"
#include "TestPasses.h"
#include "mlir/Pass/Pass.h"
#include "plateau/Dialect/Sched/Verify/Checkers.h"

using namespace mlir;
using namespace mlir::plateau::sched;
using namespace mlir::plateau::sched::test;

namespace {
/// A timeline with its order, and what the checkers find in it.
struct Judged {
  Timeline timeline;
  Order order;
  std::vector<FaultList> faults;

  explicit Judged(Timeline line)
      : timeline(std::move(line)), order(timeline),
        faults({findHazards(timeline, order), findWrongValues(timeline), findUnfencedTables(timeline, order),
                findUnorderedCollectives(timeline, order)}) {}

  bool isAccepted() const {
    return llvm::all_of(faults, [](const FaultList &list) { return list.empty(); });
  }
  /// Whether a fault is told with a pair for which `isPair` holds.
  template <typename Predicate>
  bool namesPair(Predicate isPair) const {
    for (const FaultList &list : faults)
      for (const Fault &fault : list.get())
        for (const Access &other : fault.others)
          if (isPair(fault.access, other))
            return true;
    return false;
  }
};

class TestMutate : public PassWrapper<TestMutate, OperationPass<ProgramOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestMutate)
  TestMutate() = default;
  TestMutate(const TestMutate &other) : PassWrapper(other) {}

  StringRef getArgument() const final { return "test-sched-mutate"; }
  StringRef getDescription() const final {
    return "Break a program in every way of a class, and require that checkers refuse each and name a pair";
  }

  void runOnOperation() override {
    ProgramOp program = getOperation();
    if (mutationClass == "waits")
      run(getDroppedWaits(program), [&](const Mutation &mutation) { return judgeWait(mutation); });
    else if (mutationClass == "rings")
      run(getShrunkRings(program), [&](const Mutation &mutation) { return judgeRing(mutation); });
    else if (mutationClass == "slots")
      run(getMovedSlots(program, apply < 0 ? most : 0, total),
          [&](const Mutation &mutation) { return judgeSlot(mutation); });
    else if (mutationClass == "neighbours")
      run(getLoweredSlots(program, *Timeline::get(program, {})),
          [&](const Mutation &mutation) { return judgeSlot(mutation); });
    else if (mutationClass == "collectives")
      run(getSwappedCollectives(program, numImpossible), [&](const Mutation &mutation) { return judgeSwap(mutation); });
    else
      fail(program.emitError() << "class is '" << mutationClass
                               << "': it must be waits, rings, slots, neighbours or collectives");
  }

private:
  enum Verdict { Rejected, Harmless, Survived };

  template <typename Judge>
  void run(std::vector<Mutation> mutations, Judge judge) {
    if (apply >= 0) {
      if (apply >= static_cast<int64_t>(mutations.size()))
        return fail(getOperation().emitError() << "has " << mutations.size() << " " << mutationClass);
      mutations[apply].apply();
      return;
    }
    if (mutationClass != "collectives") {
      std::optional<Judged> judged = judgeProgram();
      if (!judged || !judged->isAccepted())
        return fail(getOperation().emitError("is refused before it is broken"));
      original = std::move(judged);
    }
    int64_t count = mutations.size(), step = most > 0 ? std::max<int64_t>((count + most - 1) / most, 1) : 1;
    total = std::max(total, count);
    int64_t numTried = 0, numRejected = 0, numHarmless = 0;
    for (int64_t index = 0; index < count; index += step) {
      Mutation &mutation = mutations[index];
      mutation.apply();
      Verdict verdict = judge(mutation);
      mutation.undo();
      ++numTried;
      numRejected += verdict == Rejected;
      numHarmless += verdict == Harmless;
    }
    InFlightDiagnostic remark = getOperation().emitRemark()
                                << mutationClass << " " << numRejected << "/" << numTried - numHarmless << " rejected";
    if (numTried < total)
      remark << ", of " << total;
    if (mutationClass == "waits")
      remark << ", " << numHarmless << " implied";
    else if (mutationClass == "collectives")
      remark << ", " << numImpossible << " depend on their neighbour";
    else
      remark << ", " << numHarmless << " harmless";
  }

  std::optional<Judged> judgeProgram() {
    Timeline::Options options;
    options.prefix = !unrollLoops;
    FailureOr<Timeline> timeline = Timeline::get(getOperation(), options);
    return failed(timeline) ? std::nullopt : std::optional<Judged>(std::in_place, std::move(*timeline));
  }

  void fail(const InFlightDiagnostic &) { signalPassFailure(); }

  Verdict survive(const Mutation &mutation, StringRef why) {
    InFlightDiagnostic diag = mutation.first->emitError() << mutation.text << " of " << mutationClass << ": " << why;
    if (mutation.second)
      diag.attachNote(mutation.second->getLoc()) << "with this one";
    fail(diag);
    return Survived;
  }

  Verdict judgeWait(const Mutation &mutation) {
    Judged judged = *judgeProgram();
    if (judged.isAccepted()) {
      for (int64_t node = 0; node < static_cast<int64_t>(judged.timeline.nodes.size()); ++node)
        if (judged.order.getClock(node) != original->order.getClock(node) ||
            judged.order.getIssueClock(node) != original->order.getIssueClock(node))
          return survive(mutation, "orders calls that nothing needs in order");
      return Harmless;
    }
    // Nodes have the same numbers, since waits make none.
    auto isPair = [&](const Access &access, const Access &other) {
      auto lost = [&](auto isBefore) { return isBefore(original->order) && !isBefore(judged.order); };
      return lost([&](const Order &order) { return order.isBefore(other.node, access.node); }) ||
             lost([&](const Order &order) { return order.isBeforeIssue(other.node, access.node); });
    };
    return judged.namesPair(isPair) ? Rejected : survive(mutation, "the fault names no pair that lost its order");
  }

  Verdict judgeBytes(const Mutation &mutation, SlotOp slot, bool isOther) {
    Judged judged = *judgeProgram();
    bool wrong = isWrong(judged.timeline, judged.order, slot);
    if (wrong == judged.isAccepted())
      return survive(mutation, wrong ? "is accepted, and two accesses clash" : "is refused, and no two accesses clash");
    if (!wrong)
      return Harmless;
    auto isPair = [&](const Access &access, const Access &other) {
      Value root = slot.getResult();
      return (access.range.root == root || other.range.root == root) &&
             (access.range.root != other.range.root) == isOther;
    };
    return judged.namesPair(isPair) ? Rejected : survive(mutation, "the fault does not name the slot");
  }

  Verdict judgeRing(const Mutation &mutation) {
    return judgeBytes(mutation, cast<SlotOp>(mutation.first), /*isOther=*/false);
  }
  Verdict judgeSlot(const Mutation &mutation) {
    return judgeBytes(mutation, cast<SlotOp>(mutation.first), /*isOther=*/true);
  }

  /// One rank runs the swapped program, the others run the original.
  Verdict judgeSwap(const Mutation &mutation) {
    llvm::SmallPtrSet<Operation *, 2> named;
    std::optional<Judged> judged = judgeProgram();
    LogicalResult verdict = success();
    {
      llvm::SmallVector<Location> places;
      ScopedDiagnosticHandler handler(&getContext(), [&](Diagnostic &diag) {
        places.push_back(diag.getLocation());
        for (Diagnostic &note : diag.getNotes())
          places.push_back(note.getLocation());
      });
      verdict = verifyCollectives(getOperation(), judged->timeline, judged->order);
      for (Operation *op : {mutation.first, mutation.second})
        if (llvm::is_contained(places, op->getLoc()))
          named.insert(op);
    }
    if (succeeded(verdict))
      return survive(mutation, "are accepted in the other order");
    return named.size() == 2 ? Rejected : survive(mutation, "the fault does not name both");
  }

  Option<std::string> mutationClass{*this, "class", llvm::cl::desc("waits, rings, slots, neighbours or collectives")};
  Option<int64_t> apply{*this, "apply", llvm::cl::init(-1),
                        llvm::cl::desc("break the program in this one way, and leave it broken")};
  Option<int64_t> most{*this, "most", llvm::cl::init(0),
                       llvm::cl::desc("try about this many, evenly spread; 0 is all")};
  Option<bool> unrollLoops{*this, "unroll-loops", llvm::cl::init(false), llvm::cl::desc("as for sched-verify")};

  std::optional<Judged> original;
  int64_t numImpossible = 0, total = 0;
};
} // namespace

void mlir::plateau::registerSchedTestPasses() { PassRegistration<TestMutate>(); }

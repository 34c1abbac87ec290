//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Calls on lanes.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_SCHED_IR_LANEOPS_TD
#define PLATEAU_DIALECT_SCHED_IR_LANEOPS_TD

include "plateau/Dialect/Sched/IR/ControlOps.td"
include "plateau/Dialect/Sched/IR/LaneOpInterface.td"

class Sched_LaneOp_<string mnemonic, dag extra, string head, list<Trait> traits = []>
    : Sched_Op<mnemonic, !listconcat(traits, [AttrSizedOperandSegments, InferTypeOpAdaptor, LaneOpInterface])> {
  let arguments = !con(extra, (ins Sched_Lane:$lane, OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$stage,
                       Variadic<Sched_EventType>:$waits, Variadic<Sched_Memory>:$reads, Variadic<Sched_Memory>:$tables,
                       Variadic<Sched_Memory>:$writes, Sched_TagAttr:$tag));
  let results = (outs Sched_EventType:$event, Variadic<Sched_Memory>:$values);
  let assemblyFormat = head # [{
    `on` $lane (`stage` $stage^)? (`waits` `(` $waits^ `)`)? (`reads` `(` $reads^ `:` type($reads) `)`)?
    (`tables` `(` $tables^ `:` type($tables) `)`)? (`writes` `(` $writes^ `:` type($writes) `)`)? `tag` $tag attr-dict
  }];
  let extraClassDeclaration = [{ ::std::optional<int64_t> getStageNumber() { return getStage(); } }];
  let hasVerifier = 1;
}

def Sched_LaunchOp : Sched_LaneOp_<"launch", (ins StrAttr:$callee, ArrayAttr:$args), "$callee `(` $args `)`"> {
  let summary = "A call of the runtime that computes";
  let description = [{
    `callee` is a function of the C ABI; its lane and tag come first and are left out. The other arguments are numbers, or say whose address is
    meant.

    **Constraints** C1: arguments name operands that exist. C2: what is written is a place that may be written: a slot, or a writable buffer. C3: a
    place that is written overlaps nothing else that is read or written, unless it is the very place of the value read (an update in place).
    C4: tables are tables, or values of slots of the host space.

    Example:
    ```mlir
    %e, %v = sched.launch "plr_zero"([#sched.write<0>, 16 : i64]) on compute writes(%s : memref<4xf32>) tag #sched.tag<"linalg.fill", dense, forward>
    ```
  }];
}

def Sched_CopyOp : Sched_LaneOp_<"copy", (ins), ""> {
  let summary = "Bytes of a value to a place of the same size";
  let description = [{
    **Constraints** C2 and C3 of `sched.launch`. K1: one value is read, one place of as many bytes written, no table.

    Example: `%e, %v = sched.copy on h2d reads(%a : memref<4xf32>) writes(%s : memref<4xf32>) tag #sched.tag<"copy", staging, forward>`
  }];
}

def Sched_CollectiveOp : Sched_LaneOp_<"collective",
    (ins StrAttr:$callee, ArrayAttr:$args, FlatSymbolRefAttr:$grid, DenseI64ArrayAttr:$axes,
         ConfinedAttr<I64Attr, [IntNonNegative]>:$ordinal),
    "$callee `(` $args `)` `over` $grid `axes` $axes `number` $ordinal",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A call in which the ranks of a group take part";
  let description = [{
    The group of a rank are those that differ from it along `axes` of the grid alone. All ranks issue their collectives in one order,
    which `ordinal` records: the conversion numbers them, and only a pass that means to copy or reorder them numbers them again. The event
    means: what this rank sends may be overwritten, and what it receives is complete.

    **Constraints** those of `sched.launch`. G1: the grid exists, has as many ranks as the program, and the axes.

    Example:
    ```mlir
    %e, %v = sched.collective "plr_all_reduce"([#sched.group, 0 : i32, 4 : i64, #sched.read<0>, #sched.write<0>]) over @world axes [0] number 0 on comm
      reads(%g : memref<4xf32>) writes(%s : memref<4xf32>) tag #sched.tag<"shard.all_reduce", gradients, backward>
    ```
  }];
}

#endif // PLATEAU_DIALECT_SCHED_IR_LANEOPS_TD

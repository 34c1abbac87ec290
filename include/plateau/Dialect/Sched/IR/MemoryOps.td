//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Places in memory, and parts of places and values.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_SCHED_IR_MEMORYOPS_TD
#define PLATEAU_DIALECT_SCHED_IR_MEMORYOPS_TD

include "plateau/Dialect/Sched/IR/SchedAttrs.td"

class Sched_Op<string mnemonic, list<Trait> traits = []> : Op<Sched_Dialect, mnemonic, traits>;
def Sched_Memory : StaticShapeMemRefOf<[AnySignlessInteger, AnyFloat]>;

def Sched_ArenaOp : Sched_Op<"arena", [HasParent<"ProgramOp">]> {
  let summary = "The memory that the slots of a space lie in";
  let description = [{
    One for each space that has slots. `bytes` is there once the slots have their offsets (`sched-plan-arenas`), with what no
    arena for them can be smaller than, as far as the planner knows.

    **Constraints** A1: at most one arena for each space. A2: `bytes` and `lower_bound` are not negative.

    Example: `sched.arena device bytes(4096) lower_bound(4032)`
  }];
  let arguments = (ins Sched_Space:$space, OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$bytes,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$lowerBound);
  let assemblyFormat = "$space (`bytes` `(` $bytes^ `)`)? (`lower_bound` `(` $lowerBound^ `)`)? attr-dict";
}

def Sched_BufferOp : Sched_Op<"buffer", [Pure, HasParent<"ProgramOp">]> {
  let summary = "Memory that outlives the step: argument or result `number` of the entry";
  let description = [{
    Read directly it stands for what it held before the program. Only a `writable` buffer may be written: a result, or an argument
    that is donated.

    **Constraints** B1: the memref is static and contiguous. B2: the number is at most 2^31 - 1, and used once.

    Example: `%p = sched.buffer 3 writable in device tag #sched.tag<"argument parameters", parameters, forward> : memref<64xf32>`
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative, IntMaxValue<2147483647>]>:$number, UnitAttr:$writable, Sched_Space:$space, Sched_TagAttr:$tag);
  let results = (outs Sched_Memory:$result);
  let assemblyFormat = "$number (`writable` $writable^)? `in` $space `tag` $tag attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Sched_ConstantOp : Sched_Op<"constant", [Pure]> {
  let summary = "Numbers that are part of the program";
  let description = [{
    Never written. It lies in no arena.

    Example: `%c = sched.constant dense<1.0> : tensor<4xf32> as memref<4xf32>`
  }];
  let arguments = (ins ElementsAttr:$elements);
  let results = (outs Sched_Memory:$result);
  let assemblyFormat = "$elements `as` type($result) attr-dict";
  let hasVerifier = 1;
}

def Sched_TableOp : Sched_Op<"table", [Pure]> {
  let summary = "Sizes and offsets of each iteration of a loop, known before launch";
  let description = [{
    Row i belongs to iteration i. Calls take cells of it as numbers (`#sched.cell`). A table that is known only when the step runs is a
    slot of the host space, filled by a launch, and read after a fence.

    **Constraints** T1: the elements are i64, in rows and columns.

    Example: `%t = sched.table dense<[[128, 0], [96, 128]]> : tensor<2x2xi64> as memref<2x2xi64>`
  }];
  let arguments = (ins I64ElementsAttr:$elements);
  let results = (outs Sched_Memory:$result);
  let assemblyFormat = "$elements `as` type($result) attr-dict";
  let hasVerifier = 1;
}

def Sched_SlotOp : Sched_Op<"slot"> {
  let summary = "A place in the arena of a space";
  let description = [{
    `ring` places of the memref's size, one behind the other, each rounded up to 64 bytes but the last (ring · size when it is a
    multiple of 64). `offset`, in bytes from the arena's start, a multiple of 64, is there once it is planned. A slot in a loop's body is one
    place that all iterations use.

    `scratch`: only one call uses it, and could take it from a pool as well, where there is one.

    `rows` names the plan whose rows the data have: the slot has the most that any routing gives, the data fill a part of it.

    **Constraints** S1: the memref is static and contiguous. S2: ring is at least 1. S3: the offset is a multiple of 64, not negative, and the
    end fits 63 bits.

    Example: `%s = sched.slot in device ring 2 offset 4096 tag #sched.tag<"moe.dispatch", dispatch, forward, layer = 0> : memref<64x32xf32>`
  }];
  let arguments = (ins Optional<Sched_Memory>:$rows, Sched_Space:$space,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "1">:$ring,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$offset, UnitAttr:$scratch, Sched_TagAttr:$tag);
  let results = (outs Sched_Memory:$result);
  let assemblyFormat = [{
    `in` $space (`scratch` $scratch^)? (`ring` $ring^)? (`offset` $offset^)? (`rows` `(` $rows^ `:` type($rows) `)`)? `tag` $tag attr-dict `:` type($result)
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "Space":$space, "TagAttr":$tag, CArg<"::mlir::Value", "{}">:$rows)>];
  let extraClassDeclaration = [{
    /// From one place of the ring to the next.
    int64_t getStrideBytes();
    /// Of the whole ring.
    int64_t getBytes();
  }];
  let hasVerifier = 1;
}

def Sched_ViewOp : Sched_Op<"view", [Pure]> {
  let summary = "A part of a place or of a value";
  let description = [{
    The bytes from `offset` on. In a loop the offset grows by `stride` with each step of `index`. Of a slot with a ring it is one place:
    number (index + `ring`) mod D, or `ring` mod D without an index.

    **Constraints** V1: the part is static and contiguous, and lies inside the source, for every iteration. V2: a slot of a ring larger than 1 is only used through a view that
    says which place; `ring` is given for slots alone. V3: the index is the counter of a loop around the op; stride or ring is given
    with it.

    Example: `%v = sched.view %s[1024] ring(%i, 1) : memref<4x1024xf32> to memref<1024xf32>`
  }];
  let arguments = (ins Sched_Memory:$source, Optional<Index>:$index, DefaultValuedAttr<I64Attr, "0">:$offset,
                       DefaultValuedAttr<I64Attr, "0">:$stride, OptionalAttr<I64Attr>:$ring);
  let results = (outs Sched_Memory:$result);
  let assemblyFormat = [{
    $source `[` $offset `]` (`index` `(` $index^ `)`)? (`stride` `(` $stride^ `)`)? (`ring` `(` $ring^ `)`)? attr-dict `:` type($source) `to` type($result)
  }];
  let hasVerifier = 1;
}

def Sched_JoinOp : Sched_Op<"join", [Pure, AllTypesMatch<["place", "result"]>]> {
  let summary = "A value with many writers: what lies at a place once its parts are written";
  let description = [{
    No call. Each part lies inside the place; no two overlap; a byte of the place that no part covers may hold anything.

    **Constraints** J1: each part lies inside the place, at the same distance in every iteration. J2: no two parts overlap.

    Example: `%g = sched.join %grads from(%g0, %g1 : memref<8xf32>, memref<4xf32>) : memref<16xf32>`
  }];
  let arguments = (ins Sched_Memory:$place, Variadic<Sched_Memory>:$parts);
  let results = (outs Sched_Memory:$result);
  let assemblyFormat = "$place `from` `(` $parts `:` type($parts) `)` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Sched_UpdateOp : Sched_Op<"update", [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "A value of which a part was written again";
  let description = [{
    No call. The bytes of `part` are what its writer left there, all others what `source` holds. In a loop the part may move with the counter.

    **Constraints** U1: source and part lie in one slot or buffer, at one place of a ring. U2: the part lies inside the source, in every
    iteration (said by what follows the program call by call).

    Example: `%acc2 = sched.update %acc1 with %rows : memref<64x8xf32>, memref<16x8xf32>`
  }];
  let arguments = (ins Sched_Memory:$source, Sched_Memory:$part);
  let results = (outs Sched_Memory:$result);
  let assemblyFormat = "$source `with` $part attr-dict `:` type($source) `,` type($part)";
  let hasVerifier = 1;
}

#endif // PLATEAU_DIALECT_SCHED_IR_MEMORYOPS_TD

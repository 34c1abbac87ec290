//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Builds what an op becomes: at its place, in its phase and component, with collectives among the ranks along the last
// axis of its grid.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_TRANSFORMS_GROUPBUILDER_H
#define PLATEAU_DIALECT_MOE_TRANSFORMS_GROUPBUILDER_H

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "plateau/Dialect/MoE/IR/MoE.h"

namespace mlir::plateau::moe {

class GroupBuilder {
public:
  /// Builds before `op`. `grid` may be null: then the group is this rank alone, and collectives are left out.
  static FailureOr<GroupBuilder> get(Operation *op, FlatSymbolRefAttr grid, Phase phase, Component component);

  /// A location with this name, the scope of the op and its component.
  Location locate(StringRef name) const;
  OpBuilder &getBuilder() { return builder; }
  int64_t getRanks() const { return ranks; }

  /// The parts of all ranks, one after the other in dimension 0.
  Value gather(StringRef name, Value part);
  /// This rank's part, in dimension 0, of the sum over the ranks.
  Value scatterSum(StringRef name, Value whole);
  /// The first row of this rank's shard of `rows` rows, or 0 when the shard is all there is.
  Value getShardStart(StringRef name, int64_t rows);

  Value createZeros(StringRef name, RankedTensorType type);
  Value createZeros(StringRef name, ArrayRef<int64_t> shape) {
    return createZeros(name, RankedTensorType::get(shape, builder.getF32Type()));
  }
  /// `value` rounded to `element`; itself when it has that type.
  Value round(StringRef name, Value value, Type element);

private:
  GroupBuilder(Operation *op, FlatSymbolRefAttr grid, int64_t ranks, Phase phase, Component component);

  shard::GridAxesAttr getAxes();

  OpBuilder builder;
  FlatSymbolRefAttr grid;
  int64_t ranks, axis = 0;
  ScopeAttr scope;
};

} // namespace mlir::plateau::moe

#endif // PLATEAU_DIALECT_MOE_TRANSFORMS_GROUPBUILDER_H

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "plateau/Dialect/Sched/IR/Sched.h"
#include "plateau/runtime.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::plateau::sched;

#include "plateau/Dialect/Sched/IR/SchedDialect.cpp.inc"
#include "plateau/Dialect/Sched/IR/SchedEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "plateau/Dialect/Sched/IR/SchedAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "plateau/Dialect/Sched/IR/LaneOpInterface.cpp.inc"
#include "plateau/Dialect/Sched/IR/SchedTypes.cpp.inc"

static_assert(static_cast<int>(Lane::Compute) == PLR_COMPUTE && static_cast<int>(Lane::Comm) == PLR_COMM &&
                  static_cast<int>(Lane::H2D) == PLR_H2D && static_cast<int>(Lane::D2H) == PLR_D2H &&
                  static_cast<int>(Lane::Host) == PLR_HOST_LANE && static_cast<int>(Space::Device) == PLR_DEVICE &&
                  static_cast<int>(Space::Host) == PLR_HOST,
              "the dialect's lanes and spaces are the runtime's");

namespace {
/// Tags are long, and ops of one kind share them.
struct Aliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attribute, raw_ostream &os) const override {
    if (isa<TagAttr>(attribute)) {
      os << "tag";
      return AliasResult::OverridableAlias;
    }
    return AliasResult::NoAlias;
  }
};
} // namespace

void SchedDialect::initialize() {
  addInterfaces<Aliases>();
  addTypes<
#define GET_TYPEDEF_LIST
#include "plateau/Dialect/Sched/IR/SchedTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "plateau/Dialect/Sched/IR/SchedAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "plateau/Dialect/Sched/IR/SchedOps.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "plateau/Dialect/Sched/IR/SchedOps.cpp.inc"

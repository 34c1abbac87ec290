//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_MOEDIALECT_TD
#define PLATEAU_DIALECT_MOE_IR_MOEDIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "plateau/Interfaces/CollectiveOpInterface.td"
include "plateau/Interfaces/Component.td"
include "plateau/Interfaces/DifferentiableOpInterface.td"
include "plateau/Interfaces/FootprintOpInterface.td"
include "plateau/Interfaces/RoutedOpInterface.td"

def MoE_Dialect : Dialect {
  let name = "moe";
  let cppNamespace = "::mlir::plateau::moe";
  let summary = "WHAT a Mixture-of-Experts training step computes, on tensors";
  let description = [{
    The ops of a training step that upstream dialects lack, with value semantics. Matrix products and elementwise chains
    are upstream's `linalg.matmul`, `arith` and `math` on tensors; views are `tensor.expand_shape` and
    `tensor.collapse_shape`.

    Working types are f32 and bf16. Statistics, the loss and every accumulator are f32 whatever the working type.

    Where a value belongs (component, phase, layer) travels in locations: `loc(fused<#moe.scope<forward, attention,
    layer = 3>>["q_proj"])`. Locations survive the passes that drop discardable attributes, and memory is accounted, and
    errors are worded, by them.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::shard::ShardDialect"];
  let discardableAttrs = (ins
    "::mlir::plateau::moe::BatchAttr":$batch,
    "::mlir::plateau::moe::RoleAttr":$role,
    "::mlir::plateau::moe::LayoutAttr":$layout,
    "::mlir::plateau::moe::ParameterAttr":$parameter,
    "::mlir::StringAttr":$buffer,
    "::mlir::IntegerAttr":$donated
  );
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let hasConstantMaterializer = 0;
}

#endif // PLATEAU_DIALECT_MOE_IR_MOEDIALECT_TD

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// An op declares what its adjoint needs as data, and builds its adjoint from exactly that.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_INTERFACES_DIFFERENTIABLEOPINTERFACE_TD
#define PLATEAU_INTERFACES_DIFFERENTIABLEOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let description = [{
    An op that `moe-differentiate` can take backwards.

    The op names its residuals: the operands and results of its own that its adjoint reads. The driver saves them (or
    recomputes them, inside a checkpoint region) and hands them back in the same order; `buildAdjoint` may read nothing
    else of the forward pass. The driver refuses an adjoint that does, so saved and restored values cannot disagree.

    The interface stands outside the dialects: upstream ops join by external models.
  }];
  let cppNamespace = "::mlir::plateau";
  let methods = [
    InterfaceMethod<
      "The operands and results of this op that its adjoint reads, in the order in which buildAdjoint receives them.",
      "::llvm::SmallVector<::mlir::Value>", "getResiduals", (ins)>,
    InterfaceMethod<[{
        Builds the adjoint at the builder's insertion point. `residuals[i]` stands for `getResiduals()[i]`;
        `resultCotangents[i]` is the cotangent of result i, null when nothing depends on that result, and has the type
        of the result. Sets `operandCotangents[i]` (null on entry, one for each operand) for each operand that has a
        derivative, with the type of the operand.
      }],
      "::llvm::LogicalResult", "buildAdjoint",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc, "::mlir::ValueRange":$residuals,
           "::llvm::ArrayRef<::mlir::Value>":$resultCotangents,
           "::llvm::MutableArrayRef<::mlir::Value>":$operandCotangents)>
  ];
}

#endif // PLATEAU_INTERFACES_DIFFERENTIABLEOPINTERFACE_TD

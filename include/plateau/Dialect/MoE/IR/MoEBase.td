//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Types and base classes shared by the op families.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_MOEBASE_TD
#define PLATEAU_DIALECT_MOE_IR_MOEBASE_TD

include "plateau/Dialect/MoE/IR/MoEAttrs.td"

class MoE_Op<string mnemonic, list<Trait> traits = []> : Op<MoE_Dialect, mnemonic, traits>;

def MoE_Differentiable : DeclareOpInterfaceMethods<DifferentiableOpInterface>;
// Methods of Footprint that an op family fills in: the component always, the workspace where there is one.
def MoE_Footprint : DeclareOpInterfaceMethods<FootprintOpInterface>;
def MoE_FootprintWorkspace : DeclareOpInterfaceMethods<FootprintOpInterface, ["getWorkspaceBytes"]>;

// `summary` gives the shape alone: messages name the element types after it.
class MoE_Tensor<list<Type> elements, list<int> ranks, string summary>
    : RankedTensorOf<elements, [HasStaticShapePred, HasAnyRankOfPred<ranks>], summary>;

def MoE_Rows    : MoE_Tensor<[F32, BF16], [2], "static tensor [rows, columns]">;
def MoE_Heads   : MoE_Tensor<[F32, BF16], [3], "static tensor [rows, heads, head size]">;
def MoE_RowsOrHeads : MoE_Tensor<[F32, BF16], [2, 3], "static tensor [rows, columns] or [rows, heads, head size]">;
def MoE_Vector  : MoE_Tensor<[F32, BF16], [1], "static tensor [columns]">;
def MoE_Working : MoE_Tensor<[F32, BF16], [0, 1, 2, 3], "static tensor">;
def MoE_RowsF32 : MoE_Tensor<[F32], [2], "static tensor [rows, columns]">;
def MoE_Stats   : MoE_Tensor<[F32], [1, 2], "static tensor, one number a row,">;
def MoE_VectorF32 : MoE_Tensor<[F32], [1], "static tensor [elements]">;
def MoE_Ids     : MoE_Tensor<[I32], [1], "static tensor [rows]">;
def MoE_Scalar  : MoE_Tensor<[F32], [0], "tensor without dimensions">,
                  BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getF32Type())">;
def MoE_Counter : MoE_Tensor<[I32], [0], "tensor without dimensions">,
                  BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI32Type())">;

#endif // PLATEAU_DIALECT_MOE_IR_MOEBASE_TD

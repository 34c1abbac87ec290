//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Types and base classes shared by the op families.
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_MOE_IR_MOEBASE_TD
#define PLATEAU_DIALECT_MOE_IR_MOEBASE_TD

include "plateau/Dialect/MoE/IR/MoEAttrs.td"
include "plateau/Dialect/MoE/IR/MoETypes.td"
include "mlir/IR/SymbolInterfaces.td"

class MoE_Op<string mnemonic, list<Trait> traits = []> : Op<MoE_Dialect, mnemonic, traits>;

def MoE_Differentiable : DeclareOpInterfaceMethods<DifferentiableOpInterface>;
// Methods of Footprint that an op family fills in: the component always, the workspace where there is one.
def MoE_Footprint : DeclareOpInterfaceMethods<FootprintOpInterface>;
def MoE_FootprintWorkspace : DeclareOpInterfaceMethods<FootprintOpInterface, ["getWorkspaceBytes"]>;

def MoE_Collective : DeclareOpInterfaceMethods<CollectiveOpInterface>;
def MoE_OnRows : DeclareOpInterfaceMethods<RoutedOpInterface>;
// Results of such an op in a checkpoint region are kept for the backward pass, never computed again.
def MoE_SavedByCheckpoint : NativeOpTrait<"SavedByCheckpoint"> { let cppNamespace = "::mlir::plateau::moe"; }

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


// Rows that tokens send to experts: how many a rank has is known when the step runs. Row-wise ops take plain rows too.
class MoE_Routed<list<Type> elements, int rank, string summary>
    : RankedTensorOf<elements, [HasAnyRankOfPred<[rank]>,
        CPred<"!::llvm::is_contained(::llvm::cast<::mlir::RankedTensorType>($_self).getShape().drop_front(), ::mlir::ShapedType::kDynamic)">],
        summary>;
def MoE_RoutedRows   : MoE_Routed<[F32, BF16], 2, "tensor [rows, columns], the columns static,">;
def MoE_RoutedValues : MoE_Routed<[F32], 1, "tensor [rows]">;
def MoE_ExpertWeights : MoE_Tensor<[F32, BF16], [3], "static tensor [experts of a rank, out, in] or [experts of a rank, in, out]">;
def MoE_Slots    : MoE_Tensor<[F32], [2], "static tensor [tokens, top k]">;
def MoE_SlotIds  : MoE_Tensor<[I32], [2], "static tensor [tokens, top k]">;
def MoE_Counts   : MoE_Tensor<[I32], [1], "static tensor [experts]">;
def MoE_SumOfSquares : MoE_Tensor<[F64], [0], "tensor without dimensions">,
                  BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getF64Type())">;

#endif // PLATEAU_DIALECT_MOE_IR_MOEBASE_TD

//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef PLATEAU_DIALECT_SCHED_IR_SCHEDATTRS_TD
#define PLATEAU_DIALECT_SCHED_IR_SCHEDATTRS_TD

include "plateau/Dialect/Sched/IR/SchedDialect.td"
include "plateau/Interfaces/Component.td"

class Sched_Attr<string name, string attrMnemonic> : AttrDef<Sched_Dialect, name> { let mnemonic = attrMnemonic; }

def Sched_TagAttr : Sched_Attr<"Tag", "tag"> {
  let summary = "who asks: the op, the component its memory counts under, phase and layer";
  let description = [{ Example: `#sched.tag<"linalg.matmul q_proj", attention, backward, layer = 3>` }];
  let parameters = (ins
    StringRefParameter<"name of the tensor-level op">:$op,
    EnumParameter<Plateau_Component>:$component,
    EnumParameter<Plateau_Phase>:$phase,
    OptionalParameter<"::std::optional<int64_t>">:$layer);
  let assemblyFormat = "`<` $op `,` $component `,` $phase (`,` `layer` `=` $layer^)? `>`";
}

// Arguments of a call. Integers and floats stand for themselves (i32, i64, f32, f64); an array of i64 is a pointer to constants, a
// symbol the address of a compiled kernel.
class Sched_Argument<string name, string attrMnemonic, string text> : Sched_Attr<name, attrMnemonic> { let summary = text; }

def Sched_ReadAttr : Sched_Argument<"Read", "read", "address of a value that the op reads"> {
  let parameters = (ins "int64_t":$index);
  let assemblyFormat = "`<` $index `>`";
}
def Sched_WriteAttr : Sched_Argument<"Write", "write", "address of a place that the op writes"> {
  let parameters = (ins "int64_t":$index);
  let assemblyFormat = "`<` $index `>`";
}
def Sched_TableAttr : Sched_Argument<"TableAddress", "table", "address of a table of the op"> {
  let parameters = (ins "int64_t":$index);
  let assemblyFormat = "`<` $index `>`";
}
def Sched_CellAttr : Sched_Argument<"Cell", "cell", "an i64 of a table: in row `row`, of a loop in row iteration + `row`"> {
  let parameters = (ins "int64_t":$table, "int64_t":$row, "int64_t":$column);
  let assemblyFormat = "`<` $table `,` $row `,` $column `>`";
}
def Sched_RowsAttr : Sched_Argument<"Rows", "rows", "the rows that a plan (a table) has in an iteration (a number or a cell; the only one without), an i64"> {
  let parameters = (ins "int64_t":$table, OptionalParameter<"::mlir::Attribute">:$iteration);
  let assemblyFormat = "`<` $table (`,` $iteration^)? `>`";
}
def Sched_BytesAttr : Sched_Argument<"Bytes", "bytes", "bytes of a place that the op writes, an i64; -1 when the call takes its scratch from a pool"> {
  let parameters = (ins "int64_t":$index);
  let assemblyFormat = "`<` $index `>`";
}
def Sched_NullAttr : Sched_Argument<"Null", "null", "a null pointer">;
def Sched_GroupArgumentAttr : Sched_Argument<"GroupArgument", "group", "the group of the collective">;
def Sched_GroupRankAttr : Sched_Argument<"GroupRank", "group_rank", "this rank's place in a group of a grid, an i64"> {
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$grid, "::mlir::DenseI64ArrayAttr":$axes);
  let assemblyFormat = "`<` $grid `,` $axes `>`";
}
def Sched_PointersAttr : Sched_Argument<"Pointers", "pointers", "address of an array of addresses"> {
  let parameters = (ins "::mlir::ArrayAttr":$elements);
  let assemblyFormat = "`<` $elements `>`";
}
def Sched_StructAttr : Sched_Argument<"Struct", "struct", "address of a constant struct"> {
  let parameters = (ins "::mlir::ArrayAttr":$fields);
  let assemblyFormat = "`<` $fields `>`";
}

#endif // PLATEAU_DIALECT_SCHED_IR_SCHEDATTRS_TD

// Compiled code on poisoned memory, three runs, against the interpreter in float64.
// RUN: plateau-run %s --entry f32 --compare 1e-6
// RUN: plateau-run %s --entry bf16 --compare 4e-3
// RUN: plateau-run %s --entry one_row --compare 1e-6
// RUN: plateau-run %s --entry no_rows --compare 0
// RUN: plateau-run %s --entry shard --compare 1e-6
// RUN: plateau-run %s --entry shard_bf16 --compare 1e-6
// RUN: not plateau-run %s --entry outside 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// RUN: not plateau-run %s --entry outside --interpret 2>&1 | FileCheck %s --check-prefix=OUTSIDE

func.func @f32(%table: tensor<37x19xf32>, %ids: tensor<64xi32> {plateau.below = 37 : i64}, %dy: tensor<64x19xf32>)
    -> (tensor<64x19xf32>, tensor<37x19xf32>) {
  %y = moe.embedding %table, %ids : (tensor<37x19xf32>, tensor<64xi32>) -> tensor<64x19xf32>
  %d = moe.embedding_grad %dy, %ids : (tensor<64x19xf32>, tensor<64xi32>) -> tensor<37x19xf32>
  return %y, %d : tensor<64x19xf32>, tensor<37x19xf32>
}

// Rounding once to bf16: half a unit in the last of 8 bits.
func.func @bf16(%table: tensor<37x19xbf16>, %ids: tensor<64xi32> {plateau.below = 37 : i64}, %dy: tensor<64x19xbf16>)
    -> (tensor<64x19xbf16>, tensor<37x19xbf16>) {
  %y = moe.embedding %table, %ids : (tensor<37x19xbf16>, tensor<64xi32>) -> tensor<64x19xbf16>
  %d = moe.embedding_grad %dy, %ids : (tensor<64x19xbf16>, tensor<64xi32>) -> tensor<37x19xbf16>
  return %y, %d : tensor<64x19xbf16>, tensor<37x19xbf16>
}

// Every other row of the table's gradient is exactly zero.
func.func @one_row(%ids: tensor<1xi32> {plateau.values = dense<2> : tensor<1xi32>}, %dy: tensor<1x5xf32>) -> tensor<4x5xf32> {
  %d = moe.embedding_grad %dy, %ids : (tensor<1x5xf32>, tensor<1xi32>) -> tensor<4x5xf32>
  return %d : tensor<4x5xf32>
}

func.func @no_rows(%ids: tensor<0xi32>, %dy: tensor<0x5xf32>) -> tensor<4x5xf32> {
  %d = moe.embedding_grad %dy, %ids : (tensor<0x5xf32>, tensor<0xi32>) -> tensor<4x5xf32>
  return %d : tensor<4x5xf32>
}

// Rows 11 to 29 of a table of 37: ids of other rows give zeros, and add nothing.
func.func @shard(%shard: tensor<19x7xf32>, %ids: tensor<64xi32> {plateau.below = 37 : i64}, %dy: tensor<64x7xf32>)
    -> (tensor<64x7xf32>, tensor<19x7xf32>) {
  %first = arith.constant dense<11> : tensor<i32>
  %y = moe.embedding_shard %shard, %ids first(%first) size(37) : (tensor<19x7xf32>, tensor<64xi32>, tensor<i32>) -> tensor<64x7xf32>
  %d = moe.embedding_shard_grad %dy, %ids first(%first) into %shard
    : (tensor<64x7xf32>, tensor<64xi32>, tensor<i32>, tensor<19x7xf32>) -> tensor<19x7xf32>
  return %y, %d : tensor<64x7xf32>, tensor<19x7xf32>
}

// Rows are moved, and sums are f32: nothing is rounded to bf16.
func.func @shard_bf16(%shard: tensor<19x7xbf16>, %sums: tensor<19x7xf32>, %ids: tensor<64xi32> {plateau.below = 37 : i64},
    %dy: tensor<64x7xbf16>) -> (tensor<64x7xbf16>, tensor<19x7xf32>) {
  %first = arith.constant dense<18> : tensor<i32>
  %y = moe.embedding_shard %shard, %ids first(%first) size(37) : (tensor<19x7xbf16>, tensor<64xi32>, tensor<i32>) -> tensor<64x7xbf16>
  %d = moe.embedding_shard_grad %dy, %ids first(%first) into %sums
    : (tensor<64x7xbf16>, tensor<64xi32>, tensor<i32>, tensor<19x7xf32>) -> tensor<19x7xf32>
  return %y, %d : tensor<64x7xbf16>, tensor<19x7xf32>
}

// OUTSIDE: row 1 has token id 37, but the table has 37 rows
func.func @outside(%shard: tensor<19x7xf32>, %ids: tensor<2xi32> {plateau.values = dense<[0, 37]> : tensor<2xi32>}) -> tensor<2x7xf32> {
  %first = arith.constant dense<19> : tensor<i32>
  %y = moe.embedding_shard %shard, %ids first(%first) size(37) : (tensor<19x7xf32>, tensor<2xi32>, tensor<i32>) -> tensor<2x7xf32>
  return %y : tensor<2x7xf32>
}

// RUN: plateau-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{ranks (1), tokens (8) and sequence (0) must be at least 1}}
func.func @batch_positive() attributes {moe.batch = #moe.batch<ranks = 1, tokens = 8, sequence = 0>} {
  return
}

// -----

// expected-error @+1 {{tokens (8) must be a multiple of sequence (3)}}
func.func @batch_multiple() attributes {moe.batch = #moe.batch<ranks = 1, tokens = 8, sequence = 3>} {
  return
}

// -----

// expected-error @+1 {{'func.func' op 'moe.batch' must be a #moe.batch on a function}}
func.func @batch_kind() attributes {moe.batch = 8 : i64} {
  return
}

// -----

// expected-error @+1 {{'builtin.module' op 'moe.batch' must be a #moe.batch on a function}}
module attributes {moe.batch = #moe.batch<ranks = 1, tokens = 8, sequence = 4>} {
}

// -----

// expected-error @+1 {{'func.func' op argument #1: labels must have 8 rows, the tokens of 'moe.batch'}}
func.func @batch_rows(%tokens: tensor<8xi32> {moe.role = #moe.role<tokens>}, %labels: tensor<4xi32> {moe.role = #moe.role<labels>})
    attributes {moe.batch = #moe.batch<ranks = 1, tokens = 8, sequence = 4>} {
  return
}

// -----

// expected-error @+1 {{ranks (4611686018427387904) must fit 32 bits, and there must be no more than 2^60 tokens in all}}
func.func @overflow(%t: tensor<4xi32> {moe.role = #moe.role<tokens>}) attributes {moe.batch = #moe.batch<ranks = 4611686018427387904, tokens = 4, sequence = 4>} {
  return
}

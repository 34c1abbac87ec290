// RUN: plateau-opt %s | plateau-opt | FileCheck %s

// CHECK: func.func @batch(%{{.+}}: tensor<8xi32> {moe.role = #moe.role<tokens>}) attributes {moe.batch = #moe.batch<ranks = 2, tokens = 8, sequence = 4>}
func.func @batch(%tokens: tensor<8xi32> {moe.role = #moe.role<tokens>})
    attributes {moe.batch = #moe.batch<ranks = 2, tokens = 8, sequence = 4>} {
  return
}

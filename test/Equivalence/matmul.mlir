// Compiled code on poisoned memory, three runs, against the interpreter in float64, by both products. Sums of k products err by
// about k·2^-24 at most.
// RUN: plateau-run %s --entry forms --compare 1e-5
// RUN: plateau-run %s --entry forms --compare 1e-5 --gemm reference
// RUN: plateau-run %s --entry bf16 --compare 4e-3
// RUN: plateau-run %s --entry bf16 --compare 4e-3 --gemm reference
// RUN: plateau-run %s --entry accumulate --compare 1e-5
// RUN: plateau-run %s --entry accumulate --compare 1e-5 --gemm reference
// RUN: plateau-run %s --entry empty --compare 0
// RUN: plateau-run %s --entry zeros --compare 0

// RUN: plateau-run %s --entry onto_factor --compare 1e-5

#an = affine_map<(d0, d1, d2) -> (d0, d2)>
#at = affine_map<(d0, d1, d2) -> (d2, d0)>
#bn = affine_map<(d0, d1, d2) -> (d2, d1)>
#bt = affine_map<(d0, d1, d2) -> (d1, d2)>
#c = affine_map<(d0, d1, d2) -> (d0, d1)>

func.func @forms(%a: tensor<17x9xf32>, %at: tensor<9x17xf32>, %b: tensor<9x23xf32>, %bt: tensor<23x9xf32>)
    -> (tensor<17x23xf32>, tensor<17x23xf32>, tensor<17x23xf32>, tensor<17x23xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<17x23xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<17x23xf32>) -> tensor<17x23xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<17x9xf32>, tensor<9x23xf32>) outs(%init : tensor<17x23xf32>) -> tensor<17x23xf32>
  %1 = linalg.matmul indexing_maps = [#an, #bt, #c] ins(%a, %bt : tensor<17x9xf32>, tensor<23x9xf32>) outs(%init : tensor<17x23xf32>) -> tensor<17x23xf32>
  %2 = linalg.matmul indexing_maps = [#at, #bn, #c] ins(%at, %b : tensor<9x17xf32>, tensor<9x23xf32>) outs(%init : tensor<17x23xf32>) -> tensor<17x23xf32>
  %3 = linalg.matmul indexing_maps = [#at, #bt, #c] ins(%at, %bt : tensor<9x17xf32>, tensor<23x9xf32>) outs(%init : tensor<17x23xf32>) -> tensor<17x23xf32>
  return %0, %1, %2, %3 : tensor<17x23xf32>, tensor<17x23xf32>, tensor<17x23xf32>, tensor<17x23xf32>
}

// Summed in f32, rounded once; or left in f32.
func.func @bf16(%a: tensor<17x40xbf16>, %b: tensor<23x40xbf16>) -> (tensor<17x23xbf16>, tensor<17x23xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<17x23xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<17x23xf32>) -> tensor<17x23xf32>
  %0 = linalg.matmul indexing_maps = [#an, #bt, #c] ins(%a, %b : tensor<17x40xbf16>, tensor<23x40xbf16>) outs(%init : tensor<17x23xf32>) -> tensor<17x23xf32>
  %1 = arith.truncf %0 : tensor<17x23xf32> to tensor<17x23xbf16>
  %2 = linalg.matmul indexing_maps = [#an, #bt, #c] ins(%a, %b : tensor<17x40xbf16>, tensor<23x40xbf16>) outs(%init : tensor<17x23xf32>) -> tensor<17x23xf32>
  return %1, %2 : tensor<17x23xbf16>, tensor<17x23xf32>
}

// Onto a product that dies, onto a product that is read again, and onto an argument, which stays as it is.
func.func @accumulate(%a: tensor<5x6xf32>, %b: tensor<6x7xf32>, %x: tensor<5x7xf32>)
    -> (tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<5x7xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<5x7xf32>) -> tensor<5x7xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<5x6xf32>, tensor<6x7xf32>) outs(%init : tensor<5x7xf32>) -> tensor<5x7xf32>
  %1 = linalg.matmul ins(%a, %b : tensor<5x6xf32>, tensor<6x7xf32>) outs(%0 : tensor<5x7xf32>) -> tensor<5x7xf32>
  %2 = linalg.matmul ins(%a, %b : tensor<5x6xf32>, tensor<6x7xf32>) outs(%1 : tensor<5x7xf32>) -> tensor<5x7xf32>
  %3 = linalg.matmul ins(%a, %b : tensor<5x6xf32>, tensor<6x7xf32>) outs(%x : tensor<5x7xf32>) -> tensor<5x7xf32>
  return %1, %2, %3, %x : tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>
}

// No rows; and no terms, which gives zeros over poisoned memory.
func.func @empty(%a: tensor<0x6xf32>, %b: tensor<6x7xf32>, %l: tensor<5x0xf32>, %r: tensor<0x7xf32>) -> (tensor<0x7xf32>, tensor<5x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %none = tensor.empty() : tensor<0x7xf32>
  %some = tensor.empty() : tensor<5x7xf32>
  %i0 = linalg.fill ins(%zero : f32) outs(%none : tensor<0x7xf32>) -> tensor<0x7xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%some : tensor<5x7xf32>) -> tensor<5x7xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<0x6xf32>, tensor<6x7xf32>) outs(%i0 : tensor<0x7xf32>) -> tensor<0x7xf32>
  %1 = linalg.matmul ins(%l, %r : tensor<5x0xf32>, tensor<0x7xf32>) outs(%i1 : tensor<5x7xf32>) -> tensor<5x7xf32>
  return %0, %1 : tensor<0x7xf32>, tensor<5x7xf32>
}

// Zeros as a factor, not only as what the product is summed onto.
func.func @zeros(%b: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<3x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<3x3xf32>) -> tensor<3x3xf32>
  %0 = linalg.matmul ins(%init, %b : tensor<3x3xf32>, tensor<3x3xf32>) outs(%init : tensor<3x3xf32>) -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}

// Onto a value that is a factor too: the product may not overwrite it while it reads it.
func.func @onto_factor(%x: tensor<24x24xf32>) -> tensor<24x24xf32> {
  %a = math.exp %x : tensor<24x24xf32>
  %b = linalg.matmul ins(%a, %x : tensor<24x24xf32>, tensor<24x24xf32>) outs(%a : tensor<24x24xf32>) -> tensor<24x24xf32>
  return %b : tensor<24x24xf32>
}

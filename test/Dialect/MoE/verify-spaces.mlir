// RUN: plateau-opt %s -split-input-file -verify-diagnostics -moe-verify-spaces

#host = #moe.space<host>

// Slices of the same space, loops, functions: nothing to say.
func.func @slices(%h: tensor<8x4xf32, #host>, %d: tensor<8x4xf32>) -> (tensor<2x4xf32, #host>, tensor<2x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tensor.extract_slice %h[0, 0] [2, 4] [1, 1] : tensor<8x4xf32, #host> to tensor<2x4xf32, #host>
  %b = tensor.extract_slice %d[0, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
  %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%x = %a) -> tensor<2x4xf32, #host> {
    scf.yield %x : tensor<2x4xf32, #host>
  }
  return %r, %b : tensor<2x4xf32, #host>, tensor<2x4xf32>
}

// -----

// linalg takes one host and one device operand without complaint.
#host = #moe.space<host>
func.func @mixed(%h: tensor<4xf32, #host>, %d: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'linalg.add' op reads operand #0, 'tensor<4xf32, #moe.space<host>>', which lies in the host space}}
  %r = linalg.add ins(%h, %d : tensor<4xf32, #host>, tensor<4xf32>) outs(%d : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// A cast loses the space.
#host = #moe.space<host>
func.func @cast(%h: tensor<4xf32, #host>) -> tensor<4xf32> {
  // expected-error @+1 {{'tensor.cast' op reads operand #0}}
  %r = tensor.cast %h : tensor<4xf32, #host> to tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// So does a slice that upstream's verifier accepts.
#host = #moe.space<host>
func.func @slice(%h: tensor<8x4xf32, #host>) -> tensor<4xf32> {
  // expected-error @+1 {{takes 'tensor<8x4xf32, #moe.space<host>>' to 'tensor<4xf32>': a slice lies in the space of the tensor it is a part of}}
  %r = tensor.extract_slice %h[0, 0] [1, 4] [1, 1] : tensor<8x4xf32, #host> to tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

#host = #moe.space<host>
func.func @made() -> tensor<4xf32, #host> {
  // expected-error @+1 {{'tensor.empty' op makes result #0}}
  %r = tensor.empty() : tensor<4xf32, #host>
  return %r : tensor<4xf32, #host>
}

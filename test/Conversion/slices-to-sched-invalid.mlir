// RUN: plateau-opt %s --split-input-file --verify-diagnostics --convert-moe-to-sched

func.func @columns(%x: tensor<4x8xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{is lowered only for whole rows, from a constant or from the index of a loop on}}
  %s = tensor.extract_slice %x[0, 4] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}

// -----

func.func @strided(%x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{is lowered only for whole rows}}
  %s = tensor.extract_slice %x[0] [4] [2] : tensor<8xf32> to tensor<4xf32>
  return %s : tensor<4xf32>
}

// -----

func.func @joined(%x: tensor<4x4xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{is lowered only along dimension 0}}
  %s = tensor.concat dim(1) %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// -----

func.func @product(%x: tensor<8xf32>) -> tensor<2xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<2xf32>
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  %r = scf.for %i = %c0 to %c8 step %c2 iter_args(%acc = %z) -> tensor<2xf32> {
    // expected-error @+1 {{is lowered only for the index of a loop and a constant}}
    %j = arith.addi %i, %i : index
    scf.yield %acc : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}

// -----

func.func @outer(%l: tensor<2x4xf32>, %labels: tensor<2xi32>, %first: tensor<i32>, %s: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c2 iter_args(%a = %s) -> tensor<2x3xf32> {
    %t = scf.for %j = %c0 to %c8 step %c2 iter_args(%b = %a) -> tensor<2x3xf32> {
      // expected-error @+1 {{takes a number that is neither constant nor the index of the innermost loop around it}}
      %n = moe.fold_logits %l, %labels first(%first) column(%i) into %b vocabulary<size = 63> : (tensor<2x4xf32>, tensor<2xi32>, tensor<i32>, index, tensor<2x3xf32>) -> tensor<2x3xf32>
      scf.yield %n : tensor<2x3xf32>
    }
    scf.yield %t : tensor<2x3xf32>
  }
  return %r : tensor<2x3xf32>
}

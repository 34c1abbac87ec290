// RUN: plateau-opt %s -split-input-file -verify-diagnostics -convert-moe-to-sched

func.func @swap(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x, %b = %y) -> (tensor<4xf32>, tensor<4xf32>) {
    // expected-error @below {{operand #0 is another carried value of the loop: values that change places are not lowered}}
    scf.yield %b, %a : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @number(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %f = arith.constant 1.0 : f32
  // expected-error @below {{carries a value of type 'f32': only tensors are lowered}}
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %f) -> f32 {
    scf.yield %a : f32
  }
  return %x : tensor<4xf32>
}

// -----

// The bound is a sum, which is not folded here.
func.func @bound(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> tensor<4xf32> {
    // expected-error @below {{is lowered only between constant bounds}}
    %s = scf.for %j = %c0 to %i step %c1 iter_args(%b = %a) -> tensor<4xf32> {
      scf.yield %b : tensor<4xf32>
    }
    scf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

!plan = !moe.plan<experts = 4, ranks = 1, tokens = 8, top_k = 2>
shard.grid @grid(shape = 1)
func.func @plans_without_bounds(%ids: tensor<8x2xi32>, %x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> tensor<8x4xf32> {
    // expected-error @below {{makes a plan in each iteration, and its bounds are not constant}}
    %s = scf.for %j = %c0 to %i step %c1 iter_args(%b = %a) -> tensor<8x4xf32> {
      %plan = moe.plan %ids on @grid : tensor<8x2xi32> -> !plan
      %rows = moe.dispatch rows(%b : tensor<8x4xf32> -> tensor<?x4xf32>) by %plan on @grid : !plan
      %y = moe.combine rows(%rows : tensor<?x4xf32> -> tensor<8x4xf32>) by %plan on @grid : !plan
      scf.yield %y : tensor<8x4xf32>
    }
    scf.yield %s : tensor<8x4xf32>
  }
  return %r : tensor<8x4xf32>
}

// -----

func.func @slice_with_gaps(%x: tensor<8xf32>) -> tensor<2xf32> {
  // expected-error @below {{is lowered only for whole rows, from a constant or from the index of a loop on}}
  %r = tensor.extract_slice %x[0] [2] [2] : tensor<8xf32> to tensor<2xf32>
  return %r : tensor<2xf32>
}

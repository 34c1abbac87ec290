// RUN: plateau-opt %s -split-input-file -verify-diagnostics -convert-moe-to-sched

// expected-error @below {{has 'tensor<?xf32>' in its signature: only static tensors of numbers, of at most 2^60 elements, are lowered}}
func.func @dynamic(%x: tensor<?xf32>) {
  return
}

// -----

func.func @unknown(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{is not lowered to the runtime}}
  %y = tensor.cast %x : tensor<4xf32> to tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// The old parameters are returned too, so the update cannot be in place: the donation is refused, not dropped.
func.func @donation(%p: tensor<4xf32> {moe.donated = 0 : i64}, %g: tensor<4xf32>, %m: tensor<4xf32> {moe.donated = 1 : i64},
    %v: tensor<4xf32> {moe.donated = 2 : i64}, %s: tensor<f32>, %t: tensor<i32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %p1, %m1, %v1 = moe.adamw %p, %g, %m, %v scale %s learning_rate %s step %t beta1(0.9) beta2(0.9) epsilon(1.0e-8)
    weight_decay(0.1) layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4]>]>
    : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  // expected-error @below {{argument #0 is donated to result #0, but the result is not computed in its buffer}}
  return %p1, %m1, %v1, %p : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @never_computed() -> tensor<4xf32> {
  %x = tensor.empty() : tensor<4xf32>
  // expected-error @below {{returns operand #0, which is never computed (a tensor.empty?)}}
  return %x : tensor<4xf32>
}

// -----

func.func @sum_onto_nothing(%a: tensor<4x3xf32>, %b: tensor<3x2xf32>) -> tensor<4x2xf32> {
  %empty = tensor.empty() : tensor<4x2xf32>
  // expected-error @below {{reads operand #2, which is never computed (a tensor.empty?)}}
  %c = linalg.matmul ins(%a, %b : tensor<4x3xf32>, tensor<3x2xf32>) outs(%empty : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %c : tensor<4x2xf32>
}

// -----

func.func @normed_nothing(%w: tensor<4xf32>) -> tensor<2x4xf32> {
  %empty = tensor.empty() : tensor<2x4xf32>
  // expected-error @below {{reads operand #0, which is never computed (a tensor.empty?)}}
  %y, %inverse = moe.rms_norm %empty, %w epsilon(1.0e-06) : (tensor<2x4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
  return %y : tensor<2x4xf32>
}

// -----

#row = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>
func.func @broadcast(%x: tensor<4xf32>) -> tensor<4x4xf32> {
  %empty = tensor.empty() : tensor<4x4xf32>
  // expected-error @below {{is not elementwise: only identity maps over parallel loops that overwrite their results are lowered}}
  %y = linalg.generic {indexing_maps = [#row, #all], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4xf32>) outs(%empty : tensor<4x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

// A product that accumulates onto what was never computed.
func.func @onto_nothing(%x: tensor<2x4xf32>, %w: tensor<4x2xf32>) -> tensor<2x2xf32> {
  %e = tensor.empty() : tensor<2x2xf32>
  // expected-error @below {{reads operand #2, which is never computed (a tensor.empty?)}}
  %m = linalg.matmul ins(%x, %w : tensor<2x4xf32>, tensor<4x2xf32>) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %m : tensor<2x2xf32>
}

// -----

func.func @of_nothing(%ids: tensor<3xi32>) -> tensor<3x2xf32> {
  %e = tensor.empty() : tensor<2x2xf32>
  // expected-error @below {{reads operand #0, which is never computed (a tensor.empty?)}}
  %x = moe.embedding %e, %ids : (tensor<2x2xf32>, tensor<3xi32>) -> tensor<3x2xf32>
  return %x : tensor<3x2xf32>
}

// -----

// Bytes that do not fit 64 bits.
// expected-error @below {{@huge has 'tensor<4294967296x4294967296xf32>' in its signature: only static tensors of numbers, of at most 2^60 elements, are lowered}}
func.func @huge(%x: tensor<4294967296x4294967296xf32>) {
  return
}

// -----

func.func @huge_inside(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has a result of type 'tensor<4294967296x4294967296xf32>': only static tensors of numbers}}
  %e = tensor.empty() : tensor<4294967296x4294967296xf32>
  return %x : tensor<4xf32>
}

// -----

func.func @huge_constant() -> tensor<1099511627776xf32> {
  // expected-error @below {{has 4398046511104 bytes: constants of more than 2^30 bytes are not lowered}}
  %c = arith.constant dense<1.0> : tensor<1099511627776xf32>
  return %c : tensor<1099511627776xf32>
}

// -----

// expected-error @below {{@index has 'tensor<4xindex>' in its signature: only static tensors of numbers}}
func.func @index(%x: tensor<4xindex>) {
  return
}

// -----

#map = affine_map<(d0) -> (d0)>
func.func @captured(%x: tensor<4xf32>, %i: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %c0 = arith.constant 0 : index
  // expected-error @below {{is not lowered to the runtime}}
  %s = tensor.extract %i[%c0] : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %a = arith.addf %in, %s : f32
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// expected-error @below {{arguments #0 and #1 are donated to one result, #0}}
func.func @two_donors(%a: tensor<4xf32> {moe.donated = 0 : i64}, %b: tensor<4xf32> {moe.donated = 0 : i64}) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}

// -----

func.func @filled() -> tensor<4xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  // expected-error @below {{is lowered only for zeros}}
  %f = linalg.fill ins(%one : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %f : tensor<4xf32>
}

// -----

func.func @wide(%a: tensor<4x3xf64>, %b: tensor<3x2xf64>, %c: tensor<4x2xf64>) -> tensor<4x2xf64> {
  // expected-error @below {{is lowered only for plain or transposed operands of one type, f32 or bf16}}
  %d = linalg.matmul ins(%a, %b : tensor<4x3xf64>, tensor<3x2xf64>) outs(%c : tensor<4x2xf64>) -> tensor<4x2xf64>
  return %d : tensor<4x2xf64>
}

// -----

// expected-error @below {{@blocks must have one block to be lowered}}
func.func @blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^end
^end:
  return %x : tensor<4xf32>
}

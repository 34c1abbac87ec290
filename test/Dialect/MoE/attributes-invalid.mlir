// RUN: plateau-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{'func.func' op argument #0: 'moe.role' must be a #moe.role}}
func.func @role_kind(%x: tensor<8xi32> {moe.role = "tokens"}) {
  return
}

// -----

// expected-error @+2 {{expected ::mlir::plateau::moe::Role to be one of: tokens, labels, positions, starts, learning_rate, step, parameters, gradients, first_moment, second_moment, master, loss, gradient_norm}}
// expected-error @+1 {{failed to parse MoE_RoleAttr parameter 'value'}}
func.func @role_name(%x: tensor<8xi32> {moe.role = #moe.role<token>}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.parameter' must be a #moe.parameter}}
func.func @parameter_kind(%x: tensor<8xf32> {moe.parameter = "w"}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.parameter' needs a static tensor of f32 or bf16}}
func.func @parameter_element(%x: tensor<8xi32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.parameter' needs a static tensor of f32 or bf16}}
func.func @parameter_dynamic(%x: tensor<?xf32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.layout' must be a #moe.layout}}
func.func @layout_kind(%x: tensor<8xf32> {moe.layout = [0, 8]}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.layout' needs a static flat tensor of at least 16 elements}}
func.func @layout_extent(%x: tensor<15xf32> {moe.layout = #moe.layout<[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.layout' needs a static flat tensor of at least 16 elements}}
func.func @layout_flat(%x: tensor<4x4xf32> {moe.layout = #moe.layout<[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>}) {
  return
}

// -----

// expected-error @+1 {{tensor 'b' starts at 15, before the end 16 of the one before it: offsets ascend in declaration order without overlap}}
func.func @layout_overlap(%x: tensor<20xf32> {moe.layout = #moe.layout<[<<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = 0, shape = [4, 4]>, <<"b", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = 15, shape = [4]>]>}) {
  return
}

// -----

// expected-error @+1 {{tensor 'a' starts at -1, before the end 0 of the one before it}}
func.func @layout_negative_offset(%x: tensor<20xf32> {moe.layout = #moe.layout<[<<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = -1, shape = [4]>]>}) {
  return
}

// -----

// expected-error @+1 {{tensor 'a' has a negative dimension}}
func.func @layout_negative_size(%x: tensor<20xf32> {moe.layout = #moe.layout<[<<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = 0, shape = [-4]>]>}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.donated' must be the number of a result}}
func.func @donated_kind(%x: tensor<8xf32> {moe.donated = "first"}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.donated' must be the number of a result}}
func.func @donated_range(%x: tensor<8xf32> {moe.donated = 1 : i64}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.donated' must be the number of a result}}
func.func @donated_negative(%x: tensor<8xf32> {moe.donated = -1 : i64}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// expected-error @+1 {{'func.func' op argument #1: 'moe.donated' names a result of another type}}
func.func @donated_type(%x: tensor<8xf32>, %y: tensor<9xf32> {moe.donated = 0 : i64}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.rolle' is not an attribute of this dialect}}
func.func @unknown(%x: tensor<8xi32> {moe.rolle = #moe.role<tokens>}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op result #0: 'moe.parameter' is not an attribute of a result: only moe.role is}}
func.func @result(%x: tensor<f32>) -> (tensor<f32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>}) {
  return %x : tensor<f32>
}

// -----

// 2^62 + 2^62 elements: the offset is checked before it can wrap around.
// expected-error @+1 {{tensor 'a' ends beyond 2^60 elements}}
func.func @layout_huge(%x: tensor<20xf32> {moe.layout = #moe.layout<[<<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = 0, shape = [4611686018427387904, 4]>]>}) {
  return
}

// -----

// expected-error @+1 {{tensor 'a' ends beyond 2^60 elements}}
func.func @layout_far(%x: tensor<20xf32> {moe.layout = #moe.layout<[<<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = 9223372036854775800, shape = [72]>]>}) {
  return
}

// -----

// expected-error @+1 {{two tensors have the name 'a'}}
func.func @layout_names(%x: tensor<20xf32> {moe.layout = #moe.layout<[<<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = 0, shape = [4]>, <<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = 4, shape = [4]>]>}) {
  return
}

// -----

// expected-error @+1 {{a parameter needs a name}}
func.func @parameter_name(%x: tensor<8xf32> {moe.parameter = #moe.parameter<"", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>}) {
  return
}

// -----

// expected-error @+1 {{parameter 'w': mean and deviation must be finite, and deviation not negative}}
func.func @parameter_mean(%x: tensor<8xf32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0x7FF8000000000000 : f64, deviation = 0.0 : f64>}) {
  return
}

// -----

// expected-error @+1 {{parameter 'w': mean and deviation must be finite, and deviation not negative}}
func.func @parameter_deviation(%x: tensor<8xf32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = -0.1 : f64>}) {
  return
}

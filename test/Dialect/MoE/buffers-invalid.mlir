// RUN: plateau-opt %s -split-input-file -moe-differentiate -moe-attach-optimizer -verify-diagnostics

// expected-error @+1 {{argument #0: 'moe.buffer' needs a static tensor of f32}}
func.func @narrow(%b: tensor<4xbf16> {moe.buffer = "bias"}) {
  return
}

// -----

// expected-error @+1 {{argument #0: 'moe.buffer' needs a static tensor of f32}}
func.func @dynamic(%b: tensor<?xf32> {moe.buffer = "bias"}) {
  return
}

// -----

// expected-error @+1 {{argument #0: 'moe.buffer' must be the name of the state}}
func.func @nameless(%b: tensor<4xf32> {moe.buffer = ""}) {
  return
}

// -----

// expected-error @+1 {{argument #0: 'moe.buffer' must be the name of the state}}
func.func @number(%b: tensor<4xf32> {moe.buffer = 1 : i64}) {
  return
}

// -----

// expected-error @+1 {{@loss has 1 arguments with moe.buffer: after the loss it must have, for each in order, a result with the role expert_counts, of its shape and i32}}
func.func @loss(%x: tensor<f32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %b: tensor<4xf32> {moe.buffer = "bias"}) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{@loss has 1 arguments with moe.buffer}}
func.func @loss(%x: tensor<f32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %b: tensor<4xf32> {moe.buffer = "bias"}, %c: tensor<5xi32>) -> (tensor<f32>, tensor<5xi32> {moe.role = #moe.role<expert_counts>}) {
  return %x, %c : tensor<f32>, tensor<5xi32>
}

// -----

// expected-error @+1 {{@loss has 1 arguments with moe.buffer}}
func.func @loss(%x: tensor<f32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %b: tensor<4xf32> {moe.buffer = "bias"}, %c: tensor<4xi32>) -> (tensor<f32>, tensor<4xi32>) {
  return %x, %c : tensor<f32>, tensor<4xi32>
}

// -----

// expected-error @+1 {{@loss must have one block and one result of type 'tensor<f32>'}}
func.func @loss(%x: tensor<f32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>},
    %c: tensor<4xi32>) -> (tensor<f32>, tensor<4xi32> {moe.role = #moe.role<expert_counts>}) {
  return %x, %c : tensor<f32>, tensor<4xi32>
}

// Compiled code on poisoned memory, three runs, against the interpreter in float64.
// RUN: plateau-run %s --entry f32 --compare 1e-6
// RUN: plateau-run %s --entry far --compare 1e-6
// RUN: plateau-run %s --entry bf16 --compare 4e-3

func.func @f32(%x: tensor<9x3x20xf32>, %p: tensor<9xi32> {plateau.below = 4096 : i64})
    -> (tensor<9x10xf32>, tensor<9x10xf32>, tensor<9x3x20xf32>, tensor<9x3x20xf32>) {
  %cos, %sin = moe.rotary_table %p theta(1.0e+04) : (tensor<9xi32>) -> (tensor<9x10xf32>, tensor<9x10xf32>)
  %y = moe.rotary %x, %cos, %sin : (tensor<9x3x20xf32>, tensor<9x10xf32>, tensor<9x10xf32>) -> tensor<9x3x20xf32>
  %z = moe.rotary %x, %cos, %sin inverse : (tensor<9x3x20xf32>, tensor<9x10xf32>, tensor<9x10xf32>) -> tensor<9x3x20xf32>
  return %cos, %sin, %y, %z : tensor<9x10xf32>, tensor<9x10xf32>, tensor<9x3x20xf32>, tensor<9x3x20xf32>
}

// The last positions of a million tokens: phases are f32, their cosines right to 1e-6.
func.func @far(%p: tensor<3xi32> {plateau.values = dense<[1048575, 1048574, 786431]> : tensor<3xi32>})
    -> (tensor<3x64xf32>, tensor<3x64xf32>) {
  %cos, %sin = moe.rotary_table %p theta(1.0e+06) : (tensor<3xi32>) -> (tensor<3x64xf32>, tensor<3x64xf32>)
  return %cos, %sin : tensor<3x64xf32>, tensor<3x64xf32>
}

func.func @bf16(%x: tensor<9x3x20xbf16>, %p: tensor<9xi32> {plateau.below = 4096 : i64}) -> tensor<9x3x20xbf16> {
  %cos, %sin = moe.rotary_table %p theta(1.0e+04) : (tensor<9xi32>) -> (tensor<9x10xf32>, tensor<9x10xf32>)
  %y = moe.rotary %x, %cos, %sin : (tensor<9x3x20xbf16>, tensor<9x10xf32>, tensor<9x10xf32>) -> tensor<9x3x20xbf16>
  return %y : tensor<9x3x20xbf16>
}

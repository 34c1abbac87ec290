// Compiled code on poisoned memory, three runs, against the interpreter in float64. f32 sums of n terms err by about n·2^-24 at
// most; bf16 results are rounded once to 8 bits.
// RUN: plateau-run %s --entry rows --compare 1e-5
// RUN: plateau-run %s --entry heads --compare 1e-5
// RUN: plateau-run %s --entry one_column --compare 1e-5
// RUN: plateau-run %s --entry bf16 --compare 4e-3

func.func @rows(%x: tensor<33x70xf32>, %w: tensor<70xf32>, %dy: tensor<33x70xf32>)
    -> (tensor<33x70xf32>, tensor<33xf32>, tensor<33x70xf32>, tensor<70xf32>) {
  %y, %inverse = moe.rms_norm %x, %w epsilon(1.0e-06) : (tensor<33x70xf32>, tensor<70xf32>) -> (tensor<33x70xf32>, tensor<33xf32>)
  %dx, %dw = moe.rms_norm_grad %dy, %x, %w, %inverse : (tensor<33x70xf32>, tensor<33x70xf32>, tensor<70xf32>, tensor<33xf32>) -> (tensor<33x70xf32>, tensor<70xf32>)
  return %y, %inverse, %dx, %dw : tensor<33x70xf32>, tensor<33xf32>, tensor<33x70xf32>, tensor<70xf32>
}

func.func @heads(%x: tensor<17x3x20xf32>, %w: tensor<20xf32>, %dy: tensor<17x3x20xf32>)
    -> (tensor<17x3x20xf32>, tensor<17x3xf32>, tensor<17x3x20xf32>, tensor<20xf32>) {
  %y, %inverse = moe.rms_norm %x, %w epsilon(1.0e-06) : (tensor<17x3x20xf32>, tensor<20xf32>) -> (tensor<17x3x20xf32>, tensor<17x3xf32>)
  %dx, %dw = moe.rms_norm_grad %dy, %x, %w, %inverse : (tensor<17x3x20xf32>, tensor<17x3x20xf32>, tensor<20xf32>, tensor<17x3xf32>) -> (tensor<17x3x20xf32>, tensor<20xf32>)
  return %y, %inverse, %dx, %dw : tensor<17x3x20xf32>, tensor<17x3xf32>, tensor<17x3x20xf32>, tensor<20xf32>
}

func.func @one_column(%x: tensor<5x1xf32>, %w: tensor<1xf32>) -> (tensor<5x1xf32>, tensor<5xf32>) {
  %y, %inverse = moe.rms_norm %x, %w epsilon(1.0e-02) : (tensor<5x1xf32>, tensor<1xf32>) -> (tensor<5x1xf32>, tensor<5xf32>)
  return %y, %inverse : tensor<5x1xf32>, tensor<5xf32>
}

func.func @bf16(%x: tensor<33x70xbf16>, %w: tensor<70xbf16>, %dy: tensor<33x70xbf16>)
    -> (tensor<33x70xbf16>, tensor<33x70xbf16>, tensor<70xbf16>) {
  %y, %inverse = moe.rms_norm %x, %w epsilon(1.0e-06) : (tensor<33x70xbf16>, tensor<70xbf16>) -> (tensor<33x70xbf16>, tensor<33xf32>)
  %dx, %dw = moe.rms_norm_grad %dy, %x, %w, %inverse : (tensor<33x70xbf16>, tensor<33x70xbf16>, tensor<70xbf16>, tensor<33xf32>) -> (tensor<33x70xbf16>, tensor<70xbf16>)
  return %y, %dx, %dw : tensor<33x70xbf16>, tensor<33x70xbf16>, tensor<70xbf16>
}

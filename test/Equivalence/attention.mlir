// Compiled code on poisoned memory, three runs, against the interpreter in float64.
// RUN: plateau-run %s --entry documents --compare 1e-5
// RUN: plateau-run %s --entry blocks --compare 1e-5
// RUN: plateau-run %s --entry one_token --compare 1e-5
// RUN: plateau-run %s --entry bf16 --compare 1e-2

// Three documents of 4, 1 and 4 tokens, three query heads on one key head, an odd head size.
func.func @documents(%q: tensor<9x3x5xf32>, %k: tensor<9x1x5xf32>, %v: tensor<9x1x5xf32>, %do: tensor<9x3x5xf32>,
    %s: tensor<9xi32> {plateau.values = dense<[0, 0, 0, 0, 4, 5, 5, 5, 5]> : tensor<9xi32>})
    -> (tensor<9x3x5xf32>, tensor<9x3xf32>, tensor<9x3x5xf32>, tensor<9x1x5xf32>, tensor<9x1x5xf32>) {
  %o, %lse = moe.attention %q, %k, %v, %s scale(4.0e-01) : (tensor<9x3x5xf32>, tensor<9x1x5xf32>, tensor<9x1x5xf32>, tensor<9xi32>) -> (tensor<9x3x5xf32>, tensor<9x3xf32>)
  %dq, %dk, %dv = moe.attention_grad %do, %q, %k, %v, %s, %o, %lse scale(4.0e-01) : (tensor<9x3x5xf32>, tensor<9x3x5xf32>, tensor<9x1x5xf32>, tensor<9x1x5xf32>, tensor<9xi32>, tensor<9x3x5xf32>, tensor<9x3xf32>) -> (tensor<9x3x5xf32>, tensor<9x1x5xf32>, tensor<9x1x5xf32>)
  return %o, %lse, %dq, %dk, %dv : tensor<9x3x5xf32>, tensor<9x3xf32>, tensor<9x3x5xf32>, tensor<9x1x5xf32>, tensor<9x1x5xf32>
}

// More rows than a block of queries or keys holds, one document.
func.func @blocks(%q: tensor<301x2x16xf32>, %k: tensor<301x2x16xf32>, %v: tensor<301x2x16xf32>, %do: tensor<301x2x16xf32>,
    %s: tensor<301xi32> {plateau.values = dense<0> : tensor<301xi32>})
    -> (tensor<301x2x16xf32>, tensor<301x2x16xf32>, tensor<301x2x16xf32>, tensor<301x2x16xf32>) {
  %o, %lse = moe.attention %q, %k, %v, %s scale(2.5e-01) : (tensor<301x2x16xf32>, tensor<301x2x16xf32>, tensor<301x2x16xf32>, tensor<301xi32>) -> (tensor<301x2x16xf32>, tensor<301x2xf32>)
  %dq, %dk, %dv = moe.attention_grad %do, %q, %k, %v, %s, %o, %lse scale(2.5e-01) : (tensor<301x2x16xf32>, tensor<301x2x16xf32>, tensor<301x2x16xf32>, tensor<301x2x16xf32>, tensor<301xi32>, tensor<301x2x16xf32>, tensor<301x2xf32>) -> (tensor<301x2x16xf32>, tensor<301x2x16xf32>, tensor<301x2x16xf32>)
  return %o, %dq, %dk, %dv : tensor<301x2x16xf32>, tensor<301x2x16xf32>, tensor<301x2x16xf32>, tensor<301x2x16xf32>
}

func.func @one_token(%q: tensor<1x2x4xf32>, %k: tensor<1x1x4xf32>, %v: tensor<1x1x4xf32>,
    %s: tensor<1xi32> {plateau.values = dense<0> : tensor<1xi32>}) -> (tensor<1x2x4xf32>, tensor<1x2xf32>) {
  %o, %lse = moe.attention %q, %k, %v, %s scale(1.0) : (tensor<1x2x4xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>, tensor<1xi32>) -> (tensor<1x2x4xf32>, tensor<1x2xf32>)
  return %o, %lse : tensor<1x2x4xf32>, tensor<1x2xf32>
}

// bf16 in and out, f32 inside: one rounding of the output enters the backward pass.
func.func @bf16(%q: tensor<70x4x16xbf16>, %k: tensor<70x2x16xbf16>, %v: tensor<70x2x16xbf16>, %do: tensor<70x4x16xbf16>,
    %s: tensor<70xi32> {plateau.values = dense<0> : tensor<70xi32>})
    -> (tensor<70x4x16xbf16>, tensor<70x4x16xbf16>, tensor<70x2x16xbf16>, tensor<70x2x16xbf16>) {
  %o, %lse = moe.attention %q, %k, %v, %s scale(2.5e-01) : (tensor<70x4x16xbf16>, tensor<70x2x16xbf16>, tensor<70x2x16xbf16>, tensor<70xi32>) -> (tensor<70x4x16xbf16>, tensor<70x4xf32>)
  %dq, %dk, %dv = moe.attention_grad %do, %q, %k, %v, %s, %o, %lse scale(2.5e-01) : (tensor<70x4x16xbf16>, tensor<70x4x16xbf16>, tensor<70x2x16xbf16>, tensor<70x2x16xbf16>, tensor<70xi32>, tensor<70x4x16xbf16>, tensor<70x4xf32>) -> (tensor<70x4x16xbf16>, tensor<70x2x16xbf16>, tensor<70x2x16xbf16>)
  return %o, %dq, %dk, %dv : tensor<70x4x16xbf16>, tensor<70x4x16xbf16>, tensor<70x2x16xbf16>, tensor<70x2x16xbf16>
}

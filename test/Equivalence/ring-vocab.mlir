// The vocabulary loss by tiles, compiled, against the interpreter: three ranks, tiles that are left over in both directions, odd numbers
// of hops, all options.
// RUN: plateau-opt %s --moe-ring-vocab="move=weights tile-bytes=200" --mlir-print-debuginfo -o %t.1
// RUN: plateau-run %t.1 --entry f32 --ranks 3 --compare 1e-5 | FileCheck %s
// RUN: plateau-run %t.1 --entry bf16 --ranks 3 --compare 0.03 | FileCheck %s --check-prefix=BF16
// RUN: plateau-opt %s --moe-ring-vocab="move=weights hop=tile tile-bytes=100" --mlir-print-debuginfo -o %t.2
// RUN: plateau-run %t.2 --entry f32 --ranks 3 --compare 1e-5 | FileCheck %s
// RUN: plateau-run %t.2 --entry bf16 --ranks 3 --compare 0.03 | FileCheck %s --check-prefix=BF16
// RUN: plateau-opt %s --moe-ring-vocab="move=activations tile-bytes=1000" --mlir-print-debuginfo -o %t.3
// RUN: plateau-run %t.3 --entry f32 --ranks 3 --compare 1e-5 | FileCheck %s
// RUN: plateau-run %t.3 --entry bf16 --ranks 3 --compare 0.03 | FileCheck %s --check-prefix=BF16
// RUN: plateau-opt %s --moe-ring-vocab="move=activations hop=tile tile-bytes=100" --mlir-print-debuginfo -o %t.4
// RUN: plateau-run %t.4 --entry f32 --ranks 3 --compare 1e-5 | FileCheck %s
// RUN: plateau-run %t.4 --entry bf16 --ranks 3 --compare 0.03 | FileCheck %s --check-prefix=BF16
// RUN: plateau-opt %s --moe-ring-vocab="move=none tile-bytes=600" --mlir-print-debuginfo -o %t.5
// RUN: plateau-run %t.5 --entry f32 --ranks 3 --compare 1e-5 | FileCheck %s
// RUN: plateau-run %t.5 --entry bf16 --ranks 3 --compare 0.03 | FileCheck %s --check-prefix=BF16

shard.grid @vocab(shape = 3)

// CHECK: rank 2 f32/3: tensor<13xf32> max|a-b|/max|b|
func.func @f32(%x: tensor<11x6xf32>, %t: tensor<13x6xf32>, %l: tensor<11xi32> {plateau.below = 38 : i64}, %b: tensor<13xf32>,
               %g: tensor<11xf32>) -> (tensor<11xf32>, tensor<11x6xf32>, tensor<13x6xf32>, tensor<13xf32>) {
  %losses, %lse = moe.vocab_loss %x, %t, %l bias %b on @vocab
    vocabulary<size = 38, ignore_index = 3, label_smoothing = 0.1, z_loss = 0.01, softcap = 3.0>
    : (tensor<11x6xf32>, tensor<13x6xf32>, tensor<11xi32>, tensor<13xf32>) -> (tensor<11xf32>, tensor<11xf32>)
  %dx, %dt, %db = moe.vocab_loss_grad %g, %x, %t, %l, %lse bias %b on @vocab
    vocabulary<size = 38, ignore_index = 3, label_smoothing = 0.1, z_loss = 0.01, softcap = 3.0>
    : (tensor<11xf32>, tensor<11x6xf32>, tensor<13x6xf32>, tensor<11xi32>, tensor<11xf32>, tensor<13xf32>)
    -> (tensor<11x6xf32>, tensor<13x6xf32>, tensor<13xf32>)
  return %losses, %dx, %dt, %db : tensor<11xf32>, tensor<11x6xf32>, tensor<13x6xf32>, tensor<13xf32>
}

// BF16: rank 2 bf16/2: tensor<13x6xf32> max|a-b|/max|b|
func.func @bf16(%x: tensor<11x6xbf16>, %t: tensor<13x6xbf16>, %l: tensor<11xi32> {plateau.below = 38 : i64}, %g: tensor<11xf32>)
    -> (tensor<11xf32>, tensor<11x6xbf16>, tensor<13x6xf32>) {
  %losses, %lse = moe.vocab_loss %x, %t, %l on @vocab vocabulary<size = 38>
    : (tensor<11x6xbf16>, tensor<13x6xbf16>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xf32>)
  %dx, %dt = moe.vocab_loss_grad %g, %x, %t, %l, %lse on @vocab vocabulary<size = 38>
    : (tensor<11xf32>, tensor<11x6xbf16>, tensor<13x6xbf16>, tensor<11xi32>, tensor<11xf32>) -> (tensor<11x6xbf16>, tensor<13x6xf32>)
  return %losses, %dx, %dt : tensor<11xf32>, tensor<11x6xbf16>, tensor<13x6xf32>
}

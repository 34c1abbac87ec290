// RUN: not plateau-opt %s -moe-differentiate -moe-attach-optimizer="bias-update-rate=-1" 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not plateau-opt %s -moe-differentiate -moe-attach-optimizer="bias-update-rate=1e39" 2>&1 | FileCheck %s --check-prefix=LARGE

// NEGATIVE: bias-update-rate is -1{{.*}}: it must be at least 0, and finite, in f32
// LARGE: bias-update-rate is {{.*}}: it must be at least 0, and finite, in f32
func.func @loss(%x: tensor<f32> {moe.parameter = #moe.parameter<"x", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64>}) -> tensor<f32> {
  return %x : tensor<f32>
}

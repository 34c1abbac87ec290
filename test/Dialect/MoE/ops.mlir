// RUN: plateau-opt %s --mlir-print-local-scope | FileCheck %s
// RUN: plateau-opt %s | plateau-opt --mlir-print-local-scope | FileCheck %s
// RUN: plateau-opt %s --mlir-print-op-generic | plateau-opt --mlir-print-local-scope | FileCheck %s
// RUN: plateau-opt %s --emit-bytecode -o %t.mlirbc && plateau-opt %t.mlirbc --mlir-print-local-scope | FileCheck %s

// CHECK-LABEL: func.func @embedding
func.func @embedding(%table: tensor<16x4xf32>, %ids: tensor<8xi32>) -> (tensor<8x4xf32>, tensor<16x4xf32>) {
  // CHECK: %[[X:[^ ,:]*]] = moe.embedding %{{.*}}, %{{.*}} : (tensor<16x4xf32>, tensor<8xi32>) -> tensor<8x4xf32>
  %x = moe.embedding %table, %ids : (tensor<16x4xf32>, tensor<8xi32>) -> tensor<8x4xf32>
  // CHECK: moe.embedding_grad %[[X]], %{{.*}} : (tensor<8x4xf32>, tensor<8xi32>) -> tensor<16x4xf32>
  %d = moe.embedding_grad %x, %ids : (tensor<8x4xf32>, tensor<8xi32>) -> tensor<16x4xf32>
  return %x, %d : tensor<8x4xf32>, tensor<16x4xf32>
}

// CHECK-LABEL: func.func @embedding_bf16
func.func @embedding_bf16(%table: tensor<16x4xbf16>, %ids: tensor<8xi32>) -> tensor<8x4xbf16> {
  // CHECK: moe.embedding %{{.*}}, %{{.*}} : (tensor<16x4xbf16>, tensor<8xi32>) -> tensor<8x4xbf16>
  %x = moe.embedding %table, %ids : (tensor<16x4xbf16>, tensor<8xi32>) -> tensor<8x4xbf16>
  return %x : tensor<8x4xbf16>
}

// CHECK-LABEL: func.func @rms_norm_rows
func.func @rms_norm_rows(%x: tensor<8x4xf32>, %w: tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  // CHECK: %[[Y:[^ ,:]*]], %[[I:[^ ,:]*]] = moe.rms_norm %[[X:[^ ,:]*]], %[[W:[^ ,:]*]] epsilon(9.99999997E-7) : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>)
  %y, %inverse = moe.rms_norm %x, %w epsilon(1.0e-06) : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>)
  // CHECK: moe.rms_norm_grad %[[Y]], %[[X]], %[[W]], %[[I]] : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<8xf32>) -> (tensor<8x4xf32>, tensor<4xf32>)
  %dx, %dw = moe.rms_norm_grad %y, %x, %w, %inverse : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<8xf32>) -> (tensor<8x4xf32>, tensor<4xf32>)
  return %dx, %dw : tensor<8x4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @rms_norm_heads
func.func @rms_norm_heads(%x: tensor<8x2x4xbf16>, %w: tensor<4xbf16>) -> (tensor<8x2x4xbf16>, tensor<4xbf16>) {
  // CHECK: moe.rms_norm %{{.*}}, %{{.*}} epsilon(0.000000e+00) : (tensor<8x2x4xbf16>, tensor<4xbf16>) -> (tensor<8x2x4xbf16>, tensor<8x2xf32>)
  %y, %inverse = moe.rms_norm %x, %w epsilon(0.0) : (tensor<8x2x4xbf16>, tensor<4xbf16>) -> (tensor<8x2x4xbf16>, tensor<8x2xf32>)
  // CHECK: moe.rms_norm_grad {{.*}} : (tensor<8x2x4xbf16>, tensor<8x2x4xbf16>, tensor<4xbf16>, tensor<8x2xf32>) -> (tensor<8x2x4xbf16>, tensor<4xbf16>)
  %dx, %dw = moe.rms_norm_grad %y, %x, %w, %inverse : (tensor<8x2x4xbf16>, tensor<8x2x4xbf16>, tensor<4xbf16>, tensor<8x2xf32>) -> (tensor<8x2x4xbf16>, tensor<4xbf16>)
  return %dx, %dw : tensor<8x2x4xbf16>, tensor<4xbf16>
}

// CHECK-LABEL: func.func @rotary
func.func @rotary(%positions: tensor<8xi32>, %q: tensor<8x2x4xf32>) -> tensor<8x2x4xf32> {
  // CHECK: %[[C:[^ ,:]*]], %[[S:[^ ,:]*]] = moe.rotary_table %{{.*}} theta(1.000000e+04) : (tensor<8xi32>) -> (tensor<8x2xf32>, tensor<8x2xf32>)
  %cos, %sin = moe.rotary_table %positions theta(1.0e+04) : (tensor<8xi32>) -> (tensor<8x2xf32>, tensor<8x2xf32>)
  // CHECK: %[[R:[^ ,:]*]] = moe.rotary %{{.*}}, %[[C]], %[[S]] : (tensor<8x2x4xf32>, tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2x4xf32>
  %r = moe.rotary %q, %cos, %sin : (tensor<8x2x4xf32>, tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2x4xf32>
  // CHECK: moe.rotary %[[R]], %[[C]], %[[S]] inverse : (tensor<8x2x4xf32>, tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2x4xf32>
  %b = moe.rotary %r, %cos, %sin inverse : (tensor<8x2x4xf32>, tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2x4xf32>
  return %b : tensor<8x2x4xf32>
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<8x2x4xf32>, %k: tensor<8x1x4xf32>, %v: tensor<8x1x4xf32>, %starts: tensor<8xi32>)
    -> (tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>) {
  // CHECK: %[[O:[^ ,:]*]], %[[L:[^ ,:]*]] = moe.attention %[[Q:[^ ,:]*]], %[[K:[^ ,:]*]], %[[V:[^ ,:]*]], %[[T:[^ ,:]*]] scale(5.000000e-01) : (tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>, tensor<8xi32>) -> (tensor<8x2x4xf32>, tensor<8x2xf32>)
  %o, %lse = moe.attention %q, %k, %v, %starts scale(0.5) : (tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>, tensor<8xi32>) -> (tensor<8x2x4xf32>, tensor<8x2xf32>)
  // CHECK: moe.attention_grad %[[O]], %[[Q]], %[[K]], %[[V]], %[[T]], %[[O]], %[[L]] scale(5.000000e-01) : (tensor<8x2x4xf32>, tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>, tensor<8xi32>, tensor<8x2x4xf32>, tensor<8x2xf32>) -> (tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>)
  %dq, %dk, %dv = moe.attention_grad %o, %q, %k, %v, %starts, %o, %lse scale(0.5) : (tensor<8x2x4xf32>, tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>, tensor<8xi32>, tensor<8x2x4xf32>, tensor<8x2xf32>) -> (tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>)
  return %dq, %dk, %dv : tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>
}

// CHECK-LABEL: func.func @checkpoint
func.func @checkpoint(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  // CHECK: %[[Y:[^ ,:]*]] = moe.checkpoint (%[[A:[^ ,:]*]] = %{{.*}} : tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK-NEXT: %[[E:[^ ,:]*]] = math.exp %[[A]]
  // CHECK-NEXT: moe.yield %[[E]] : tensor<8x4xf32>
  %y = moe.checkpoint (%a = %x : tensor<8x4xf32>) -> tensor<8x4xf32> {
    %e = math.exp %a : tensor<8x4xf32>
    moe.yield %e : tensor<8x4xf32>
  }
  // CHECK: moe.checkpoint recompute (%{{.*}} = %{{.*}} : tensor<8x4xf32>, %{{.*}} = %[[Y]] : tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) attributes {kept = 1 : i64} {
  %z:2 = moe.checkpoint recompute (%a = %x : tensor<8x4xf32>, %b = %y : tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) attributes {kept = 1 : i64} {
    moe.yield %b, %a : tensor<8x4xf32>, tensor<8x4xf32>
  }
  // The terminator of a body without results may be left out.
  // CHECK: moe.checkpoint () {
  // CHECK-NEXT: moe.yield
  moe.checkpoint () {
  }
  return %z#0, %z#1 : tensor<8x4xf32>, tensor<8x4xf32>
}

// CHECK-LABEL: func.func @groups
// CHECK-SAME: %[[P:[^:]*]]: tensor<24xf32>
func.func @groups(%p: tensor<24xf32>, %m: tensor<24xf32>, %v: tensor<24xf32>, %lr: tensor<f32>, %t: tensor<i32>)
    -> (tensor<24xf32>, tensor<24xf32>, tensor<24xf32>) {
  // CHECK: %[[T:[^ ,:]*]]:2 = moe.unpack %[[P]] layout <[<<"w", decay = true, mean = 0.000000e+00 : f64, deviation = 2.000000e-02 : f64>, offset = 0, shape = [4, 4]>, <<"b", decay = false, mean = 1.000000e+00 : f64, deviation = 0.000000e+00 : f64>, offset = 16, shape = [4]>]> : tensor<24xf32> -> tensor<4x4xf32>, tensor<4xf32>
  %w, %b = moe.unpack %p layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>, <<"b", decay = false, mean = 1.0 : f64, deviation = 0.0 : f64>, offset = 16, shape = [4]>]> : tensor<24xf32> -> tensor<4x4xf32>, tensor<4xf32>
  // CHECK: %[[G:[^ ,:]*]] = moe.pack %[[T]]#0, %[[T]]#1 into %[[P]] layout <{{.*}}> : tensor<4x4xf32>, tensor<4xf32> into tensor<24xf32>
  %g = moe.pack %w, %b into %p layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>, <<"b", decay = false, mean = 1.0 : f64, deviation = 0.0 : f64>, offset = 16, shape = [4]>]> : tensor<4x4xf32>, tensor<4xf32> into tensor<24xf32>
  // CHECK: %[[S:[^ ,:]*]] = moe.sum_squares %[[G]] layout <[<<"w", decay = true, mean = 0.000000e+00 : f64, deviation = 2.000000e-02 : f64>, offset = 0, shape = [4, 4]>]> : tensor<24xf32>
  // CHECK: moe.grad_norm %[[S]], %[[S]] : tensor<f64>, tensor<f64>
  // CHECK: %[[N:[^ ,:]*]] = moe.grad_norm %[[S]] : tensor<f64>
  %squares = moe.sum_squares %g layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]> : tensor<24xf32>
  %both = moe.grad_norm %squares, %squares : tensor<f64>, tensor<f64>
  %norm = moe.grad_norm %squares : tensor<f64>
  // CHECK: %[[F:[^ ,:]*]] = moe.clip_factor %[[N]] max_norm(1.000000e+00)
  %factor = moe.clip_factor %norm max_norm(1.0)
  // CHECK: moe.clip_factor %[[N]] max_norm(0x7F800000)
  %unclipped = moe.clip_factor %norm max_norm(0x7F800000)
  // CHECK: moe.adamw %[[P]], %[[G]], %{{.*}}, %{{.*}} scale %[[F]] learning_rate %{{.*}} step %{{.*}} beta1(9.000000e-01) beta2(0.94999999999999996) epsilon(1.000000e-08) weight_decay(1.000000e-01) layout <{{.*}}> : tensor<24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<24xf32> -> tensor<24xf32>, tensor<24xf32>, tensor<24xf32>
  %p1, %m1, %v1 = moe.adamw %p, %g, %m, %v scale %factor learning_rate %lr step %t
      beta1(9.0e-01) beta2(9.5e-01) epsilon(1.0e-08) weight_decay(1.0e-01)
      layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>
      : tensor<24xf32>, tensor<24xf32>, tensor<24xf32>, tensor<24xf32> -> tensor<24xf32>, tensor<24xf32>, tensor<24xf32>
  return %p1, %m1, %v1 : tensor<24xf32>, tensor<24xf32>, tensor<24xf32>
}

// CHECK-LABEL: func.func @master
func.func @master(%p: tensor<16xbf16>, %g: tensor<16xbf16>, %m: tensor<16xf32>, %v: tensor<16xf32>, %w: tensor<16xf32>,
                  %factor: tensor<f32>, %lr: tensor<f32>, %t: tensor<i32>)
    -> (tensor<16xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) {
  // CHECK: moe.adamw %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} master %{{.*}} scale {{.*}} : tensor<16xbf16>, tensor<16xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<16xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  %p1, %m1, %v1, %w1 = moe.adamw %p, %g, %m, %v master %w scale %factor learning_rate %lr step %t
      beta1(9.0e-01) beta2(9.5e-01) epsilon(1.0e-08) weight_decay(1.0e-01)
      layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>
      : tensor<16xbf16>, tensor<16xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<16xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  return %p1, %m1, %v1, %w1 : tensor<16xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
}

// A rank, or a step, may have no rows.
// CHECK-LABEL: func.func @no_rows
func.func @no_rows(%table: tensor<16x4xf32>, %w: tensor<4xf32>, %ids: tensor<0xi32>, %q: tensor<0x2x4xf32>, %k: tensor<0x1x4xf32>) -> tensor<0x4xf32> {
  // CHECK: moe.embedding {{.*}} -> tensor<0x4xf32>
  %x = moe.embedding %table, %ids : (tensor<16x4xf32>, tensor<0xi32>) -> tensor<0x4xf32>
  // CHECK: moe.rms_norm {{.*}} -> (tensor<0x4xf32>, tensor<0xf32>)
  %y, %inverse = moe.rms_norm %x, %w epsilon(1.0e-06) : (tensor<0x4xf32>, tensor<4xf32>) -> (tensor<0x4xf32>, tensor<0xf32>)
  // CHECK: moe.attention {{.*}} -> (tensor<0x2x4xf32>, tensor<0x2xf32>)
  %o, %lse = moe.attention %q, %k, %k, %ids scale(1.0) : (tensor<0x2x4xf32>, tensor<0x1x4xf32>, tensor<0x1x4xf32>, tensor<0xi32>) -> (tensor<0x2x4xf32>, tensor<0x2xf32>)
  return %y : tensor<0x4xf32>
}

// RUN: plateau-opt %s -split-input-file -verify-diagnostics

func.func @unpack_u1_count(%g: tensor<20xf32>) {
  // expected-error @+1 {{U1: there are 0 tensors and the layout has 1}}
  "moe.unpack"(%g) <{layout = #moe.layout<[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>}> : (tensor<20xf32>) -> ()
  return
}

// -----

func.func @unpack_u1_shape(%g: tensor<20xf32>) {
  // expected-error @+1 {{U1: tensor 'w' is 'tensor<2x8xf32>' and the layout says 'tensor<4x4xf32>'}}
  %r = moe.unpack %g layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]> : tensor<20xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @unpack_u1_element(%g: tensor<20xf32>) {
  // expected-error @+1 {{U1: tensor 'w' is 'tensor<4x4xbf16>' and the layout says 'tensor<4x4xf32>'}}
  %r = moe.unpack %g layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]> : tensor<20xf32> -> tensor<4x4xbf16>
  return
}

// -----

func.func @unpack_u2_extent(%g: tensor<15xf32>) {
  // expected-error @+1 {{U2: the group has 15 elements and the layout needs 16}}
  %r = moe.unpack %g layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]> : tensor<15xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @pack_pk1_shape(%w: tensor<2x8xf32>, %g: tensor<20xf32>) {
  // expected-error @+1 {{PK1: tensor 'w' is 'tensor<2x8xf32>' and the layout says 'tensor<4x4xf32>'}}
  %r = moe.pack %w into %g layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]> : tensor<2x8xf32> into tensor<20xf32>
  return
}

// -----

func.func @pack_pk2_extent(%w: tensor<4x4xf32>, %g: tensor<15xf32>) {
  // expected-error @+1 {{PK2: the group has 15 elements and the layout needs 16}}
  %r = moe.pack %w into %g layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]> : tensor<4x4xf32> into tensor<15xf32>
  return
}

// -----

func.func @pack_pk3_result(%w: tensor<4x4xf32>, %g: tensor<20xf32>) {
  // expected-error @+1 {{failed to verify that all of {into, result} have same type}}
  %r = "moe.pack"(%g, %w) <{layout = #moe.layout<[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>}> : (tensor<20xf32>, tensor<4x4xf32>) -> tensor<21xf32>
  return
}

// -----

func.func @sum_squares_ss1_extent(%g: tensor<15xf32>) {
  // expected-error @+1 {{SS1: the group has 15 elements and the layout needs 16}}
  %r = moe.sum_squares %g layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]> : tensor<15xf32>
  return
}

// -----

func.func @grad_norm_gn1_none() {
  // expected-error @+1 {{GN1: needs at least one sum of squares}}
  %r = "moe.grad_norm"() : () -> tensor<f32>
  return
}

// -----

func.func @grad_norm_gn1_element(%s: tensor<f32>) {
  // expected-error @+1 {{operand #0 must be variadic of tensor without dimensions of 64-bit float values, but got 'tensor<f32>'}}
  %r = "moe.grad_norm"(%s) : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @clip_factor_cf1_zero(%n: tensor<f32>) {
  // expected-error @+1 {{CF1: max_norm must be positive, or +inf for no clipping}}
  %r = moe.clip_factor %n max_norm(0.0)
  return
}

// -----

func.func @clip_factor_cf1_negative(%n: tensor<f32>) {
  // expected-error @+1 {{CF1: max_norm must be positive, or +inf for no clipping}}
  %r = moe.clip_factor %n max_norm(-1.0)
  return
}

// -----

func.func @clip_factor_cf1_nan(%n: tensor<f32>) {
  // expected-error @+1 {{CF1: max_norm must be positive, or +inf for no clipping}}
  %r = moe.clip_factor %n max_norm(0x7FC00000)
  return
}

// -----

func.func @adamw_aw1_length(%p: tensor<16xf32>, %g: tensor<17xf32>, %m: tensor<16xf32>, %v: tensor<16xf32>, %f: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{AW1: gradients must be 'tensor<16xf32>' like the parameters, or f32 of that length}}
  %r:3 = moe.adamw %p, %g, %m, %v scale %f learning_rate %f step %t
      beta1(0.9) beta2(0.95) epsilon(1.0e-08) weight_decay(0.1) layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>
      : tensor<16xf32>, tensor<17xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  return
}

// -----

func.func @adamw_aw1_element(%p: tensor<16xf32>, %g: tensor<16xbf16>, %m: tensor<16xf32>, %v: tensor<16xf32>, %f: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{AW1: gradients must be 'tensor<16xf32>' like the parameters, or f32 of that length}}
  %r:3 = moe.adamw %p, %g, %m, %v scale %f learning_rate %f step %t
      beta1(0.9) beta2(0.95) epsilon(1.0e-08) weight_decay(0.1) layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>
      : tensor<16xf32>, tensor<16xbf16>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  return
}

// -----

func.func @adamw_aw1_result(%p: tensor<16xf32>, %g: tensor<16xf32>, %m: tensor<16xf32>, %v: tensor<16xf32>, %f: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{AW1: new parameters must be 'tensor<16xf32>' like the parameters}}
  %r:3 = moe.adamw %p, %g, %m, %v scale %f learning_rate %f step %t
      beta1(0.9) beta2(0.95) epsilon(1.0e-08) weight_decay(0.1) layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>
      : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<17xf32>, tensor<16xf32>, tensor<16xf32>
  return
}

// -----

func.func @adamw_aw2_first(%p: tensor<16xf32>, %g: tensor<16xf32>, %m: tensor<17xf32>, %v: tensor<16xf32>, %f: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{AW2: first, second and master must be 'tensor<16xf32>'}}
  %r:3 = moe.adamw %p, %g, %m, %v scale %f learning_rate %f step %t
      beta1(0.9) beta2(0.95) epsilon(1.0e-08) weight_decay(0.1) layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>
      : tensor<16xf32>, tensor<16xf32>, tensor<17xf32>, tensor<16xf32> -> tensor<16xf32>, tensor<17xf32>, tensor<16xf32>
  return
}

// -----

func.func @adamw_aw2_result(%p: tensor<16xf32>, %g: tensor<16xf32>, %m: tensor<16xf32>, %v: tensor<16xf32>, %f: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{AW2: first, second and master must be 'tensor<16xf32>'}}
  %r:3 = moe.adamw %p, %g, %m, %v scale %f learning_rate %f step %t
      beta1(0.9) beta2(0.95) epsilon(1.0e-08) weight_decay(0.1) layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>
      : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>, tensor<16xf32>, tensor<17xf32>
  return
}

// -----

func.func @adamw_aw2_master(%p: tensor<16xbf16>, %g: tensor<16xf32>, %m: tensor<16xf32>, %v: tensor<16xf32>, %w: tensor<17xf32>, %f: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{AW2: first, second and master must be 'tensor<16xf32>'}}
  %r:4 = moe.adamw %p, %g, %m, %v master %w scale %f learning_rate %f step %t
      beta1(0.9) beta2(0.95) epsilon(1.0e-08) weight_decay(0.1) layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>
      : tensor<16xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<17xf32> -> tensor<16xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  return
}

// -----

func.func @adamw_aw3_absent(%p: tensor<16xbf16>, %g: tensor<16xf32>, %m: tensor<16xf32>, %v: tensor<16xf32>, %f: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{AW3: a master is there exactly when the parameters are bf16}}
  %r:3 = moe.adamw %p, %g, %m, %v scale %f learning_rate %f step %t
      beta1(0.9) beta2(0.95) epsilon(1.0e-08) weight_decay(0.1) layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>
      : tensor<16xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<16xbf16>, tensor<16xf32>, tensor<16xf32>
  return
}

// -----

func.func @adamw_aw3_present(%p: tensor<16xf32>, %g: tensor<16xf32>, %m: tensor<16xf32>, %v: tensor<16xf32>, %w: tensor<16xf32>, %f: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{AW3: a master is there exactly when the parameters are bf16}}
  %r:4 = moe.adamw %p, %g, %m, %v master %w scale %f learning_rate %f step %t
      beta1(0.9) beta2(0.95) epsilon(1.0e-08) weight_decay(0.1) layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>
      : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  return
}

// -----

func.func @adamw_aw3_result(%p: tensor<16xbf16>, %g: tensor<16xf32>, %m: tensor<16xf32>, %v: tensor<16xf32>, %w: tensor<16xf32>, %f: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{AW3: a master is there exactly when the parameters are bf16}}
  %r:3 = moe.adamw %p, %g, %m, %v master %w scale %f learning_rate %f step %t
      beta1(0.9) beta2(0.95) epsilon(1.0e-08) weight_decay(0.1) layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>
      : tensor<16xbf16>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<16xbf16>, tensor<16xf32>, tensor<16xf32>
  return
}

// -----

func.func @adamw_aw4_extent(%p: tensor<15xf32>, %g: tensor<15xf32>, %m: tensor<15xf32>, %v: tensor<15xf32>, %f: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{AW4: the group has 15 elements and the layout needs 16}}
  %r:3 = moe.adamw %p, %g, %m, %v scale %f learning_rate %f step %t
      beta1(0.9) beta2(0.95) epsilon(1.0e-08) weight_decay(0.1) layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>
      : tensor<15xf32>, tensor<15xf32>, tensor<15xf32>, tensor<15xf32> -> tensor<15xf32>, tensor<15xf32>, tensor<15xf32>
  return
}

// -----

func.func @adamw_aw5_beta1(%p: tensor<16xf32>, %g: tensor<16xf32>, %m: tensor<16xf32>, %v: tensor<16xf32>, %f: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{AW5: needs 0 <= beta1, beta2 < 1, epsilon > 0 in f32 and weight_decay >= 0}}
  %r:3 = moe.adamw %p, %g, %m, %v scale %f learning_rate %f step %t
      beta1(1.0) beta2(0.95) epsilon(1.0e-08) weight_decay(0.1) layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>
      : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  return
}

// -----

func.func @adamw_aw5_beta2(%p: tensor<16xf32>, %g: tensor<16xf32>, %m: tensor<16xf32>, %v: tensor<16xf32>, %f: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{AW5: needs 0 <= beta1, beta2 < 1, epsilon > 0 in f32 and weight_decay >= 0}}
  %r:3 = moe.adamw %p, %g, %m, %v scale %f learning_rate %f step %t
      beta1(0.9) beta2(-0.1) epsilon(1.0e-08) weight_decay(0.1) layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>
      : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  return
}

// -----

func.func @adamw_aw5_epsilon(%p: tensor<16xf32>, %g: tensor<16xf32>, %m: tensor<16xf32>, %v: tensor<16xf32>, %f: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{AW5: needs 0 <= beta1, beta2 < 1, epsilon > 0 in f32 and weight_decay >= 0}}
  %r:3 = moe.adamw %p, %g, %m, %v scale %f learning_rate %f step %t
      beta1(0.9) beta2(0.95) epsilon(0.0) weight_decay(0.1) layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>
      : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  return
}

// -----

func.func @adamw_aw5_weight_decay(%p: tensor<16xf32>, %g: tensor<16xf32>, %m: tensor<16xf32>, %v: tensor<16xf32>, %f: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{AW5: needs 0 <= beta1, beta2 < 1, epsilon > 0 in f32 and weight_decay >= 0}}
  %r:3 = moe.adamw %p, %g, %m, %v scale %f learning_rate %f step %t
      beta1(0.9) beta2(0.95) epsilon(1.0e-08) weight_decay(-0.1) layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>
      : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  return
}

// -----

func.func @adamw_aw5_nan(%p: tensor<16xf32>, %g: tensor<16xf32>, %m: tensor<16xf32>, %v: tensor<16xf32>, %f: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{AW5: needs 0 <= beta1, beta2 < 1, epsilon > 0 in f32 and weight_decay >= 0}}
  %r:3 = moe.adamw %p, %g, %m, %v scale %f learning_rate %f step %t
      beta1(0.9) beta2(0.95) epsilon(1.0e-08) weight_decay(0x7FF8000000000000) layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>
      : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  return
}

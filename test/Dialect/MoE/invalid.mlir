// RUN: plateau-opt %s -split-input-file -verify-diagnostics

// Each constraint of each op, by the number that its description gives it.

func.func @embedding_e1_rows(%t: tensor<16x4xf32>, %i: tensor<8xi32>) {
  // expected-error @+1 {{E1: rows are [7, 4], but there are 8 ids and the table has 4 columns}}
  %r = moe.embedding %t, %i : (tensor<16x4xf32>, tensor<8xi32>) -> tensor<7x4xf32>
  return
}

// -----

func.func @embedding_e1_columns(%t: tensor<16x4xf32>, %i: tensor<8xi32>) {
  // expected-error @+1 {{E1: rows are [8, 5], but there are 8 ids and the table has 4 columns}}
  %r = moe.embedding %t, %i : (tensor<16x4xf32>, tensor<8xi32>) -> tensor<8x5xf32>
  return
}

// -----

func.func @embedding_e2_element(%t: tensor<16x4xbf16>, %i: tensor<8xi32>) {
  // expected-error @+1 {{E2: rows are 'f32' and the table is 'bf16'}}
  %r = moe.embedding %t, %i : (tensor<16x4xbf16>, tensor<8xi32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @embedding_grad_eg1_rows(%d: tensor<7x4xf32>, %i: tensor<8xi32>) {
  // expected-error @+1 {{EG1: rows are [7, 4], but there are 8 ids and the table has 4 columns}}
  %r = moe.embedding_grad %d, %i : (tensor<7x4xf32>, tensor<8xi32>) -> tensor<16x4xf32>
  return
}

// -----

func.func @embedding_grad_eg2_element(%d: tensor<8x4xbf16>, %i: tensor<8xi32>) {
  // expected-error @+1 {{EG2: rows are 'bf16' and the table is 'f32'}}
  %r = moe.embedding_grad %d, %i : (tensor<8x4xbf16>, tensor<8xi32>) -> tensor<16x4xf32>
  return
}

// -----

func.func @rms_norm_rn1_weight(%x: tensor<8x4xf32>, %w: tensor<5xf32>) {
  // expected-error @+1 {{RN1: weight has 5 elements and a row has 4}}
  %r:2 = moe.rms_norm %x, %w epsilon(1.0e-06) : (tensor<8x4xf32>, tensor<5xf32>) -> (tensor<8x4xf32>, tensor<8xf32>)
  return
}

// -----

func.func @rms_norm_rn2_output(%x: tensor<8x4xf32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{RN2: output must be 'tensor<8x4xf32>' and weight 'f32'}}
  %r:2 = moe.rms_norm %x, %w epsilon(1.0e-06) : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @rms_norm_rn2_weight(%x: tensor<8x4xf32>, %w: tensor<4xbf16>) {
  // expected-error @+1 {{RN2: output must be 'tensor<8x4xf32>' and weight 'f32'}}
  %r:2 = moe.rms_norm %x, %w epsilon(1.0e-06) : (tensor<8x4xf32>, tensor<4xbf16>) -> (tensor<8x4xf32>, tensor<8xf32>)
  return
}

// -----

func.func @rms_norm_rn3_inverse(%x: tensor<8x2x4xf32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{RN3: inverse has one element for each row of 'tensor<8x2x4xf32>'}}
  %r:2 = moe.rms_norm %x, %w epsilon(1.0e-06) : (tensor<8x2x4xf32>, tensor<4xf32>) -> (tensor<8x2x4xf32>, tensor<8xf32>)
  return
}

// -----

func.func @rms_norm_rn4_negative(%x: tensor<8x4xf32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{RN4: epsilon must be finite and not negative}}
  %r:2 = moe.rms_norm %x, %w epsilon(-1.0e-06) : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>)
  return
}

// -----

func.func @rms_norm_rn4_nan(%x: tensor<8x4xf32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{RN4: epsilon must be finite and not negative}}
  %r:2 = moe.rms_norm %x, %w epsilon(0x7FC00000) : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>)
  return
}

// -----

func.func @rms_norm_grad_rng1_cotangent(%d: tensor<7x4xf32>, %x: tensor<8x4xf32>, %w: tensor<4xf32>, %v: tensor<8xf32>) {
  // expected-error @+1 {{RNG1: cotangent and input_grad must be 'tensor<8x4xf32>'}}
  %r:2 = moe.rms_norm_grad %d, %x, %w, %v : (tensor<7x4xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<8xf32>) -> (tensor<8x4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @rms_norm_grad_rng2_weight(%x: tensor<8x4xf32>, %w: tensor<5xf32>, %v: tensor<8xf32>) {
  // expected-error @+1 {{RNG2: weight and weight_grad must be one type of 4 elements}}
  %r:2 = moe.rms_norm_grad %x, %x, %w, %v : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<5xf32>, tensor<8xf32>) -> (tensor<8x4xf32>, tensor<5xf32>)
  return
}

// -----

func.func @rms_norm_grad_rng3_inverse(%x: tensor<8x4xf32>, %w: tensor<4xf32>, %v: tensor<4xf32>) {
  // expected-error @+1 {{RNG3: inverse has one element for each row of 'tensor<8x4xf32>'}}
  %r:2 = moe.rms_norm_grad %x, %x, %w, %v : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @rotary_table_rt1_rows(%p: tensor<8xi32>) {
  // expected-error @+1 {{RT1: cos and sin are one type with a row for each of 8 positions and at least one column}}
  %r:2 = moe.rotary_table %p theta(1.0e+04) : (tensor<8xi32>) -> (tensor<7x2xf32>, tensor<7x2xf32>)
  return
}

// -----

func.func @rotary_table_rt1_columns(%p: tensor<8xi32>) {
  // expected-error @+1 {{RT1: cos and sin are one type with a row for each of 8 positions and at least one column}}
  %r:2 = moe.rotary_table %p theta(1.0e+04) : (tensor<8xi32>) -> (tensor<8x0xf32>, tensor<8x0xf32>)
  return
}

// -----

func.func @rotary_table_rt2_zero(%p: tensor<8xi32>) {
  // expected-error @+1 {{RT2: theta must be finite and positive}}
  %r:2 = moe.rotary_table %p theta(0.0) : (tensor<8xi32>) -> (tensor<8x2xf32>, tensor<8x2xf32>)
  return
}

// -----

func.func @rotary_table_rt2_infinite(%p: tensor<8xi32>) {
  // expected-error @+1 {{RT2: theta must be finite and positive}}
  %r:2 = moe.rotary_table %p theta(0x7FF0000000000000) : (tensor<8xi32>) -> (tensor<8x2xf32>, tensor<8x2xf32>)
  return
}

// -----

func.func @rotary_ro1_odd(%x: tensor<8x2x5xf32>, %c: tensor<8x2xf32>) {
  // expected-error @+1 {{RO1: the head size of 'tensor<8x2x5xf32>' must be even and the result of its type}}
  %r = moe.rotary %x, %c, %c : (tensor<8x2x5xf32>, tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2x5xf32>
  return
}

// -----

func.func @rotary_ro1_result(%x: tensor<8x2x4xf32>, %c: tensor<8x2xf32>) {
  // expected-error @+1 {{RO1: the head size of 'tensor<8x2x4xf32>' must be even and the result of its type}}
  %r = moe.rotary %x, %c, %c : (tensor<8x2x4xf32>, tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2x4xbf16>
  return
}

// -----

func.func @rotary_ro2_columns(%x: tensor<8x2x4xf32>, %c: tensor<8x4xf32>) {
  // expected-error @+1 {{RO2: cos and sin must be [8, 2]}}
  %r = moe.rotary %x, %c, %c : (tensor<8x2x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x2x4xf32>
  return
}

// -----

func.func @attention_a1_heads(%q: tensor<8x3x4xf32>, %k: tensor<8x2x4xf32>, %v: tensor<8x2x4xf32>, %s: tensor<8xi32>) {
  // expected-error @+1 {{A1: query 'tensor<8x3x4xf32>' and key 'tensor<8x2x4xf32>' must agree in rows and head size, and the key heads divide the query heads}}
  %r:2 = moe.attention %q, %k, %v, %s scale(1.0) : (tensor<8x3x4xf32>, tensor<8x2x4xf32>, tensor<8x2x4xf32>, tensor<8xi32>) -> (tensor<8x3x4xf32>, tensor<8x3xf32>)
  return
}

// -----

func.func @attention_a1_no_heads(%q: tensor<8x2x4xf32>, %k: tensor<8x0x4xf32>, %v: tensor<8x0x4xf32>, %s: tensor<8xi32>) {
  // expected-error @+1 {{A1: query 'tensor<8x2x4xf32>' and key 'tensor<8x0x4xf32>' must agree in rows and head size, and the key heads divide the query heads}}
  %r:2 = moe.attention %q, %k, %v, %s scale(1.0) : (tensor<8x2x4xf32>, tensor<8x0x4xf32>, tensor<8x0x4xf32>, tensor<8xi32>) -> (tensor<8x2x4xf32>, tensor<8x2xf32>)
  return
}

// -----

func.func @attention_a1_rows(%q: tensor<8x2x4xf32>, %k: tensor<7x1x4xf32>, %v: tensor<7x1x4xf32>, %s: tensor<8xi32>) {
  // expected-error @+1 {{A1: query 'tensor<8x2x4xf32>' and key 'tensor<7x1x4xf32>' must agree in rows and head size, and the key heads divide the query heads}}
  %r:2 = moe.attention %q, %k, %v, %s scale(1.0) : (tensor<8x2x4xf32>, tensor<7x1x4xf32>, tensor<7x1x4xf32>, tensor<8xi32>) -> (tensor<8x2x4xf32>, tensor<8x2xf32>)
  return
}

// -----

func.func @attention_a1_value(%q: tensor<8x2x4xf32>, %k: tensor<8x1x4xf32>, %v: tensor<8x1x5xf32>, %s: tensor<8xi32>) {
  // expected-error @+1 {{A1: value must be 'tensor<8x1x4xf32>' like key}}
  %r:2 = moe.attention %q, %k, %v, %s scale(1.0) : (tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x5xf32>, tensor<8xi32>) -> (tensor<8x2x4xf32>, tensor<8x2xf32>)
  return
}

// -----

func.func @attention_a2_key_element(%q: tensor<8x2x4xf32>, %k: tensor<8x1x4xbf16>, %v: tensor<8x1x4xbf16>, %s: tensor<8xi32>) {
  // expected-error @+1 {{query is 'f32' and key is 'bf16'}}
  %r:2 = moe.attention %q, %k, %v, %s scale(1.0) : (tensor<8x2x4xf32>, tensor<8x1x4xbf16>, tensor<8x1x4xbf16>, tensor<8xi32>) -> (tensor<8x2x4xf32>, tensor<8x2xf32>)
  return
}

// -----

func.func @attention_a2_output(%q: tensor<8x2x4xf32>, %k: tensor<8x1x4xf32>, %v: tensor<8x1x4xf32>, %s: tensor<8xi32>) {
  // expected-error @+1 {{A2: output must be 'tensor<8x2x4xf32>' like query}}
  %r:2 = moe.attention %q, %k, %v, %s scale(1.0) : (tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>, tensor<8xi32>) -> (tensor<8x4x2xf32>, tensor<8x2xf32>)
  return
}

// -----

func.func @attention_a3_starts(%q: tensor<8x2x4xf32>, %k: tensor<8x1x4xf32>, %v: tensor<8x1x4xf32>, %s: tensor<7xi32>) {
  // expected-error @+1 {{A3: starts must have 8 rows}}
  %r:2 = moe.attention %q, %k, %v, %s scale(1.0) : (tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>, tensor<7xi32>) -> (tensor<8x2x4xf32>, tensor<8x2xf32>)
  return
}

// -----

func.func @attention_a4_lse(%q: tensor<8x2x4xf32>, %k: tensor<8x1x4xf32>, %v: tensor<8x1x4xf32>, %s: tensor<8xi32>) {
  // expected-error @+1 {{A4: lse must be [8, 2]}}
  %r:2 = moe.attention %q, %k, %v, %s scale(1.0) : (tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>, tensor<8xi32>) -> (tensor<8x2x4xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @attention_a5_scale(%q: tensor<8x2x4xf32>, %k: tensor<8x1x4xf32>, %v: tensor<8x1x4xf32>, %s: tensor<8xi32>) {
  // expected-error @+1 {{A5: scale must be finite}}
  %r:2 = moe.attention %q, %k, %v, %s scale(0x7F800000) : (tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>, tensor<8xi32>) -> (tensor<8x2x4xf32>, tensor<8x2xf32>)
  return
}

// -----

func.func @attention_grad_ag1_cotangent(%d: tensor<7x2x4xf32>, %q: tensor<8x2x4xf32>, %k: tensor<8x1x4xf32>, %v: tensor<8x1x4xf32>, %s: tensor<8xi32>, %o: tensor<8x2x4xf32>, %l: tensor<8x2xf32>) {
  // expected-error @+1 {{AG1: cotangent, output and query_grad must be 'tensor<8x2x4xf32>' like query}}
  %r:3 = moe.attention_grad %d, %q, %k, %v, %s, %o, %l scale(1.0) : (tensor<7x2x4xf32>, tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>, tensor<8xi32>, tensor<8x2x4xf32>, tensor<8x2xf32>) -> (tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>)
  return
}

// -----

func.func @attention_grad_ag1_query_grad(%d: tensor<8x2x4xf32>, %q: tensor<8x2x4xf32>, %k: tensor<8x1x4xf32>, %v: tensor<8x1x4xf32>, %s: tensor<8xi32>, %o: tensor<8x2x4xf32>, %l: tensor<8x2xf32>) {
  // expected-error @+1 {{AG1: cotangent, output and query_grad must be 'tensor<8x2x4xf32>' like query}}
  %r:3 = moe.attention_grad %d, %q, %k, %v, %s, %o, %l scale(1.0) : (tensor<8x2x4xf32>, tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>, tensor<8xi32>, tensor<8x2x4xf32>, tensor<8x2xf32>) -> (tensor<8x2x5xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>)
  return
}

// -----

func.func @attention_grad_ag2_heads(%d: tensor<8x3x4xf32>, %q: tensor<8x3x4xf32>, %k: tensor<8x2x4xf32>, %v: tensor<8x2x4xf32>, %s: tensor<8xi32>, %o: tensor<8x3x4xf32>, %l: tensor<8x3xf32>) {
  // expected-error @+1 {{AG2: query 'tensor<8x3x4xf32>' and key 'tensor<8x2x4xf32>' must agree in rows and head size, and the key heads divide the query heads}}
  %r:3 = moe.attention_grad %d, %q, %k, %v, %s, %o, %l scale(1.0) : (tensor<8x3x4xf32>, tensor<8x3x4xf32>, tensor<8x2x4xf32>, tensor<8x2x4xf32>, tensor<8xi32>, tensor<8x3x4xf32>, tensor<8x3xf32>) -> (tensor<8x3x4xf32>, tensor<8x2x4xf32>, tensor<8x2x4xf32>)
  return
}

// -----

func.func @attention_grad_ag2_key_grad(%d: tensor<8x2x4xf32>, %q: tensor<8x2x4xf32>, %k: tensor<8x1x4xf32>, %v: tensor<8x1x4xf32>, %s: tensor<8xi32>, %o: tensor<8x2x4xf32>, %l: tensor<8x2xf32>) {
  // expected-error @+1 {{AG2: value, key_grad and value_grad must be 'tensor<8x1x4xf32>' like key}}
  %r:3 = moe.attention_grad %d, %q, %k, %v, %s, %o, %l scale(1.0) : (tensor<8x2x4xf32>, tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>, tensor<8xi32>, tensor<8x2x4xf32>, tensor<8x2xf32>) -> (tensor<8x2x4xf32>, tensor<8x2x4xf32>, tensor<8x1x4xf32>)
  return
}

// -----

func.func @attention_grad_ag3_starts(%d: tensor<8x2x4xf32>, %q: tensor<8x2x4xf32>, %k: tensor<8x1x4xf32>, %v: tensor<8x1x4xf32>, %s: tensor<7xi32>, %o: tensor<8x2x4xf32>, %l: tensor<8x2xf32>) {
  // expected-error @+1 {{AG3: starts must have 8 rows and lse be [8, 2]}}
  %r:3 = moe.attention_grad %d, %q, %k, %v, %s, %o, %l scale(1.0) : (tensor<8x2x4xf32>, tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>, tensor<7xi32>, tensor<8x2x4xf32>, tensor<8x2xf32>) -> (tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>)
  return
}

// -----

func.func @attention_grad_ag3_lse(%d: tensor<8x2x4xf32>, %q: tensor<8x2x4xf32>, %k: tensor<8x1x4xf32>, %v: tensor<8x1x4xf32>, %s: tensor<8xi32>, %o: tensor<8x2x4xf32>, %l: tensor<8x1xf32>) {
  // expected-error @+1 {{AG3: starts must have 8 rows and lse be [8, 2]}}
  %r:3 = moe.attention_grad %d, %q, %k, %v, %s, %o, %l scale(1.0) : (tensor<8x2x4xf32>, tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>, tensor<8xi32>, tensor<8x2x4xf32>, tensor<8x1xf32>) -> (tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>)
  return
}

// -----

func.func @attention_grad_ag4_scale(%d: tensor<8x2x4xf32>, %q: tensor<8x2x4xf32>, %k: tensor<8x1x4xf32>, %v: tensor<8x1x4xf32>, %s: tensor<8xi32>, %o: tensor<8x2x4xf32>, %l: tensor<8x2xf32>) {
  // expected-error @+1 {{AG4: scale must be finite}}
  %r:3 = moe.attention_grad %d, %q, %k, %v, %s, %o, %l scale(0x7FC00000) : (tensor<8x2x4xf32>, tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>, tensor<8xi32>, tensor<8x2x4xf32>, tensor<8x2xf32>) -> (tensor<8x2x4xf32>, tensor<8x1x4xf32>, tensor<8x1x4xf32>)
  return
}

// -----

func.func @checkpoint_c1_argument(%x: tensor<4xf32>) {
  // expected-error @+1 {{C1: the body must have one argument for each input, of its type}}
  "moe.checkpoint"(%x) ({
  ^bb0(%a: tensor<5xf32>):
    "moe.yield"() : () -> ()
  }) : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @checkpoint_c2_count(%x: tensor<4xf32>) {
  // expected-error @+1 {{C2: moe.yield must have one operand for each result, of its type}}
  %r = moe.checkpoint (%a = %x : tensor<4xf32>) -> tensor<4xf32> {
    moe.yield
  }
  return
}

// -----

func.func @checkpoint_c2_type(%x: tensor<4xf32>) {
  // expected-error @+1 {{C2: moe.yield must have one operand for each result, of its type}}
  %r = moe.checkpoint (%a = %x : tensor<4xf32>) -> tensor<5xf32> {
    moe.yield %a : tensor<4xf32>
  }
  return
}

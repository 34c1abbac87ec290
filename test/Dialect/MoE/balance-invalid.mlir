// RUN: plateau-opt %s -split-input-file -verify-diagnostics

// Each constraint of the ops that even out experts, by the number that its description gives it.

func.func @balance_loss_bl1_neither(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{BL1: there must be one of counts and ids, not neither}}
  %l = moe.balance_loss %x coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>) -> tensor<f32>
  return
}

// -----

func.func @balance_loss_grad_blg1_neither(%x: tensor<8x4xf32>, %g: tensor<f32>) {
  // expected-error @+1 {{BLG1: there must be one of counts and ids, not neither}}
  %l = moe.balance_loss_grad %g, %x coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<f32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @balance_loss_bl1_both(%x: tensor<8x4xf32>, %c: tensor<4xi32>, %i: tensor<8x2xi32>) {
  // expected-error @+1 {{BL1: there must be one of counts and ids, not both}}
  %l = moe.balance_loss %x counts(%c) ids(%i) sequence(4) sequences(2) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<4xi32>, tensor<8x2xi32>) -> tensor<f32>
  return
}

// -----

func.func @balance_loss_grad_blg1_both(%x: tensor<8x4xf32>, %c: tensor<4xi32>, %i: tensor<8x2xi32>, %g: tensor<f32>) {
  // expected-error @+1 {{BLG1: there must be one of counts and ids, not both}}
  %l = moe.balance_loss_grad %g, %x counts(%c) ids(%i) sequence(4) sequences(2) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<f32>, tensor<8x4xf32>, tensor<4xi32>, tensor<8x2xi32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @balance_loss_bl1_counts(%x: tensor<8x4xf32>, %c: tensor<5xi32>) {
  // expected-error @+1 {{BL1: there are 5 counts for 4 experts}}
  %l = moe.balance_loss %x counts(%c) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<5xi32>) -> tensor<f32>
  return
}

// -----

func.func @balance_loss_grad_blg1_counts(%x: tensor<8x4xf32>, %c: tensor<5xi32>, %g: tensor<f32>) {
  // expected-error @+1 {{BLG1: there are 5 counts for 4 experts}}
  %l = moe.balance_loss_grad %g, %x counts(%c) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<f32>, tensor<8x4xf32>, tensor<5xi32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @balance_loss_bl1_tokens(%x: tensor<8x4xf32>, %i: tensor<7x2xi32>) {
  // expected-error @+1 {{BL1: ids are 'tensor<7x2xi32>', and there are 8 tokens with top_k = 2}}
  %l = moe.balance_loss %x ids(%i) sequence(4) sequences(2) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<7x2xi32>) -> tensor<f32>
  return
}

// -----

func.func @balance_loss_grad_blg1_tokens(%x: tensor<8x4xf32>, %i: tensor<7x2xi32>, %g: tensor<f32>) {
  // expected-error @+1 {{BLG1: ids are 'tensor<7x2xi32>', and there are 8 tokens with top_k = 2}}
  %l = moe.balance_loss_grad %g, %x ids(%i) sequence(4) sequences(2) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<f32>, tensor<8x4xf32>, tensor<7x2xi32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @balance_loss_bl1_slots(%x: tensor<8x4xf32>, %i: tensor<8x3xi32>) {
  // expected-error @+1 {{BL1: ids are 'tensor<8x3xi32>', and there are 8 tokens with top_k = 2}}
  %l = moe.balance_loss %x ids(%i) sequence(4) sequences(2) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<8x3xi32>) -> tensor<f32>
  return
}

// -----

func.func @balance_loss_grad_blg1_slots(%x: tensor<8x4xf32>, %i: tensor<8x3xi32>, %g: tensor<f32>) {
  // expected-error @+1 {{BLG1: ids are 'tensor<8x3xi32>', and there are 8 tokens with top_k = 2}}
  %l = moe.balance_loss_grad %g, %x ids(%i) sequence(4) sequences(2) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<f32>, tensor<8x4xf32>, tensor<8x3xi32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @balance_loss_bl1_logits(%x: tensor<8x0xf32>, %c: tensor<0xi32>) {
  // expected-error @+1 {{BL1: a row must have at least one logit}}
  %l = moe.balance_loss %x counts(%c) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x0xf32>, tensor<0xi32>) -> tensor<f32>
  return
}

// -----

func.func @balance_loss_grad_blg1_logits(%x: tensor<8x0xf32>, %c: tensor<0xi32>, %g: tensor<f32>) {
  // expected-error @+1 {{BLG1: a row must have at least one logit}}
  %l = moe.balance_loss_grad %g, %x counts(%c) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<f32>, tensor<8x0xf32>, tensor<0xi32>) -> tensor<8x0xf32>
  return
}

// -----

func.func @balance_loss_grad_blg1_result(%x: tensor<8x4xf32>, %c: tensor<4xi32>, %g: tensor<f32>) {
  // expected-error @+1 {{BLG1: the result must be 'tensor<8x4xf32>' like the logits}}
  %l = moe.balance_loss_grad %g, %x counts(%c) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<f32>, tensor<8x4xf32>, tensor<4xi32>) -> tensor<8x5xf32>
  return
}

// -----

func.func @balance_loss_bl2_counts(%x: tensor<8x4xf32>, %c: tensor<4xi32>) {
  // expected-error @+1 {{BL2: sequence and sequences must be there exactly when ids are}}
  %l = moe.balance_loss %x counts(%c) sequence(4) sequences(2) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<4xi32>) -> tensor<f32>
  return
}

// -----

func.func @balance_loss_grad_blg2_counts(%x: tensor<8x4xf32>, %c: tensor<4xi32>, %g: tensor<f32>) {
  // expected-error @+1 {{BLG2: sequence and sequences must be there exactly when ids are}}
  %l = moe.balance_loss_grad %g, %x counts(%c) sequence(4) sequences(2) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<f32>, tensor<8x4xf32>, tensor<4xi32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @balance_loss_bl2_missing(%x: tensor<8x4xf32>, %i: tensor<8x2xi32>) {
  // expected-error @+1 {{BL2: sequence and sequences must be there exactly when ids are}}
  %l = moe.balance_loss %x ids(%i) sequence(4) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<f32>
  return
}

// -----

func.func @balance_loss_grad_blg2_missing(%x: tensor<8x4xf32>, %i: tensor<8x2xi32>, %g: tensor<f32>) {
  // expected-error @+1 {{BLG2: sequence and sequences must be there exactly when ids are}}
  %l = moe.balance_loss_grad %g, %x ids(%i) sequence(4) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<f32>, tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @balance_loss_bl2_divides(%x: tensor<8x4xf32>, %i: tensor<8x2xi32>) {
  // expected-error @+1 {{BL2: sequence is 3, and it must divide the 8 tokens}}
  %l = moe.balance_loss %x ids(%i) sequence(3) sequences(4) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<f32>
  return
}

// -----

func.func @balance_loss_grad_blg2_divides(%x: tensor<8x4xf32>, %i: tensor<8x2xi32>, %g: tensor<f32>) {
  // expected-error @+1 {{BLG2: sequence is 3, and it must divide the 8 tokens}}
  %l = moe.balance_loss_grad %g, %x ids(%i) sequence(3) sequences(4) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<f32>, tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @balance_loss_bl2_positive(%x: tensor<8x4xf32>, %i: tensor<8x2xi32>) {
  // expected-error @+1 {{BL2: sequence is 0, and it must divide the 8 tokens}}
  %l = moe.balance_loss %x ids(%i) sequence(0) sequences(4) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<f32>
  return
}

// -----

func.func @balance_loss_grad_blg2_positive(%x: tensor<8x4xf32>, %i: tensor<8x2xi32>, %g: tensor<f32>) {
  // expected-error @+1 {{BLG2: sequence is 0, and it must divide the 8 tokens}}
  %l = moe.balance_loss_grad %g, %x ids(%i) sequence(0) sequences(4) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<f32>, tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @balance_loss_bl2_few(%x: tensor<8x4xf32>, %i: tensor<8x2xi32>) {
  // expected-error @+1 {{BL2: sequences is 3, and the rank alone has 4}}
  %l = moe.balance_loss %x ids(%i) sequence(2) sequences(3) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<f32>
  return
}

// -----

func.func @balance_loss_grad_blg2_few(%x: tensor<8x4xf32>, %i: tensor<8x2xi32>, %g: tensor<f32>) {
  // expected-error @+1 {{BLG2: sequences is 3, and the rank alone has 4}}
  %l = moe.balance_loss_grad %g, %x ids(%i) sequence(2) sequences(3) coefficient(1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<f32>, tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @balance_loss_bl3_negative(%x: tensor<8x4xf32>, %c: tensor<4xi32>) {
  // expected-error @+1 {{BL3: coefficient must be finite and not negative}}
  %l = moe.balance_loss %x counts(%c) coefficient(-1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<4xi32>) -> tensor<f32>
  return
}

// -----

func.func @balance_loss_grad_blg3_negative(%x: tensor<8x4xf32>, %c: tensor<4xi32>, %g: tensor<f32>) {
  // expected-error @+1 {{BLG3: coefficient must be finite and not negative}}
  %l = moe.balance_loss_grad %g, %x counts(%c) coefficient(-1.0) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<f32>, tensor<8x4xf32>, tensor<4xi32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @balance_loss_bl3_nan(%x: tensor<8x4xf32>, %c: tensor<4xi32>) {
  // expected-error @+1 {{BL3: coefficient must be finite and not negative}}
  %l = moe.balance_loss %x counts(%c) coefficient(0x7FC00000) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<4xi32>) -> tensor<f32>
  return
}

// -----

func.func @balance_loss_grad_blg3_nan(%x: tensor<8x4xf32>, %c: tensor<4xi32>, %g: tensor<f32>) {
  // expected-error @+1 {{BLG3: coefficient must be finite and not negative}}
  %l = moe.balance_loss_grad %g, %x counts(%c) coefficient(0x7FC00000) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<f32>, tensor<8x4xf32>, tensor<4xi32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @z_loss_zl1_logits(%x: tensor<8x0xf32>) {
  // expected-error @+1 {{ZL1: a row must have at least one logit}}
  %l = moe.z_loss %x tokens(8) coefficient(1.0) : tensor<8x0xf32>
  return
}

// -----

func.func @z_loss_grad_zlg1_logits(%x: tensor<8x0xf32>, %g: tensor<f32>) {
  // expected-error @+1 {{ZLG1: a row must have at least one logit}}
  %l = moe.z_loss_grad %g, %x tokens(8) coefficient(1.0) : tensor<8x0xf32>
  return
}

// -----

func.func @z_loss_zl2_few(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{ZL2: tokens is 7, and the rank alone has 8}}
  %l = moe.z_loss %x tokens(7) coefficient(1.0) : tensor<8x4xf32>
  return
}

// -----

func.func @z_loss_grad_zlg2_few(%x: tensor<8x4xf32>, %g: tensor<f32>) {
  // expected-error @+1 {{ZLG2: tokens is 7, and the rank alone has 8}}
  %l = moe.z_loss_grad %g, %x tokens(7) coefficient(1.0) : tensor<8x4xf32>
  return
}

// -----

func.func @z_loss_zl2_positive(%x: tensor<0x4xf32>) {
  // expected-error @+1 {{ZL2: tokens is 0, and the rank alone has 0}}
  %l = moe.z_loss %x tokens(0) coefficient(1.0) : tensor<0x4xf32>
  return
}

// -----

func.func @z_loss_grad_zlg2_positive(%x: tensor<0x4xf32>, %g: tensor<f32>) {
  // expected-error @+1 {{ZLG2: tokens is 0, and the rank alone has 0}}
  %l = moe.z_loss_grad %g, %x tokens(0) coefficient(1.0) : tensor<0x4xf32>
  return
}

// -----

func.func @z_loss_zl3_infinite(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{ZL3: coefficient must be finite and not negative}}
  %l = moe.z_loss %x tokens(8) coefficient(0x7F800000) : tensor<8x4xf32>
  return
}

// -----

func.func @z_loss_grad_zlg3_infinite(%x: tensor<8x4xf32>, %g: tensor<f32>) {
  // expected-error @+1 {{ZLG3: coefficient must be finite and not negative}}
  %l = moe.z_loss_grad %g, %x tokens(8) coefficient(0x7F800000) : tensor<8x4xf32>
  return
}

// -----

func.func @update_bias_ub1_counts(%b: tensor<4xf32>, %c: tensor<5xi32>, %f: tensor<f32>) {
  // expected-error @+1 {{UB1: there are 5 counts for a bias of 4}}
  %n = moe.update_bias %b, %c scale %f rate(0.001) : tensor<4xf32>, tensor<5xi32>
  return
}

// -----

func.func @update_bias_ub2_rate(%b: tensor<4xf32>, %c: tensor<4xi32>, %f: tensor<f32>) {
  // expected-error @+1 {{UB2: rate must be finite and not negative}}
  %n = moe.update_bias %b, %c scale %f rate(-0.001) : tensor<4xf32>, tensor<4xi32>
  return
}

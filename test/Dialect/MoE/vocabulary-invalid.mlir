// RUN: plateau-opt %s -split-input-file -verify-diagnostics

func.func @vocab_loss_vl1_columns(%x: tensor<8x3xf32>, %t: tensor<8x4xf32>, %l: tensor<8xi32>) {
  // expected-error @+1 {{VL1: x is 'tensor<8x3xf32>' and the table 'tensor<8x4xf32>': they must have the same columns and element type}}
  %r:2 = moe.vocab_loss %x, %t, %l vocabulary<size = 8> : (tensor<8x3xf32>, tensor<8x4xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @vocab_loss_vl1_element(%x: tensor<8x3xf32>, %t: tensor<8x3xbf16>, %l: tensor<8xi32>) {
  // expected-error @+1 {{VL1: x is 'tensor<8x3xf32>' and the table 'tensor<8x3xbf16>': they must have the same columns and element type}}
  %r:2 = moe.vocab_loss %x, %t, %l vocabulary<size = 8> : (tensor<8x3xf32>, tensor<8x3xbf16>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @vocab_loss_vl1_labels(%x: tensor<8x3xf32>, %t: tensor<8x3xf32>, %l: tensor<7xi32>) {
  // expected-error @+1 {{VL1: labels has 7 elements, where there are 8 rows}}
  %r:2 = moe.vocab_loss %x, %t, %l vocabulary<size = 8> : (tensor<8x3xf32>, tensor<8x3xf32>, tensor<7xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @vocab_loss_vl1_losses(%x: tensor<8x3xf32>, %t: tensor<8x3xf32>, %l: tensor<8xi32>) {
  // expected-error @+1 {{VL1: losses has 9 elements, where there are 8 rows}}
  %r:2 = moe.vocab_loss %x, %t, %l vocabulary<size = 8> : (tensor<8x3xf32>, tensor<8x3xf32>, tensor<8xi32>) -> (tensor<9xf32>, tensor<8xf32>)
  return
}

// -----

func.func @vocab_loss_vl1_lse(%x: tensor<8x3xf32>, %t: tensor<8x3xf32>, %l: tensor<8xi32>) {
  // expected-error @+1 {{VL1: lse has 1 elements, where there are 8 rows}}
  %r:2 = moe.vocab_loss %x, %t, %l vocabulary<size = 8> : (tensor<8x3xf32>, tensor<8x3xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<1xf32>)
  return
}

// -----

func.func @vocab_loss_vl2_bias(%x: tensor<8x3xf32>, %t: tensor<8x3xf32>, %l: tensor<8xi32>, %b: tensor<7xf32>) {
  // expected-error @+1 {{VL2: the bias has 7 elements for 8 columns}}
  %r:2 = moe.vocab_loss %x, %t, %l bias %b vocabulary<size = 8> : (tensor<8x3xf32>, tensor<8x3xf32>, tensor<8xi32>, tensor<7xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @vocab_loss_vl3_rows(%x: tensor<8x3xf32>, %t: tensor<7x3xf32>, %l: tensor<8xi32>) {
  // expected-error @+1 {{VL3: 1 shards of 7 rows do not hold a vocabulary of 8}}
  %r:2 = moe.vocab_loss %x, %t, %l vocabulary<size = 8> : (tensor<8x3xf32>, tensor<7x3xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

shard.grid @vocab(shape = 2x2)
func.func @vocab_loss_vl3_shards(%x: tensor<8x3xf32>, %t: tensor<3x3xf32>, %l: tensor<8xi32>) {
  // expected-error @+1 {{VL3: 2 shards of 3 rows do not hold a vocabulary of 8}}
  %r:2 = moe.vocab_loss %x, %t, %l on @vocab vocabulary<size = 8> : (tensor<8x3xf32>, tensor<3x3xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

shard.grid @vocab(shape = 2x2)
func.func @vocab_loss_vl4_grid(%x: tensor<8x3xf32>, %t: tensor<8x3xf32>, %l: tensor<8xi32>) {
  // expected-error @+1 {{VL4: there is no grid @none with static sizes of at most 2^31 - 1 ranks}}
  %r:2 = moe.vocab_loss %x, %t, %l on @none vocabulary<size = 8> : (tensor<8x3xf32>, tensor<8x3xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @vocab_loss_grad_vlg1_columns(%g: tensor<8xf32>, %x: tensor<8x3xf32>, %t: tensor<8x4xf32>, %l: tensor<8xi32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{VLG1: x is 'tensor<8x3xf32>' and the table 'tensor<8x4xf32>'}}
  %r:2 = moe.vocab_loss_grad %g, %x, %t, %l, %e vocabulary<size = 8> : (tensor<8xf32>, tensor<8x3xf32>, tensor<8x4xf32>, tensor<8xi32>, tensor<8xf32>) -> (tensor<8x3xf32>, tensor<8x4xf32>)
  return
}

// -----

func.func @vocab_loss_grad_vlg1_cotangents(%g: tensor<7xf32>, %x: tensor<8x3xf32>, %t: tensor<8x3xf32>, %l: tensor<8xi32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{VLG1: cotangents has 7 elements, where there are 8 rows}}
  %r:2 = moe.vocab_loss_grad %g, %x, %t, %l, %e vocabulary<size = 8> : (tensor<7xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<8xi32>, tensor<8xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>)
  return
}

// -----

func.func @vocab_loss_grad_vlg1_labels(%g: tensor<8xf32>, %x: tensor<8x3xf32>, %t: tensor<8x3xf32>, %l: tensor<7xi32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{VLG1: labels has 7 elements, where there are 8 rows}}
  %r:2 = moe.vocab_loss_grad %g, %x, %t, %l, %e vocabulary<size = 8> : (tensor<8xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<7xi32>, tensor<8xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>)
  return
}

// -----

func.func @vocab_loss_grad_vlg1_lse(%g: tensor<8xf32>, %x: tensor<8x3xf32>, %t: tensor<8x3xf32>, %l: tensor<8xi32>, %e: tensor<7xf32>) {
  // expected-error @+1 {{VLG1: lse has 7 elements, where there are 8 rows}}
  %r:2 = moe.vocab_loss_grad %g, %x, %t, %l, %e vocabulary<size = 8> : (tensor<8xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<8xi32>, tensor<7xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>)
  return
}

// -----

func.func @vocab_loss_grad_vlg1_x_grad(%g: tensor<8xf32>, %x: tensor<8x3xf32>, %t: tensor<8x3xf32>, %l: tensor<8xi32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{VLG1: the gradient of 'tensor<8x3xf32>' is 'tensor<8x4xf32>'}}
  %r:2 = moe.vocab_loss_grad %g, %x, %t, %l, %e vocabulary<size = 8> : (tensor<8xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<8xi32>, tensor<8xf32>) -> (tensor<8x4xf32>, tensor<8x3xf32>)
  return
}

// -----

func.func @vocab_loss_grad_vlg1_table_grad(%g: tensor<8xf32>, %x: tensor<8x3xf32>, %t: tensor<8x3xf32>, %l: tensor<8xi32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{VLG1: the gradient of 'tensor<8x3xf32>' is 'tensor<9x3xf32>'}}
  %r:2 = moe.vocab_loss_grad %g, %x, %t, %l, %e vocabulary<size = 8> : (tensor<8xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<8xi32>, tensor<8xf32>) -> (tensor<8x3xf32>, tensor<9x3xf32>)
  return
}

// -----

func.func @vocab_loss_grad_vlg2_bias(%g: tensor<8xf32>, %x: tensor<8x3xf32>, %t: tensor<8x3xf32>, %l: tensor<8xi32>, %e: tensor<8xf32>, %b: tensor<7xf32>) {
  // expected-error @+1 {{VLG2: the bias has 7 elements for 8 columns}}
  %r:3 = moe.vocab_loss_grad %g, %x, %t, %l, %e bias %b vocabulary<size = 8> : (tensor<8xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<8xi32>, tensor<8xf32>, tensor<7xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>, tensor<8xf32>)
  return
}

// -----

func.func @vocab_loss_grad_vlg2_bias_grad(%g: tensor<8xf32>, %x: tensor<8x3xf32>, %t: tensor<8x3xf32>, %l: tensor<8xi32>, %e: tensor<8xf32>, %b: tensor<8xf32>) {
  // expected-error @+1 {{VLG2: the bias has 7 elements for 8 columns}}
  %r:3 = moe.vocab_loss_grad %g, %x, %t, %l, %e bias %b vocabulary<size = 8> : (tensor<8xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<8xi32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>, tensor<7xf32>)
  return
}

// -----

func.func @vocab_loss_grad_vlg2_no_bias(%g: tensor<8xf32>, %x: tensor<8x3xf32>, %t: tensor<8x3xf32>, %l: tensor<8xi32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{VLG2: bias and its gradient must both be there, or neither}}
  %r:3 = moe.vocab_loss_grad %g, %x, %t, %l, %e vocabulary<size = 8> : (tensor<8xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<8xi32>, tensor<8xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>, tensor<8xf32>)
  return
}

// -----

func.func @vocab_loss_grad_vlg2_no_bias_grad(%g: tensor<8xf32>, %x: tensor<8x3xf32>, %t: tensor<8x3xf32>, %l: tensor<8xi32>, %e: tensor<8xf32>, %b: tensor<8xf32>) {
  // expected-error @+1 {{VLG2: bias and its gradient must both be there, or neither}}
  %r:2 = moe.vocab_loss_grad %g, %x, %t, %l, %e bias %b vocabulary<size = 8> : (tensor<8xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<8xi32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>)
  return
}

// -----

func.func @vocab_loss_grad_vlg3_rows(%g: tensor<8xf32>, %x: tensor<8x3xf32>, %t: tensor<7x3xf32>, %l: tensor<8xi32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{VLG3: 1 shards of 7 rows do not hold a vocabulary of 8}}
  %r:2 = moe.vocab_loss_grad %g, %x, %t, %l, %e vocabulary<size = 8> : (tensor<8xf32>, tensor<8x3xf32>, tensor<7x3xf32>, tensor<8xi32>, tensor<8xf32>) -> (tensor<8x3xf32>, tensor<7x3xf32>)
  return
}

// -----

shard.grid @vocab(shape = 2x2)
func.func @vocab_loss_grad_vlg3_shards(%g: tensor<8xf32>, %x: tensor<8x3xf32>, %t: tensor<3x3xf32>, %l: tensor<8xi32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{VLG3: 2 shards of 3 rows do not hold a vocabulary of 8}}
  %r:2 = moe.vocab_loss_grad %g, %x, %t, %l, %e on @vocab vocabulary<size = 8> : (tensor<8xf32>, tensor<8x3xf32>, tensor<3x3xf32>, tensor<8xi32>, tensor<8xf32>) -> (tensor<8x3xf32>, tensor<3x3xf32>)
  return
}

// -----

shard.grid @vocab(shape = 2x2)
func.func @vocab_loss_grad_vlg4_grid(%g: tensor<8xf32>, %x: tensor<8x3xf32>, %t: tensor<8x3xf32>, %l: tensor<8xi32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{VLG4: there is no grid @none}}
  %r:2 = moe.vocab_loss_grad %g, %x, %t, %l, %e on @none vocabulary<size = 8> : (tensor<8xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<8xi32>, tensor<8xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>)
  return
}

// -----

func.func @vocab_loss_grad_vlg5_x_grad(%g: tensor<8xf32>, %x: tensor<8x3xf32>, %t: tensor<8x3xf32>, %l: tensor<8xi32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{VLG5: the gradient of 'tensor<8x3xf32>' is 'tensor<8x3xbf16>': it must be f32, or the same}}
  %r:2 = moe.vocab_loss_grad %g, %x, %t, %l, %e vocabulary<size = 8> : (tensor<8xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<8xi32>, tensor<8xf32>) -> (tensor<8x3xbf16>, tensor<8x3xf32>)
  return
}

// -----

func.func @vocab_loss_grad_vlg5_table_grad(%g: tensor<8xf32>, %x: tensor<8x3xf32>, %t: tensor<8x3xf32>, %l: tensor<8xi32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{VLG5: the gradient of 'tensor<8x3xf32>' is 'tensor<8x3xbf16>': it must be f32, or the same}}
  %r:2 = moe.vocab_loss_grad %g, %x, %t, %l, %e vocabulary<size = 8> : (tensor<8xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<8xi32>, tensor<8xf32>) -> (tensor<8x3xf32>, tensor<8x3xbf16>)
  return
}

// -----

func.func @log_softmax_ls1_element(%y: tensor<8x8xbf16>) {
  // expected-error @+1 {{operand #0 must be static tensor [rows, columns] of 32-bit float values, but got 'tensor<8x8xbf16>'}}
  %r:2 = moe.log_softmax %y vocabulary<size = 8> : (tensor<8x8xbf16>) -> (tensor<8x8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @log_softmax_ls1_result(%y: tensor<8x8xf32>) {
  // expected-error @+1 {{LS1: takes 'tensor<8x8xf32>' to 'tensor<8x9xf32>': both must be one type with at least the 8 columns of the vocabulary}}
  %r:2 = moe.log_softmax %y vocabulary<size = 8> : (tensor<8x8xf32>) -> (tensor<8x9xf32>, tensor<8xf32>)
  return
}

// -----

func.func @log_softmax_ls1_columns(%y: tensor<8x7xf32>) {
  // expected-error @+1 {{LS1: takes 'tensor<8x7xf32>' to 'tensor<8x7xf32>': both must be one type with at least the 8 columns of the vocabulary}}
  %r:2 = moe.log_softmax %y vocabulary<size = 8> : (tensor<8x7xf32>) -> (tensor<8x7xf32>, tensor<8xf32>)
  return
}

// -----

func.func @log_softmax_ls1_lse(%y: tensor<8x8xf32>) {
  // expected-error @+1 {{LS1: lse has 7 elements, where there are 8 rows}}
  %r:2 = moe.log_softmax %y vocabulary<size = 8> : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<7xf32>)
  return
}

// -----

func.func @log_softmax_ls2_bias(%y: tensor<8x8xf32>, %b: tensor<7xf32>) {
  // expected-error @+1 {{LS2: the bias has 7 elements for 8 columns}}
  %r:2 = moe.log_softmax %y bias %b vocabulary<size = 8> : (tensor<8x8xf32>, tensor<7xf32>) -> (tensor<8x8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @log_softmax_grad_lsg1_cotangent(%d: tensor<8x9xf32>, %p: tensor<8x8xf32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{LSG1: cotangent, output and result are 'tensor<8x9xf32>', 'tensor<8x8xf32>' and 'tensor<8x8xf32>': they must be one type with at least the 8 columns of the vocabulary}}
  %r = moe.log_softmax_grad %d, %p, %e vocabulary<size = 8> : (tensor<8x9xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @log_softmax_grad_lsg1_result(%d: tensor<8x8xf32>, %p: tensor<8x8xf32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{LSG1: cotangent, output and result are 'tensor<8x8xf32>', 'tensor<8x8xf32>' and 'tensor<7x8xf32>'}}
  %r = moe.log_softmax_grad %d, %p, %e vocabulary<size = 8> : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<7x8xf32>
  return
}

// -----

func.func @log_softmax_grad_lsg1_columns(%d: tensor<8x7xf32>, %p: tensor<8x7xf32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{LSG1: cotangent, output and result are 'tensor<8x7xf32>', 'tensor<8x7xf32>' and 'tensor<8x7xf32>'}}
  %r = moe.log_softmax_grad %d, %p, %e vocabulary<size = 8> : (tensor<8x7xf32>, tensor<8x7xf32>, tensor<8xf32>) -> tensor<8x7xf32>
  return
}

// -----

func.func @log_softmax_grad_lsg1_lse(%d: tensor<8x8xf32>, %p: tensor<8x8xf32>, %e: tensor<7xf32>) {
  // expected-error @+1 {{LSG1: lse has 7 elements, where there are 8 rows}}
  %r = moe.log_softmax_grad %d, %p, %e vocabulary<size = 8> : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<7xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @log_softmax_grad_lsg1_lse_cotangent(%d: tensor<8x8xf32>, %p: tensor<8x8xf32>, %e: tensor<8xf32>, %u: tensor<7xf32>) {
  // expected-error @+1 {{LSG1: lse_cotangent has 7 elements, where there are 8 rows}}
  %r = moe.log_softmax_grad %d, %p, %e lse_cotangent %u vocabulary<size = 8> : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8xf32>, tensor<7xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @log_softmax_grad_lsg2_bias_grad(%d: tensor<8x8xf32>, %p: tensor<8x8xf32>, %e: tensor<8xf32>) {
  // expected-error @+1 {{LSG2: the bias has 7 elements for 8 columns}}
  %r:2 = moe.log_softmax_grad %d, %p, %e vocabulary<size = 8> : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> (tensor<8x8xf32>, tensor<7xf32>)
  return
}

// -----

func.func @count_labels_cl1_rank(%l: tensor<8x1xi32>) {
  // expected-error @+1 {{operand #0 must be static tensor [rows] of 32-bit signless integer values, but got 'tensor<8x1xi32>'}}
  %r = moe.count_labels %l ignore_index(-100) : tensor<8x1xi32>
  return
}

// -----

func.func @nll_nl1_columns(%p: tensor<8x7xf32>, %e: tensor<8xf32>, %l: tensor<8xi32>) {
  // expected-error @+1 {{NL1: there are 7 columns for a vocabulary of 8}}
  %r = moe.nll %p, %e, %l vocabulary<size = 8> : (tensor<8x7xf32>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  return
}

// -----

func.func @nll_nl1_lse(%p: tensor<8x8xf32>, %e: tensor<7xf32>, %l: tensor<8xi32>) {
  // expected-error @+1 {{NL1: lse has 7 elements, where there are 8 rows}}
  %r = moe.nll %p, %e, %l vocabulary<size = 8> : (tensor<8x8xf32>, tensor<7xf32>, tensor<8xi32>) -> tensor<8xf32>
  return
}

// -----

func.func @nll_nl1_labels(%p: tensor<8x8xf32>, %e: tensor<8xf32>, %l: tensor<7xi32>) {
  // expected-error @+1 {{NL1: labels has 7 elements, where there are 8 rows}}
  %r = moe.nll %p, %e, %l vocabulary<size = 8> : (tensor<8x8xf32>, tensor<8xf32>, tensor<7xi32>) -> tensor<8xf32>
  return
}

// -----

func.func @nll_nl1_losses(%p: tensor<8x8xf32>, %e: tensor<8xf32>, %l: tensor<8xi32>) {
  // expected-error @+1 {{NL1: losses has 7 elements, where there are 8 rows}}
  %r = moe.nll %p, %e, %l vocabulary<size = 8> : (tensor<8x8xf32>, tensor<8xf32>, tensor<8xi32>) -> tensor<7xf32>
  return
}

// -----

func.func @nll_grad_nlg1_columns(%g: tensor<8xf32>, %e: tensor<8xf32>, %l: tensor<8xi32>) {
  // expected-error @+1 {{NLG1: there are 7 columns for a vocabulary of 8}}
  %r:2 = moe.nll_grad %g, %e, %l vocabulary<size = 8> : (tensor<8xf32>, tensor<8xf32>, tensor<8xi32>) -> (tensor<8x7xf32>, tensor<8xf32>)
  return
}

// -----

func.func @nll_grad_nlg1_cotangents(%g: tensor<7xf32>, %e: tensor<8xf32>, %l: tensor<8xi32>) {
  // expected-error @+1 {{NLG1: cotangents has 7 elements, where there are 8 rows}}
  %r:2 = moe.nll_grad %g, %e, %l vocabulary<size = 8> : (tensor<7xf32>, tensor<8xf32>, tensor<8xi32>) -> (tensor<8x8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @nll_grad_nlg1_lse(%g: tensor<8xf32>, %e: tensor<7xf32>, %l: tensor<8xi32>) {
  // expected-error @+1 {{NLG1: lse has 7 elements, where there are 8 rows}}
  %r:2 = moe.nll_grad %g, %e, %l vocabulary<size = 8> : (tensor<8xf32>, tensor<7xf32>, tensor<8xi32>) -> (tensor<8x8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @nll_grad_nlg1_labels(%g: tensor<8xf32>, %e: tensor<8xf32>, %l: tensor<7xi32>) {
  // expected-error @+1 {{NLG1: labels has 7 elements, where there are 8 rows}}
  %r:2 = moe.nll_grad %g, %e, %l vocabulary<size = 8> : (tensor<8xf32>, tensor<8xf32>, tensor<7xi32>) -> (tensor<8x8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @nll_grad_nlg1_lse_grad(%g: tensor<8xf32>, %e: tensor<8xf32>, %l: tensor<8xi32>) {
  // expected-error @+1 {{NLG1: lse_grad has 7 elements, where there are 8 rows}}
  %r:2 = moe.nll_grad %g, %e, %l vocabulary<size = 8> : (tensor<8xf32>, tensor<8xf32>, tensor<8xi32>) -> (tensor<8x8xf32>, tensor<7xf32>)
  return
}

// -----

func.func @mean_loss_ml1_weights(%l: tensor<8xf32>, %w: tensor<7xf32>, %c: tensor<f32>) {
  // expected-error @+1 {{ML1: weights has 7 elements, where there are 8 rows}}
  %r = moe.mean_loss %l weights(%w : tensor<7xf32>) over %c : tensor<8xf32>
  return
}

// -----

func.func @mean_loss_grad_mlg1_weights(%w: tensor<7xf32>, %c: tensor<f32>) {
  // expected-error @+1 {{MLG1: weights has 7 elements, where there are 8 rows}}
  %r = moe.mean_loss_grad %c weights(%w : tensor<7xf32>) over %c : tensor<8xf32>
  return
}

// -----

shard.grid @vocab(shape = 2x2)
func.func @shift_sh1_dynamic(%x: tensor<?xf32>) {
  // expected-error @+1 {{operand #0 must be statically shaped tensor of any type values, but got 'tensor<?xf32>'}}
  %r = moe.shift %x into %x on @vocab hops(1) : tensor<?xf32>
  return
}

// -----

shard.grid @vocab(shape = 2x2)
func.func @shift_sh1_types(%x: tensor<2xf32>, %y: tensor<3xf32>) {
  // expected-error @+1 {{failed to verify that all of {input, into, result} have same type}}
  %r = "moe.shift"(%x, %y) <{grid = @vocab, hops = 1 : i64}> : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

shard.grid @vocab(shape = 2x2)
func.func @shift_sh2_grid(%x: tensor<2xf32>) {
  // expected-error @+1 {{SH2: there is no grid @none with static sizes of at most 2^31 - 1 ranks}}
  %r = moe.shift %x into %x on @none hops(1) : tensor<2xf32>
  return
}

// -----

shard.grid @vocab(shape = 2x2)
func.func @shard_start_st1_grid() {
  // expected-error @+1 {{ST1: there is no grid @none with static sizes of at most 2^31 - 1 ranks}}
  %r = moe.shard_start on @none hops(1) rows(4)
  return
}

// -----

shard.grid @vocab(shape = 2x2)
func.func @shard_start_rows() {
  // expected-error @+1 {{attribute 'rows' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %r = moe.shard_start on @vocab hops(1) rows(-4)
  return
}

// -----

func.func @fold_logits_fl1_labels(%y: tensor<4x2xf32>, %l: tensor<3xi32>, %f: tensor<i32>, %j: index, %s: tensor<4x3xf32>) {
  // expected-error @+1 {{FL1: labels has 3 rows, and the others 4}}
  %r = moe.fold_logits %y, %l first(%f) column(%j) into %s vocabulary<size = 8> : (tensor<4x2xf32>, tensor<3xi32>, tensor<i32>, index, tensor<4x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @fold_logits_fl1_state(%y: tensor<4x2xf32>, %l: tensor<4xi32>, %f: tensor<i32>, %j: index, %s: tensor<3x3xf32>) {
  // expected-error @+1 {{FL1: state has 3 rows, and the others 4}}
  %r = moe.fold_logits %y, %l first(%f) column(%j) into %s vocabulary<size = 8> : (tensor<4x2xf32>, tensor<4xi32>, tensor<i32>, index, tensor<3x3xf32>) -> tensor<3x3xf32>
  return
}

// -----

func.func @fold_logits_fl1_numbers(%y: tensor<4x2xf32>, %l: tensor<4xi32>, %f: tensor<i32>, %j: index, %s: tensor<4x4xf32>) {
  // expected-error @+1 {{FL1: a state has 4 numbers, and must have 3}}
  %r = moe.fold_logits %y, %l first(%f) column(%j) into %s vocabulary<size = 8> : (tensor<4x2xf32>, tensor<4xi32>, tensor<i32>, index, tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @fold_logits_fl1_smoothing(%y: tensor<4x2xf32>, %l: tensor<4xi32>, %f: tensor<i32>, %j: index, %s: tensor<4x3xf32>) {
  // expected-error @+1 {{FL1: a state has 3 numbers, and must have 4}}
  %r = moe.fold_logits %y, %l first(%f) column(%j) into %s vocabulary<size = 8, label_smoothing = 0.5> : (tensor<4x2xf32>, tensor<4xi32>, tensor<i32>, index, tensor<4x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @fold_logits_fl2_bias(%y: tensor<4x2xf32>, %l: tensor<4xi32>, %f: tensor<i32>, %j: index, %b: tensor<3xf32>, %s: tensor<4x3xf32>) {
  // expected-error @+1 {{FL2: the bias has 3 elements for 2 columns}}
  %r = moe.fold_logits %y, %l first(%f) column(%j) bias %b into %s vocabulary<size = 8> : (tensor<4x2xf32>, tensor<4xi32>, tensor<i32>, index, tensor<3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @merge_states_ms1_numbers(%s: tensor<8x4xf32>) {
  // expected-error @+1 {{MS1: a state has 4 numbers, and must have 3}}
  %r = moe.merge_states %s vocabulary<size = 8> : tensor<8x4xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @merge_states_ms1_result(%s: tensor<8x4xf32>) {
  // expected-error @+1 {{MS1: a state has 3 numbers, and must have 4}}
  %r = moe.merge_states %s vocabulary<size = 8, label_smoothing = 0.5> : tensor<8x4xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @merge_states_ms1_rows(%s: tensor<9x3xf32>) {
  // expected-error @+1 {{MS1: 9 states are no whole number of times 4}}
  %r = moe.merge_states %s vocabulary<size = 8> : tensor<9x3xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @merge_states_ms1_no_parts(%s: tensor<0x3xf32>) {
  // expected-error @+1 {{MS1: 0 states are no whole number of times 4}}
  %r = moe.merge_states %s vocabulary<size = 8> : tensor<0x3xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @merge_states_ms1_no_rows(%s: tensor<8x3xf32>) {
  // expected-error @+1 {{MS1: 8 states are no whole number of times 0}}
  %r = moe.merge_states %s vocabulary<size = 8> : tensor<8x3xf32> -> tensor<0x3xf32>
  return
}

// -----

func.func @finish_losses_fi1_numbers(%s: tensor<4x4xf32>, %l: tensor<4xi32>) {
  // expected-error @+1 {{FI1: a state has 4 numbers, and must have 3}}
  %r:2 = moe.finish_losses %s, %l vocabulary<size = 8> : (tensor<4x4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @finish_losses_fi1_labels(%s: tensor<4x3xf32>, %l: tensor<3xi32>) {
  // expected-error @+1 {{FI1: labels has 3 rows, and the others 4}}
  %r:2 = moe.finish_losses %s, %l vocabulary<size = 8> : (tensor<4x3xf32>, tensor<3xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @finish_losses_fi1_losses(%s: tensor<4x3xf32>, %l: tensor<4xi32>) {
  // expected-error @+1 {{FI1: losses has 3 rows, and the others 4}}
  %r:2 = moe.finish_losses %s, %l vocabulary<size = 8> : (tensor<4x3xf32>, tensor<4xi32>) -> (tensor<3xf32>, tensor<4xf32>)
  return
}

// -----

func.func @finish_losses_fi1_lse(%s: tensor<4x3xf32>, %l: tensor<4xi32>) {
  // expected-error @+1 {{FI1: lse has 3 rows, and the others 4}}
  %r:2 = moe.finish_losses %s, %l vocabulary<size = 8> : (tensor<4x3xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<3xf32>)
  return
}

// -----

func.func @logits_grad_lg1_result(%y: tensor<4x2xf32>, %l: tensor<4xi32>, %e: tensor<4xf32>, %g: tensor<4xf32>, %f: tensor<i32>, %j: index) {
  // expected-error @+1 {{LG1: the gradient of 'tensor<4x2xf32>' is 'tensor<4x3xf32>'}}
  %r = moe.logits_grad %y, %l, %e, %g first(%f) column(%j) vocabulary<size = 8> : (tensor<4x2xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, index) -> tensor<4x3xf32>
  return
}

// -----

func.func @logits_grad_lg1_element(%y: tensor<4x2xbf16>, %l: tensor<4xi32>, %e: tensor<4xf32>, %g: tensor<4xf32>, %f: tensor<i32>, %j: index) {
  // expected-error @+1 {{operand #0 must be static tensor [rows, columns] of 32-bit float values, but got 'tensor<4x2xbf16>'}}
  %r = moe.logits_grad %y, %l, %e, %g first(%f) column(%j) vocabulary<size = 8> : (tensor<4x2xbf16>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, index) -> tensor<4x2xf32>
  return
}

// -----

func.func @logits_grad_lg1_labels(%y: tensor<4x2xf32>, %l: tensor<3xi32>, %e: tensor<4xf32>, %g: tensor<4xf32>, %f: tensor<i32>, %j: index) {
  // expected-error @+1 {{LG1: labels has 3 rows, and the others 4}}
  %r = moe.logits_grad %y, %l, %e, %g first(%f) column(%j) vocabulary<size = 8> : (tensor<4x2xf32>, tensor<3xi32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, index) -> tensor<4x2xf32>
  return
}

// -----

func.func @logits_grad_lg1_lse(%y: tensor<4x2xf32>, %l: tensor<4xi32>, %e: tensor<3xf32>, %g: tensor<4xf32>, %f: tensor<i32>, %j: index) {
  // expected-error @+1 {{LG1: lse has 3 rows, and the others 4}}
  %r = moe.logits_grad %y, %l, %e, %g first(%f) column(%j) vocabulary<size = 8> : (tensor<4x2xf32>, tensor<4xi32>, tensor<3xf32>, tensor<4xf32>, tensor<i32>, index) -> tensor<4x2xf32>
  return
}

// -----

func.func @logits_grad_lg1_cotangents(%y: tensor<4x2xf32>, %l: tensor<4xi32>, %e: tensor<4xf32>, %g: tensor<3xf32>, %f: tensor<i32>, %j: index) {
  // expected-error @+1 {{LG1: cotangents has 3 rows, and the others 4}}
  %r = moe.logits_grad %y, %l, %e, %g first(%f) column(%j) vocabulary<size = 8> : (tensor<4x2xf32>, tensor<4xi32>, tensor<4xf32>, tensor<3xf32>, tensor<i32>, index) -> tensor<4x2xf32>
  return
}

// -----

func.func @logits_grad_lg2_bias(%y: tensor<4x2xf32>, %l: tensor<4xi32>, %e: tensor<4xf32>, %g: tensor<4xf32>, %f: tensor<i32>, %j: index, %b: tensor<3xf32>) {
  // expected-error @+1 {{LG2: the bias has 3 elements for 2 columns}}
  %r = moe.logits_grad %y, %l, %e, %g first(%f) column(%j) bias %b vocabulary<size = 8> : (tensor<4x2xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, index, tensor<3xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @column_sums_cs1_columns(%d: tensor<4x2xf32>, %s: tensor<3xf32>) {
  // expected-error @+1 {{CS1: there are 3 sums for 2 columns}}
  %r = moe.column_sums %d into %s : tensor<4x2xf32>, tensor<3xf32>
  return
}

// -----

shard.grid @vocab(shape = 2x2)
func.func @embedding_e3_size(%t: tensor<2x3xf32>, %i: tensor<8xi32>) {
  // expected-error @+1 {{E3: has a size and no grid}}
  %r = moe.embedding %t, %i size(4) : (tensor<2x3xf32>, tensor<8xi32>) -> tensor<8x3xf32>
  return
}

// -----

shard.grid @vocab(shape = 2x2)
func.func @embedding_e3_no_size(%t: tensor<2x3xf32>, %i: tensor<8xi32>) {
  // expected-error @+1 {{E3: has a grid and no size}}
  %r = moe.embedding %t, %i on @vocab : (tensor<2x3xf32>, tensor<8xi32>) -> tensor<8x3xf32>
  return
}

// -----

shard.grid @vocab(shape = 2x2)
func.func @embedding_e3_grid(%t: tensor<2x3xf32>, %i: tensor<8xi32>) {
  // expected-error @+1 {{E3: there is no grid @none with static sizes of at most 2^31 - 1 ranks}}
  %r = moe.embedding %t, %i on @none size(4) : (tensor<2x3xf32>, tensor<8xi32>) -> tensor<8x3xf32>
  return
}

// -----

shard.grid @vocab(shape = 2x2)
func.func @embedding_e3_shards(%t: tensor<2x3xf32>, %i: tensor<8xi32>) {
  // expected-error @+1 {{E3: 2 shards of 2 rows do not hold a table of 5}}
  %r = moe.embedding %t, %i on @vocab size(5) : (tensor<2x3xf32>, tensor<8xi32>) -> tensor<8x3xf32>
  return
}

// -----

shard.grid @vocab(shape = 2x2)
func.func @embedding_grad_eg3_no_size(%d: tensor<8x3xf32>, %i: tensor<8xi32>) {
  // expected-error @+1 {{EG3: has a grid and no size}}
  %r = moe.embedding_grad %d, %i on @vocab : (tensor<8x3xf32>, tensor<8xi32>) -> tensor<2x3xf32>
  return
}

// -----

shard.grid @vocab(shape = 2x2)
func.func @embedding_grad_eg3_grid(%d: tensor<8x3xf32>, %i: tensor<8xi32>) {
  // expected-error @+1 {{EG3: there is no grid @none}}
  %r = moe.embedding_grad %d, %i on @none size(4) : (tensor<8x3xf32>, tensor<8xi32>) -> tensor<2x3xf32>
  return
}

// -----

shard.grid @vocab(shape = 2x2)
func.func @embedding_grad_eg3_shards(%d: tensor<8x3xf32>, %i: tensor<8xi32>) {
  // expected-error @+1 {{EG3: 2 shards of 2 rows do not hold a table of 5}}
  %r = moe.embedding_grad %d, %i on @vocab size(5) : (tensor<8x3xf32>, tensor<8xi32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @embedding_shard_es1_rows(%t: tensor<4x3xf32>, %i: tensor<8xi32>, %f: tensor<i32>) {
  // expected-error @+1 {{ES1: rows are [7, 3], but there are 8 ids and the shard has 3 columns}}
  %r = moe.embedding_shard %t, %i first(%f) size(8) : (tensor<4x3xf32>, tensor<8xi32>, tensor<i32>) -> tensor<7x3xf32>
  return
}

// -----

func.func @embedding_shard_es1_columns(%t: tensor<4x3xf32>, %i: tensor<8xi32>, %f: tensor<i32>) {
  // expected-error @+1 {{ES1: rows are [8, 4], but there are 8 ids and the shard has 3 columns}}
  %r = moe.embedding_shard %t, %i first(%f) size(8) : (tensor<4x3xf32>, tensor<8xi32>, tensor<i32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @embedding_shard_es1_element(%t: tensor<4x3xf32>, %i: tensor<8xi32>, %f: tensor<i32>) {
  // expected-error @+1 {{ES1: rows are 'bf16' and the shard is 'f32'}}
  %r = moe.embedding_shard %t, %i first(%f) size(8) : (tensor<4x3xf32>, tensor<8xi32>, tensor<i32>) -> tensor<8x3xbf16>
  return
}

// -----

func.func @embedding_shard_grad_eh1_rows(%d: tensor<7x3xf32>, %i: tensor<8xi32>, %f: tensor<i32>, %s: tensor<4x3xf32>) {
  // expected-error @+1 {{EH1: rows are [7, 3], but there are 8 ids and the shard has 3 columns}}
  %r = moe.embedding_shard_grad %d, %i first(%f) into %s : (tensor<7x3xf32>, tensor<8xi32>, tensor<i32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @embedding_shard_grad_eh1_columns(%d: tensor<8x3xf32>, %i: tensor<8xi32>, %f: tensor<i32>, %s: tensor<4x4xf32>) {
  // expected-error @+1 {{EH1: rows are [8, 3], but there are 8 ids and the shard has 4 columns}}
  %r = moe.embedding_shard_grad %d, %i first(%f) into %s : (tensor<8x3xf32>, tensor<8xi32>, tensor<i32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @embedding_shard_grad_eh1_element(%d: tensor<8x3xf32>, %i: tensor<8xi32>, %f: tensor<i32>, %s: tensor<4x3xbf16>) {
  // expected-error @+1 {{operand #3 must be static tensor [rows, columns] of 32-bit float values, but got 'tensor<4x3xbf16>'}}
  %r = moe.embedding_shard_grad %d, %i first(%f) into %s : (tensor<8x3xf32>, tensor<8xi32>, tensor<i32>, tensor<4x3xbf16>) -> tensor<4x3xbf16>
  return
}

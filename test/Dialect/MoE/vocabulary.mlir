// RUN: plateau-opt %s --mlir-print-local-scope | FileCheck %s
// RUN: plateau-opt %s | plateau-opt --mlir-print-local-scope | FileCheck %s
// RUN: plateau-opt %s --mlir-print-op-generic | plateau-opt --mlir-print-local-scope | FileCheck %s
// RUN: plateau-opt %s --emit-bytecode -o %t.mlirbc && plateau-opt %t.mlirbc --mlir-print-local-scope | FileCheck %s

// CHECK: shard.grid @vocab(shape = 2x4)
shard.grid @vocab(shape = 2x4)

// CHECK-LABEL: func.func @vocab_loss
// CHECK-SAME: (%[[X:[^ ,:]*]]: tensor<8x3xf32>, %[[T:[^ ,:]*]]: tensor<14x3xf32>, %[[L:[^ ,:]*]]: tensor<8xi32>, %[[G:[^ ,:]*]]: tensor<8xf32>)
func.func @vocab_loss(%x: tensor<8x3xf32>, %t: tensor<14x3xf32>, %l: tensor<8xi32>, %g: tensor<8xf32>) {
  // CHECK: %[[R0:[^ ,:]*]], %[[R1:[^ ,:]*]] = moe.vocab_loss %[[X]], %[[T]], %[[L]] vocabulary<size = 14> : (tensor<8x3xf32>, tensor<14x3xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  %r0, %r1 = moe.vocab_loss %x, %t, %l vocabulary<size = 14> : (tensor<8x3xf32>, tensor<14x3xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
  // CHECK: %[[D0:[^ ,:]*]], %[[D1:[^ ,:]*]] = moe.vocab_loss_grad %[[G]], %[[X]], %[[T]], %[[L]], %[[R1]] vocabulary<size = 14> : (tensor<8xf32>, tensor<8x3xf32>, tensor<14x3xf32>, tensor<8xi32>, tensor<8xf32>) -> (tensor<8x3xf32>, tensor<14x3xf32>)
  %d0, %d1 = moe.vocab_loss_grad %g, %x, %t, %l, %r1 vocabulary<size = 14> : (tensor<8xf32>, tensor<8x3xf32>, tensor<14x3xf32>, tensor<8xi32>, tensor<8xf32>) -> (tensor<8x3xf32>, tensor<14x3xf32>)
  return
}

// CHECK-LABEL: func.func @vocab_loss_of_shards
// CHECK-SAME: (%[[X:[^ ,:]*]]: tensor<8x3xbf16>, %[[T:[^ ,:]*]]: tensor<4x3xbf16>, %[[L:[^ ,:]*]]: tensor<8xi32>, %[[B:[^ ,:]*]]: tensor<4xf32>, %[[G:[^ ,:]*]]: tensor<8xf32>)
func.func @vocab_loss_of_shards(%x: tensor<8x3xbf16>, %t: tensor<4x3xbf16>, %l: tensor<8xi32>, %b: tensor<4xf32>, %g: tensor<8xf32>) {
  // CHECK: %[[R0:[^ ,:]*]], %[[R1:[^ ,:]*]] = moe.vocab_loss %[[X]], %[[T]], %[[L]] bias %[[B]] on @vocab vocabulary<size = 14, ignore_index = -1, label_smoothing = 1.000000e-01> : (tensor<8x3xbf16>, tensor<4x3xbf16>, tensor<8xi32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %r0, %r1 = moe.vocab_loss %x, %t, %l bias %b on @vocab vocabulary<size = 14, ignore_index = -1, label_smoothing = 1.000000e-01> : (tensor<8x3xbf16>, tensor<4x3xbf16>, tensor<8xi32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  // CHECK: %[[D0:[^ ,:]*]], %[[D1:[^ ,:]*]], %[[D2:[^ ,:]*]] = moe.vocab_loss_grad %[[G]], %[[X]], %[[T]], %[[L]], %[[R1]] bias %[[B]] on @vocab vocabulary<size = 14, ignore_index = -1, label_smoothing = 1.000000e-01> : (tensor<8xf32>, tensor<8x3xbf16>, tensor<4x3xbf16>, tensor<8xi32>, tensor<8xf32>, tensor<4xf32>) -> (tensor<8x3xbf16>, tensor<4x3xf32>, tensor<4xf32>)
  %d0, %d1, %d2 = moe.vocab_loss_grad %g, %x, %t, %l, %r1 bias %b on @vocab vocabulary<size = 14, ignore_index = -1, label_smoothing = 1.000000e-01> : (tensor<8xf32>, tensor<8x3xbf16>, tensor<4x3xbf16>, tensor<8xi32>, tensor<8xf32>, tensor<4xf32>) -> (tensor<8x3xbf16>, tensor<4x3xf32>, tensor<4xf32>)
  return
}

// CHECK-LABEL: func.func @vocab_loss_of_no_rows
// CHECK-SAME: (%[[X:[^ ,:]*]]: tensor<0x3xf32>, %[[T:[^ ,:]*]]: tensor<4x3xf32>, %[[L:[^ ,:]*]]: tensor<0xi32>)
func.func @vocab_loss_of_no_rows(%x: tensor<0x3xf32>, %t: tensor<4x3xf32>, %l: tensor<0xi32>) {
  // CHECK: %[[R0:[^ ,:]*]], %[[R1:[^ ,:]*]] = moe.vocab_loss %[[X]], %[[T]], %[[L]] on @vocab vocabulary<size = 13> : (tensor<0x3xf32>, tensor<4x3xf32>, tensor<0xi32>) -> (tensor<0xf32>, tensor<0xf32>)
  %r0, %r1 = moe.vocab_loss %x, %t, %l on @vocab vocabulary<size = 13> : (tensor<0x3xf32>, tensor<4x3xf32>, tensor<0xi32>) -> (tensor<0xf32>, tensor<0xf32>)
  return
}

// CHECK-LABEL: func.func @standard_form
// CHECK-SAME: (%[[Y:[^ ,:]*]]: tensor<8x16xf32>, %[[L:[^ ,:]*]]: tensor<8xi32>)
func.func @standard_form(%y: tensor<8x16xf32>, %l: tensor<8xi32>) {
  // CHECK: %[[P0:[^ ,:]*]], %[[P1:[^ ,:]*]] = moe.log_softmax %[[Y]] vocabulary<size = 16> : (tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8xf32>)
  %p0, %p1 = moe.log_softmax %y vocabulary<size = 16> : (tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8xf32>)
  // CHECK: %[[C:[^ ,:]*]] = moe.count_labels %[[L]] ignore_index(-100) : tensor<8xi32>
  %c = moe.count_labels %l ignore_index(-100) : tensor<8xi32>
  // CHECK: %[[N:[^ ,:]*]] = moe.nll %[[P0]], %[[P1]], %[[L]] vocabulary<size = 16> : (tensor<8x16xf32>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  %n = moe.nll %p0, %p1, %l vocabulary<size = 16> : (tensor<8x16xf32>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  // CHECK: %[[M:[^ ,:]*]] = moe.mean_loss %[[N]] over %[[C]] : tensor<8xf32>
  %m = moe.mean_loss %n over %c : tensor<8xf32>
  // CHECK: %[[G:[^ ,:]*]] = moe.mean_loss_grad %[[M]] over %[[C]] : tensor<8xf32>
  %g = moe.mean_loss_grad %m over %c : tensor<8xf32>
  // CHECK: %[[Q0:[^ ,:]*]], %[[Q1:[^ ,:]*]] = moe.nll_grad %[[G]], %[[P1]], %[[L]] vocabulary<size = 16> : (tensor<8xf32>, tensor<8xf32>, tensor<8xi32>) -> (tensor<8x16xf32>, tensor<8xf32>)
  %q0, %q1 = moe.nll_grad %g, %p1, %l vocabulary<size = 16> : (tensor<8xf32>, tensor<8xf32>, tensor<8xi32>) -> (tensor<8x16xf32>, tensor<8xf32>)
  // CHECK: %[[D:[^ ,:]*]] = moe.log_softmax_grad %[[Q0]], %[[P0]], %[[P1]] vocabulary<size = 16> : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8xf32>) -> tensor<8x16xf32>
  %d = moe.log_softmax_grad %q0, %p0, %p1 vocabulary<size = 16> : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8xf32>) -> tensor<8x16xf32>
  return
}

// CHECK-LABEL: func.func @standard_form_with_options
// CHECK-SAME: (%[[Y:[^ ,:]*]]: tensor<8x16xf32>, %[[L:[^ ,:]*]]: tensor<8xi32>, %[[B:[^ ,:]*]]: tensor<16xf32>, %[[W:[^ ,:]*]]: tensor<8xf32>, %[[C:[^ ,:]*]]: tensor<f32>)
func.func @standard_form_with_options(%y: tensor<8x16xf32>, %l: tensor<8xi32>, %b: tensor<16xf32>, %w: tensor<8xf32>, %c: tensor<f32>) {
  // CHECK: %[[P0:[^ ,:]*]], %[[P1:[^ ,:]*]] = moe.log_softmax %[[Y]] bias %[[B]] vocabulary<size = 14, softcap = 3.000000e+01> : (tensor<8x16xf32>, tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8xf32>)
  %p0, %p1 = moe.log_softmax %y bias %b vocabulary<size = 14, softcap = 3.000000e+01> : (tensor<8x16xf32>, tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8xf32>)
  // CHECK: %[[N:[^ ,:]*]] = moe.nll %[[P0]], %[[P1]], %[[L]] vocabulary<size = 14, z_loss = 5.000000e-01> : (tensor<8x16xf32>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  %n = moe.nll %p0, %p1, %l vocabulary<size = 14, z_loss = 5.000000e-01> : (tensor<8x16xf32>, tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  // CHECK: %[[M:[^ ,:]*]] = moe.mean_loss %[[N]] weights(%[[W]] : tensor<8xf32>) over %[[C]] : tensor<8xf32>
  %m = moe.mean_loss %n weights(%w : tensor<8xf32>) over %c : tensor<8xf32>
  // CHECK: %[[G:[^ ,:]*]] = moe.mean_loss_grad %[[M]] weights(%[[W]] : tensor<8xf32>) over %[[C]] : tensor<8xf32>
  %g = moe.mean_loss_grad %m weights(%w : tensor<8xf32>) over %c : tensor<8xf32>
  // CHECK: %[[Q0:[^ ,:]*]], %[[Q1:[^ ,:]*]] = moe.nll_grad %[[G]], %[[P1]], %[[L]] vocabulary<size = 14, z_loss = 5.000000e-01> : (tensor<8xf32>, tensor<8xf32>, tensor<8xi32>) -> (tensor<8x16xf32>, tensor<8xf32>)
  %q0, %q1 = moe.nll_grad %g, %p1, %l vocabulary<size = 14, z_loss = 5.000000e-01> : (tensor<8xf32>, tensor<8xf32>, tensor<8xi32>) -> (tensor<8x16xf32>, tensor<8xf32>)
  // CHECK: %[[D0:[^ ,:]*]], %[[D1:[^ ,:]*]] = moe.log_softmax_grad %[[Q0]], %[[P0]], %[[P1]] lse_cotangent %[[Q1]] vocabulary<size = 14, softcap = 3.000000e+01> : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8x16xf32>, tensor<16xf32>)
  %d0, %d1 = moe.log_softmax_grad %q0, %p0, %p1 lse_cotangent %q1 vocabulary<size = 14, softcap = 3.000000e+01> : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8x16xf32>, tensor<16xf32>)
  return
}

// CHECK-LABEL: func.func @tiles
// CHECK-SAME: (%[[Y:[^ ,:]*]]: tensor<4x2xf32>, %[[L:[^ ,:]*]]: tensor<4xi32>, %[[S:[^ ,:]*]]: tensor<4x3xf32>, %[[G:[^ ,:]*]]: tensor<4xf32>, %[[B:[^ ,:]*]]: tensor<2xf32>, %[[J:[^ ,:]*]]: index)
func.func @tiles(%y: tensor<4x2xf32>, %l: tensor<4xi32>, %s: tensor<4x3xf32>, %g: tensor<4xf32>, %b: tensor<2xf32>, %j: index) {
  // CHECK: %[[F:[^ ,:]*]] = moe.shard_start on @vocab hops(-1) rows(4)
  %f = moe.shard_start on @vocab hops(-1) rows(4)
  // CHECK: %[[S1:[^ ,:]*]] = moe.fold_logits %[[Y]], %[[L]] first(%[[F]]) column(%[[J]]) into %[[S]] vocabulary<size = 14> : (tensor<4x2xf32>, tensor<4xi32>, tensor<i32>, index, tensor<4x3xf32>) -> tensor<4x3xf32>
  %s1 = moe.fold_logits %y, %l first(%f) column(%j) into %s vocabulary<size = 14> : (tensor<4x2xf32>, tensor<4xi32>, tensor<i32>, index, tensor<4x3xf32>) -> tensor<4x3xf32>
  // CHECK: %[[S2:[^ ,:]*]] = moe.fold_logits %[[Y]], %[[L]] first(%[[F]]) column(%[[J]]) bias %[[B]] into %[[S1]] vocabulary<size = 14> : (tensor<4x2xf32>, tensor<4xi32>, tensor<i32>, index, tensor<2xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %s2 = moe.fold_logits %y, %l first(%f) column(%j) bias %b into %s1 vocabulary<size = 14> : (tensor<4x2xf32>, tensor<4xi32>, tensor<i32>, index, tensor<2xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  // CHECK: %[[S3:[^ ,:]*]] = moe.merge_states %[[S2]] vocabulary<size = 14> : tensor<4x3xf32> -> tensor<2x3xf32>
  %s3 = moe.merge_states %s2 vocabulary<size = 14> : tensor<4x3xf32> -> tensor<2x3xf32>
  // CHECK: %[[E0:[^ ,:]*]], %[[E1:[^ ,:]*]] = moe.finish_losses %[[S2]], %[[L]] vocabulary<size = 14> : (tensor<4x3xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %e0, %e1 = moe.finish_losses %s2, %l vocabulary<size = 14> : (tensor<4x3xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  // CHECK: %[[D:[^ ,:]*]] = moe.logits_grad %[[Y]], %[[L]], %[[E1]], %[[G]] first(%[[F]]) column(%[[J]]) vocabulary<size = 14> : (tensor<4x2xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, index) -> tensor<4x2xf32>
  %d = moe.logits_grad %y, %l, %e1, %g first(%f) column(%j) vocabulary<size = 14> : (tensor<4x2xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, index) -> tensor<4x2xf32>
  // CHECK: %[[H:[^ ,:]*]] = moe.logits_grad %[[Y]], %[[L]], %[[E1]], %[[G]] first(%[[F]]) column(%[[J]]) bias %[[B]] vocabulary<size = 14> : (tensor<4x2xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, index, tensor<2xf32>) -> tensor<4x2xbf16>
  %h = moe.logits_grad %y, %l, %e1, %g first(%f) column(%j) bias %b vocabulary<size = 14> : (tensor<4x2xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, index, tensor<2xf32>) -> tensor<4x2xbf16>
  // CHECK: %[[U:[^ ,:]*]] = moe.column_sums %[[D]] into %[[B]] : tensor<4x2xf32>, tensor<2xf32>
  %u = moe.column_sums %d into %b : tensor<4x2xf32>, tensor<2xf32>
  // CHECK: %[[V:[^ ,:]*]] = moe.column_sums %[[H]] into %[[U]] : tensor<4x2xbf16>, tensor<2xf32>
  %v = moe.column_sums %h into %u : tensor<4x2xbf16>, tensor<2xf32>
  // CHECK: %[[W:[^ ,:]*]] = moe.shift %[[U]] into %[[V]] on @vocab hops(1) : tensor<2xf32>
  %w = moe.shift %u into %v on @vocab hops(1) : tensor<2xf32>
  return
}

// CHECK-LABEL: func.func @tiles_with_smoothing
// CHECK-SAME: (%[[Y:[^ ,:]*]]: tensor<4x2xf32>, %[[L:[^ ,:]*]]: tensor<4xi32>, %[[S:[^ ,:]*]]: tensor<4x4xf32>, %[[F:[^ ,:]*]]: tensor<i32>, %[[J:[^ ,:]*]]: index)
func.func @tiles_with_smoothing(%y: tensor<4x2xf32>, %l: tensor<4xi32>, %s: tensor<4x4xf32>, %f: tensor<i32>, %j: index) {
  // CHECK: %[[S1:[^ ,:]*]] = moe.fold_logits %[[Y]], %[[L]] first(%[[F]]) column(%[[J]]) into %[[S]] vocabulary<size = 14, label_smoothing = 5.000000e-01> : (tensor<4x2xf32>, tensor<4xi32>, tensor<i32>, index, tensor<4x4xf32>) -> tensor<4x4xf32>
  %s1 = moe.fold_logits %y, %l first(%f) column(%j) into %s vocabulary<size = 14, label_smoothing = 5.000000e-01> : (tensor<4x2xf32>, tensor<4xi32>, tensor<i32>, index, tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[S3:[^ ,:]*]] = moe.merge_states %[[S1]] vocabulary<size = 14, label_smoothing = 5.000000e-01> : tensor<4x4xf32> -> tensor<1x4xf32>
  %s3 = moe.merge_states %s1 vocabulary<size = 14, label_smoothing = 5.000000e-01> : tensor<4x4xf32> -> tensor<1x4xf32>
  // CHECK: %[[E0:[^ ,:]*]], %[[E1:[^ ,:]*]] = moe.finish_losses %[[S1]], %[[L]] vocabulary<size = 14, label_smoothing = 5.000000e-01> : (tensor<4x4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %e0, %e1 = moe.finish_losses %s1, %l vocabulary<size = 14, label_smoothing = 5.000000e-01> : (tensor<4x4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// CHECK-LABEL: func.func @embedding_of_shards
// CHECK-SAME: (%[[T:[^ ,:]*]]: tensor<4x3xbf16>, %[[I:[^ ,:]*]]: tensor<8xi32>, %[[A:[^ ,:]*]]: tensor<4x3xf32>)
func.func @embedding_of_shards(%t: tensor<4x3xbf16>, %i: tensor<8xi32>, %a: tensor<4x3xf32>) {
  // CHECK: %[[X:[^ ,:]*]] = moe.embedding %[[T]], %[[I]] on @vocab size(14) : (tensor<4x3xbf16>, tensor<8xi32>) -> tensor<8x3xbf16>
  %x = moe.embedding %t, %i on @vocab size(14) : (tensor<4x3xbf16>, tensor<8xi32>) -> tensor<8x3xbf16>
  // CHECK: %[[D:[^ ,:]*]] = moe.embedding_grad %[[X]], %[[I]] on @vocab size(14) : (tensor<8x3xbf16>, tensor<8xi32>) -> tensor<4x3xbf16>
  %d = moe.embedding_grad %x, %i on @vocab size(14) : (tensor<8x3xbf16>, tensor<8xi32>) -> tensor<4x3xbf16>
  // CHECK: %[[F:[^ ,:]*]] = moe.shard_start on @vocab hops(0) rows(4)
  %f = moe.shard_start on @vocab hops(0) rows(4)
  // CHECK: %[[Y:[^ ,:]*]] = moe.embedding_shard %[[T]], %[[I]] first(%[[F]]) size(14) : (tensor<4x3xbf16>, tensor<8xi32>, tensor<i32>) -> tensor<8x3xbf16>
  %y = moe.embedding_shard %t, %i first(%f) size(14) : (tensor<4x3xbf16>, tensor<8xi32>, tensor<i32>) -> tensor<8x3xbf16>
  // CHECK: %[[E:[^ ,:]*]] = moe.embedding_shard_grad %[[Y]], %[[I]] first(%[[F]]) into %[[A]] : (tensor<8x3xbf16>, tensor<8xi32>, tensor<i32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %e = moe.embedding_shard_grad %y, %i first(%f) into %a : (tensor<8x3xbf16>, tensor<8xi32>, tensor<i32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return
}

// RUN: plateau-opt %s --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: plateau-opt %s --mlir-print-debuginfo | plateau-opt --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: plateau-opt %s --emit-bytecode -o %t.mlirbc && plateau-opt %t.mlirbc --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// CHECK-LABEL: func.func @loss
// CHECK-SAME: tensor<8xi32> {moe.role = #moe.role<tokens>}
// CHECK-SAME: tensor<8xi32> {moe.role = #moe.role<labels>}
// CHECK-SAME: tensor<8xi32> {moe.role = #moe.role<positions>}
// CHECK-SAME: tensor<8xi32> {moe.role = #moe.role<starts>}
// CHECK-SAME: tensor<16x4xf32> {moe.parameter = #moe.parameter<"model.embed_tokens.weight", decay = true, mean = 0.000000e+00 : f64, deviation = 2.000000e-02 : f64>}
// CHECK-SAME: tensor<4xbf16> {moe.parameter = #moe.parameter<"model.norm.weight", decay = false, mean = 1.000000e+00 : f64, deviation = 0.000000e+00 : f64>}
// CHECK-SAME: -> (tensor<f32> {moe.role = #moe.role<loss>})
func.func @loss(%tokens: tensor<8xi32> {moe.role = #moe.role<tokens>}, %labels: tensor<8xi32> {moe.role = #moe.role<labels>},
                %positions: tensor<8xi32> {moe.role = #moe.role<positions>}, %starts: tensor<8xi32> {moe.role = #moe.role<starts>},
                %table: tensor<16x4xf32> {moe.parameter = #moe.parameter<"model.embed_tokens.weight", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>},
                %norm: tensor<4xbf16> {moe.parameter = #moe.parameter<"model.norm.weight", decay = false, mean = 1.0 : f64, deviation = 0.0 : f64>})
    -> (tensor<f32> {moe.role = #moe.role<loss>}) {
  %loss = moe.count_labels %labels ignore_index(-100) : tensor<8xi32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func.func @step
// CHECK-SAME: tensor<f32> {moe.role = #moe.role<learning_rate>}
// CHECK-SAME: tensor<i32> {moe.role = #moe.role<step>}
// CHECK-SAME: tensor<24xbf16> {moe.donated = 1 : i64, moe.layout = #moe.layout<[<<"w", decay = true, mean = 0.000000e+00 : f64, deviation = 2.000000e-02 : f64>, offset = 0, shape = [4, 4]>, <<"b", decay = false, mean = 1.000000e+00 : f64, deviation = 0.000000e+00 : f64>, offset = 16, shape = [4]>]>, moe.role = #moe.role<parameters>}
// CHECK-SAME: moe.role = #moe.role<gradients>
// CHECK-SAME: moe.role = #moe.role<first_moment>
// CHECK-SAME: moe.role = #moe.role<second_moment>
// CHECK-SAME: moe.role = #moe.role<master>
// CHECK-SAME: -> (tensor<f32> {moe.role = #moe.role<gradient_norm>}, tensor<24xbf16> {moe.role = #moe.role<parameters>})
func.func @step(%lr: tensor<f32> {moe.role = #moe.role<learning_rate>}, %t: tensor<i32> {moe.role = #moe.role<step>},
                %p: tensor<24xbf16> {moe.role = #moe.role<parameters>, moe.donated = 1 : i64, moe.layout = #moe.layout<[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>, <<"b", decay = false, mean = 1.0 : f64, deviation = 0.0 : f64>, offset = 16, shape = [4]>]>},
                %g: tensor<24xf32> {moe.role = #moe.role<gradients>}, %m: tensor<24xf32> {moe.role = #moe.role<first_moment>},
                %v: tensor<24xf32> {moe.role = #moe.role<second_moment>}, %w: tensor<24xf32> {moe.role = #moe.role<master>})
    -> (tensor<f32> {moe.role = #moe.role<gradient_norm>}, tensor<24xbf16> {moe.role = #moe.role<parameters>}) {
  return %lr, %p : tensor<f32>, tensor<24xbf16>
}

// CHECK-LABEL: func.func @scope
func.func @scope(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: math.exp {{.*}} loc(fused<#moe.scope<backward, attention, layer = 3>>["layers.3.q_proj"])
  %a = math.exp %x : tensor<4xf32> loc(fused<#moe.scope<backward, attention, layer = 3>>["layers.3.q_proj"])
  // CHECK: math.log {{.*}} loc(fused<#moe.scope<forward, vocabulary>>["lm_head"])
  %b = math.log %a : tensor<4xf32> loc(fused<#moe.scope<forward, vocabulary>>["lm_head"])
  return %b : tensor<4xf32>
}

// A layout may leave gaps, end before its group and hold empty tensors and scalars.
// CHECK-LABEL: func.func @layout_gaps
// CHECK-SAME: offset = 8, shape = [0, 4]
func.func @layout_gaps(%p: tensor<24xf32> {moe.layout = #moe.layout<[<<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = 2, shape = [4]>, <<"b", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = 8, shape = [0, 4]>, <<"c", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = 8, shape = [4, 4]>]>}) {
  return
}

// CHECK-LABEL: func.func @layout_scalar
// CHECK-SAME: offset = 3, shape = []>
func.func @layout_scalar(%p: tensor<4xf32> {moe.layout = #moe.layout<[<<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = 3, shape = []>]>}) {
  return
}

// A parameter of which each rank along the last axis of a grid has a part.
// CHECK-LABEL: func.func @shard
// CHECK-SAME: tensor<2x4xf32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.000000e+00 : f64, deviation = 2.000000e-02 : f64, shard = @experts>}
// CHECK-SAME: moe.layout = #moe.layout<[<<"w", decay = true, mean = 0.000000e+00 : f64, deviation = 2.000000e-02 : f64, shard = @experts>, offset = 0, shape = [2, 4]>]>
func.func @shard(%w: tensor<2x4xf32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64, shard = @experts>},
                 %p: tensor<8xf32> {moe.layout = #moe.layout<[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64, shard = @experts>, offset = 0, shape = [2, 4]>]>}) {
  return
}

// The smallest routing, and the smallest plan.
// CHECK-LABEL: func.func @routing
// CHECK-SAME: !moe.plan<experts = 1, ranks = 1, tokens = 0, top_k = 1>
// CHECK-SAME: test.routing = #moe.routing<top_k = 1, score = top_k_softmax, groups = 1, kept_groups = 1, normalize = false, scale = 0.000000e+00 : f32>
func.func @routing(%p: !moe.plan<experts = 1, ranks = 1, tokens = 0, top_k = 1>) attributes {test.routing = #moe.routing<top_k = 1, score = top_k_softmax, groups = 1, kept_groups = 1, normalize = false, scale = 0.0 : f32>} {
  return
}

// Ranks divide a tensor in parts that may hold more rows than it has.
// CHECK-LABEL: func.func @parts
// CHECK-SAME: mean = 0.000000e+00 : f64, deviation = 1.000000e+00 : f64, shard = @vocab>}
// CHECK-SAME: mean = 0.000000e+00 : f64, deviation = 1.000000e+00 : f64, shard = @vocab, rows = 7>}
func.func @parts(%even: tensor<2x4xf32> {moe.parameter = #moe.parameter<"even", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64, shard = @vocab>},
                 %odd: tensor<2x4xf32> {moe.parameter = #moe.parameter<"odd", decay = true, mean = 0.0 : f64, deviation = 1.0 : f64, shard = @vocab, rows = 7>}) {
  return
}

// CHECK: test.plain = #moe.vocabulary<size = 1>
// CHECK-SAME: test.rounded = #moe.vocabulary<size = 49155, ignore_index = -1, label_smoothing = 1.000000e-01, z_loss = 9.99999974E-5, softcap = 3.000000e+01>
// CHECK-SAME: test.smallest = #moe.vocabulary<size = 2147483647, ignore_index = -2147483648, label_smoothing = 1.401300e-45, z_loss = 0.123456702, softcap = 3.40282347E+38>
func.func private @vocabulary() attributes {
  test.plain = #moe.vocabulary<size = 1, ignore_index = -100, label_smoothing = 0.0, z_loss = 0.0, softcap = 0.0>,
  test.rounded = #moe.vocabulary<softcap = 30.0, z_loss = 1.0e-4, label_smoothing = 0.1, ignore_index = -1, size = 49155>,
  test.smallest = #moe.vocabulary<size = 2147483647, ignore_index = -2147483648, label_smoothing = 1.4e-45, z_loss = 0.1234567, softcap = 3.40282347e+38>}

// RUN: plateau-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{'func.func' op argument #0: 'moe.role' must be a #moe.role}}
func.func @role_kind(%x: tensor<8xi32> {moe.role = "tokens"}) {
  return
}

// -----

// expected-error @+2 {{expected ::mlir::plateau::moe::Role to be one of: tokens, labels, positions, starts, learning_rate, step, parameters, gradients, first_moment, second_moment, master, loss, gradient_norm}}
// expected-error @+1 {{failed to parse MoE_RoleAttr parameter 'value'}}
func.func @role_name(%x: tensor<8xi32> {moe.role = #moe.role<token>}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.parameter' must be a #moe.parameter}}
func.func @parameter_kind(%x: tensor<8xf32> {moe.parameter = "w"}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.parameter' needs a static tensor of f32 or bf16}}
func.func @parameter_element(%x: tensor<8xi32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.parameter' needs a static tensor of f32 or bf16}}
func.func @parameter_dynamic(%x: tensor<?xf32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.layout' must be a #moe.layout}}
func.func @layout_kind(%x: tensor<8xf32> {moe.layout = [0, 8]}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.layout' needs a static flat tensor of at least 16 elements}}
func.func @layout_extent(%x: tensor<15xf32> {moe.layout = #moe.layout<[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.layout' needs a static flat tensor of at least 16 elements}}
func.func @layout_flat(%x: tensor<4x4xf32> {moe.layout = #moe.layout<[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>]>}) {
  return
}

// -----

// expected-error @+1 {{tensor 'b' starts at 15, before the end 16 of the one before it: offsets ascend in declaration order without overlap}}
func.func @layout_overlap(%x: tensor<20xf32> {moe.layout = #moe.layout<[<<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = 0, shape = [4, 4]>, <<"b", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = 15, shape = [4]>]>}) {
  return
}

// -----

// expected-error @+1 {{tensor 'a' starts at -1, before the end 0 of the one before it}}
func.func @layout_negative_offset(%x: tensor<20xf32> {moe.layout = #moe.layout<[<<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = -1, shape = [4]>]>}) {
  return
}

// -----

// expected-error @+1 {{tensor 'a' has a negative dimension}}
func.func @layout_negative_size(%x: tensor<20xf32> {moe.layout = #moe.layout<[<<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = 0, shape = [-4]>]>}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.donated' must be the number of a result}}
func.func @donated_kind(%x: tensor<8xf32> {moe.donated = "first"}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.donated' must be the number of a result}}
func.func @donated_range(%x: tensor<8xf32> {moe.donated = 1 : i64}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.donated' must be the number of a result}}
func.func @donated_negative(%x: tensor<8xf32> {moe.donated = -1 : i64}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// expected-error @+1 {{'func.func' op argument #1: 'moe.donated' names a result of another type}}
func.func @donated_type(%x: tensor<8xf32>, %y: tensor<9xf32> {moe.donated = 0 : i64}) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// expected-error @+1 {{'func.func' op argument #0: 'moe.rolle' is not an attribute of this dialect}}
func.func @unknown(%x: tensor<8xi32> {moe.rolle = #moe.role<tokens>}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op result #0: 'moe.parameter' is not an attribute of a result: only moe.role is}}
func.func @result(%x: tensor<f32>) -> (tensor<f32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>}) {
  return %x : tensor<f32>
}

// -----

// 2^62 + 2^62 elements: the offset is checked before it can wrap around.
// expected-error @+1 {{tensor 'a' ends beyond 2^60 elements}}
func.func @layout_huge(%x: tensor<20xf32> {moe.layout = #moe.layout<[<<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = 0, shape = [4611686018427387904, 4]>]>}) {
  return
}

// -----

// expected-error @+1 {{tensor 'a' ends beyond 2^60 elements}}
func.func @layout_far(%x: tensor<20xf32> {moe.layout = #moe.layout<[<<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = 9223372036854775800, shape = [72]>]>}) {
  return
}

// -----

// expected-error @+1 {{two tensors have the name 'a'}}
func.func @layout_names(%x: tensor<20xf32> {moe.layout = #moe.layout<[<<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = 0, shape = [4]>, <<"a", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>, offset = 4, shape = [4]>]>}) {
  return
}

// -----

// expected-error @+1 {{a parameter needs a name}}
func.func @parameter_name(%x: tensor<8xf32> {moe.parameter = #moe.parameter<"", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64>}) {
  return
}

// -----

// expected-error @+1 {{parameter 'w': mean and deviation must be finite, and deviation not negative}}
func.func @parameter_mean(%x: tensor<8xf32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0x7FF8000000000000 : f64, deviation = 0.0 : f64>}) {
  return
}

// -----

// expected-error @+1 {{parameter 'w': mean and deviation must be finite, and deviation not negative}}
func.func @parameter_deviation(%x: tensor<8xf32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = -0.1 : f64>}) {
  return
}

// -----

// expected-error @+1 {{needs top_k (0), groups (1) and kept_groups (1) of at least 1, and no more kept groups than groups}}
func.func @routing_top_k() attributes {test.routing = #moe.routing<top_k = 0, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32>} {
  return
}

// -----

// expected-error @+1 {{needs top_k (1), groups (0) and kept_groups (1) of at least 1, and no more kept groups than groups}}
func.func @routing_groups() attributes {test.routing = #moe.routing<top_k = 1, score = softmax, groups = 0, kept_groups = 1, normalize = true, scale = 1.0 : f32>} {
  return
}

// -----

// expected-error @+1 {{needs top_k (1), groups (2) and kept_groups (3) of at least 1, and no more kept groups than groups}}
func.func @routing_kept() attributes {test.routing = #moe.routing<top_k = 1, score = softmax, groups = 2, kept_groups = 3, normalize = true, scale = 1.0 : f32>} {
  return
}

// -----

// expected-error @+1 {{scale must be a finite f32}}
func.func @routing_scale_type() attributes {test.routing = #moe.routing<top_k = 1, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f64>} {
  return
}

// -----

// expected-error @+1 {{scale must be a finite f32}}
func.func @routing_scale_infinite() attributes {test.routing = #moe.routing<top_k = 1, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 0x7F800000 : f32>} {
  return
}

// -----

// expected-error @+2 {{expected ::mlir::plateau::moe::Score to be one of: softmax, top_k_softmax, sigmoid}}
// expected-error @+1 {{failed to parse MoE_RoutingAttr parameter 'score'}}
func.func @routing_score() attributes {test.routing = #moe.routing<top_k = 1, score = tanh, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32>} {
  return
}

// -----

// expected-error @+1 {{6 experts do not divide over 4 ranks}}
func.func @plan_divides(%p: !moe.plan<experts = 6, ranks = 4, tokens = 8, top_k = 2>) {
  return
}

// -----

// expected-error @+1 {{experts (0), ranks (1) and top_k (2) must be at least 1, and tokens (8) at least 0}}
func.func @plan_experts(%p: !moe.plan<experts = 0, ranks = 1, tokens = 8, top_k = 2>) {
  return
}

// -----

// expected-error @+1 {{experts (4), ranks (0) and top_k (2) must be at least 1, and tokens (8) at least 0}}
func.func @plan_ranks(%p: !moe.plan<experts = 4, ranks = 0, tokens = 8, top_k = 2>) {
  return
}

// -----

// expected-error @+1 {{experts (4), ranks (2) and top_k (2) must be at least 1, and tokens (-1) at least 0}}
func.func @plan_tokens(%p: !moe.plan<experts = 4, ranks = 2, tokens = -1, top_k = 2>) {
  return
}

// -----

// 2^2 · 2^61 · 2 rows.
// expected-error @+1 {{4 ranks of 2305843009213693952 tokens with 2 slots are more than 2^60 rows}}
func.func @plan_rows(%p: !moe.plan<experts = 4, ranks = 4, tokens = 2305843009213693952, top_k = 2>) {
  return
}

// -----

// expected-error @+1 {{20000000 experts are more than 2^24}}
func.func private @plan_experts(!moe.plan<experts = 20000000, ranks = 1, tokens = 8, top_k = 2>)

// -----

// expected-error @+1 {{a vocabulary of size 0: it must be from 1 to 2^31 - 1}}
func.func @vocabulary_size() attributes {test.vocabulary = #moe.vocabulary<size = 0>} {
  return
}

// -----

// expected-error @+1 {{a vocabulary of size 0: it must be from 1 to 2^31 - 1}}
func.func @vocabulary_no_size() attributes {test.vocabulary = #moe.vocabulary<ignore_index = 1>} {
  return
}

// -----

// expected-error @+1 {{a vocabulary of size 2147483648: it must be from 1 to 2^31 - 1}}
func.func @vocabulary_large() attributes {test.vocabulary = #moe.vocabulary<size = 2147483648>} {
  return
}

// -----

// expected-error @+1 {{label_smoothing must be in [0, 1), z_loss and softcap finite and not negative}}
func.func @vocabulary_smoothing() attributes {test.vocabulary = #moe.vocabulary<size = 2, label_smoothing = 1.0>} {
  return
}

// -----

// expected-error @+1 {{label_smoothing must be in [0, 1)}}
func.func @vocabulary_smoothing_rounded() attributes {test.vocabulary = #moe.vocabulary<size = 2, label_smoothing = 0.99999999>} {
  return
}

// -----

// expected-error @+1 {{label_smoothing must be in [0, 1), z_loss and softcap finite and not negative}}
func.func @vocabulary_z_loss() attributes {test.vocabulary = #moe.vocabulary<size = 2, z_loss = -1.0>} {
  return
}

// -----

// expected-error @+1 {{label_smoothing must be in [0, 1), z_loss and softcap finite and not negative}}
func.func @vocabulary_softcap() attributes {test.vocabulary = #moe.vocabulary<size = 2, softcap = 1.0e+39>} {
  return
}

// -----

// expected-error @+1 {{'size' stands twice}}
func.func @vocabulary_twice() attributes {test.vocabulary = #moe.vocabulary<size = 2, size = 2>} {
  return
}

// -----

// expected-error @+1 {{expected size, ignore_index, label_smoothing, z_loss or softcap}}
func.func @vocabulary_name() attributes {test.vocabulary = #moe.vocabulary<size = 2, zloss = 1.0>} {
  return
}

// -----

// expected-error @+1 {{ignore_index must have 32 bits}}
func.func @vocabulary_ignore_index() attributes {test.vocabulary = #moe.vocabulary<size = 2, ignore_index = 2147483648>} {
  return
}

// -----

// expected-error @+1 {{parameter 'w': rows is 0: it must be positive, and is for a tensor that a grid divides (shard)}}
func.func @parameter_rows(%x: tensor<8xf32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64, shard = @vocab, rows = 0>}) {
  return
}

// -----

// expected-error @+1 {{expected 'shard'}}
func.func @parameter_rows_shard(%x: tensor<8xf32> {moe.parameter = #moe.parameter<"w", decay = true, mean = 0.0 : f64, deviation = 0.0 : f64, rows = 8>}) {
  return
}

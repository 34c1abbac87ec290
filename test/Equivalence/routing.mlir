// Compiled code on poisoned memory, three runs, against the interpreter in float64; ids and counts must be equal.
// RUN: plateau-run %s --entry softmax --compare 1e-6
// RUN: plateau-run %s --entry softmax_normalized --compare 1e-6
// RUN: plateau-run %s --entry top_k_softmax --compare 1e-6
// RUN: plateau-run %s --entry sigmoid --compare 1e-6
// RUN: plateau-run %s --entry grouped --compare 1e-6
// RUN: plateau-run %s --entry everyone --compare 1e-6
// RUN: plateau-run %s --entry no_tokens --compare 0
// RUN: plateau-run %s --entry no_choice --compare 1e-6
// RUN: plateau-run %s --entry padded --compare 1e-6
// RUN: plateau-run %s --entry all_padding --compare 0

// RUN: plateau-run %s --entry ties | FileCheck %s --check-prefix=TIES
// RUN: plateau-run %s --entry ties --interpret | FileCheck %s --check-prefix=TIES
// RUN: plateau-run %s --entry all_padding | FileCheck %s --check-prefix=PADDING
// RUN: not plateau-run %s --entry too_many 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not plateau-run %s --entry too_many --interpret 2>&1 | FileCheck %s --check-prefix=MANY-INTERPRETED
// RUN: plateau-run %s --entry bias | FileCheck %s --check-prefix=BIAS
// RUN: plateau-run %s --entry bias --interpret | FileCheck %s --check-prefix=BIAS
// RUN: plateau-run %s --entry negative | FileCheck %s --check-prefix=NEGATIVE
// RUN: plateau-run %s --entry negative --interpret | FileCheck %s --check-prefix=NEGATIVE
// RUN: plateau-run %s --entry not_finite | FileCheck %s --check-prefix=FINITE
// RUN: plateau-run %s --entry not_finite --interpret | FileCheck %s --check-prefix=FINITE

func.func @softmax(%l: tensor<37x12xf32>, %d: tensor<37x3xf32>) -> (tensor<37x3xi32>, tensor<37x3xf32>, tensor<12xi32>, tensor<37x12xf32>) {
  %ids, %w, %counts = moe.route %l routing <top_k = 3, score = softmax, groups = 1, kept_groups = 1, normalize = false, scale = 1.0 : f32> : (tensor<37x12xf32>) -> (tensor<37x3xi32>, tensor<37x3xf32>, tensor<12xi32>)
  %dl = moe.route_grad %d, %l, %ids routing <top_k = 3, score = softmax, groups = 1, kept_groups = 1, normalize = false, scale = 1.0 : f32> : (tensor<37x3xf32>, tensor<37x12xf32>, tensor<37x3xi32>) -> tensor<37x12xf32>
  return %ids, %w, %counts, %dl : tensor<37x3xi32>, tensor<37x3xf32>, tensor<12xi32>, tensor<37x12xf32>
}

func.func @softmax_normalized(%l: tensor<37x12xf32>, %d: tensor<37x3xf32>) -> (tensor<37x3xi32>, tensor<37x3xf32>, tensor<12xi32>, tensor<37x12xf32>) {
  %ids, %w, %counts = moe.route %l routing <top_k = 3, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 2.5 : f32> : (tensor<37x12xf32>) -> (tensor<37x3xi32>, tensor<37x3xf32>, tensor<12xi32>)
  %dl = moe.route_grad %d, %l, %ids routing <top_k = 3, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 2.5 : f32> : (tensor<37x3xf32>, tensor<37x12xf32>, tensor<37x3xi32>) -> tensor<37x12xf32>
  return %ids, %w, %counts, %dl : tensor<37x3xi32>, tensor<37x3xf32>, tensor<12xi32>, tensor<37x12xf32>
}

func.func @top_k_softmax(%l: tensor<37x12xf32>, %bias: tensor<12xf32>, %d: tensor<37x3xf32>) -> (tensor<37x3xi32>, tensor<37x3xf32>, tensor<12xi32>, tensor<37x12xf32>) {
  %ids, %w, %counts = moe.route %l bias(%bias) routing <top_k = 3, score = top_k_softmax, groups = 1, kept_groups = 1, normalize = false, scale = 1.0 : f32> : (tensor<37x12xf32>, tensor<12xf32>) -> (tensor<37x3xi32>, tensor<37x3xf32>, tensor<12xi32>)
  %dl = moe.route_grad %d, %l, %ids routing <top_k = 3, score = top_k_softmax, groups = 1, kept_groups = 1, normalize = false, scale = 1.0 : f32> : (tensor<37x3xf32>, tensor<37x12xf32>, tensor<37x3xi32>) -> tensor<37x12xf32>
  return %ids, %w, %counts, %dl : tensor<37x3xi32>, tensor<37x3xf32>, tensor<12xi32>, tensor<37x12xf32>
}

func.func @sigmoid(%l: tensor<37x12xf32>, %bias: tensor<12xf32>, %d: tensor<37x3xf32>) -> (tensor<37x3xi32>, tensor<37x3xf32>, tensor<12xi32>, tensor<37x12xf32>) {
  %ids, %w, %counts = moe.route %l bias(%bias) routing <top_k = 3, score = sigmoid, groups = 1, kept_groups = 1, normalize = false, scale = 1.5 : f32> : (tensor<37x12xf32>, tensor<12xf32>) -> (tensor<37x3xi32>, tensor<37x3xf32>, tensor<12xi32>)
  %dl = moe.route_grad %d, %l, %ids routing <top_k = 3, score = sigmoid, groups = 1, kept_groups = 1, normalize = false, scale = 1.5 : f32> : (tensor<37x3xf32>, tensor<37x12xf32>, tensor<37x3xi32>) -> tensor<37x12xf32>
  return %ids, %w, %counts, %dl : tensor<37x3xi32>, tensor<37x3xf32>, tensor<12xi32>, tensor<37x12xf32>
}

func.func @grouped(%l: tensor<37x12xf32>, %bias: tensor<12xf32>, %d: tensor<37x4xf32>) -> (tensor<37x4xi32>, tensor<37x4xf32>, tensor<12xi32>, tensor<37x12xf32>) {
  %ids, %w, %counts = moe.route %l bias(%bias) routing <top_k = 4, score = sigmoid, groups = 4, kept_groups = 2, normalize = true, scale = 2.5 : f32> : (tensor<37x12xf32>, tensor<12xf32>) -> (tensor<37x4xi32>, tensor<37x4xf32>, tensor<12xi32>)
  %dl = moe.route_grad %d, %l, %ids routing <top_k = 4, score = sigmoid, groups = 4, kept_groups = 2, normalize = true, scale = 2.5 : f32> : (tensor<37x4xf32>, tensor<37x12xf32>, tensor<37x4xi32>) -> tensor<37x12xf32>
  return %ids, %w, %counts, %dl : tensor<37x4xi32>, tensor<37x4xf32>, tensor<12xi32>, tensor<37x12xf32>
}

// Every expert is chosen; groups of one expert.
func.func @everyone(%l: tensor<5x4xf32>, %d: tensor<5x4xf32>) -> (tensor<5x4xi32>, tensor<5x4xf32>, tensor<4xi32>, tensor<5x4xf32>) {
  %ids, %w, %counts = moe.route %l routing <top_k = 4, score = softmax, groups = 4, kept_groups = 4, normalize = true, scale = 1.0 : f32> : (tensor<5x4xf32>) -> (tensor<5x4xi32>, tensor<5x4xf32>, tensor<4xi32>)
  %dl = moe.route_grad %d, %l, %ids routing <top_k = 4, score = softmax, groups = 4, kept_groups = 4, normalize = true, scale = 1.0 : f32> : (tensor<5x4xf32>, tensor<5x4xf32>, tensor<5x4xi32>) -> tensor<5x4xf32>
  return %ids, %w, %counts, %dl : tensor<5x4xi32>, tensor<5x4xf32>, tensor<4xi32>, tensor<5x4xf32>
}

func.func @no_tokens(%l: tensor<0x4xf32>) -> (tensor<0x2xi32>, tensor<0x2xf32>, tensor<4xi32>, tensor<0x4xf32>) {
  %ids, %w, %counts = moe.route %l routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<0x4xf32>) -> (tensor<0x2xi32>, tensor<0x2xf32>, tensor<4xi32>)
  %dl = moe.route_grad %w, %l, %ids routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<0x2xf32>, tensor<0x4xf32>, tensor<0x2xi32>) -> tensor<0x4xf32>
  return %ids, %w, %counts, %dl : tensor<0x2xi32>, tensor<0x2xf32>, tensor<4xi32>, tensor<0x4xf32>
}

// Slots without a choice have no part in the gradient, one by one or all of a token.
func.func @no_choice(%l: tensor<4x6xf32>, %d: tensor<4x2xf32>, %ids: tensor<4x2xi32> {plateau.values = dense<[[0, -1], [-1, 5], [-1, -1], [3, 2]]> : tensor<4x2xi32>})
    -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) {
  %a = moe.route_grad %d, %l, %ids routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<4x2xf32>, tensor<4x6xf32>, tensor<4x2xi32>) -> tensor<4x6xf32>
  %b = moe.route_grad %d, %l, %ids routing <top_k = 2, score = sigmoid, groups = 1, kept_groups = 1, normalize = false, scale = 2.0 : f32> : (tensor<4x2xf32>, tensor<4x6xf32>, tensor<4x2xi32>) -> tensor<4x6xf32>
  %c = moe.route_grad %d, %l, %ids routing <top_k = 2, score = top_k_softmax, groups = 1, kept_groups = 1, normalize = false, scale = 1.0 : f32> : (tensor<4x2xf32>, tensor<4x6xf32>, tensor<4x2xi32>) -> tensor<4x6xf32>
  return %a, %b, %c : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
}

// Among equals the lower index: all equal; three equal for the second place; both zeros.
// TIES: ties/0: tensor<3x2xi32> = [0, 1, 5, 2, 3, 0]
// TIES: ties/1: tensor<8xi32> = [2, 1, 1, 1, 0, 1, 0, 0]
func.func @ties(%l: tensor<3x8xf32> {plateau.values = dense<[[0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5], [-1.0, -1.0, 2.0, -1.0, 2.0, 3.0, 2.0, 0.0], [-0.0, 0.0, -1.0, 1.0, -2.0, -0.0, 0.0, -1.0]]> : tensor<3x8xf32>})
    -> (tensor<3x2xi32>, tensor<8xi32>) {
  %ids, %w, %counts = moe.route %l routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<3x8xf32>) -> (tensor<3x2xi32>, tensor<3x2xf32>, tensor<8xi32>)
  return %ids, %counts : tensor<3x2xi32>, tensor<8xi32>
}

// A bias of 12 chooses the experts of logits -18 and -17; their weights are their scores alone: e^-18 and e^-17, the sigmoids so far
// out, in the ratio 1 to e: 0.268941 and 0.731059.
// BIAS: bias/0: tensor<1x2xi32> = [2, 1]
// BIAS: bias/1: tensor<1x2xf32> = [0.73105{{[0-9]*}}, 0.26894{{[0-9]*}}]
func.func @bias(%l: tensor<1x4xf32> {plateau.values = dense<[[1.0, -18.0, -17.0, 2.0]]> : tensor<1x4xf32>},
    %b: tensor<4xf32> {plateau.values = dense<[0.0, 12.0, 12.0, 0.0]> : tensor<4xf32>}) -> (tensor<1x2xi32>, tensor<1x2xf32>) {
  %ids, %w, %counts = moe.route %l bias(%b) routing <top_k = 2, score = sigmoid, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<1x4xf32>, tensor<4xf32>) -> (tensor<1x2xi32>, tensor<1x2xf32>, tensor<4xi32>)
  return %ids, %w : tensor<1x2xi32>, tensor<1x2xf32>
}

// All selection values are negative: a group that is not kept is worth -inf, not 0. Logits 0 give scores of a half; groups are worth
// -4, -2.25, -6 and -3, so the second and the fourth stay; of their experts 2, 3, 6 and 7 with -0.75, -1.5, -1.25 and -1.75, 2 and 6 are
// the best.
// NEGATIVE: negative/0: tensor<1x2xi32> = [2, 6]
// NEGATIVE: negative/1: tensor<1x2xf32> = [1.25, 1.25]
func.func @negative(%l: tensor<1x8xf32> {plateau.values = dense<0.0> : tensor<1x8xf32>},
    %b: tensor<8xf32> {plateau.values = dense<[-2.5, -2.5, -1.25, -2.0, -3.5, -3.5, -1.75, -2.25]> : tensor<8xf32>}) -> (tensor<1x2xi32>, tensor<1x2xf32>) {
  %ids, %w, %counts = moe.route %l bias(%b) routing <top_k = 2, score = sigmoid, groups = 4, kept_groups = 2, normalize = true, scale = 2.5 : f32> : (tensor<1x8xf32>, tensor<8xf32>) -> (tensor<1x2xi32>, tensor<1x2xf32>, tensor<8xi32>)
  return %ids, %w : tensor<1x2xi32>, tensor<1x2xf32>
}

// Whatever the logits are, ids are distinct experts: NaN is less than every number, among equals the lower index is first.
// FINITE: not_finite/0: tensor<4x2xi32> = [0, 1, 3, 0, 1, 0, 2, 0]
// FINITE: not_finite/1: tensor<4xi32> = [4, 2, 1, 1]
func.func @not_finite(%l: tensor<4x4xf32> {plateau.values = dense<[[0x7FC00000, 0x7FC00000, 0x7FC00000, 0x7FC00000], [0x7FC00000, 0x7FC00000, 0x7FC00000, -5.0], [0.0, 0x7F800000, -1.0, -2.0], [1.0, 0xFF800000, 2.0, 0.0]]> : tensor<4x4xf32>})
    -> (tensor<4x2xi32>, tensor<4xi32>) {
  %ids, %w, %counts = moe.route %l routing <top_k = 2, score = top_k_softmax, groups = 1, kept_groups = 1, normalize = false, scale = 1.0 : f32> : (tensor<4x4xf32>) -> (tensor<4x2xi32>, tensor<4x2xf32>, tensor<4xi32>)
  return %ids, %counts : tensor<4x2xi32>, tensor<4xi32>
}

// Five of nine rows are tokens; no gradient reaches the others.
func.func @padded(%l: tensor<9x6xf32>, %bias: tensor<6xf32>, %n: tensor<i32> {plateau.values = dense<5> : tensor<i32>}, %d: tensor<9x2xf32>)
    -> (tensor<9x2xi32>, tensor<9x2xf32>, tensor<6xi32>, tensor<9x6xf32>) {
  %ids, %w, %counts = moe.route %l bias(%bias) token_count(%n) routing <top_k = 2, score = sigmoid, groups = 1, kept_groups = 1, normalize = true, scale = 2.0 : f32> : (tensor<9x6xf32>, tensor<6xf32>, tensor<i32>) -> (tensor<9x2xi32>, tensor<9x2xf32>, tensor<6xi32>)
  %dl = moe.route_grad %d, %l, %ids routing <top_k = 2, score = sigmoid, groups = 1, kept_groups = 1, normalize = true, scale = 2.0 : f32> : (tensor<9x2xf32>, tensor<9x6xf32>, tensor<9x2xi32>) -> tensor<9x6xf32>
  return %ids, %w, %counts, %dl : tensor<9x2xi32>, tensor<9x2xf32>, tensor<6xi32>, tensor<9x6xf32>
}

// PADDING: all_padding/0: tensor<2x2xi32> = [-1, -1, -1, -1]
// PADDING: all_padding/1: tensor<2x2xf32> = [0, 0, 0, 0]
// PADDING: all_padding/2: tensor<3xi32> = [0, 0, 0]
func.func @all_padding(%l: tensor<2x3xf32>, %n: tensor<i32> {plateau.values = dense<0> : tensor<i32>}) -> (tensor<2x2xi32>, tensor<2x2xf32>, tensor<3xi32>) {
  %ids, %w, %counts = moe.route %l token_count(%n) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<2x3xf32>, tensor<i32>) -> (tensor<2x2xi32>, tensor<2x2xf32>, tensor<3xi32>)
  return %ids, %w, %counts : tensor<2x2xi32>, tensor<2x2xf32>, tensor<3xi32>
}

// MANY: token_count is 3, which is not in 0...2
// MANY-INTERPRETED: 'moe.route'{{.*}}: rank 0: the number of tokens is 3, which is not in 0 ... 2
func.func @too_many(%l: tensor<2x3xf32>, %n: tensor<i32> {plateau.values = dense<3> : tensor<i32>}) -> tensor<3xi32> {
  %ids, %w, %counts = moe.route %l token_count(%n) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<2x3xf32>, tensor<i32>) -> (tensor<2x2xi32>, tensor<2x2xf32>, tensor<3xi32>)
  return %counts : tensor<3xi32>
}

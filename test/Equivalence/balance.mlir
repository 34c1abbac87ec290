// Compiled code on poisoned memory, three runs, against the interpreter in float64.
// RUN: plateau-run %s --entry counts --compare 1e-5
// RUN: plateau-run %s --entry sigmoid --compare 1e-5
// RUN: plateau-run %s --entry sequences --compare 1e-5
// RUN: plateau-run %s --entry no_routes | FileCheck %s --check-prefix=NONE
// RUN: plateau-run %s --entry no_routes --interpret | FileCheck %s --check-prefix=NONE
// RUN: plateau-run %s --entry no_routes --compare 0
// RUN: plateau-run %s --entry no_tokens --compare 0
// RUN: plateau-run %s --entry even | FileCheck %s --check-prefix=EVEN
// RUN: plateau-run %s --entry z --compare 1e-5
// RUN: plateau-run %s --entry large --compare 1e-5
// RUN: plateau-run %s --entry bias | FileCheck %s --check-prefix=BIAS
// RUN: plateau-run %s --entry bias --interpret | FileCheck %s --check-prefix=BIAS
// RUN: plateau-run %s --entry bias_kept | FileCheck %s --check-prefix=KEPT
// RUN: plateau-run %s --entry bias_kept --interpret | FileCheck %s --check-prefix=KEPT
// RUN: not plateau-run %s --entry outside 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// RUN: not plateau-run %s --entry outside --interpret 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// RUN: not plateau-run %s --entry negative 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not plateau-run %s --entry negative --interpret 2>&1 | FileCheck %s --check-prefix=NEGATIVE

#softmax = #moe.routing<top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32>
#sigmoid = #moe.routing<top_k = 3, score = sigmoid, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32>

func.func @counts(%x: tensor<21x33xf32>, %c: tensor<33xi32> {plateau.below = 7 : i64}, %g: tensor<f32>)
    -> (tensor<f32>, tensor<21x33xf32>) {
  %l = moe.balance_loss %x counts(%c) coefficient(0.3) routing #softmax : (tensor<21x33xf32>, tensor<33xi32>) -> tensor<f32>
  %d = moe.balance_loss_grad %g, %x counts(%c) coefficient(0.3) routing #softmax : (tensor<f32>, tensor<21x33xf32>, tensor<33xi32>) -> tensor<21x33xf32>
  return %l, %d : tensor<f32>, tensor<21x33xf32>
}

func.func @sigmoid(%x: tensor<1x33xf32>, %c: tensor<33xi32> {plateau.below = 7 : i64}, %g: tensor<f32>)
    -> (tensor<f32>, tensor<1x33xf32>) {
  %l = moe.balance_loss %x counts(%c) coefficient(0.3) routing #sigmoid : (tensor<1x33xf32>, tensor<33xi32>) -> tensor<f32>
  %d = moe.balance_loss_grad %g, %x counts(%c) coefficient(0.3) routing #sigmoid : (tensor<f32>, tensor<1x33xf32>, tensor<33xi32>) -> tensor<1x33xf32>
  return %l, %d : tensor<f32>, tensor<1x33xf32>
}

func.func @sequences(%x: tensor<21x5xf32>, %i: tensor<21x3xi32> {plateau.below = 5 : i64}, %g: tensor<f32>)
    -> (tensor<f32>, tensor<21x5xf32>) {
  %l = moe.balance_loss %x ids(%i) sequence(7) sequences(9) coefficient(2.0) routing #sigmoid : (tensor<21x5xf32>, tensor<21x3xi32>) -> tensor<f32>
  %d = moe.balance_loss_grad %g, %x ids(%i) sequence(7) sequences(9) coefficient(2.0) routing #sigmoid : (tensor<f32>, tensor<21x5xf32>, tensor<21x3xi32>) -> tensor<21x5xf32>
  return %l, %d : tensor<f32>, tensor<21x5xf32>
}

// Without routes there is nothing to even out. The second sequence has some: both experts alike, so coefficient / sequences = 0.25.
// NONE: no_routes/0: tensor<f32> = [0]
// NONE: no_routes/1: tensor<2x2xf32> = [{{-?}}0, {{-?}}0, {{-?}}0, {{-?}}0]
// NONE: no_routes/2: tensor<f32> = [0.25]
func.func @no_routes(%x: tensor<2x2xf32>, %c: tensor<2xi32> {plateau.values = dense<0> : tensor<2xi32>}, %g: tensor<f32>,
    %i: tensor<2x2xi32> {plateau.values = dense<[[-1, -1], [1, 0]]> : tensor<2x2xi32>}) -> (tensor<f32>, tensor<2x2xf32>, tensor<f32>) {
  %l = moe.balance_loss %x counts(%c) coefficient(1.0) routing #softmax : (tensor<2x2xf32>, tensor<2xi32>) -> tensor<f32>
  %d = moe.balance_loss_grad %g, %x counts(%c) coefficient(1.0) routing #softmax : (tensor<f32>, tensor<2x2xf32>, tensor<2xi32>) -> tensor<2x2xf32>
  %s = moe.balance_loss %x ids(%i) sequence(1) sequences(4) coefficient(1.0) routing #softmax : (tensor<2x2xf32>, tensor<2x2xi32>) -> tensor<f32>
  return %l, %d, %s : tensor<f32>, tensor<2x2xf32>, tensor<f32>
}

func.func @no_tokens(%x: tensor<0x4xf32>, %c: tensor<4xi32>, %i: tensor<0x2xi32>, %g: tensor<f32>)
    -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<0x4xf32>, tensor<0x4xf32>) {
  %l = moe.balance_loss %x counts(%c) coefficient(1.0) routing #softmax : (tensor<0x4xf32>, tensor<4xi32>) -> tensor<f32>
  %s = moe.balance_loss %x ids(%i) sequence(4) sequences(1) coefficient(1.0) routing #softmax : (tensor<0x4xf32>, tensor<0x2xi32>) -> tensor<f32>
  %z = moe.z_loss %x tokens(5) coefficient(1.0) : tensor<0x4xf32>
  %d = moe.balance_loss_grad %g, %x counts(%c) coefficient(1.0) routing #softmax : (tensor<f32>, tensor<0x4xf32>, tensor<4xi32>) -> tensor<0x4xf32>
  %e = moe.z_loss_grad %g, %x tokens(5) coefficient(1.0) : tensor<0x4xf32>
  return %l, %s, %z, %d, %e : tensor<f32>, tensor<f32>, tensor<f32>, tensor<0x4xf32>, tensor<0x4xf32>
}

// Even counts give the coefficient, here half of it: 4 of the 8 tokens are another rank's. Counts of 4 = 8 tokens · 2 / 4 experts.
// EVEN: even/0: tensor<f32> = [0.25]
func.func @even(%x: tensor<4x4xf32>, %c: tensor<4xi32> {plateau.values = dense<4> : tensor<4xi32>}) -> tensor<f32> {
  %l = moe.balance_loss %x counts(%c) coefficient(0.5) routing #softmax : (tensor<4x4xf32>, tensor<4xi32>) -> tensor<f32>
  return %l : tensor<f32>
}

func.func @z(%x: tensor<21x33xf32>, %one: tensor<1x3xf32>, %g: tensor<f32>) -> (tensor<f32>, tensor<21x33xf32>, tensor<f32>, tensor<1x3xf32>) {
  %l = moe.z_loss %x tokens(42) coefficient(0.3) : tensor<21x33xf32>
  %d = moe.z_loss_grad %g, %x tokens(42) coefficient(0.3) : tensor<21x33xf32>
  %m = moe.z_loss %one tokens(1) coefficient(0.3) : tensor<1x3xf32>
  %e = moe.z_loss_grad %g, %one tokens(1) coefficient(0.3) : tensor<1x3xf32>
  return %l, %d, %m, %e : tensor<f32>, tensor<21x33xf32>, tensor<f32>, tensor<1x3xf32>
}

// Logits whose exponentials f32 and f64 cannot hold.
func.func @large(%x: tensor<2x3xf32> {plateau.values = dense<[[1.0e+03, 9.99e+02, -1.0e+03], [-2.0e+03, -2.0e+03, -2.001e+03]]> : tensor<2x3xf32>},
    %c: tensor<3xi32> {plateau.values = dense<[1, 2, 1]> : tensor<3xi32>}, %g: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %l = moe.balance_loss %x counts(%c) coefficient(1.0) routing #softmax : (tensor<2x3xf32>, tensor<3xi32>) -> tensor<f32>
  %s = moe.balance_loss %x counts(%c) coefficient(1.0) routing #sigmoid : (tensor<2x3xf32>, tensor<3xi32>) -> tensor<f32>
  %z = moe.z_loss %x tokens(2) coefficient(1.0) : tensor<2x3xf32>
  %d = moe.balance_loss_grad %g, %x counts(%c) coefficient(1.0) routing #softmax : (tensor<f32>, tensor<2x3xf32>, tensor<3xi32>) -> tensor<2x3xf32>
  %e = moe.balance_loss_grad %g, %x counts(%c) coefficient(1.0) routing #sigmoid : (tensor<f32>, tensor<2x3xf32>, tensor<3xi32>) -> tensor<2x3xf32>
  %h = moe.z_loss_grad %g, %x tokens(2) coefficient(1.0) : tensor<2x3xf32>
  return %l, %s, %z, %d, %e, %h : tensor<f32>, tensor<f32>, tensor<f32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// A mean of 3 routes: more, less, the mean itself, none.
// BIAS: bias/0: tensor<4xf32> = [-0.5, 0.5, 1, 0.25]
func.func @bias(%b: tensor<4xf32> {plateau.values = dense<[0.0, 0.0, 1.0, -0.25]> : tensor<4xf32>, moe.donated = 0 : i64},
    %c: tensor<4xi32> {plateau.values = dense<[7, 2, 3, 0]> : tensor<4xi32>}, %f: tensor<f32>) -> tensor<4xf32> {
  %n = moe.update_bias %b, %c scale %f rate(0.5) : tensor<4xf32>, tensor<4xi32>
  return %n : tensor<4xf32>
}

// A step that is skipped moves no bias.
// KEPT: bias_kept/0: tensor<2xf32> = [1, 2]
func.func @bias_kept(%b: tensor<2xf32> {plateau.values = dense<[1.0, 2.0]> : tensor<2xf32>},
    %c: tensor<2xi32> {plateau.values = dense<[7, 2]> : tensor<2xi32>}, %f: tensor<f32> {plateau.values = dense<0x7FC00000> : tensor<f32>}) -> tensor<2xf32> {
  %n = moe.update_bias %b, %c scale %f rate(0.5) : tensor<2xf32>, tensor<2xi32>
  return %n : tensor<2xf32>
}

// OUTSIDE: token 1{{.*}} 9
func.func @outside(%x: tensor<2x4xf32>, %i: tensor<2x2xi32> {plateau.values = dense<[[0, 1], [2, 9]]> : tensor<2x2xi32>}) -> tensor<f32> {
  %l = moe.balance_loss %x ids(%i) sequence(2) sequences(1) coefficient(1.0) routing #softmax : (tensor<2x4xf32>, tensor<2x2xi32>) -> tensor<f32>
  return %l : tensor<f32>
}

// NEGATIVE: expert 1 has count -3, which is negative
func.func @negative(%x: tensor<2x2xf32>, %c: tensor<2xi32> {plateau.values = dense<[4, -3]> : tensor<2xi32>}) -> tensor<f32> {
  %l = moe.balance_loss %x counts(%c) coefficient(1.0) routing #softmax : (tensor<2x2xf32>, tensor<2xi32>) -> tensor<f32>
  return %l : tensor<f32>
}

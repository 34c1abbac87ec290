// RUN: plateau-opt %s -split-input-file -convert-moe-to-sched | FileCheck %s
// RUN: plateau-opt %s -split-input-file -convert-moe-to-sched=reference-gemm=true | FileCheck %s --check-prefix=REFERENCE

// A buffer for each argument and each result, numbered in this order; only the result's may be written. A slot for each value, whose reader
// names it; the result is copied to its buffer. The tag has the op's name and its component.
// CHECK-DAG: #[[MERGE:.*]] = #sched.tag<"moe.merge_states", vocabulary, forward>
// CHECK-DAG: #[[RETURN:.*]] = #sched.tag<"func.return", dense, forward>
// CHECK-DAG: #[[ARGUMENT:.*]] = #sched.tag<"argument #0", external, forward>
// CHECK-DAG: #[[RESULT:.*]] = #sched.tag<"result #0", external, forward>
// CHECK-NOT: func.func
// CHECK-LABEL: sched.program @lifetimes ranks(1) {
// CHECK-NEXT: sched.lane compute
// CHECK-NEXT: %[[X:.*]] = sched.buffer 0 in device tag #[[ARGUMENT]] : memref<8x4xf32>
// CHECK-NEXT: %[[OUT:.*]] = sched.buffer 1 writable in device tag #[[RESULT]] : memref<8x4xf32>
// CHECK-NEXT: %[[A:.*]] = sched.slot in device tag #[[MERGE]] : memref<8x4xf32>
// CHECK-NEXT: %{{.*}}, %[[VA:.*]] = sched.launch "plr_merge_states"([#sched.struct<[4, -100 : i32, 5.000000e-01 : f32, 0.000000e+00 : f32, 0.000000e+00 : f32]>, 1, 8, #sched.read<0>, #sched.write<0>]) on compute reads(%[[X]] : memref<8x4xf32>) writes(%[[A]] : memref<8x4xf32>) tag #[[MERGE]]
// CHECK-NEXT: %[[B:.*]] = sched.slot in device tag #[[MERGE]] : memref<8x4xf32>
// CHECK-NEXT: %{{.*}}, %[[VB:.*]] = sched.launch "plr_merge_states"({{.*}}) on compute reads(%[[VA]] : memref<8x4xf32>) writes(%[[B]] : memref<8x4xf32>)
// CHECK-NEXT: %{{.*}}, %[[VOUT:.*]] = sched.copy on compute reads(%[[VB]] : memref<8x4xf32>) writes(%[[OUT]] : memref<8x4xf32>) tag #[[RETURN]]
// CHECK-NEXT: sched.return %[[VOUT]] : memref<8x4xf32>
// CHECK-NOT: func.func
func.func @lifetimes(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %a = moe.merge_states %x vocabulary<size = 4, label_smoothing = 5.0e-01> : tensor<8x4xf32> -> tensor<8x4xf32>
  %b = moe.merge_states %a vocabulary<size = 4, label_smoothing = 5.0e-01> : tensor<8x4xf32> -> tensor<8x4xf32>
  return %b : tensor<8x4xf32>
}

// -----

// A gradient is computed in its place in the group; zeros are written there; the group's buffer is the caller's: no slot, no copy. The group is
// the join of its tensors.
// CHECK-LABEL: sched.program @in_place
// CHECK: %[[X:.*]] = sched.buffer 0 in device
// CHECK: %[[GROUP:.*]] = sched.buffer 1 writable in device
// CHECK-NOT: sched.buffer
// CHECK-NOT: sched.slot
// CHECK: %[[PLACE:.*]] = sched.view %[[GROUP]][64] : memref<48xf32> to memref<8x4xf32>
// CHECK-NEXT: %{{.*}}, %[[A:.*]] = sched.launch "plr_merge_states"({{.*}}) on compute reads(%[[X]] : memref<8x4xf32>) writes(%[[PLACE]] : memref<8x4xf32>)
// CHECK-NEXT: %[[FRONT:.*]] = sched.view %[[GROUP]][0] : memref<48xf32> to memref<4x4xf32>
// CHECK-NEXT: %{{.*}}, %[[ZERO:.*]] = sched.launch "plr_zero"([#sched.write<0>, 64]) on compute writes(%[[FRONT]] : memref<4x4xf32>)
// CHECK-NEXT: %[[ALL:.*]] = sched.join %[[GROUP]] from(%[[ZERO]], %[[A]] : memref<4x4xf32>, memref<8x4xf32>) : memref<48xf32>
// CHECK-NEXT: sched.return %[[ALL]] : memref<48xf32>
func.func @in_place(%x: tensor<8x4xf32>, %group: tensor<48xf32> {moe.donated = 0 : i64}) -> tensor<48xf32> {
  %zero = arith.constant dense<0.0> : tensor<4x4xf32>
  %a = moe.merge_states %x vocabulary<size = 4, label_smoothing = 5.0e-01> : tensor<8x4xf32> -> tensor<8x4xf32>
  %g = moe.pack %zero, %a into %group layout <[<<"zero", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>, <<"a", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 16, shape = [8, 4]>]> : tensor<4x4xf32>, tensor<8x4xf32> into tensor<48xf32>
  return %g : tensor<48xf32>
}

// -----

// Views move no bytes; a product onto zeros overwrites and reads only its operands; one onto a value that dies takes its slot and reads it, one
// onto a value that is read again takes a copy. Scratch memory is a slot of the call's own, for the library or for the reference products.
// CHECK-DAG: #[[SCRATCH:.*]] = #sched.tag<"linalg.matmul", workspace, forward>
// CHECK-LABEL: sched.program @products
// CHECK: %[[X:.*]] = sched.buffer 0 in device
// CHECK: %[[W:.*]] = sched.buffer 1 in device
// CHECK-NOT: plr_zero
// CHECK: %[[A:.*]] = sched.slot in device tag #{{.*}} : memref<8x6xf32>
// CHECK: %[[ROWS:.*]] = sched.view %[[X]][0] : memref<8x2x2xf32> to memref<8x4xf32>
// CHECK: %[[S:.*]] = sched.slot in device scratch tag #[[SCRATCH]] : memref<[[BYTES:.*]]xi8>
// CHECK: %{{.*}}, %[[V:.*]]:2 = sched.launch "plr_gemm"([0 : i32, 0 : i32, 0 : i32, 0 : i32, 0 : i32, 8, 6, 4, #sched.read<0>, #sched.read<1>, #sched.write<0>, #sched.write<1>, #sched.bytes<1>]) on compute reads(%[[ROWS]], %[[W]] : memref<8x4xf32>, memref<4x6xf32>) writes(%[[A]], %[[S]] : memref<8x6xf32>, memref<[[BYTES]]xi8>)
// CHECK: %{{.*}}, %[[V1:.*]]:2 = sched.launch "plr_gemm"([0 : i32, 0 : i32, 1 : i32, {{.*}}, #sched.read<1>, #sched.read<2>, #sched.write<0>, {{.*}}]) on compute reads(%[[V]]#0, %{{.*}}, %[[W]] : {{.*}}) writes(%[[A]], %
// CHECK: %[[B:.*]] = sched.slot in device tag
// CHECK: %{{.*}}, %[[COPIED:.*]] = sched.copy on compute reads(%[[V1]]#0 : memref<8x6xf32>) writes(%[[B]] : memref<8x6xf32>)
// CHECK: %{{.*}}, %[[V2:.*]]:2 = sched.launch "plr_gemm"([0 : i32, 0 : i32, 1 : i32, {{.*}}]) on compute reads(%[[COPIED]], %{{.*}}, %[[W]] : {{.*}}) writes(%[[B]], %
// CHECK: sched.copy on compute reads(%[[V1]]#0
// CHECK: sched.copy on compute reads(%[[V2]]#0
// REFERENCE-LABEL: sched.program @products
// REFERENCE-NOT: scratch
// REFERENCE: "plr_gemm"([0 : i32, 0 : i32, 0 : i32, 0 : i32, 0 : i32, 8, 6, 4, #sched.read<0>, #sched.read<1>, #sched.write<0>, #sched.null, 0]) on compute
// REFERENCE-NOT: scratch
// REFERENCE: sched.return
func.func @products(%x: tensor<8x2x2xf32>, %w: tensor<4x6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %rows = tensor.collapse_shape %x [[0], [1, 2]] : tensor<8x2x2xf32> into tensor<8x4xf32>
  %empty = tensor.empty() : tensor<8x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x6xf32>) -> tensor<8x6xf32>
  %a = linalg.matmul ins(%rows, %w : tensor<8x4xf32>, tensor<4x6xf32>) outs(%init : tensor<8x6xf32>) -> tensor<8x6xf32>
  %b = linalg.matmul ins(%rows, %w : tensor<8x4xf32>, tensor<4x6xf32>) outs(%a : tensor<8x6xf32>) -> tensor<8x6xf32>
  %c = linalg.matmul ins(%rows, %w : tensor<8x4xf32>, tensor<4x6xf32>) outs(%b : tensor<8x6xf32>) -> tensor<8x6xf32>
  return %b, %c : tensor<8x6xf32>, tensor<8x6xf32>
}

// -----

// Equal kernels are one function: 35 elements are two vectors and a tail of three. A kernel takes the slot of an input that dies, and never
// that of an argument.
// CHECK-LABEL: sched.program @kernels
// CHECK: %[[X:.*]] = sched.buffer 0 in device
// CHECK: %[[A:.*]] = sched.slot in device
// CHECK-NEXT: %{{.*}}, %[[V:.*]] = sched.launch "plr_launch"([@elementwise_0, #sched.pointers<[#sched.read<0>, #sched.write<0>]>, 2]) on compute reads(%[[X]] : memref<7x5xf32>) writes(%[[A]] : memref<7x5xf32>)
// CHECK-NEXT: %{{.*}}, %[[V1:.*]] = sched.launch "plr_launch"([@elementwise_0, #sched.pointers<[#sched.read<0>, #sched.write<0>]>, 2]) on compute reads(%[[V]] : memref<7x5xf32>) writes(%[[A]] : memref<7x5xf32>)
// CHECK-NEXT: sched.copy on compute reads(%[[V1]] :
// CHECK-LABEL: llvm.func @elementwise_0(
// CHECK-SAME: %[[POINTERS:.*]]: !llvm.ptr)
// CHECK: llvm.getelementptr %[[POINTERS]][0]
// CHECK: llvm.getelementptr %[[POINTERS]][1]
// CHECK: %[[VECTORS:.*]] = arith.constant 32 : i64
// CHECK: scf.for
// CHECK: math.exp %{{.*}} : vector<16xf32>
// CHECK: %[[ALL:.*]] = arith.constant 35 : i64
// CHECK: scf.for
// CHECK: math.exp %{{.*}} : f32
// CHECK-NOT: llvm.func @elementwise_1
#map = affine_map<(d0, d1) -> (d0, d1)>
func.func @kernels(%x: tensor<7x5xf32>) -> tensor<7x5xf32> {
  %empty = tensor.empty() : tensor<7x5xf32>
  %a = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<7x5xf32>) outs(%empty : tensor<7x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %e = math.exp %in : f32
    linalg.yield %e : f32
  } -> tensor<7x5xf32>
  %b = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<7x5xf32>) outs(%empty : tensor<7x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %e = math.exp %in : f32
    linalg.yield %e : f32
  } -> tensor<7x5xf32>
  return %b : tensor<7x5xf32>
}

// -----

// Scope in locations becomes the tag: name, component, phase, layer.
// CHECK: #[[TAG:.*]] = #sched.tag<"moe.merge_states scores", attention, backward, layer = 3>
// CHECK-LABEL: sched.program @scope
// CHECK: sched.slot in device tag #[[TAG]]
// CHECK: sched.launch "plr_merge_states"({{.*}} tag #[[TAG]]
func.func @scope(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %a = moe.merge_states %x vocabulary<size = 4, label_smoothing = 5.0e-01> : tensor<8x4xf32> -> tensor<8x4xf32> loc(fused<#moe.scope<backward, attention, layer = 3>>["scores"])
  return %a : tensor<8x4xf32>
}

// -----

// Two products summed in the group: the first in its place, the second onto it; no copy, and no slot but for scratch memory.
// CHECK-LABEL: sched.program @sum_in_place
// CHECK: %[[GROUP:.*]] = sched.buffer 2 writable in device
// CHECK-NOT: sched.copy
// CHECK-NOT: sched.slot in device tag
// CHECK: %[[PLACE:.*]] = sched.view %[[GROUP]][0] : memref<48xf32> to memref<8x6xf32>
// CHECK: %{{.*}}, %[[A:.*]]:2 = sched.launch "plr_gemm"([0 : i32, 0 : i32, 0 : i32, {{.*}}]) on compute {{.*}} writes(%[[PLACE]],
// CHECK: %[[AGAIN:.*]] = sched.view %[[GROUP]][0] : memref<48xf32> to memref<8x6xf32>
// CHECK: %{{.*}}, %[[B:.*]]:2 = sched.launch "plr_gemm"([0 : i32, 0 : i32, 1 : i32, {{.*}}]) on compute reads(%[[A]]#0, {{.*}}) writes(%[[AGAIN]],
// CHECK-NOT: sched.copy
// CHECK: %[[ALL:.*]] = sched.join %[[GROUP]] from(%[[B]]#0 : memref<8x6xf32>) : memref<48xf32>
// CHECK: sched.return %[[ALL]]
func.func @sum_in_place(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %group: tensor<48xf32> {moe.donated = 0 : i64}) -> tensor<48xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x6xf32>) -> tensor<8x6xf32>
  %a = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x6xf32>) outs(%init : tensor<8x6xf32>) -> tensor<8x6xf32>
  %b = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x6xf32>) outs(%a : tensor<8x6xf32>) -> tensor<8x6xf32>
  %g = moe.pack %b into %group layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [8, 6]>]> : tensor<8x6xf32> into tensor<48xf32>
  return %g : tensor<48xf32>
}

// -----

// Buffers carry the roles of arguments and results as names, and count under what the role is of. An update takes the buffers that are donated:
// each new value is written where the old one is read.
// CHECK-DAG: #[[P:.*]] = #sched.tag<"argument parameters", parameters, forward>
// CHECK-DAG: #[[M:.*]] = #sched.tag<"argument first_moment", optimizer, forward>
// CHECK-DAG: #[[G:.*]] = #sched.tag<"argument gradients", gradients, forward>
// CHECK-DAG: #[[T:.*]] = #sched.tag<"argument step", optimizer, forward>
// CHECK-DAG: #[[B:.*]] = #sched.tag<"argument router.bias", parameters, forward>
// CHECK-DAG: #[[L:.*]] = #sched.tag<"result loss", vocabulary, forward>
// CHECK-LABEL: sched.program @update
// CHECK: %[[PB:.*]] = sched.buffer 0 writable in device tag #[[P]]
// CHECK: %[[GB:.*]] = sched.buffer 1 in device tag #[[G]]
// CHECK: %[[MB:.*]] = sched.buffer 2 writable in device tag #[[M]]
// CHECK: %[[VB:.*]] = sched.buffer 3 writable in device
// CHECK: %[[SB:.*]] = sched.buffer 4 in device
// CHECK: %[[TB:.*]] = sched.buffer 5 in device tag #[[T]]
// CHECK: sched.buffer 6 in device tag #[[B]]
// CHECK: %[[LB:.*]] = sched.buffer 10 writable in device tag #[[L]]
// CHECK-NOT: sched.buffer
// CHECK: %{{.*}}, %[[NEW:.*]]:3 = sched.launch "plr_adamw"([0 : i32, 0 : i32, 1, array<i64: 0, 4, 1>, 9.000000e-01, 9.000000e-01, 1.000000e-08, 1.000000e-01, #sched.write<0>, #sched.read<3>, #sched.write<1>, #sched.write<2>, #sched.null, #sched.read<4>, #sched.read<4>, #sched.read<5>]) on compute
// CHECK-SAME: reads(%[[PB]], %[[MB]], %[[VB]], %[[GB]], %[[SB]], %[[TB]] :
// CHECK-SAME: writes(%[[PB]], %[[MB]], %[[VB]] :
// CHECK: %{{.*}}, %[[LOSS:.*]] = sched.copy on compute reads(%[[SB]] : memref<f32>) writes(%[[LB]] : memref<f32>)
// CHECK: sched.return %[[NEW]]#0, %[[NEW]]#1, %[[NEW]]#2, %[[LOSS]] :
func.func @update(%p: tensor<4xf32> {moe.donated = 0 : i64, moe.role = #moe.role<parameters>}, %g: tensor<4xf32> {moe.role = #moe.role<gradients>},
    %m: tensor<4xf32> {moe.donated = 1 : i64, moe.role = #moe.role<first_moment>}, %v: tensor<4xf32> {moe.donated = 2 : i64}, %s: tensor<f32>,
    %t: tensor<i32> {moe.role = #moe.role<step>}, %b: tensor<4xf32> {moe.buffer = "router.bias"})
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32> {moe.role = #moe.role<loss>}) {
  %p1, %m1, %v1 = moe.adamw %p, %g, %m, %v scale %s learning_rate %s step %t beta1(0.9) beta2(0.9) epsilon(1.0e-8)
    weight_decay(0.1) layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4]>]>
    : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  return %p1, %m1, %v1, %s : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>
}

// -----

// A constant is copied to a slot; zeros are written, not copied.
// CHECK-LABEL: sched.program @constants
// CHECK: %[[C:.*]] = sched.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32> as memref<2xf32>
// CHECK-NEXT: %[[S:.*]] = sched.slot in device {{.*}} : memref<2xf32>
// CHECK-NEXT: %{{.*}}, %[[V:.*]] = sched.copy on compute reads(%[[C]] : memref<2xf32>) writes(%[[S]] : memref<2xf32>)
// CHECK: %[[Z:.*]] = sched.slot in device {{.*}} : memref<3xi32>
// CHECK-NEXT: %{{.*}}, %[[ZERO:.*]] = sched.launch "plr_zero"([#sched.write<0>, 12]) on compute writes(%[[Z]] : memref<3xi32>)
// CHECK: sched.copy on compute reads(%[[V]] :
// CHECK: sched.copy on compute reads(%[[ZERO]] :
func.func @constants() -> (tensor<2xf32>, tensor<3xi32>) {
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %z = arith.constant dense<0> : tensor<3xi32>
  return %c, %z : tensor<2xf32>, tensor<3xi32>
}

// RUN: plateau-opt %s -split-input-file -convert-moe-to-runtime | FileCheck %s

// Memory comes from the pool when a value is computed and goes back after its last use; the result is copied to the caller's.
// CHECK: llvm.mlir.global private constant @op_name_{{.*}}("moe.log_softmax\00")
// CHECK-LABEL: llvm.func @lifetimes(
// CHECK-SAME: %[[CONTEXT:.*]]: !llvm.ptr, %[[BUFFERS:.*]]: !llvm.ptr)
// CHECK: %[[LANE:.*]] = llvm.call @plr_get_lane(%[[CONTEXT]]
// CHECK: %[[X:.*]] = llvm.load
// CHECK: %[[OUT:.*]] = llvm.load
// CHECK: %[[A:.*]] = llvm.call @plr_allocate(%[[CONTEXT]]
// CHECK: llvm.call @plr_log_softmax(%[[LANE]], %{{.*}}, %{{.*}}, %{{.*}}, %[[X]], %[[A]])
// CHECK: %[[B:.*]] = llvm.call @plr_allocate(%[[CONTEXT]]
// CHECK: llvm.call @plr_log_softmax(%[[LANE]], %{{.*}}, %{{.*}}, %{{.*}}, %[[A]], %[[B]])
// CHECK: llvm.call @plr_release(%[[CONTEXT]], %{{.*}}, %[[A]])
// CHECK: llvm.call @plr_copy(%[[LANE]], %{{.*}}, %[[OUT]], %[[B]]
// CHECK: llvm.call @plr_release(%[[CONTEXT]], %{{.*}}, %[[B]])
func.func @lifetimes(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %a = moe.log_softmax %x : tensor<8x4xf32>
  %b = moe.log_softmax %a : tensor<8x4xf32>
  return %b : tensor<8x4xf32>
}

// -----

// A gradient is computed in its place in the group; the group's buffer is the caller's: no copy.
// CHECK-LABEL: llvm.func @in_place(
// CHECK: llvm.load
// CHECK: %[[GROUP:.*]] = llvm.load
// CHECK-NOT: plr_allocate
// CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(64 : i64)
// CHECK: %[[PLACE:.*]] = llvm.getelementptr %[[GROUP]][%[[OFFSET]]]
// CHECK: llvm.call @plr_log_softmax({{.*}}, %[[PLACE]])
// CHECK-NOT: plr_copy
// CHECK: llvm.call @plr_zero(
// CHECK-NOT: plr_copy
// CHECK: llvm.return
func.func @in_place(%x: tensor<8x4xf32>, %group: tensor<48xf32> {moe.donated = 0 : i64}) -> tensor<48xf32> {
  %zero = arith.constant dense<0.0> : tensor<4x4xf32>
  %a = moe.log_softmax %x : tensor<8x4xf32>
  %g = moe.pack %zero, %a into %group layout <[<<"zero", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4, 4]>, <<"a", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 16, shape = [8, 4]>]> : tensor<4x4xf32>, tensor<8x4xf32> into tensor<48xf32>
  return %g : tensor<48xf32>
}

// -----

// Views move no bytes; a product onto zeros overwrites; one onto a value that dies takes its buffer, one onto a value that is read
// again takes a copy.
// CHECK-LABEL: llvm.func @products(
// CHECK: %[[A:.*]] = llvm.call @plr_allocate
// CHECK: llvm.call @plr_gemm({{.*}}, %[[A]])
// CHECK: llvm.call @plr_gemm({{.*}}, %[[A]])
// CHECK: %[[B:.*]] = llvm.call @plr_allocate
// CHECK: llvm.call @plr_copy({{.*}}, %[[B]], %[[A]]
// CHECK: llvm.call @plr_gemm({{.*}}, %[[B]])
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

// Equal kernels are one function: 35 elements are two vectors and a tail of three.
// CHECK-LABEL: llvm.func @kernels(
// CHECK: llvm.mlir.addressof @elementwise_0
// CHECK: llvm.call @plr_launch
// CHECK: llvm.mlir.addressof @elementwise_0
// CHECK: llvm.call @plr_launch
// CHECK-LABEL: llvm.func @elementwise_0(
// CHECK: %[[VECTORS:.*]] = arith.constant 32 : i64
// CHECK: scf.for
// CHECK: math.exp %{{.*}} : vector<16xf32>
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

// Scope in locations becomes the tag: name, layer 3, attention (4), backward (1).
// CHECK: llvm.mlir.global private constant @tag_{{.*}}() {{.*}} {
// CHECK-DAG: llvm.mlir.addressof @op_name_{{.*}}
// CHECK-DAG: llvm.mlir.constant(3 : i32)
// CHECK-DAG: llvm.mlir.constant(4 : i32)
// CHECK-DAG: llvm.mlir.constant(1 : i32)
// CHECK: llvm.mlir.global private constant @op_name_{{.*}}("moe.log_softmax scores\00")
func.func @scope(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %a = moe.log_softmax %x : tensor<8x4xf32> loc(fused<#moe.scope<backward, attention, layer = 3>>["scores"])
  return %a : tensor<8x4xf32>
}

// -----

// Two products summed in the group: the first in its place, the second onto it; no copy.
// CHECK-LABEL: llvm.func @sum_in_place(
// CHECK-NOT: plr_allocate
// CHECK-NOT: plr_copy
// CHECK: llvm.call @plr_gemm(
// CHECK: llvm.call @plr_gemm(
// CHECK-NOT: plr_copy
// CHECK: llvm.return
func.func @sum_in_place(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %group: tensor<48xf32> {moe.donated = 0 : i64}) -> tensor<48xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x6xf32>) -> tensor<8x6xf32>
  %a = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x6xf32>) outs(%init : tensor<8x6xf32>) -> tensor<8x6xf32>
  %b = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x6xf32>) outs(%a : tensor<8x6xf32>) -> tensor<8x6xf32>
  %g = moe.pack %b into %group layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [8, 6]>]> : tensor<8x6xf32> into tensor<48xf32>
  return %g : tensor<48xf32>
}

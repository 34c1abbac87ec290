// RUN: plateau-opt %s -split-input-file -convert-moe-to-sched | FileCheck %s

// A sum that a loop carries lies in one slot, where each iteration updates it. A slice is a view of the argument: from element 4 on, 4 elements
// (16 bytes) further with each of the two iterations.
// CHECK-LABEL: sched.program @sum
// CHECK: %[[X:.*]] = sched.buffer 0 in device
// CHECK: %[[A:.*]] = sched.slot in device {{.*}} : memref<4xf32>
// CHECK: %{{.*}}, %[[ZERO:.*]] = sched.launch "plr_zero"([#sched.write<0>, 16]) on compute writes(%[[A]] : memref<4xf32>)
// CHECK-NEXT: %[[SUM:.*]] = sched.loop %[[I:.*]] = 0 to 2 iter(%[[CARRIED:.*]] = %[[ZERO]]) : memref<4xf32> {
// CHECK-NEXT: %[[PART:.*]] = sched.view %[[X]][16] index(%[[I]]) stride(16) : memref<12xf32> to memref<4xf32>
// CHECK-NEXT: %{{.*}}, %[[NEXT:.*]] = sched.launch "plr_launch"([@elementwise_0, #sched.pointers<[#sched.read<0>, #sched.read<1>, #sched.write<0>]>, 3]) on compute reads(%[[CARRIED]], %[[PART]] : memref<4xf32>, memref<4xf32>) writes(%[[A]] : memref<4xf32>)
// CHECK-NEXT: sched.yield %[[NEXT]] : memref<4xf32>
// CHECK: sched.copy on compute reads(%[[SUM]] : memref<4xf32>)
#map = affine_map<(d0) -> (d0)>
func.func @sum(%x: tensor<12xf32>) -> tensor<4xf32> {
  %c4 = arith.constant 4 : index
  %c12 = arith.constant 12 : index
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %sum = scf.for %i = %c4 to %c12 step %c4 iter_args(%a = %zero) -> tensor<4xf32> {
    %part = tensor.extract_slice %x[%i] [4] [1] : tensor<12xf32> to tensor<4xf32>
    %next = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%a, %part : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4xf32>) {
    ^bb0(%l: f32, %r: f32, %out: f32):
      %s = arith.addf %l, %r : f32
      linalg.yield %s : f32
    } -> tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  }
  return %sum : tensor<4xf32>
}

// -----

// What a loop starts from is read again afterwards, so it is copied first. What an iteration computes in another slot is copied to where the
// carried value lies. 5 trips from 0 to 9 by 2.
// CHECK-LABEL: sched.program @copied
// CHECK: %[[X:.*]] = sched.buffer 0 in device
// CHECK: %[[S:.*]] = sched.slot in device
// CHECK: %{{.*}}, %[[INIT:.*]] = sched.copy on compute reads(%[[X]] : memref<2x4xf32>) writes(%[[S]] : memref<2x4xf32>)
// CHECK: %[[LAST:.*]] = sched.loop %{{.*}} = 0 to 5 iter(%[[CARRIED:.*]] = %[[INIT]]) : memref<2x4xf32> {
// CHECK: %[[T:.*]] = sched.slot in device
// CHECK: %{{.*}}, %[[NEXT:.*]] = sched.launch "plr_merge_states"({{.*}}) on compute reads(%[[CARRIED]] : memref<2x4xf32>) writes(%[[T]] : memref<2x4xf32>)
// CHECK: %{{.*}}, %[[HOME:.*]] = sched.copy on compute reads(%[[NEXT]] : memref<2x4xf32>) writes(%[[S]] : memref<2x4xf32>)
// CHECK: sched.yield %[[HOME]] : memref<2x4xf32>
// CHECK: sched.copy on compute reads(%[[LAST]] : memref<2x4xf32>)
// CHECK: sched.copy on compute reads(%[[X]] : memref<2x4xf32>)
func.func @copied(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c9 = arith.constant 9 : index
  %last = scf.for %i = %c0 to %c9 step %c2 iter_args(%a = %x) -> tensor<2x4xf32> {
    %next = moe.merge_states %a vocabulary<size = 4, label_smoothing = 5.0e-01> : tensor<2x4xf32> -> tensor<2x4xf32>
    scf.yield %next : tensor<2x4xf32>
  }
  return %last, %x : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// A product onto a carried sum is taken in its place in the group: no copy. A loop that never runs keeps its first value.
// CHECK-LABEL: sched.program @in_group
// CHECK: %[[GROUP:.*]] = sched.buffer 2 writable in device
// CHECK-NOT: sched.copy
// CHECK: %[[PLACE:.*]] = sched.view %[[GROUP]][0] : memref<48xf32> to memref<8x6xf32>
// CHECK: %{{.*}}, %[[ZERO:.*]] = sched.launch "plr_zero"([#sched.write<0>, 192]) on compute writes(%[[PLACE]] : memref<8x6xf32>)
// CHECK: %[[SUM:.*]] = sched.loop %{{.*}} = 0 to 3 iter(%[[CARRIED:.*]] = %[[ZERO]]) : memref<8x6xf32> {
// CHECK: %[[AGAIN:.*]] = sched.view %[[GROUP]][0] : memref<48xf32> to memref<8x6xf32>
// CHECK: %{{.*}}, %[[NEXT:.*]]:2 = sched.launch "plr_gemm"([0 : i32, 0 : i32, 1 : i32, {{.*}}]) on compute reads(%[[CARRIED]], {{.*}}) writes(%[[AGAIN]],
// CHECK: sched.yield %[[NEXT]]#0 : memref<8x6xf32>
// CHECK: %[[SAME:.*]] = sched.loop %{{.*}} = 0 to 0 iter(%{{.*}} = %[[SUM]]) : memref<8x6xf32> {
// CHECK-NOT: sched.copy
// CHECK: %[[ALL:.*]] = sched.join %[[GROUP]] from(%[[SAME]] : memref<8x6xf32>) : memref<48xf32>
func.func @in_group(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>, %group: tensor<48xf32> {moe.donated = 0 : i64}) -> tensor<48xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %number = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x6xf32>
  %zero = linalg.fill ins(%number : f32) outs(%empty : tensor<8x6xf32>) -> tensor<8x6xf32>
  %sum = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %zero) -> tensor<8x6xf32> {
    %next = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x6xf32>) outs(%a : tensor<8x6xf32>) -> tensor<8x6xf32>
    scf.yield %next : tensor<8x6xf32>
  }
  %same = scf.for %i = %c3 to %c0 step %c1 iter_args(%a = %sum) -> tensor<8x6xf32> {
    %next = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x6xf32>) outs(%a : tensor<8x6xf32>) -> tensor<8x6xf32>
    scf.yield %next : tensor<8x6xf32>
  }
  %g = moe.pack %same into %group layout <[<<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [8, 6]>]> : tensor<8x6xf32> into tensor<48xf32>
  return %g : tensor<48xf32>
}

// -----

// No fence may stand in a loop, so a loop that makes plans becomes its two iterations: each has a plan and a fence of its own, its slices at
// constant offsets (16 ids are 64 bytes), and the collectives are numbered through. A slot of rows names its plan.
// CHECK-LABEL: sched.program @unrolled
// CHECK: %[[IDS:.*]] = sched.buffer 0 in device
// CHECK-NOT: sched.loop
// CHECK: sched.view %[[IDS]][0] : memref<32xi32> to memref<8x2xi32>
// CHECK: %{{.*}}, %[[PLAN:.*]]:2 = sched.collective "plr_plan_fill"({{.*}}) over @experts axes [0] number 0 on compute
// CHECK: sched.fence
// CHECK: sched.slot in device rows(%[[PLAN]]#0 :
// CHECK: sched.collective "plr_dispatch"({{.*}} number 1 on compute reads(%[[PLAN]]#1,
// CHECK: sched.collective "plr_combine"({{.*}} number 2 on compute
// CHECK: sched.view %[[IDS]][64] : memref<32xi32> to memref<8x2xi32>
// CHECK: %{{.*}}, %[[NEXT:.*]]:2 = sched.collective "plr_plan_fill"({{.*}} number 3 on compute
// CHECK: sched.fence
// CHECK: sched.slot in device rows(%[[NEXT]]#0 :
// CHECK: sched.collective "plr_dispatch"({{.*}} number 4 on compute reads(%[[NEXT]]#1,
// CHECK: sched.collective "plr_combine"({{.*}} number 5 on compute
// CHECK-NOT: sched.loop
// CHECK: sched.return
!plan = !moe.plan<experts = 4, ranks = 1, tokens = 8, top_k = 2>
shard.grid @experts(shape = 1)
func.func @unrolled(%ids: tensor<32xi32>, %x: tensor<8x5xf32>) -> tensor<8x5xf32> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %last = scf.for %i = %c0 to %c32 step %c16 iter_args(%a = %x) -> tensor<8x5xf32> {
    %part = tensor.extract_slice %ids[%i] [16] [1] : tensor<32xi32> to tensor<16xi32>
    %own = tensor.expand_shape %part [[0, 1]] output_shape [8, 2] : tensor<16xi32> into tensor<8x2xi32>
    %plan = moe.plan %own on @experts : tensor<8x2xi32> -> !plan
    %rows = moe.dispatch rows(%a : tensor<8x5xf32> -> tensor<?x5xf32>) by %plan on @experts : !plan
    %y = moe.combine rows(%rows : tensor<?x5xf32> -> tensor<8x5xf32>) by %plan on @experts : !plan
    scf.yield %y : tensor<8x5xf32>
  }
  return %last : tensor<8x5xf32>
}

// RUN: plateau-opt %s --split-input-file --convert-moe-to-sched | FileCheck %s

// Rows that are updated: the inner loop writes them where they lie, and the outer one carries the whole.
shard.grid @vocab(shape = 2)
func.func @fold(%x: tensor<64x8xf32>, %w: tensor<32x8xf32>, %labels: tensor<64xi32>) -> tensor<64x3xf32> {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  %first = moe.shard_start on @vocab hops(1) rows(32)
  %e = tensor.empty() : tensor<64x3xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%e : tensor<64x3xf32>) -> tensor<64x3xf32>
  %s1 = scf.for %i = %c0 to %c64 step %c16 iter_args(%s = %s0) -> tensor<64x3xf32> {
    %xi = tensor.extract_slice %x[%i, 0] [16, 8] [1, 1] : tensor<64x8xf32> to tensor<16x8xf32>
    %li = tensor.extract_slice %labels[%i] [16] [1] : tensor<64xi32> to tensor<16xi32>
    %si = tensor.extract_slice %s[%i, 0] [16, 3] [1, 1] : tensor<64x3xf32> to tensor<16x3xf32>
    %sj = scf.for %j = %c0 to %c32 step %c16 iter_args(%t = %si) -> tensor<16x3xf32> {
      %wj = tensor.extract_slice %w[%j, 0] [16, 8] [1, 1] : tensor<32x8xf32> to tensor<16x8xf32>
      %le = tensor.empty() : tensor<16x16xf32>
      %z = linalg.fill ins(%zero : f32) outs(%le : tensor<16x16xf32>) -> tensor<16x16xf32>
      %l = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%xi, %wj : tensor<16x8xf32>, tensor<16x8xf32>) outs(%z : tensor<16x16xf32>) -> tensor<16x16xf32>
      %k = arith.addi %j, %c16 : index
      %n = moe.fold_logits %l, %li first(%first) column(%k) into %t vocabulary<size = 63> : (tensor<16x16xf32>, tensor<16xi32>, tensor<i32>, index, tensor<16x3xf32>) -> tensor<16x3xf32>
      scf.yield %n : tensor<16x3xf32>
    }
    %s2 = tensor.insert_slice %sj into %s[%i, 0] [16, 3] [1, 1] : tensor<16x3xf32> into tensor<64x3xf32>
    scf.yield %s2 : tensor<64x3xf32>
  }
  return %s1 : tensor<64x3xf32>
}
// CHECK-LABEL: sched.program @fold
// CHECK: sched.launch "plr_shard_start"([#sched.group_rank<@vocab, [0]>, 2, 1, 32, #sched.write<0>])
// CHECK: %[[STATE:.*]] = sched.slot in device tag #{{.*}} : memref<64x3xf32>
// CHECK: %{{.*}}, %[[ZERO:.*]] = sched.launch "plr_zero"
// CHECK: sched.loop %[[I:.*]] = 0 to 4 iter(%[[S:.*]] = %[[ZERO]]) : memref<64x3xf32> {
// CHECK: sched.view %{{.*}}[0] index(%[[I]]) stride(512) : memref<64x8xf32> to memref<16x8xf32>
// CHECK: sched.view %{{.*}}[0] index(%[[I]]) stride(64) : memref<64xi32> to memref<16xi32>
// CHECK: %[[PLACE:.*]] = sched.view %[[STATE]][0] index(%[[I]]) stride(192) : memref<64x3xf32> to memref<16x3xf32>
// CHECK: %[[OLD:.*]] = sched.view %[[S]][0] index(%[[I]]) stride(192) : memref<64x3xf32> to memref<16x3xf32>
// CHECK: %[[TABLE:.*]] = sched.table dense<{{\[}}[16], [32]]> : tensor<2x1xi64>
// CHECK: %[[ROWS:.*]] = sched.loop %[[J:.*]] = 0 to 2 iter(%[[T:.*]] = %[[OLD]]) : memref<16x3xf32> {
// CHECK: sched.view %{{.*}}[0] index(%[[J]]) stride(512) : memref<32x8xf32> to memref<16x8xf32>
// CHECK: "plr_fold_logits"([#sched.struct<[63, {{.*}}]>, 16, 16, #sched.cell<0, 0, 0>, {{.*}}reads({{.*}}%[[T]]{{.*}}writes(%[[PLACE]] : memref<16x3xf32>)
// CHECK: %[[NEXT:.*]] = sched.update %[[S]] with %[[ROWS]] : memref<64x3xf32>, memref<16x3xf32>
// CHECK: sched.yield %[[NEXT]] : memref<64x3xf32>

// -----

// A fresh result is computed in its rows, and loops that overlap say in which stages.
shard.grid @vocab(shape = 2)
func.func @scatter(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  %r = scf.for %i = %c0 to %c8 step %c2 iter_args(%acc = %z) -> tensor<8x4xf32> {
    %xi = tensor.extract_slice %x[%i, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
    %g = shard.all_gather %xi on @vocab grid_axes = [0] gather_axis = 0 {moe.stage = 0 : i64} : tensor<2x4xf32> -> tensor<4x4xf32>
    %s = shard.reduce_scatter %g on @vocab grid_axes = [0] scatter_axis = 0 {moe.stage = 1 : i64} : tensor<4x4xf32> -> tensor<2x4xf32>
    %n = tensor.insert_slice %s into %acc[%i, 0] [2, 4] [1, 1] {moe.stage = 1 : i64} : tensor<2x4xf32> into tensor<8x4xf32>
    scf.yield %n : tensor<8x4xf32>
  } {moe.in_flight = 2 : i64}
  return %r : tensor<8x4xf32>
}
// CHECK-LABEL: sched.program @scatter
// CHECK: %[[SUM:.*]] = sched.slot in device tag #{{.*}} : memref<8x4xf32>
// CHECK: sched.loop %[[I:.*]] = 0 to 4 in_flight(2) iter(%[[S:.*]] = %{{.*}}) : memref<8x4xf32> {
// CHECK: "plr_all_gather"{{.*}} stage 0
// CHECK: %[[PLACE:.*]] = sched.view %[[SUM]][0] index(%[[I]]) stride(32) : memref<8x4xf32> to memref<2x4xf32>
// CHECK: %{{.*}}, %[[PART:.*]] = sched.collective "plr_reduce_scatter"{{.*}} stage 1 {{.*}}writes(%[[PLACE]] : memref<2x4xf32>)
// CHECK: sched.update %[[S]] with %[[PART]]

// -----

// A place that travels: what comes back lies where the zeros did. Tiles that are joined are computed in the whole.
shard.grid @vocab(shape = 2)
func.func @shift(%x: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %free = tensor.empty() : tensor<4x4xf32>
  %a = moe.shift %z into %free on @vocab hops(1) : tensor<4x4xf32>
  %b = moe.shift %a into %z on @vocab hops(1) : tensor<4x4xf32>
  %e1 = tensor.empty() : tensor<4x4xf32>
  %c = moe.shift %x into %e1 on @vocab hops(-1) : tensor<4x4xf32>
  %r = tensor.concat dim(0) %b, %c : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
// CHECK-LABEL: sched.program @shift
// CHECK: %[[WHOLE:.*]] = sched.slot in device tag #{{.*}} : memref<8x4xf32>
// CHECK: %[[FIRST:.*]] = sched.view %[[WHOLE]][0] : memref<8x4xf32> to memref<4x4xf32>
// CHECK: "plr_zero"{{.*}} writes(%[[FIRST]]
// CHECK: %[[OTHER:.*]] = sched.slot in device tag #{{.*}} : memref<4x4xf32>
// CHECK: %{{.*}}, %[[A:.*]] = sched.collective "plr_shift"([#sched.group, 0 : i32, 1, 16, #sched.read<0>, #sched.write<0>]){{.*}}writes(%[[OTHER]]
// CHECK: %[[AGAIN:.*]] = sched.view %[[WHOLE]][0] : memref<8x4xf32> to memref<4x4xf32>
// CHECK: %{{.*}}, %[[B:.*]] = sched.collective "plr_shift"{{.*}}reads(%[[A]] {{.*}}writes(%[[AGAIN]]
// CHECK: %[[SECOND:.*]] = sched.view %[[WHOLE]][64] : memref<8x4xf32> to memref<4x4xf32>
// CHECK: %{{.*}}, %[[C:.*]] = sched.collective "plr_shift"([#sched.group, 0 : i32, -1, 16, {{.*}}writes(%[[SECOND]]
// CHECK: sched.join %[[WHOLE]] from(%[[B]], %[[C]] : memref<4x4xf32>, memref<4x4xf32>)

// -----

// Rows that somebody reads as they were are copied, not overwritten.
func.func @copied(%x: tensor<4x4xf32>, %w: tensor<4xf32>, %y: tensor<2x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %a, %i = moe.rms_norm %x, %w epsilon(1.0e-6) : (tensor<4x4xf32>, tensor<4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)
  %b = tensor.insert_slice %y into %a[2, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<4x4xf32>
  return %a, %b : tensor<4x4xf32>, tensor<4x4xf32>
}
// CHECK-LABEL: sched.program @copied
// CHECK: %[[A:.*]] = sched.slot in device tag #{{.*}} : memref<4x4xf32>
// CHECK: %[[B:.*]] = sched.slot in device tag #{{.*}} : memref<4x4xf32>
// CHECK: %{{.*}}, %[[COPY:.*]] = sched.copy {{.*}}writes(%[[B]] : memref<4x4xf32>)
// CHECK: %[[PLACE:.*]] = sched.view %[[B]][32] : memref<4x4xf32> to memref<2x4xf32>
// CHECK: %{{.*}}, %[[PART:.*]] = sched.copy {{.*}}writes(%[[PLACE]] : memref<2x4xf32>)
// CHECK: sched.update %[[COPY]] with %[[PART]]

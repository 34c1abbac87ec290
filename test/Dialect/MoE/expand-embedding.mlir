// RUN: plateau-opt %s --moe-expand-embedding=tile-bytes=32 | FileCheck %s
// RUN: plateau-opt %s --moe-expand-embedding | FileCheck %s --check-prefix=WHOLE
// RUN: not plateau-opt %s --moe-expand-embedding=tile-bytes=0 2>&1 | FileCheck %s --check-prefix=BYTES
// BYTES: error: moe-expand-embedding: tile-bytes is 0: it must be at least 1

// A token of both ranks has 2 · 4 · 2 = 16 bytes: tiles of 2 tokens, in a loop, then one of 1.
// CHECK-LABEL: func.func @look_up(
// CHECK-SAME: %[[T:.*]]: tensor<6x4xbf16>, %[[IDS:.*]]: tensor<5xi32>)
// CHECK-DAG: %[[START:.*]] = moe.shard_start on @vocab hops(0) rows(6)
// CHECK-DAG: %[[ZEROS:.*]] = linalg.fill {{.*}} -> tensor<5x4xbf16>
// CHECK-DAG: %[[FROM:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[TO:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[STEP:.*]] = arith.constant 2 : index
// CHECK: %[[FULL:.*]] = scf.for %[[I:.*]] = %[[FROM]] to %[[TO]] step %[[STEP]] iter_args(%[[ROWS:.*]] = %[[ZEROS]])
// CHECK: %[[PART:.*]] = tensor.extract_slice %[[IDS]][%[[I]]] [2] [1]
// CHECK: %[[ALL:.*]] = shard.all_gather %[[PART]] on @vocab grid_axes = [1] gather_axis = 0 : tensor<2xi32> -> tensor<4xi32>
// CHECK: %[[FOUND:.*]] = moe.embedding_shard %[[T]], %[[ALL]] first(%[[START]]) size(11) : {{.*}} -> tensor<4x4xbf16>
// CHECK: %[[OWN:.*]] = shard.reduce_scatter %[[FOUND]] on @vocab grid_axes = [1] scatter_axis = 0 : tensor<4x4xbf16> -> tensor<2x4xbf16>
// CHECK: %[[NEXT:.*]] = tensor.insert_slice %[[OWN]] into %[[ROWS]][%[[I]], 0] [2, 4] [1, 1]
// CHECK: scf.yield %[[NEXT]]
// CHECK: tensor.extract_slice %[[IDS]]{{.*}} [1] [1]
// CHECK: %[[LAST:.*]] = tensor.insert_slice %{{.*}} into %[[FULL]]{{.*}} [1, 4] [1, 1]
// CHECK: return %[[LAST]]

// WHOLE-LABEL: func.func @look_up(
// WHOLE-NOT: scf.for
// WHOLE: moe.embedding_shard {{.*}} -> tensor<10x4xbf16>
// WHOLE-NEXT: %[[OWN:.*]] = shard.reduce_scatter
// WHOLE-NEXT: return %[[OWN]]
shard.grid @vocab(shape = 2x2)
func.func @look_up(%t: tensor<6x4xbf16>, %ids: tensor<5xi32>) -> tensor<5x4xbf16> {
  %x = moe.embedding %t, %ids on @vocab size(11) : (tensor<6x4xbf16>, tensor<5xi32>) -> tensor<5x4xbf16>
  return %x : tensor<5x4xbf16>
}

// Tiles of 2, 2 and no rest. Sums are f32, rounded once.
// CHECK-LABEL: func.func @gradient(
// CHECK: %[[ZEROS:.*]] = linalg.fill {{.*}} tensor<6x4xf32>
// CHECK: %[[SUM:.*]] = scf.for %{{.*}} iter_args(%[[CARRIED:.*]] = %[[ZEROS]])
// CHECK: shard.all_gather {{.*}} : tensor<2xi32> -> tensor<4xi32>
// CHECK: shard.all_gather {{.*}} : tensor<2x4xbf16> -> tensor<4x4xbf16>
// CHECK: moe.embedding_shard_grad {{.*}} into %[[CARRIED]] : {{.*}} -> tensor<6x4xf32>
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: %[[ROUNDED:.*]] = arith.truncf %[[SUM]] : tensor<6x4xf32> to tensor<6x4xbf16>
// CHECK-NEXT: return %[[ROUNDED]]
func.func @gradient(%d: tensor<4x4xbf16>, %ids: tensor<4xi32>) -> tensor<6x4xbf16> {
  %y = moe.embedding_grad %d, %ids on @vocab size(11) : (tensor<4x4xbf16>, tensor<4xi32>) -> tensor<6x4xbf16>
  return %y : tensor<6x4xbf16>
}

// No token, one, and no grid.
// CHECK-LABEL: func.func @none(
// CHECK-NOT: moe.embedding_shard %
// CHECK-LABEL: func.func @one(
// CHECK-NOT: scf.for
// CHECK: moe.embedding_shard %{{.*}} -> tensor<2x4xf32>
// CHECK-LABEL: func.func @whole(
// CHECK-NEXT: moe.embedding %
func.func @none(%t: tensor<6x4xf32>, %ids: tensor<0xi32>) -> tensor<0x4xf32> {
  %x = moe.embedding %t, %ids on @vocab size(11) : (tensor<6x4xf32>, tensor<0xi32>) -> tensor<0x4xf32>
  return %x : tensor<0x4xf32>
}
func.func @one(%t: tensor<6x4xf32>, %ids: tensor<1xi32>) -> tensor<1x4xf32> {
  %x = moe.embedding %t, %ids on @vocab size(11) : (tensor<6x4xf32>, tensor<1xi32>) -> tensor<1x4xf32>
  return %x : tensor<1x4xf32>
}
func.func @whole(%t: tensor<6x4xf32>, %ids: tensor<5xi32>) -> tensor<5x4xf32> {
  %x = moe.embedding %t, %ids : (tensor<6x4xf32>, tensor<5xi32>) -> tensor<5x4xf32>
  return %x : tensor<5x4xf32>
}

// DEFINE: %{pass} = plateau-opt %s --split-input-file --remarks-filter=moe-pipeline-dispatch -o /dev/null
// RUN: %{pass} --moe-pipeline-dispatch="balance=none" 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: %{pass} --moe-pipeline-dispatch="balance=none chunk-tokens=300" 2>&1 | FileCheck %s --check-prefix=CHUNKS
// RUN: %{pass} --moe-pipeline-dispatch="balance=none chunk-tokens=300 max-chunks=3" 2>&1 | FileCheck %s --check-prefix=LESS
// RUN: %{pass} --moe-pipeline-dispatch="balance=none max-chunks=4 capacity-rows=1000" 2>&1 | FileCheck %s --check-prefix=LEAVES
// RUN: %{pass} --moe-pipeline-dispatch="balance=none max-chunks=4 capacity-rows=8" 2>&1 | FileCheck %s --check-prefix=LEAST
// RUN: %{pass} --moe-pipeline-dispatch="balance=none max-chunks=4 capacity-rows=5000" 2>&1 | FileCheck %s --check-prefix=MOST
// RUN: %{pass} --moe-pipeline-dispatch="balance=none max-chunks=2000" 2>&1 | FileCheck %s --check-prefix=TOKENS
// RUN: %{pass} --moe-pipeline-dispatch="balance=none inflight-bytes=4000000" 2>&1 | FileCheck %s --check-prefix=BUDGET
// RUN: %{pass} --moe-pipeline-dispatch="balance=none inflight-bytes=4000000 max-chunks=20" 2>&1 | FileCheck %s --check-prefix=GIVEN
// RUN: %{pass} --moe-pipeline-dispatch="balance=none inflight-bytes=100000000" 2>&1 | FileCheck %s --check-prefix=PLENTY
// RUN: %{pass} --moe-pipeline-dispatch="balance=none inflight-bytes=4000000 in-flight=1" 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: %{pass} --moe-pipeline-dispatch="balance=none inflight-bytes=4000000 in-flight=4" 2>&1 | FileCheck %s --check-prefix=FOUR
// RUN: %{pass} --moe-pipeline-dispatch="balance=none inflight-bytes=1000" 2>&1 | FileCheck %s --check-prefix=LITTLE
// RUN: %{pass} --moe-pipeline-dispatch="helper-slots=9" 2>&1 | FileCheck %s --check-prefix=SLOTS
// RUN: %{pass} --moe-pipeline-dispatch="helper-slots=1 max-chunks=4" 2>&1 | FileCheck %s --check-prefix=HELPER
// RUN: %{pass} --moe-pipeline-dispatch="helper-slots=0" 2>&1 | FileCheck %s --check-prefix=NOSLOTS

// N = 1000, k = 2, R = 4, M = 2, w = 2: a chunk of c tokens gives a rank at most 8 c rows. u = floor(C / 8).
// ONE: Passed] plan | Category:moe-pipeline-dispatch | CapacityRows=8000, Chunks=1, HelperSlots=0, InFlight=2, Leaves=1, {{.*}} Loops=1, RowsOfToken=2, Tokens=1000
// CHUNKS: Passed] plan | {{.*}} CapacityRows=2000, Chunks=4, {{.*}} Leaves=1,
// LESS: Passed] plan | {{.*}} CapacityRows=2672, Chunks=3, {{.*}} Leaves=1,
// u = 125 of 250 tokens; 1 of 250.
// LEAVES: Passed] plan | {{.*}} CapacityRows=1000, Chunks=4, {{.*}} Leaves=2,
// LEAST: Passed] plan | {{.*}} CapacityRows=8, Chunks=4, {{.*}} Leaves=250,
// MOST: Passed] plan | {{.*}} CapacityRows=2000, Chunks=4, {{.*}} Leaves=1,
// TOKENS: Missed] fewer-chunks | {{.*}}"max-chunks is 2000, and a rank has 1000 tokens: as many chunks are made
// TOKENS: Passed] plan | {{.*}} CapacityRows=8, Chunks=1000, {{.*}} Leaves=1,
// A row has 4096 bytes, and 4 when it travels with a number. Two places of what is sent and one of what experts make (a row is scaled
// where it lies) are 12296 bytes a row; staging is 4100 bytes for each of 2 c slots. With C = 2.5 c a chunk of c tokens holds 38940 c bytes: 103
// are too many, and 10 chunks have 100. That leaves 106000 bytes for 7 more rows of 12296 bytes and for the tables.
// BUDGET: Passed] plan | {{.*}} CapacityRows=257, Chunks=10, {{.*}} Leaves=4,
// 50 tokens; (4000000 - 410000) / 12296 = 291.96 rows without the tables. u = 36.
// GIVEN: Passed] plan | {{.*}} CapacityRows=290, Chunks=20, {{.*}} Leaves=2,
// (100000000 - 8200000) / 12296 = 7465.8.
// PLENTY: Passed] plan | {{.*}} CapacityRows=7465, Chunks=1, {{.*}} Leaves=2,
// One place of each: sent and first product are there together, 8196 bytes a row, 2.5 · 8196 + 8200 = 28690 bytes a token. 8 chunks of 125
// tokens hold 3586250 bytes, 7 of 143 more than 4000000. (4000000 - 1025000) / 8196 = 362.98 rows without the tables.
// ALONE: Passed] plan | {{.*}} CapacityRows=361, Chunks=8, {{.*}} InFlight=1, Leaves=3,
// The second stage comes two times behind the first, the third one behind the second: three places of what is sent, two of what comes back
// and one of the first product, 3 · 4100 + 2 · 4096 + 4096 = 24588 bytes a row: 69670 a token, 57.4 tokens. 18 chunks of 56.
// FOUR: Passed] plan | {{.*}} Chunks=18, {{.*}} InFlight=4,
// LITTLE: Missed] over-budget | {{.*}}"the loops of 1000 chunks of 1 leaves with 8 rows hold {{[0-9]+}} bytes, and inflight-bytes is 1000
// LITTLE: Passed] plan | {{.*}} Chunks=1000,
// SLOTS: Missed] fewer-helper-slots | {{.*}}"helper-slots is 9, and other ranks have 6 experts: as many slots are made
// SLOTS: Passed] plan | {{.*}} HelperSlots=6,
// NOSLOTS: Missed] not-balanced | {{.*}}"helper-slots is 0: every expert stays on its own rank
// NOSLOTS: Passed] plan | {{.*}} HelperSlots=0,
!plan = !moe.plan<experts = 8, ranks = 4, tokens = 1000, top_k = 2>
#routing = #moe.routing<top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32>
shard.grid @experts(shape = 4)
func.func @numbers(%x: tensor<1000x1024xf32>, %logits: tensor<1000x8xf32>, %w: tensor<2x1024x1024xf32>) -> tensor<1000x1024xf32> {
  %ids, %weights, %counts = moe.route %logits routing #routing : (tensor<1000x8xf32>) -> (tensor<1000x2xi32>, tensor<1000x2xf32>, tensor<8xi32>)
  %plan = moe.plan %ids on @experts : tensor<1000x2xi32> -> !plan
  %rows, %p = moe.dispatch rows(%x : tensor<1000x1024xf32> -> tensor<?x1024xf32>) values(%weights : tensor<1000x2xf32> -> tensor<?xf32>) by %plan on @experts : !plan
  %h = moe.grouped_matmul %rows, %w by %plan : (tensor<?x1024xf32>, tensor<2x1024x1024xf32>, !plan) -> tensor<?x1024xf32>
  %s = moe.scale_rows %h, %p : tensor<?x1024xf32>, tensor<?xf32>
  %y = moe.combine rows(%s : tensor<?x1024xf32> -> tensor<1000x1024xf32>) by %plan on @experts : !plan
  return %y : tensor<1000x1024xf32>
}

// -----

// One expert a rank: a token that names none twice sends it one row at most, with one helper slot two.
// ONE: Passed] plan | {{.*}} CapacityRows=40, Chunks=1, {{.*}} RowsOfToken=1, Tokens=10
// CHUNKS: Passed] plan | {{.*}} CapacityRows=40, Chunks=1, {{.*}} RowsOfToken=1, Tokens=10
// HELPER: Passed] plan | {{.*}} CapacityRows=24, Chunks=4, HelperSlots=1, {{.*}} RowsOfToken=2, Tokens=10
// NOSLOTS: Passed] plan
!plan = !moe.plan<experts = 4, ranks = 4, tokens = 10, top_k = 2>
#routing = #moe.routing<top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32>
shard.grid @experts(shape = 4)
func.func @distinct(%x: tensor<10x2xf32>, %logits: tensor<10x4xf32>) -> tensor<10x2xf32> {
  %ids, %weights, %counts = moe.route %logits routing #routing : (tensor<10x4xf32>) -> (tensor<10x2xi32>, tensor<10x2xf32>, tensor<4xi32>)
  %plan = moe.plan %ids on @experts : tensor<10x2xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<10x2xf32> -> tensor<?x2xf32>) by %plan on @experts : !plan
  %y = moe.combine rows(%rows : tensor<?x2xf32> -> tensor<10x2xf32>) by %plan on @experts : !plan
  return %y : tensor<10x2xf32>
}

// -----

// The same with ids that may name one twice.
// ONE: Passed] plan | {{.*}} CapacityRows=80, Chunks=1, {{.*}} RowsOfToken=2, Tokens=10
// HELPER: Passed] plan | {{.*}} CapacityRows=24, Chunks=4, HelperSlots=1, {{.*}} RowsOfToken=2, Tokens=10
// NOSLOTS: Passed] plan
!plan = !moe.plan<experts = 4, ranks = 4, tokens = 10, top_k = 2>
shard.grid @experts(shape = 4)
func.func @duplicates(%x: tensor<10x2xf32>, %ids: tensor<10x2xi32>) -> tensor<10x2xf32> {
  %plan = moe.plan %ids on @experts : tensor<10x2xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<10x2xf32> -> tensor<?x2xf32>) by %plan on @experts : !plan
  %y = moe.combine rows(%rows : tensor<?x2xf32> -> tensor<10x2xf32>) by %plan on @experts : !plan
  return %y : tensor<10x2xf32>
}

// -----

// One rank has no others to help, and nothing travels.
// HELPER: Passed] plan | {{.*}} CapacityRows=6, Chunks=4, HelperSlots=0, InFlight=1, {{.*}} Tokens=10
// SLOTS: Passed] plan | {{.*}} HelperSlots=0, InFlight=1,
// NOSLOTS-NOT: not-balanced
!plan = !moe.plan<experts = 4, ranks = 1, tokens = 10, top_k = 2>
shard.grid @experts(shape = 1)
func.func @alone(%x: tensor<10x2xf32>, %ids: tensor<10x2xi32>) -> tensor<10x2xf32> {
  %plan = moe.plan %ids on @experts : tensor<10x2xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<10x2xf32> -> tensor<?x2xf32>) by %plan on @experts : !plan
  %y = moe.combine rows(%rows : tensor<?x2xf32> -> tensor<10x2xf32>) by %plan on @experts : !plan
  return %y : tensor<10x2xf32>
}

// DEFINE: %{pass} = not plateau-opt %s --split-input-file -o /dev/null
// RUN: %{pass} --moe-pipeline-dispatch="chunk-tokens=-1" 2>&1 | FileCheck %s --check-prefix=CHUNK
// RUN: %{pass} --moe-pipeline-dispatch="max-chunks=-2" 2>&1 | FileCheck %s --check-prefix=CHUNKS
// RUN: %{pass} --moe-pipeline-dispatch="in-flight=0" 2>&1 | FileCheck %s --check-prefix=FLIGHT
// RUN: %{pass} --moe-pipeline-dispatch="inflight-bytes=-1" 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: %{pass} --moe-pipeline-dispatch="min-rows=0" 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: %{pass} --moe-pipeline-dispatch="helper-slots=-1" 2>&1 | FileCheck %s --check-prefix=SLOTS
// RUN: %{pass} --moe-pipeline-dispatch="balance=even" 2>&1 | FileCheck %s --check-prefix=BALANCE
// RUN: %{pass} --moe-pipeline-dispatch="alpha=0" 2>&1 | FileCheck %s --check-prefix=ALPHA
// RUN: %{pass} --moe-pipeline-dispatch="alpha=1." 2>&1 | FileCheck %s --check-prefix=ALPHA
// RUN: %{pass} --moe-pipeline-dispatch="alpha=3/0" 2>&1 | FileCheck %s --check-prefix=ALPHA
// RUN: %{pass} --moe-pipeline-dispatch="alpha=-1" 2>&1 | FileCheck %s --check-prefix=ALPHA
// RUN: %{pass} --moe-pipeline-dispatch="alpha=1000001" 2>&1 | FileCheck %s --check-prefix=ALPHA
// RUN: %{pass} --moe-pipeline-dispatch="alpha=1.2/3" 2>&1 | FileCheck %s --check-prefix=ALPHA
// RUN: %{pass} --moe-pipeline-dispatch="imbalance-threshold=1.2345678" 2>&1 | FileCheck %s --check-prefix=THRESHOLD
// RUN: %{pass} --moe-pipeline-dispatch="capacity-rows=11" 2>&1 | FileCheck %s --check-prefix=CAPACITY
// RUN: %{pass} --moe-pipeline-dispatch="capacity-rows=12 chunk-tokens=1000" 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: %{pass} --moe-pipeline-dispatch="strict helper-slots=9" 2>&1 | FileCheck %s --check-prefix=STRICT
// RUN: %{pass} --moe-pipeline-dispatch="strict helper-slots=2 inflight-bytes=10" 2>&1 | FileCheck %s --check-prefix=BUDGET

// CHUNK: error: chunk-tokens is -1: it must be at least 0
// CHUNKS: error: max-chunks is -2: it must be at least 0
// FLIGHT: error: in-flight is 0: it must be at least 1
// BYTES: error: inflight-bytes is -1: it must be at least 0
// ROWS: error: min-rows is 0: it must be at least 1
// SLOTS: error: helper-slots is -1: it must be at least 0
// BALANCE: error: balance is 'even': it must be none or least-loaded
// ALPHA: error: alpha is '{{.*}}': it must be a positive number such as 1.3 or 13/10, and as a reduced fraction of whole numbers up to 10^6
// THRESHOLD: error: imbalance-threshold is '1.2345678': it must be

// CAPACITY: error: capacity-rows is 11, and the smallest legal capacity is 12 rows: 4 ranks may each send 3 rows of one token to the same rank
// STRICT: error: moe-pipeline-dispatch: helper-slots is 9, and other ranks have 6 experts: as many slots are made
// BUDGET: error: moe-pipeline-dispatch: the loops of {{[0-9]+}} chunks of {{[0-9]+}} leaves with {{[0-9]+}} rows hold {{[0-9]+}} bytes, and inflight-bytes is 10
!plan = !moe.plan<experts = 8, ranks = 4, tokens = 10, top_k = 3>
shard.grid @experts(shape = 4)
func.func @few(%x: tensor<10x2xf32>, %ids: tensor<10x3xi32>) -> tensor<10x2xf32> {
  %plan = moe.plan %ids on @experts : tensor<10x3xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<10x2xf32> -> tensor<?x2xf32>) by %plan on @experts : !plan
  %y = moe.combine rows(%rows : tensor<?x2xf32> -> tensor<10x2xf32>) by %plan on @experts : !plan
  return %y : tensor<10x2xf32>
}

// -----

// Leaves of one token of each rank.
// MANY: error: 2000 chunks of 1000 leaves are 2000000 iterations, and there can be 1048576: raise capacity-rows, or lower the number of chunks
!plan = !moe.plan<experts = 8, ranks = 4, tokens = 2000000, top_k = 3>
shard.grid @experts(shape = 4)
func.func @many(%x: tensor<2000000x2xf32>, %ids: tensor<2000000x3xi32>) -> tensor<2000000x2xf32> {
  %plan = moe.plan %ids on @experts : tensor<2000000x3xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<2000000x2xf32> -> tensor<?x2xf32>) by %plan on @experts : !plan
  %y = moe.combine rows(%rows : tensor<?x2xf32> -> tensor<2000000x2xf32>) by %plan on @experts : !plan
  return %y : tensor<2000000x2xf32>
}

// -----

// STRICT: error: moe-pipeline-dispatch: the function makes no plan of routes
func.func @none(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}

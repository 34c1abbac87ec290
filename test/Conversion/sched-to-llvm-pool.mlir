// RUN: plateau-opt %s -split-input-file -convert-sched-to-llvm=pool=true | FileCheck %s

// Memory comes from the pool before the first call that uses a slot and goes back after the last; views and what launches write are uses of their
// slot. There is no arena, nothing is declared, and no slot that nothing uses is allocated.
// CHECK: llvm.mlir.global private constant @op_name_{{.*}}("moe.log_softmax\00")
// CHECK-LABEL: llvm.func @lifetimes(
// CHECK-SAME: %[[CONTEXT:.*]]: !llvm.ptr, %[[BUFFERS:.*]]: !llvm.ptr)
// CHECK-NOT: plr_arena
// CHECK-NOT: plr_writes
// CHECK: %[[LANE:.*]] = llvm.call @plr_get_lane(%[[CONTEXT]]
// CHECK: %[[X:.*]] = llvm.load
// CHECK: %[[OUT:.*]] = llvm.load
// CHECK: %[[BYTES:.*]] = llvm.mlir.constant(128 : i64)
// CHECK: %[[SPACE:.*]] = llvm.mlir.constant(0 : i32)
// CHECK: %[[TAG:.*]] = llvm.mlir.addressof @[[SOFTMAX:tag_.*]] :
// CHECK: %[[A:.*]] = llvm.call @plr_allocate(%[[CONTEXT]], %[[SPACE]], %[[BYTES]], %[[TAG]])
// CHECK: llvm.call @plr_log_softmax(%[[LANE]], %{{.*}}, %{{.*}}, %{{.*}}, %[[X]], %[[A]])
// CHECK-NOT: plr_release
// CHECK: %[[SPACE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK: %[[B:.*]] = llvm.call @plr_allocate(%[[CONTEXT]], %[[SPACE]],
// CHECK-NOT: plr_release
// CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(64 : i64)
// CHECK: %[[HALF:.*]] = llvm.getelementptr %[[A]][%[[OFFSET]]]
// CHECK: llvm.call @plr_log_softmax(%[[LANE]], %{{.*}}, %{{.*}}, %{{.*}}, %[[HALF]], %[[B]])
// CHECK: llvm.call @plr_release(%[[CONTEXT]], %{{.*}}, %[[A]])
// CHECK: llvm.call @plr_copy(%[[LANE]], %{{.*}}, %[[OUT]], %[[B]]
// CHECK: %[[SPACE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK: llvm.call @plr_release(%[[CONTEXT]], %[[SPACE]], %[[B]])
// CHECK-NOT: plr_allocate
// CHECK-NOT: plr_release
// CHECK-NOT: plr_writes
// CHECK: llvm.return
#softmax = #sched.tag<"moe.log_softmax", vocabulary, forward>
sched.program @lifetimes ranks(1) {
  sched.lane compute
  sched.arena device
  %x = sched.buffer 0 in device tag #softmax : memref<8x4xf32>
  %out = sched.buffer 1 writable in device tag #softmax : memref<4x4xf32>
  %unused = sched.slot in device tag #softmax : memref<8x4xf32>
  %a = sched.slot in device tag #softmax : memref<8x4xf32>
  %b = sched.slot in host tag #softmax : memref<4x4xf32>
  %e0, %va = sched.launch "plr_log_softmax"([8 : i64, 4 : i64, #sched.read<0>, #sched.write<0>]) on compute reads(%x : memref<8x4xf32>) writes(%a : memref<8x4xf32>) tag #softmax
  %half = sched.view %va[64] : memref<8x4xf32> to memref<4x4xf32>
  %e1, %vb = sched.launch "plr_log_softmax"([4 : i64, 4 : i64, #sched.read<0>, #sched.write<0>]) on compute reads(%half : memref<4x4xf32>) writes(%b : memref<4x4xf32>) tag #softmax
  %e2, %result = sched.copy on compute reads(%vb : memref<4x4xf32>) writes(%out : memref<4x4xf32>) tag #softmax
  sched.return %result : memref<4x4xf32>
}

// -----

// A plan is made by the runtime, which waits: no fence. It gives its rows where a slot of rows is allocated, by their number (of 20 bytes), and goes
// back once, after the last call that reads it; so does one that nobody reads, at once.
// CHECK-LABEL: llvm.func @plans(
// CHECK-SAME: %[[CONTEXT:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr)
// CHECK: %[[GROUP:.*]] = llvm.call @plr_get_group(
// CHECK: %[[LANE:.*]] = llvm.call @plr_get_lane(
// CHECK: %[[IDS:.*]] = llvm.load
// CHECK: %[[X:.*]] = llvm.load
// CHECK-NOT: plr_allocate
// CHECK: %[[PLAN:.*]] = llvm.call @plr_plan_create(%[[LANE]], %{{.*}}, %[[GROUP]], %{{.*}}, %[[IDS]])
// CHECK: %[[OTHER:.*]] = llvm.call @plr_plan_create(
// CHECK-NEXT: llvm.call @plr_plan_release(%[[OTHER]])
// CHECK: %[[COUNT:.*]] = llvm.call @plr_plan_rows(%[[PLAN]], %{{.*}})
// CHECK: %[[FIVE:.*]] = llvm.mlir.constant(20 : i64)
// CHECK: %[[BYTES:.*]] = llvm.mul %[[COUNT]], %[[FIVE]]
// CHECK: %[[ROWS:.*]] = llvm.call @plr_allocate(%[[CONTEXT]], %{{.*}}, %[[BYTES]],
// CHECK: llvm.call @plr_dispatch(%[[LANE]], %{{.*}}, %[[PLAN]], %[[X]], %[[ROWS]])
// CHECK: %[[COUNT:.*]] = llvm.call @plr_plan_rows(%[[PLAN]], %{{.*}})
// CHECK: llvm.call @plr_scale_rows(%[[LANE]], %{{.*}}, %[[COUNT]], %[[ROWS]], %[[ROWS]])
// CHECK-NOT: plr_plan_release
// CHECK: llvm.call @plr_combine(%[[LANE]], %{{.*}}, %[[PLAN]], %[[ROWS]],
// CHECK-DAG: llvm.call @plr_plan_release(%[[PLAN]])
// CHECK-DAG: llvm.call @plr_release(%[[CONTEXT]], %{{.*}}, %[[ROWS]])
// CHECK-NOT: plr_plan_release
// CHECK-NOT: plr_plan_fill
// CHECK-NOT: plr_fence
// CHECK: llvm.return
#rows = #sched.tag<"moe.dispatch", dispatch, forward>
shard.grid @grid(shape = 1)
sched.program @plans ranks(1) {
  sched.lane compute
  %ids = sched.buffer 0 in device tag #rows : memref<8xi32>
  %x = sched.buffer 1 in device tag #rows : memref<8x5xf32>
  %out = sched.buffer 2 writable in device tag #rows : memref<8x5xf32>
  %h = sched.slot in host tag #rows : memref<128xi8>
  %d = sched.slot in device tag #rows : memref<64xi8>
  %e, %plan:2 = sched.collective "plr_plan_fill"([#sched.group, #sched.struct<[8 : i64, 1 : i64, 4 : i64]>, #sched.read<0>, #sched.write<0>, 128 : i64, #sched.write<1>, 64 : i64]) over @grid axes [0] number 0 on compute reads(%ids : memref<8xi32>) writes(%h, %d : memref<128xi8>, memref<64xi8>) tag #rows
  sched.fence %e
  %h1 = sched.slot in host tag #rows : memref<128xi8>
  %d1 = sched.slot in device tag #rows : memref<64xi8>
  %e1, %other:2 = sched.collective "plr_plan_fill"([#sched.group, #sched.struct<[8 : i64, 1 : i64, 4 : i64]>, #sched.read<0>, #sched.write<0>, 128 : i64, #sched.write<1>, 64 : i64]) over @grid axes [0] number 1 on compute reads(%ids : memref<8xi32>) writes(%h1, %d1 : memref<128xi8>, memref<64xi8>) tag #rows
  sched.fence %e1
  %r = sched.slot in device rows(%plan#0 : memref<128xi8>) tag #rows : memref<8x5xf32>
  %e2, %v = sched.collective "plr_dispatch"([#sched.table<0>, #sched.read<1>, #sched.write<0>]) over @grid axes [0] number 2 on compute reads(%plan#1, %x : memref<64xi8>, memref<8x5xf32>) tables(%plan#0 : memref<128xi8>) writes(%r : memref<8x5xf32>) tag #rows
  %e3, %w = sched.launch "plr_scale_rows"([#sched.rows<0>, #sched.read<0>, #sched.write<0>]) on compute reads(%v : memref<8x5xf32>) tables(%plan#0 : memref<128xi8>) writes(%r : memref<8x5xf32>) tag #rows
  %e4, %y = sched.collective "plr_combine"([#sched.table<0>, #sched.read<1>, #sched.write<0>]) over @grid axes [0] number 3 on compute reads(%plan#1, %w : memref<64xi8>, memref<8x5xf32>) tables(%plan#0 : memref<128xi8>) writes(%out : memref<8x5xf32>) tag #rows
  sched.return %y : memref<8x5xf32>
}

// -----

// Scratch memory is null, of -1 bytes: the call takes it from the pool.
// CHECK-LABEL: llvm.func @scratch(
// CHECK-NOT: plr_allocate
// CHECK: %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK: %[[POOL:.*]] = llvm.mlir.constant(-1 : i64)
// CHECK: llvm.call @plr_gemm(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[NULL]], %[[POOL]])
// CHECK-NOT: plr_release
// CHECK: llvm.return
#gemm = #sched.tag<"linalg.matmul", dense, forward>
sched.program @scratch ranks(1) {
  sched.lane compute
  %x = sched.buffer 0 in device tag #gemm : memref<8xf32>
  %out = sched.buffer 1 writable in device tag #gemm : memref<8xf32>
  %s = sched.slot in device scratch tag #gemm : memref<192xi8>
  %e, %v:2 = sched.launch "plr_gemm"([#sched.read<0>, #sched.write<0>, #sched.write<1>, #sched.bytes<1>]) on compute reads(%x : memref<8xf32>) writes(%out, %s : memref<8xf32>, memref<192xi8>) tag #gemm
  sched.return
}

// -----

// A slot of a loop's body comes and goes in each iteration; one from outside that a loop uses lives until the loop has ended.
// CHECK-LABEL: llvm.func @loops(
// CHECK: %[[ACC:.*]] = llvm.call @plr_allocate(
// CHECK: llvm.call @plr_zero(%{{.*}}, %{{.*}}, %[[ACC]],
// CHECK: scf.for
// CHECK: %[[T:.*]] = llvm.call @plr_allocate(
// CHECK: llvm.call @f(%{{.*}}, %{{.*}}, %[[ACC]], %[[T]])
// CHECK: llvm.call @f(%{{.*}}, %{{.*}}, %[[T]], %[[ACC]])
// CHECK: llvm.call @plr_release(%{{.*}}, %{{.*}}, %[[T]])
// CHECK-NOT: plr_release
// CHECK: }
// CHECK: llvm.call @plr_release(%{{.*}}, %{{.*}}, %[[ACC]])
#sum = #sched.tag<"elementwise", dense, forward>
sched.program @loops ranks(1) {
  sched.lane compute
  %acc = sched.slot in device tag #sum : memref<8xf32>
  %e, %zero = sched.launch "plr_zero"([#sched.write<0>, 32 : i64]) on compute writes(%acc : memref<8xf32>) tag #sum
  %last = sched.loop %i = 0 to 4 iter(%a = %zero) : memref<8xf32> {
    %t = sched.slot in device tag #sum : memref<8xf32>
    %e0, %v = sched.launch "f"([#sched.read<0>, #sched.write<0>]) on compute reads(%a : memref<8xf32>) writes(%t : memref<8xf32>) tag #sum
    %e1, %next = sched.launch "f"([#sched.read<0>, #sched.write<0>]) on compute reads(%v : memref<8xf32>) writes(%acc : memref<8xf32>) tag #sum
    sched.yield %next : memref<8xf32>
  }
  sched.return
}

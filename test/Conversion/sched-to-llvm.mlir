// RUN: plateau-opt %s -split-input-file -convert-sched-to-llvm | FileCheck %s

// A slot is at its offset in the arena of its space, whose bytes and owner are told once; a buffer is the pointer of its number. A view adds its
// offset. Each call has its lane and its tag (name, layer 3, component gradients 1, phase backward 1); what it writes is declared before.
// A copy says its bytes.
// CHECK: llvm.mlir.global private constant @[[SUM:tag_.*]]() {{.*}} {
// CHECK-DAG: llvm.mlir.addressof @[[NAME:op_name_.*]] :
// CHECK-DAG: llvm.insertvalue %{{.*}}[0]
// CHECK: %[[LAYER:.*]] = llvm.mlir.constant(3 : i32)
// CHECK-NEXT: llvm.insertvalue %[[LAYER]], %{{.*}}[1]
// CHECK-NEXT: %[[COMPONENT:.*]] = llvm.mlir.constant(1 : i32)
// CHECK-NEXT: llvm.insertvalue %[[COMPONENT]], %{{.*}}[2]
// CHECK-NEXT: %[[PHASE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK-NEXT: llvm.insertvalue %[[PHASE]], %{{.*}}[3]
// CHECK: llvm.mlir.global private constant @[[NAME]]("linalg.add sum\00")
// CHECK: llvm.mlir.global private constant @[[COPY:tag_.*]]() {{.*}} {
// CHECK: llvm.mlir.constant(-1 : i32)
// CHECK-LABEL: llvm.func @addresses(
// CHECK-SAME: %[[CONTEXT:.*]]: !llvm.ptr, %[[BUFFERS:.*]]: !llvm.ptr)
// CHECK: %[[ZERO:.*]] = llvm.mlir.constant(0 : i32)
// CHECK: %[[COMPUTE:.*]] = llvm.call @plr_get_lane(%[[CONTEXT]], %[[ZERO]])
// CHECK: %[[TWO:.*]] = llvm.mlir.constant(2 : i32)
// CHECK: %[[H2D:.*]] = llvm.call @plr_get_lane(%[[CONTEXT]], %[[TWO]])
// CHECK: %[[SPACE:.*]] = llvm.mlir.constant(0 : i32)
// CHECK: %[[SIZE:.*]] = llvm.mlir.constant(192 : i64)
// CHECK: %[[DEVICE:.*]] = llvm.call @plr_arena(%[[CONTEXT]], %[[SPACE]], %[[SIZE]], %{{.*}})
// CHECK: %[[SPACE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK: %[[SIZE:.*]] = llvm.mlir.constant(64 : i64)
// CHECK: %[[HOST:.*]] = llvm.call @plr_arena(%[[CONTEXT]], %[[SPACE]], %[[SIZE]], %{{.*}})
// CHECK: %[[FIRST:.*]] = llvm.getelementptr %[[BUFFERS]][0]
// CHECK: %[[IN:.*]] = llvm.load %[[FIRST]]
// CHECK: %[[THIRD:.*]] = llvm.getelementptr %[[BUFFERS]][2]
// CHECK: %[[OUT:.*]] = llvm.load %[[THIRD]]
// CHECK: %[[TAG:.*]] = llvm.mlir.addressof @[[COPY]]
// CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(128 : i64)
// CHECK: %[[SLOT:.*]] = llvm.getelementptr %[[DEVICE]][%[[OFFSET]]]
// CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(16 : i64)
// CHECK: %[[PART:.*]] = llvm.getelementptr %[[SLOT]][%[[OFFSET]]]
// CHECK: %[[BYTES:.*]] = llvm.mlir.constant(32 : i64)
// CHECK: llvm.call @plr_writes(%[[H2D]], %[[PART]], %[[BYTES]])
// CHECK: %[[SLOT:.*]] = llvm.getelementptr %[[DEVICE]]
// CHECK: %[[PART:.*]] = llvm.getelementptr %[[SLOT]]
// CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(32 : i64)
// CHECK: %[[HALF:.*]] = llvm.getelementptr %[[IN]][%[[OFFSET]]]
// CHECK: %[[BYTES:.*]] = llvm.mlir.constant(32 : i64)
// CHECK: llvm.call @plr_copy(%[[H2D]], %[[TAG]], %[[PART]], %[[HALF]], %[[BYTES]])
// CHECK: %[[TAG:.*]] = llvm.mlir.addressof @[[SUM]]
// CHECK: llvm.call @plr_writes(%[[COMPUTE]], %[[HOST]], %
// CHECK: llvm.call @plr_zero(%[[COMPUTE]], %[[TAG]], %[[HOST]], %
// CHECK: llvm.call @plr_writes(%[[COMPUTE]], %[[OUT]], %
// CHECK: llvm.call @add(%[[COMPUTE]], %{{.*}}, %{{.*}}, %[[HOST]], %[[OUT]])
// CHECK-NOT: plr_arena
// CHECK-NOT: plr_allocate
// CHECK: llvm.return
// CHECK-NOT: sched.
#copy = #sched.tag<"copy", staging, forward>
#sum = #sched.tag<"linalg.add sum", gradients, backward, layer = 3>
sched.program @addresses ranks(1) {
  sched.lane compute
  sched.lane h2d
  sched.arena device bytes(192)
  sched.arena host bytes(64)
  %in = sched.buffer 0 in device tag #copy : memref<4x4xf32>
  %out = sched.buffer 2 writable in device tag #copy : memref<4x4xf32>
  %h = sched.slot in host offset 0 tag #copy : memref<4x4xf32>
  %d = sched.slot in device offset 128 tag #copy : memref<4x4xf32>
  %half = sched.view %in[32] : memref<4x4xf32> to memref<8xf32>
  %to = sched.view %d[16] : memref<4x4xf32> to memref<8xf32>
  %e0, %a = sched.copy on h2d reads(%half : memref<8xf32>) writes(%to : memref<8xf32>) tag #copy
  %e1, %b = sched.launch "plr_zero"([#sched.write<0>, 64 : i64]) on compute waits(%e0) writes(%h : memref<4x4xf32>) tag #sum
  %e2, %c = sched.launch "add"([#sched.read<0>, #sched.read<1>, #sched.write<0>]) on compute reads(%a, %b : memref<8xf32>, memref<4x4xf32>) writes(%out : memref<4x4xf32>) tag #sum
  sched.return %c : memref<4x4xf32>
}

// -----

// Places of a ring lie 128 bytes apart, 80 rounded up to whole lines of 64. In a loop it is number (counter + ring) mod 3; without a counter, one
// place: 4 mod 3 is 1. A view in a loop starts counter · stride bytes further.
// CHECK-LABEL: llvm.func @rings(
// CHECK: %[[LANE:.*]] = llvm.call @plr_get_lane
// CHECK: %[[ARENA:.*]] = llvm.call @plr_arena
// CHECK: %[[IN:.*]] = llvm.load
// CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(64 : i64)
// CHECK: %[[RING:.*]] = llvm.getelementptr %[[ARENA]][%[[OFFSET]]]
// CHECK: %[[TURN:.*]] = llvm.mlir.constant(128 : i64)
// CHECK: %[[ONE:.*]] = llvm.getelementptr %[[RING]][%[[TURN]]]
// CHECK: %[[BYTES:.*]] = llvm.mlir.constant(80 : i64)
// CHECK: llvm.call @plr_writes(%[[LANE]], %[[ONE]], %[[BYTES]])
// CHECK: %[[FROM:.*]] = llvm.mlir.constant(1 : i64)
// CHECK: %[[TO:.*]] = llvm.mlir.constant(6 : i64)
// CHECK: scf.for %[[I:.*]] = %[[FROM]] to %[[TO]] step
// CHECK: llvm.call @plr_writes
// CHECK: %[[RING:.*]] = llvm.getelementptr %[[ARENA]]
// CHECK: %[[K:.*]] = llvm.mlir.constant(2 : i64)
// CHECK: %[[SUM:.*]] = llvm.add %[[I]], %[[K]]
// CHECK: %[[DEPTH:.*]] = llvm.mlir.constant(3 : i64)
// CHECK: %[[NUMBER:.*]] = llvm.urem %[[SUM]], %[[DEPTH]]
// CHECK: %[[STRIDE:.*]] = llvm.mlir.constant(128 : i64)
// CHECK: %[[TURN:.*]] = llvm.mul %[[NUMBER]], %[[STRIDE]]
// CHECK: %[[PLACE:.*]] = llvm.getelementptr %[[RING]][%[[TURN]]]
// CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(32 : i64)
// CHECK: %[[PART:.*]] = llvm.getelementptr %[[PLACE]][%[[OFFSET]]]
// CHECK: %[[STRIDE:.*]] = llvm.mlir.constant(16 : i64)
// CHECK: %[[TURN:.*]] = llvm.mul %[[I]], %[[STRIDE]]
// CHECK: %[[ROWS:.*]] = llvm.getelementptr %[[IN]][%[[TURN]]]
// CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(48 : i64)
// CHECK: %[[ROW:.*]] = llvm.getelementptr %[[ROWS]][%[[OFFSET]]]
// CHECK: llvm.call @plr_copy(%[[LANE]], %{{.*}}, %[[PART]], %[[ROW]],
#copy = #sched.tag<"copy", staging, forward>
sched.program @rings ranks(1) {
  sched.lane compute
  sched.arena device bytes(1024)
  %in = sched.buffer 0 in device tag #copy : memref<9x4xf32>
  %ring = sched.slot in device ring 3 offset 64 tag #copy : memref<20xf32>
  %one = sched.view %ring[0] ring(4) : memref<20xf32> to memref<20xf32>
  %e, %z = sched.launch "plr_zero"([#sched.write<0>, 80 : i64]) on compute writes(%one : memref<20xf32>) tag #copy
  sched.loop %i = 1 to 6 {
    %row = sched.view %in[48] index(%i) stride(16) : memref<9x4xf32> to memref<4xf32>
    %place = sched.view %ring[0] index(%i) ring(2) : memref<20xf32> to memref<20xf32>
    %part = sched.view %place[32] : memref<20xf32> to memref<4xf32>
    %e0, %x = sched.copy on compute reads(%row : memref<4xf32>) writes(%part : memref<4xf32>) tag #copy
    sched.yield
  }
  sched.return
}

// -----

// An event is recorded where something waits for it, and only there; lanes wait in front of what is declared and called. A loop carries events and
// no values; what it starts from is complete, for it is recorded before anything is enqueued. A fence waits for the last one.
// CHECK-LABEL: llvm.func @events(
// CHECK: %[[COMPUTE:.*]] = llvm.call @plr_get_lane
// CHECK-NEXT: %[[COMPLETE:.*]] = llvm.call @plr_record(%[[COMPUTE]])
// CHECK: %[[COMM:.*]] = llvm.call @plr_get_lane
// CHECK-NOT: plr_record
// CHECK: llvm.call @plr_copy(%[[COMPUTE]]
// CHECK-NOT: plr_record
// CHECK: %[[DONE:.*]] = scf.for {{.*}} iter_args(%[[CARRIED:.*]] = %[[COMPLETE]]) -> (!llvm.ptr)
// CHECK-NEXT: llvm.call @plr_wait(%[[COMPUTE]], %[[CARRIED]])
// CHECK: llvm.call @plr_writes(%[[COMPUTE]],
// CHECK: llvm.call @f(%[[COMPUTE]],
// CHECK-NEXT: %[[F:.*]] = llvm.call @plr_record(%[[COMPUTE]])
// CHECK-NEXT: llvm.call @plr_wait(%[[COMM]], %[[F]])
// CHECK: llvm.call @g(%[[COMM]],
// CHECK-NEXT: %[[G:.*]] = llvm.call @plr_record(%[[COMM]])
// CHECK-NEXT: scf.yield %[[G]] : !llvm.ptr
// CHECK: llvm.call @plr_fence(%[[DONE]])
// CHECK-NOT: plr_record
// CHECK: llvm.return
#copy = #sched.tag<"copy", staging, forward>
sched.program @events ranks(1) {
  %none = sched.no_event
  sched.lane compute
  sched.lane comm
  sched.arena device bytes(128)
  %in = sched.buffer 0 in device tag #copy : memref<4xf32>
  %s = sched.slot in device offset 0 tag #copy : memref<4xf32>
  %u = sched.slot in device offset 64 tag #copy : memref<4xf32>
  %e0, %x = sched.copy on compute reads(%in : memref<4xf32>) writes(%s : memref<4xf32>) tag #copy
  %done, %last = sched.loop %i = 0 to 4 iter(%e = %none, %v = %x) : !sched.event, memref<4xf32> {
    %e1, %y = sched.launch "f"([#sched.read<0>, #sched.write<0>]) on compute waits(%e) reads(%in : memref<4xf32>) writes(%s : memref<4xf32>) tag #copy
    %e2, %z = sched.launch "g"([#sched.read<0>, #sched.write<0>]) on comm waits(%e1) reads(%y : memref<4xf32>) writes(%u : memref<4xf32>) tag #copy
    sched.yield %e2, %y : !sched.event, memref<4xf32>
  }
  sched.fence %done
  sched.return %last : memref<4xf32>
}

// -----

// What is updated in place is not declared: a measuring run would overwrite what the call reads. The scratch memory beside it is, and the call is
// told its bytes.
// CHECK-LABEL: llvm.func @updates(
// CHECK: %[[ARENA:.*]] = llvm.call @plr_arena
// CHECK: %[[IN:.*]] = llvm.load
// CHECK: llvm.call @plr_writes(%{{.*}}, %[[ARENA]],
// CHECK: llvm.call @plr_zero(
// CHECK-NOT: plr_writes(%{{.*}}, %[[ARENA]],
// CHECK: %[[SCRATCH:.*]] = llvm.getelementptr %[[ARENA]]
// CHECK: %[[BYTES:.*]] = llvm.mlir.constant(192 : i64)
// CHECK: llvm.call @plr_writes(%{{.*}}, %[[SCRATCH]], %[[BYTES]])
// CHECK-NOT: plr_writes
// CHECK: %[[TRANSPOSE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK: %[[SCRATCH:.*]] = llvm.getelementptr %[[ARENA]]
// CHECK: %[[BYTES:.*]] = llvm.mlir.constant(192 : i64)
// CHECK: llvm.call @plr_gemm(%{{.*}}, %{{.*}}, %[[TRANSPOSE]], %[[ARENA]], %[[IN]], %[[ARENA]], %[[SCRATCH]], %[[BYTES]])
// CHECK: llvm.return
#copy = #sched.tag<"copy", staging, forward>
sched.program @updates ranks(1) {
  sched.lane compute
  sched.arena device bytes(256)
  %in = sched.buffer 0 in device tag #copy : memref<8xf32>
  %acc = sched.slot in device offset 0 tag #copy : memref<8xf32>
  %scratch = sched.slot in device scratch offset 64 tag #copy : memref<192xi8>
  %e0, %a = sched.launch "plr_zero"([#sched.write<0>, 32 : i64]) on compute writes(%acc : memref<8xf32>) tag #copy
  %e1, %b:2 = sched.launch "plr_gemm"([1 : i32, #sched.read<0>, #sched.read<1>, #sched.write<0>, #sched.write<1>, #sched.bytes<1>]) on compute reads(%a, %in : memref<8xf32>, memref<8xf32>) writes(%acc, %scratch : memref<8xf32>, memref<192xi8>) tag #copy
  sched.return
}

// -----

// A group is asked for once, at the start, by the grid's shape and the axes as bits: {0, 1} is 3, {1} is 2. The grid itself is gone.
// CHECK-NOT: shard.grid
// CHECK: llvm.mlir.global private constant @[[SHAPE:.*]](dense<[3, 2]> : tensor<2xi64>)
// CHECK-LABEL: llvm.func @groups(
// CHECK-SAME: %[[CONTEXT:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr)
// CHECK: %[[DIMENSIONS:.*]] = llvm.mlir.constant(2 : i64)
// CHECK: %[[AXES:.*]] = llvm.mlir.constant(2 : i64)
// CHECK: %[[COLUMNS:.*]] = llvm.call @plr_get_group(%[[CONTEXT]], %{{.*}}, %[[DIMENSIONS]], %[[AXES]])
// CHECK: %[[AXES:.*]] = llvm.mlir.constant(3 : i64)
// CHECK: %[[ALL:.*]] = llvm.call @plr_get_group(%[[CONTEXT]], %{{.*}}, %{{.*}}, %[[AXES]])
// CHECK-NOT: plr_get_group
// CHECK: llvm.call @plr_all_reduce(%{{.*}}, %{{.*}}, %[[ALL]],
// CHECK: llvm.call @plr_all_reduce(%{{.*}}, %{{.*}}, %[[COLUMNS]],
// CHECK: llvm.call @plr_all_reduce(%{{.*}}, %{{.*}}, %[[ALL]],
// CHECK-NOT: plr_get_group
// CHECK: llvm.return
// CHECK-NOT: shard.grid
#sum = #sched.tag<"shard.all_reduce", gradients, backward>
shard.grid @grid(shape = 3x2)
sched.program @groups ranks(6) {
  sched.lane comm
  sched.arena device bytes(64)
  %in = sched.buffer 0 in device tag #sum : memref<8xf32>
  %s = sched.slot in device offset 0 tag #sum : memref<8xf32>
  %e0, %a = sched.collective "plr_all_reduce"([#sched.group, 0 : i32, 8 : i64, #sched.read<0>, #sched.write<0>]) over @grid axes [0, 1] number 0 on comm reads(%in : memref<8xf32>) writes(%s : memref<8xf32>) tag #sum
  %e1, %b = sched.collective "plr_all_reduce"([#sched.group, 0 : i32, 8 : i64, #sched.read<0>, #sched.write<0>]) over @grid axes [1] number 1 on comm reads(%a : memref<8xf32>) writes(%s : memref<8xf32>) tag #sum
  %e2, %c = sched.collective "plr_all_reduce"([#sched.group, 0 : i32, 8 : i64, #sched.read<0>, #sched.write<0>]) over @grid axes [0, 1] number 2 on comm reads(%b : memref<8xf32>) writes(%s : memref<8xf32>) tag #sum
  sched.return
}

// -----

// Kinds of arguments: kernels, arrays of addresses on the stack (made once, at the start), constant structs and arrays, numbers.
// CHECK: llvm.mlir.global private constant @[[ARRAY:.*]](dense<[0, 4, 1]> : tensor<3xi64>)
// CHECK: llvm.mlir.global private constant @[[STRUCT:.*]]() {{.*}} : !llvm.struct<(i64, i32, f32)> {
// CHECK: %[[FIELD:.*]] = llvm.mlir.constant(6 : i64)
// CHECK-NEXT: llvm.insertvalue %[[FIELD]], %{{.*}}[0]
// CHECK-NEXT: %[[FIELD:.*]] = llvm.mlir.constant(2 : i32)
// CHECK-NEXT: llvm.insertvalue %[[FIELD]], %{{.*}}[1]
// CHECK-NEXT: %[[FIELD:.*]] = llvm.mlir.constant(2.500000e+00 : f32)
// CHECK-NEXT: llvm.insertvalue %[[FIELD]], %{{.*}}[2]
// CHECK-LABEL: llvm.func @arguments(
// CHECK: %[[THREE:.*]] = llvm.mlir.constant(3 : i64)
// CHECK: %[[POINTERS:.*]] = llvm.alloca %[[THREE]] x !llvm.ptr
// CHECK: %[[IN:.*]] = llvm.load
// CHECK: %[[OUT:.*]] = llvm.load
// CHECK: scf.for
// CHECK-NOT: llvm.alloca
// CHECK: %[[KERNEL:.*]] = llvm.mlir.addressof @kernel
// CHECK: %[[NULL:.*]] = llvm.mlir.zero
// CHECK: %[[AT:.*]] = llvm.getelementptr %[[POINTERS]][0]
// CHECK: llvm.store %[[IN]], %[[AT]]
// CHECK: %[[AT:.*]] = llvm.getelementptr %[[POINTERS]][1]
// CHECK: llvm.store %[[NULL]], %[[AT]]
// CHECK: %[[AT:.*]] = llvm.getelementptr %[[POINTERS]][2]
// CHECK: llvm.store %[[OUT]], %[[AT]]
// CHECK: %[[COUNT:.*]] = llvm.mlir.constant(3 : i64)
// CHECK: %[[S:.*]] = llvm.mlir.addressof @[[STRUCT]]
// CHECK: %[[A:.*]] = llvm.mlir.addressof @[[ARRAY]]
// CHECK: %[[BETA:.*]] = llvm.mlir.constant(9.000000e-01 : f64)
// CHECK: llvm.call @plr_launch(%{{.*}}, %{{.*}}, %[[KERNEL]], %[[POINTERS]], %[[COUNT]], %[[S]], %[[A]], %[[BETA]])
#kernel = #sched.tag<"elementwise", dense, forward>
sched.program @arguments ranks(1) {
  sched.lane compute
  %in = sched.buffer 0 in device tag #kernel : memref<8xf32>
  %out = sched.buffer 1 writable in device tag #kernel : memref<8xf32>
  sched.loop %i = 0 to 2 {
    %e, %g = sched.launch "plr_launch"([@kernel, #sched.pointers<[#sched.read<0>, #sched.null, #sched.write<0>]>, 3 : i64, #sched.struct<[6 : i64, 2 : i32, 2.5 : f32]>, array<i64: 0, 4, 1>, 9.0e-1 : f64]) on compute reads(%in : memref<8xf32>) writes(%out : memref<8xf32>) tag #kernel
    sched.yield
  }
  sched.return
}
llvm.func @kernel(%p: !llvm.ptr) {
  llvm.return
}

// -----

// A plan is filled in the caller's memory, and the host waits; its rows are a number of the host's table. A cell is an i64: row 1, column 0 of two
// columns is 16 bytes in; in a loop the row grows with the counter, row i + 1, column 1 is 24 + 16 · i bytes in. Constants are read where
// they are.
// CHECK: llvm.mlir.global private constant @[[TABLE:.*]](dense<[1, 2, 3, 4, 5, 6]> : tensor<6xi64>)
// CHECK-LABEL: llvm.func @tables(
// CHECK: %[[DEVICE:.*]] = llvm.call @plr_arena
// CHECK: %[[HOST:.*]] = llvm.call @plr_arena
// CHECK: %[[IDS:.*]] = llvm.load
// CHECK: llvm.call @plr_writes(%{{.*}}, %[[HOST]],
// CHECK: llvm.call @plr_writes(%{{.*}}, %[[DEVICE]],
// CHECK: %[[HOST_BYTES:.*]] = llvm.mlir.constant(128 : i64)
// CHECK: %[[DEVICE_BYTES:.*]] = llvm.mlir.constant(64 : i64)
// CHECK: llvm.call @plr_plan_fill(%[[LANE:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %[[IDS]], %[[HOST]], %[[HOST_BYTES]], %[[DEVICE]], %[[DEVICE_BYTES]])
// CHECK: %[[FILLED:.*]] = llvm.call @plr_record(%[[LANE]])
// CHECK-NEXT: llvm.call @plr_fence(%[[FILLED]])
// CHECK: %[[ONLY:.*]] = llvm.mlir.constant(0 : i64)
// CHECK-NEXT: %[[ROWS:.*]] = llvm.call @plr_plan_rows(%[[HOST]], %[[ONLY]])
// CHECK: %[[T:.*]] = llvm.mlir.addressof @
// CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(16 : i64)
// CHECK: %[[AT:.*]] = llvm.getelementptr %[[T]][%[[OFFSET]]]
// CHECK: %[[CELL:.*]] = llvm.load %[[AT]] : !llvm.ptr -> i64
// CHECK: %[[C:.*]] = llvm.mlir.addressof @
// CHECK: llvm.call @rows(%[[LANE]], %{{.*}}, %[[HOST]], %[[ROWS]], %[[CELL]], %[[C]],
// CHECK: scf.for %[[I:.*]] =
// CHECK: %[[T:.*]] = llvm.mlir.addressof @[[TABLE]]
// CHECK: %[[OFFSET:.*]] = llvm.mlir.constant(24 : i64)
// CHECK: %[[AT:.*]] = llvm.getelementptr %[[T]][%[[OFFSET]]]
// CHECK: %[[ROW:.*]] = llvm.mlir.constant(16 : i64)
// CHECK: %[[TURN:.*]] = llvm.mul %[[I]], %[[ROW]]
// CHECK: %[[IN_ROW:.*]] = llvm.getelementptr %[[AT]][%[[TURN]]]
// CHECK: %[[CELL:.*]] = llvm.load %[[IN_ROW]] : !llvm.ptr -> i64
// CHECK: llvm.call @cells(%[[LANE]], %{{.*}}, %[[CELL]],
// CHECK-NOT: plr_plan_release
#rows = #sched.tag<"moe.dispatch", dispatch, forward>
shard.grid @grid(shape = 1)
sched.program @tables ranks(1) {
  sched.lane compute
  sched.arena device bytes(256)
  sched.arena host bytes(128)
  %in = sched.buffer 0 in device tag #rows : memref<8xi32>
  %t = sched.table dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi64> as memref<3x2xi64>
  %c = sched.constant dense<[1.0, 2.0]> : tensor<2xf32> as memref<2xf32>
  %h = sched.slot in host offset 0 tag #rows : memref<128xi8>
  %d = sched.slot in device offset 0 tag #rows : memref<64xi8>
  %r = sched.slot in device offset 64 tag #rows : memref<8xf32>
  %e, %plan:2 = sched.collective "plr_plan_fill"([#sched.group, #sched.struct<[8 : i64, 1 : i64, 4 : i64]>, #sched.read<0>, #sched.write<0>, 128 : i64, #sched.write<1>, 64 : i64]) over @grid axes [0] number 0 on compute reads(%in : memref<8xi32>) writes(%h, %d : memref<128xi8>, memref<64xi8>) tag #rows
  sched.fence %e
  %e0, %v = sched.launch "rows"([#sched.table<0>, #sched.rows<0>, #sched.cell<1, 1, 0>, #sched.read<0>, #sched.write<0>]) on compute reads(%c : memref<2xf32>) tables(%plan#0, %t : memref<128xi8>, memref<3x2xi64>) writes(%r : memref<8xf32>) tag #rows
  sched.loop %i = 0 to 2 {
    %e1, %w = sched.launch "cells"([#sched.cell<0, 1, 1>, #sched.write<0>]) on compute tables(%t : memref<3x2xi64>) writes(%r : memref<8xf32>) tag #rows
    sched.yield
  }
  sched.return
}

// -----

// A loop that ends with the iterations of a plan goes to the smaller of its own end and theirs; the rows of an iteration are asked for by its
// number, a cell or a constant.
// CHECK-LABEL: llvm.func @iterations(
// CHECK: %[[FIVE:.*]] = llvm.mlir.constant(5 : i64)
// CHECK-NEXT: %[[ROWS:.*]] = llvm.call @plr_plan_rows(%[[HOST:.*]], %[[FIVE]])
// CHECK: llvm.call @rows(%{{.*}}, %{{.*}}, %[[HOST]], %[[ROWS]]
// CHECK: %[[FROM:.*]] = llvm.mlir.constant(1 : i64)
// CHECK: %[[END:.*]] = llvm.mlir.constant(6 : i64)
// CHECK: %[[COUNT:.*]] = llvm.call @plr_plan_iterations(%[[HOST]])
// CHECK: %[[BEHIND:.*]] = llvm.mlir.constant(2 : i64)
// CHECK: %[[LAST:.*]] = llvm.add %[[COUNT]], %[[BEHIND]]
// CHECK: %[[TO:.*]] = llvm.intr.smin(%[[END]], %[[LAST]])
// CHECK: scf.for %[[I:.*]] = %[[FROM]] to %[[TO]] step
// CHECK: %[[CELL:.*]] = llvm.load
// CHECK: %[[ROWS:.*]] = llvm.call @plr_plan_rows(%[[HOST]], %[[CELL]])
// CHECK: llvm.call @rows(%{{.*}}, %{{.*}}, %[[HOST]], %[[ROWS]]
#rows = #sched.tag<"moe.dispatch", dispatch, forward>
shard.grid @grid(shape = 1)
sched.program @iterations ranks(1) {
  sched.lane compute
  sched.arena device bytes(256)
  sched.arena host bytes(128)
  %in = sched.buffer 0 in device tag #rows : memref<8xi32>
  %t = sched.table dense<[[0], [1], [2], [3], [4], [5]]> : tensor<6x1xi64> as memref<6x1xi64>
  %h = sched.slot in host offset 0 tag #rows : memref<128xi8>
  %d = sched.slot in device offset 0 tag #rows : memref<64xi8>
  %r = sched.slot in device offset 64 tag #rows : memref<8xf32>
  %e, %plan:2 = sched.collective "plr_plan_fill"([#sched.group, #sched.struct<[8 : i64]>, #sched.read<0>, #sched.write<0>, 128 : i64, #sched.write<1>, 64 : i64]) over @grid axes [0] number 0 on compute reads(%in : memref<8xi32>) writes(%h, %d : memref<128xi8>, memref<64xi8>) tag #rows
  sched.fence %e
  %e0, %v = sched.launch "rows"([#sched.table<0>, #sched.rows<0, 5 : i64>, #sched.write<0>]) on compute tables(%plan#0 : memref<128xi8>) writes(%r : memref<8xf32>) tag #rows
  sched.loop %i = 1 to 6 until(%plan#0 : memref<128xi8>, 2) {
    %e1, %w = sched.launch "rows"([#sched.table<0>, #sched.rows<0, #sched.cell<1, 0, 0>>, #sched.write<0>]) on compute tables(%plan#0, %t : memref<128xi8>, memref<6x1xi64>) writes(%r : memref<8xf32>) tag #rows
    sched.yield
  }
  sched.return
}

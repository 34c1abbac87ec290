// RUN: plateau-opt %s --pass-pipeline='builtin.module(sched.program(sched-place-waits))' | FileCheck %s

shard.grid @world(shape = 2)
#t = #sched.tag<"op", dense, forward>

// A read waits for the writer, a write for the reader and for the writer before; what shares no byte waits for nothing.
// CHECK-LABEL: sched.program @bytes
// CHECK: %[[A:[^,]+]], %{{.*}} = sched.launch "a"([]) on compute writes
// CHECK: %[[B:[^,]+]], %{{.*}} = sched.launch "b"([]) on comm waits(%[[A]]) reads
// CHECK: sched.launch "other"([]) on comm writes
// CHECK: sched.launch "c"([]) on compute waits(%[[B]]) writes
// CHECK: sched.launch "d"([]) on h2d waits(%{{.*}}) writes
sched.program @bytes ranks(2) {
  sched.lane compute
  sched.lane comm
  sched.lane h2d
  %s = sched.slot in device tag #t : memref<8xf32>
  %low = sched.view %s[0] : memref<8xf32> to memref<4xf32>
  %high = sched.view %s[16] : memref<8xf32> to memref<4xf32>
  %y = sched.slot in device tag #t : memref<4xf32>
  %e0, %0 = sched.launch "a"([]) on compute writes(%low : memref<4xf32>) tag #t
  %e1, %1 = sched.launch "b"([]) on comm reads(%0 : memref<4xf32>) writes(%y : memref<4xf32>) tag #t
  %e2, %2 = sched.launch "other"([]) on comm writes(%high : memref<4xf32>) tag #t
  %e3, %3 = sched.launch "c"([]) on compute writes(%low : memref<4xf32>) tag #t
  %e4, %4 = sched.launch "d"([]) on h2d writes(%low : memref<4xf32>) tag #t
  sched.return
}

// The first iteration waits for the call before the loop, the others for the reader one iteration before; the
// reader behind the loop for the last iteration.
// CHECK-LABEL: sched.program @loop
// CHECK: %[[NONE:.*]] = sched.no_event
// CHECK: %[[F:[^,]+]], %{{.*}} = sched.launch "before"([]) on comm
// CHECK: %[[DONE:.*]]:2 = sched.loop %{{.*}} = 0 to 8 iter(%[[LAST:.*]] = %[[NONE]], %{{.*}} = %[[NONE]]) : !sched.event, !sched.event {
// CHECK: %[[W:[^,]+]], %{{.*}} = sched.launch "write"([]) on compute waits(%[[F]], %[[LAST]]) writes
// CHECK: %[[R:.*]] = sched.launch "read"([]) on comm waits(%[[W]]) reads
// CHECK: sched.yield %[[R]], %[[W]]
// CHECK: sched.launch "after"([]) on h2d waits(%[[DONE]]#1, %[[DONE]]#0) writes
sched.program @loop ranks(2) {
  sched.lane compute
  sched.lane comm
  sched.lane h2d
  %s = sched.slot in device tag #t : memref<4xf32>
  %e0, %0 = sched.launch "before"([]) on comm writes(%s : memref<4xf32>) tag #t
  sched.loop %i = 0 to 8 {
    %e1, %1 = sched.launch "write"([]) on compute writes(%s : memref<4xf32>) tag #t
    %e2 = sched.launch "read"([]) on comm reads(%1 : memref<4xf32>) tag #t
  }
  %e3, %3 = sched.launch "after"([]) on h2d writes(%s : memref<4xf32>) tag #t
  sched.return
}

// A ring of three: a place is written again three iterations after it was read.
// CHECK-LABEL: sched.program @ring
// CHECK: sched.loop %{{.*}} = 0 to 20 iter(%[[ONE:.*]] = %{{.*}}, %[[TWO:.*]] = %{{.*}}, %[[THREE:.*]] = %{{.*}}) : !sched.event, !sched.event, !sched.event {
// CHECK: %[[W:[^,]+]], %{{.*}} = sched.copy on h2d waits(%[[THREE]]) reads
// CHECK: %[[R:.*]] = sched.launch "read"([]) on compute waits(%[[W]]) reads
// CHECK: sched.yield %[[R]], %[[ONE]], %[[TWO]]
sched.program @ring ranks(2) {
  sched.lane compute
  sched.lane h2d
  %in = sched.buffer 0 in host tag #t : memref<20x4xf32>
  %s = sched.slot in device ring 3 tag #t : memref<4xf32>
  sched.loop %i = 0 to 20 {
    %row = sched.view %in[0] index(%i) stride(16) : memref<20x4xf32> to memref<4xf32>
    %place = sched.view %s[0] index(%i) ring(0) : memref<4xf32> to memref<4xf32>
    %e1, %1 = sched.copy on h2d reads(%row : memref<4xf32>) writes(%place : memref<4xf32>) tag #t
    %e2 = sched.launch "read"([]) on compute reads(%1 : memref<4xf32>) tag #t
  }
  sched.return
}

// Loops in loops: the inner loop gives its last event to the outer one, which carries it.
// CHECK-LABEL: sched.program @nest
// CHECK: %[[OUTER:.*]]:2 = sched.loop {{.*}} iter(%[[CARRIED:.*]] = %{{.*}}, %{{.*}} = %{{.*}}) : !sched.event, !sched.event {
// CHECK: %[[W:[^,]+]], %{{.*}} = sched.launch "write"([]) on compute waits(%[[CARRIED]]) writes
// CHECK: %[[INNER:.*]] = sched.loop {{.*}} iter(%{{.*}} = %{{.*}}) : !sched.event {
// CHECK: %[[R:.*]] = sched.launch "read"([]) on comm waits(%[[W]]) reads
// CHECK: sched.yield %[[R]]
// CHECK: sched.yield %[[INNER]], %[[W]]
// CHECK: sched.launch "after"([]) on h2d waits(%[[OUTER]]#1, %[[OUTER]]#0) writes
sched.program @nest ranks(2) {
  sched.lane compute
  sched.lane comm
  sched.lane h2d
  %s = sched.slot in device tag #t : memref<4xf32>
  sched.loop %i = 0 to 4 {
    %e1, %1 = sched.launch "write"([]) on compute writes(%s : memref<4xf32>) tag #t
    sched.loop %j = 0 to 2 {
      %e2 = sched.launch "read"([]) on comm reads(%1 : memref<4xf32>) tag #t
    }
  }
  %e3, %3 = sched.launch "after"([]) on h2d writes(%s : memref<4xf32>) tag #t
  sched.return
}

// The host reads the table when it issues the call: the last fence before waits for its writer.
// CHECK-LABEL: sched.program @table
// CHECK: %[[X:[^,]+]], %{{.*}} = sched.launch "x"([]) on compute
// CHECK: %[[FILL:[^,]+]], %{{.*}} = sched.launch "fill"([]) on host
// CHECK: sched.fence %[[X]], %[[FILL]]
sched.program @table ranks(2) {
  sched.lane compute
  sched.lane host
  %t = sched.slot in host tag #t : memref<2x2xi64>
  %s = sched.slot in device tag #t : memref<4xf32>
  %e0, %0 = sched.launch "x"([]) on compute writes(%s : memref<4xf32>) tag #t
  %e1, %1 = sched.launch "fill"([]) on host writes(%t : memref<2x2xi64>) tag #t
  sched.fence %e0
  %e2 = sched.launch "use"([#sched.cell<0, 0, 0>]) on compute tables(%1 : memref<2x2xi64>) tag #t
  sched.return
}

// Iterations meet at many distances: what iteration i writes, iteration 7 - i of the other call does too. The event one
// iteration back does for all, since the lane is in order.
// CHECK-LABEL: sched.program @mirror
// CHECK: sched.loop %{{.*}} = 0 to 8 iter(%[[ONE:.*]] = %{{.*}}, %[[OTHER:.*]] = %{{.*}}) : !sched.event, !sched.event {
// CHECK: sched.launch "write"([]) on compute waits(%[[OTHER]]) writes
// CHECK: sched.launch "other"([]) on comm waits(%{{[^,]*}}, %[[ONE]]) writes
sched.program @mirror ranks(2) {
  sched.lane compute
  sched.lane comm
  %s = sched.slot in device tag #t : memref<8x4xf32>
  %e0, %0 = sched.launch "zero"([]) on compute writes(%s : memref<8x4xf32>) tag #t
  sched.loop %i = 0 to 8 {
    %w = sched.view %s[0] index(%i) stride(16) : memref<8x4xf32> to memref<4xf32>
    %r = sched.view %s[112] index(%i) stride(-16) : memref<8x4xf32> to memref<4xf32>
    %e1, %1 = sched.launch "write"([]) on compute writes(%w : memref<4xf32>) tag #t
    %e2, %2 = sched.launch "other"([]) on comm writes(%r : memref<4xf32>) tag #t
  }
  sched.return
}

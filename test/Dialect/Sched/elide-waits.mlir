// RUN: plateau-opt %s --pass-pipeline='builtin.module(sched.program(sched-elide-waits))' | FileCheck %s

#t = #sched.tag<"op", dense, forward>

// CHECK-LABEL: sched.program @implied
// CHECK: %[[A:[^,]+]], %{{.*}} = sched.launch "a"
// CHECK: %[[B:[^,]+]], %{{.*}} = sched.launch "b"([]) on compute writes
// CHECK: %[[C:[^,]+]], %{{.*}} = sched.launch "c"([]) on comm waits(%[[B]]) reads
// CHECK: sched.launch "d"([]) on comm reads
// CHECK: sched.launch "e"([]) on h2d waits(%[[C]]) reads
// CHECK: sched.launch "f"([]) on h2d reads
sched.program @implied ranks(1) {
  sched.lane compute
  sched.lane comm
  sched.lane h2d
  %x = sched.slot in device tag #t : memref<4xf32>
  %y = sched.slot in device tag #t : memref<4xf32>
  %z = sched.slot in device tag #t : memref<4xf32>
  %e0, %0 = sched.launch "a"([]) on compute writes(%x : memref<4xf32>) tag #t
  %e1, %1 = sched.launch "b"([]) on compute writes(%y : memref<4xf32>) tag #t
  // The lane of both orders them: the later one is enough.
  %e2, %2 = sched.launch "c"([]) on comm waits(%e0, %e1) reads(%0, %1 : memref<4xf32>, memref<4xf32>) writes(%z : memref<4xf32>) tag #t
  // The call before on its lane waited.
  %e3 = sched.launch "d"([]) on comm waits(%e1) reads(%1 : memref<4xf32>) tag #t
  // Who it waits for waited; and once is enough.
  %e4 = sched.launch "e"([]) on h2d waits(%e1, %e2, %e2) reads(%1, %2 : memref<4xf32>, memref<4xf32>) tag #t
  // No two accesses need this one.
  %e5 = sched.launch "f"([]) on h2d waits(%e3) reads(%2 : memref<4xf32>) tag #t
  sched.return
}

// A wait that no access of its own needs stays when another pair is ordered by it.
// CHECK-LABEL: sched.program @through
// CHECK: sched.launch "b"([]) on comm waits(%
// CHECK: sched.launch "c"([]) on h2d waits(%
sched.program @through ranks(1) {
  sched.lane compute
  sched.lane comm
  sched.lane h2d
  %x = sched.slot in device tag #t : memref<4xf32>
  %e0, %0 = sched.launch "a"([]) on compute writes(%x : memref<4xf32>) tag #t
  %e1 = sched.launch "b"([]) on comm waits(%e0) tag #t
  %e2 = sched.launch "c"([]) on h2d waits(%e1) reads(%0 : memref<4xf32>) tag #t
  sched.return
}

// What the host waited for is done.
// CHECK-LABEL: sched.program @fence
// CHECK: sched.fence %{{[^,]*$}}
// CHECK: sched.launch "b"([]) on comm reads
sched.program @fence ranks(1) {
  sched.lane compute
  sched.lane comm
  %x = sched.slot in device tag #t : memref<4xf32>
  %e0, %0 = sched.launch "a"([]) on compute writes(%x : memref<4xf32>) tag #t
  %e1, %1 = sched.launch "a"([]) on compute reads(%0 : memref<4xf32>) writes(%x : memref<4xf32>) tag #t
  sched.fence %e0, %e1
  %e2 = sched.launch "b"([]) on comm waits(%e1) reads(%1 : memref<4xf32>) tag #t
  sched.return
}

// Implied in each iteration but the first: it stays.
// CHECK-LABEL: sched.program @first
// CHECK: %[[E:[^,]+]], %{{.*}} = sched.launch "before"
// CHECK: sched.launch "write"([]) on compute waits(%[[E]], %{{[^,]*}}) writes
sched.program @first ranks(1) {
  sched.lane compute
  sched.lane comm
  %s = sched.slot in device tag #t : memref<4xf32>
  %none = sched.no_event
  %e0, %0 = sched.launch "before"([]) on comm writes(%s : memref<4xf32>) tag #t
  %done = sched.loop %i = 0 to 8 iter(%last = %none) : !sched.event {
    %e1, %1 = sched.launch "write"([]) on compute waits(%e0, %last) writes(%s : memref<4xf32>) tag #t
    %e2 = sched.launch "read"([]) on comm waits(%e1) reads(%1 : memref<4xf32>) tag #t
    sched.yield %e2 : !sched.event
  }
  sched.return
}

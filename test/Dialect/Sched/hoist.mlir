// RUN: plateau-opt %s --pass-pipeline='builtin.module(sched.program(sched-hoist))' | FileCheck %s

shard.grid @world(shape = 2)
#t = #sched.tag<"op", dense, backward>

// The sums of gradients, in place, go to just behind the calls that complete them, in their order.
// CHECK-LABEL: sched.program @gradients
// CHECK: launch "last"
// CHECK-NEXT: sched.view %{{.*}}[0]
// CHECK-NEXT: collective {{.*}} number 0
// CHECK: launch "middle"
// CHECK-NEXT: collective {{.*}} number 1
// CHECK: launch "first"
// CHECK-NEXT: sched.join
// CHECK-NEXT: launch "norm"
sched.program @gradients ranks(2) {
  sched.lane compute
  sched.lane comm
  %g = sched.buffer 0 writable in device tag #t : memref<8xf32>
  %x = sched.slot in device tag #t : memref<4xf32>
  %g0 = sched.view %g[0] : memref<8xf32> to memref<4xf32>
  %g1 = sched.view %g[16] : memref<8xf32> to memref<4xf32>
  %e0, %0 = sched.launch "last"([]) on compute writes(%g0 : memref<4xf32>) tag #t
  %e1, %1 = sched.launch "middle"([]) on compute writes(%g1 : memref<4xf32>) tag #t
  %e2, %2 = sched.launch "first"([]) on compute writes(%x : memref<4xf32>) tag #t
  %p0 = sched.view %g[0] : memref<8xf32> to memref<4xf32>
  %c0, %3 = sched.collective "plr_all_reduce"([#sched.group]) over @world axes [0] number 0 on comm reads(%0 : memref<4xf32>) writes(%p0 : memref<4xf32>) tag #t
  %c1, %4 = sched.collective "plr_all_reduce"([#sched.group]) over @world axes [0] number 1 on comm reads(%1 : memref<4xf32>) writes(%g1 : memref<4xf32>) tag #t
  %all = sched.join %g from(%3, %4 : memref<4xf32>, memref<4xf32>) : memref<8xf32>
  %e3 = sched.launch "norm"([]) on compute reads(%all : memref<8xf32>) tag #t
  sched.return
}

// What would lengthen the life of a slot stays; so does what reads bytes that a call in between writes.
// CHECK-LABEL: sched.program @stays
// CHECK: launch "a"
// CHECK-NEXT: launch "b"
// CHECK-NEXT: collective {{.*}} number 0
// CHECK-NEXT: launch "c"
// CHECK-NEXT: launch "d"
// CHECK-NEXT: collective {{.*}} number 1
sched.program @stays ranks(2) {
  sched.lane compute
  sched.lane comm
  %g = sched.buffer 0 writable in device tag #t : memref<4xf32>
  %x = sched.slot in device tag #t : memref<4xf32>
  %y = sched.slot in device tag #t : memref<4xf32>
  %z = sched.slot in device tag #t : memref<4xf32>
  %e0, %0 = sched.launch "a"([]) on compute writes(%x : memref<4xf32>) tag #t
  %e1, %1 = sched.launch "b"([]) on compute writes(%y : memref<4xf32>) tag #t
  %c0, %2 = sched.collective "plr_all_to_all"([#sched.group]) over @world axes [0] number 0 on comm reads(%0 : memref<4xf32>) writes(%z : memref<4xf32>) tag #t
  %e2, %3 = sched.launch "c"([]) on compute writes(%g : memref<4xf32>) tag #t
  %e3 = sched.launch "d"([]) on compute reads(%3 : memref<4xf32>) tag #t
  %c1, %4 = sched.collective "plr_all_reduce"([#sched.group]) over @world axes [0] number 1 on comm reads(%0 : memref<4xf32>) writes(%g : memref<4xf32>) tag #t
  sched.return
}

// Not over a fence, nor over a loop; to the front of what stands behind one.
// CHECK-LABEL: sched.program @barriers
// CHECK: sched.fence
// CHECK-NEXT: collective {{.*}} number 0
// CHECK-NEXT: launch "b"
// CHECK-NEXT: sched.loop
// CHECK-NEXT: collective {{.*}} number 1
// CHECK-NEXT: launch "c"
// CHECK: collective {{.*}} number 2
// CHECK-NEXT: launch "d"
sched.program @barriers ranks(2) {
  sched.lane compute
  sched.lane comm
  %g = sched.buffer 0 writable in device tag #t : memref<4xf32>
  %x = sched.slot in device tag #t : memref<4xf32>
  %e0, %0 = sched.launch "a"([]) on compute writes(%g : memref<4xf32>) tag #t
  sched.fence %e0
  %e1, %1 = sched.launch "b"([]) on compute writes(%x : memref<4xf32>) tag #t
  %c0, %2 = sched.collective "plr_all_reduce"([#sched.group]) over @world axes [0] number 0 on comm reads(%0 : memref<4xf32>) writes(%g : memref<4xf32>) tag #t
  %sum = sched.loop %i = 0 to 3 iter(%v = %2) : memref<4xf32> {
    %e2, %3 = sched.launch "c"([]) on compute writes(%x : memref<4xf32>) tag #t
    %c1, %4 = sched.collective "plr_all_reduce"([#sched.group]) over @world axes [0] number 1 on comm reads(%v : memref<4xf32>) writes(%g : memref<4xf32>) tag #t
    sched.yield %4 : memref<4xf32>
  }
  %e3, %5 = sched.launch "d"([]) on compute writes(%x : memref<4xf32>) tag #t
  %c2, %6 = sched.collective "plr_all_reduce"([#sched.group]) over @world axes [0] number 2 on comm reads(%sum : memref<4xf32>) writes(%g : memref<4xf32>) tag #t
  sched.return
}

// Not above a call of an earlier stage, where iterations do not overlap.
// CHECK-LABEL: sched.program @stages
// CHECK: launch "a"
// CHECK-NEXT: launch "b"
// CHECK-NEXT: collective {{.*}} number 0
// CHECK-NEXT: launch "c"
sched.program @stages ranks(2) {
  sched.lane compute
  sched.lane comm
  %g = sched.buffer 0 writable in device tag #t : memref<4xf32>
  %x = sched.slot in device tag #t : memref<4xf32>
  sched.loop %i = 0 to 3 {
    %e0, %0 = sched.launch "a"([]) on compute stage 0 writes(%x : memref<4xf32>) tag #t
    %e1, %1 = sched.launch "b"([]) on compute stage 1 writes(%x : memref<4xf32>) tag #t
    %e2, %2 = sched.launch "c"([]) on compute stage 2 writes(%x : memref<4xf32>) tag #t
    %c0, %3 = sched.collective "plr_all_reduce"([#sched.group]) over @world axes [0] number 0 on comm stage 2 reads(%g : memref<4xf32>) writes(%g : memref<4xf32>) tag #t
  }
  sched.return
}

// RUN: plateau-opt %s --pass-pipeline='builtin.module(sched.program(sched-assign-lanes))' | FileCheck %s

shard.grid @world(shape = 2)
#t = #sched.tag<"op", dense, forward>

// CHECK-LABEL: sched.program @lanes
// CHECK-NEXT: sched.lane compute
// CHECK-NEXT: sched.lane comm
// CHECK-NEXT: sched.lane h2d
// CHECK-NEXT: sched.lane d2h
// CHECK-NEXT: sched.lane host
sched.program @lanes ranks(2) {
  sched.lane host
  sched.lane compute
  %in = sched.buffer 0 in host tag #t : memref<4xf32>
  %x = sched.slot in device tag #t : memref<4xf32>
  %y = sched.slot in device tag #t : memref<4xf32>
  %back = sched.slot in host tag #t : memref<2x4xf32>
  %row = sched.view %back[16] : memref<2x4xf32> to memref<4xf32>
  // CHECK: sched.copy on h2d
  %e0, %0 = sched.copy on compute reads(%in : memref<4xf32>) writes(%x : memref<4xf32>) tag #t
  // CHECK: sched.launch "f"{{.*}} on compute
  %e1, %1 = sched.launch "f"([]) on compute reads(%0 : memref<4xf32>) writes(%x : memref<4xf32>) tag #t
  // CHECK: sched.copy on compute
  %e2, %2 = sched.copy on compute reads(%1 : memref<4xf32>) writes(%y : memref<4xf32>) tag #t
  // CHECK: sched.collective {{.*}} on comm
  %e3, %3 = sched.collective "plr_all_reduce"([#sched.group]) over @world axes [0] number 0 on compute reads(%2 : memref<4xf32>) writes(%y : memref<4xf32>) tag #t
  // CHECK: sched.copy on d2h
  %e4, %4 = sched.copy on compute reads(%3 : memref<4xf32>) writes(%row : memref<4xf32>) tag #t
  // A lane that was asked for stays.
  // CHECK: sched.launch "g"{{.*}} on host
  %e5 = sched.launch "g"([]) on host reads(%4 : memref<4xf32>) tag #t
  sched.return
}

// A lane that no call is on is not declared.
// CHECK-LABEL: sched.program @unused
// CHECK-NEXT: sched.return
sched.program @unused ranks(2) {
  sched.lane comm
  sched.return
}

// RUN: plateau-opt %s --pass-pipeline='builtin.module(sched.program(sched-assign-lanes,sched-place-waits,sched-elide-waits,sched-plan-arenas))' | FileCheck %s --check-prefix=KEPT
// RUN: plateau-opt %s --pass-pipeline='builtin.module(sched.program(sched-assign-lanes,sched-place-waits,sched-elide-waits,sched-release-slots,sched-plan-arenas,sched-elide-waits,sched-verify))' | FileCheck %s
// RUN: plateau-opt %s --pass-pipeline='builtin.module(sched.program(sched-assign-lanes,sched-place-waits,sched-release-slots{in-flight=3},sched-plan-arenas,sched-elide-waits,sched-verify))' | FileCheck %s --check-prefix=THREE
// RUN: plateau-test-opt %s -o /dev/null --pass-pipeline='builtin.module(sched.program(sched-assign-lanes,sched-place-waits,sched-release-slots,sched-plan-arenas,sched-elide-waits,test-sched-mutate{class=waits}))' 2>&1 | FileCheck %s --check-prefix=DROPPED
// RUN: not plateau-opt %s --pass-pipeline='builtin.module(sched.program(sched-release-slots{in-flight=0}))' 2>&1 | FileCheck %s --check-prefix=ZERO

// Five values go to the host. Nothing that is computed needs to know that they left, so without more waits each keeps its
// slot. With one in flight, two slots do, and the third value waits for the first one to leave.
// KEPT: sched.arena device bytes(5120) lower_bound(5120)
// CHECK: sched.arena device bytes(2048) lower_bound(2048)
// CHECK: sched.launch "f"([]) on compute writes
// CHECK: %[[A:[^,]+]], %{{.*}} = sched.copy on d2h waits
// CHECK: sched.launch "f"([]) on compute writes
// CHECK: %[[B:[^,]+]], %{{.*}} = sched.copy on d2h waits
// CHECK: sched.launch "f"([]) on compute waits(%[[A]]) writes
// CHECK: sched.copy on d2h waits
// CHECK: sched.launch "f"([]) on compute waits(%[[B]]) writes
// THREE: sched.arena device bytes(4096) lower_bound(4096)
// DROPPED: remark: waits 8/8 rejected, 0 implied
// ZERO: error: in-flight is 0, and must be at least 1

#t = #sched.tag<"op", dense, forward>

sched.program @offload ranks(1) {
  sched.lane compute
  %out = sched.buffer 0 writable in host tag #t : memref<5x256xf32>
  %s0 = sched.slot in device tag #t : memref<256xf32>
  %s1 = sched.slot in device tag #t : memref<256xf32>
  %s2 = sched.slot in device tag #t : memref<256xf32>
  %s3 = sched.slot in device tag #t : memref<256xf32>
  %s4 = sched.slot in device tag #t : memref<256xf32>
  %h0 = sched.view %out[0] : memref<5x256xf32> to memref<256xf32>
  %h1 = sched.view %out[1024] : memref<5x256xf32> to memref<256xf32>
  %h2 = sched.view %out[2048] : memref<5x256xf32> to memref<256xf32>
  %h3 = sched.view %out[3072] : memref<5x256xf32> to memref<256xf32>
  %h4 = sched.view %out[4096] : memref<5x256xf32> to memref<256xf32>
  %e0, %0 = sched.launch "f"([]) on compute writes(%s0 : memref<256xf32>) tag #t
  %c0, %r0 = sched.copy on compute reads(%0 : memref<256xf32>) writes(%h0 : memref<256xf32>) tag #t
  %e1, %1 = sched.launch "f"([]) on compute writes(%s1 : memref<256xf32>) tag #t
  %c1, %r1 = sched.copy on compute reads(%1 : memref<256xf32>) writes(%h1 : memref<256xf32>) tag #t
  %e2, %2 = sched.launch "f"([]) on compute writes(%s2 : memref<256xf32>) tag #t
  %c2, %r2 = sched.copy on compute reads(%2 : memref<256xf32>) writes(%h2 : memref<256xf32>) tag #t
  %e3, %3 = sched.launch "f"([]) on compute writes(%s3 : memref<256xf32>) tag #t
  %c3, %r3 = sched.copy on compute reads(%3 : memref<256xf32>) writes(%h3 : memref<256xf32>) tag #t
  %e4, %4 = sched.launch "f"([]) on compute writes(%s4 : memref<256xf32>) tag #t
  %c4, %r4 = sched.copy on compute reads(%4 : memref<256xf32>) writes(%h4 : memref<256xf32>) tag #t
  %all = sched.join %out from(%r0, %r1, %r2, %r3, %r4 : memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) : memref<5x256xf32>
  sched.return %all : memref<5x256xf32>
}

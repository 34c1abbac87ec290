// RUN: plateau-opt %s --pass-pipeline='builtin.module(sched.program(sched-assign-lanes,sched-hoist,sched-place-waits,sched-elide-waits,sched-plan-arenas,sched-verify))' | FileCheck %s
// RUN: plateau-opt %s --pass-pipeline='builtin.module(sched.program(sched-assign-lanes,sched-hoist,sched-place-waits,sched-elide-waits,sched-plan-arenas,sched-place-waits,sched-elide-waits))' | FileCheck %s
// RUN: plateau-test-opt %s -o /dev/null --pass-pipeline='builtin.module(sched.program(sched-assign-lanes,sched-hoist,sched-place-waits,sched-elide-waits,sched-plan-arenas,test-sched-mutate{class=waits}))' 2>&1 | FileCheck %s --check-prefix=DROPPED
// DROPPED: remark: waits 5/5 rejected, 0 implied

// All planners, one after the other, then the checkers; once more they have nothing to add.

shard.grid @world(shape = 2)
#t = #sched.tag<"op", dense, backward>

// CHECK-LABEL: sched.program @step
// CHECK: sched.arena device bytes(8192) lower_bound(8192)
sched.program @step ranks(2) {
  sched.lane compute
  %p = sched.buffer 0 in host tag #t : memref<2x1024xf32>
  %g = sched.buffer 1 writable in device tag #t : memref<2x1024xf32>
  %g0 = sched.view %g[0] : memref<2x1024xf32> to memref<1024xf32>
  %g1 = sched.view %g[4096] : memref<2x1024xf32> to memref<1024xf32>
  %row0 = sched.view %p[0] : memref<2x1024xf32> to memref<1024xf32>
  %row1 = sched.view %p[4096] : memref<2x1024xf32> to memref<1024xf32>
  %w0 = sched.slot in device tag #t : memref<1024xf32>
  %w1 = sched.slot in device tag #t : memref<1024xf32>
  %x = sched.slot in device tag #t : memref<1024xf32>
  // CHECK: %[[W0:[^,]+]], %[[V0:.*]] = sched.copy on h2d reads
  %e0, %0 = sched.copy on compute reads(%row0 : memref<1024xf32>) writes(%w0 : memref<1024xf32>) tag #t
  // CHECK: %[[G0:[^,]+]], %{{.*}} = sched.launch "gradient"([]) on compute waits(%[[W0]]) reads(%[[V0]]
  %e1, %1 = sched.launch "gradient"([]) on compute reads(%0 : memref<1024xf32>) writes(%g0 : memref<1024xf32>) tag #t
  // CHECK: %[[S0:[^,]+]], %{{.*}} = sched.collective {{.*}} on comm waits(%[[G0]])
  // CHECK: %[[W1:[^,]+]], %[[V1:.*]] = sched.copy on h2d reads
  %e2, %2 = sched.copy on compute reads(%row1 : memref<1024xf32>) writes(%w1 : memref<1024xf32>) tag #t
  // CHECK: %[[G1:[^,]+]], %{{.*}} = sched.launch "gradient"([]) on compute waits(%[[W1]]) reads(%[[V1]]
  %e3, %3 = sched.launch "gradient"([]) on compute reads(%2 : memref<1024xf32>) writes(%g1 : memref<1024xf32>) tag #t
  // CHECK: %[[S1:[^,]+]], %{{.*}} = sched.collective {{.*}} on comm waits(%[[G1]])
  // CHECK: sched.launch "after"([]) on compute writes
  %e4, %4 = sched.launch "after"([]) on compute writes(%x : memref<1024xf32>) tag #t
  %c0, %5 = sched.collective "plr_all_reduce"([#sched.group]) over @world axes [0] number 0 on compute reads(%1 : memref<1024xf32>) writes(%g0 : memref<1024xf32>) tag #t
  %c1, %6 = sched.collective "plr_all_reduce"([#sched.group]) over @world axes [0] number 1 on compute reads(%3 : memref<1024xf32>) writes(%g1 : memref<1024xf32>) tag #t
  // CHECK: sched.launch "norm"([]) on compute waits(%[[S1]])
  %all = sched.join %g from(%5, %6 : memref<1024xf32>, memref<1024xf32>) : memref<2x1024xf32>
  %e5, %7 = sched.launch "norm"([]) on compute reads(%4, %all : memref<1024xf32>, memref<2x1024xf32>) writes(%g : memref<2x1024xf32>) tag #t
  sched.return %7 : memref<2x1024xf32>
}

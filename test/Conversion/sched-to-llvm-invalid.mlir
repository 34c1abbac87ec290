// RUN: plateau-opt %s -split-input-file -verify-diagnostics -convert-sched-to-llvm

#t = #sched.tag<"copy", staging, forward>
sched.program @slot ranks(1) {
  sched.lane compute
  sched.arena device bytes(64)
  %in = sched.buffer 0 in device tag #t : memref<4xf32>
  // expected-error @below {{has no offset: slots are not planned (sched-plan-arenas)}}
  %s = sched.slot in device tag #t : memref<4xf32>
  %e, %v = sched.copy on compute reads(%in : memref<4xf32>) writes(%s : memref<4xf32>) tag #t
  sched.return
}

// -----

sched.program @arena ranks(1) {
  // expected-error @below {{has no bytes: slots are not planned (sched-plan-arenas)}}
  sched.arena host
  sched.return
}

// -----

#t = #sched.tag<"copy", staging, forward>
sched.program @constant ranks(1) {
  sched.lane compute
  %out = sched.buffer 0 writable in device tag #t : memref<4xf32>
  // expected-error @below {{is lowered only for dense elements}}
  %c = sched.constant sparse<[[0]], [1.0]> : tensor<4xf32> as memref<4xf32>
  %e, %v = sched.copy on compute reads(%c : memref<4xf32>) writes(%out : memref<4xf32>) tag #t
  sched.return %v : memref<4xf32>
}

// -----

#t = #sched.tag<"copy", staging, forward>
sched.program @other ranks(1) {
  // expected-error @below {{P4: stands in a program}}
  %c = arith.constant 0 : index
  sched.return
}

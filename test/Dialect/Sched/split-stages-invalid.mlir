// RUN: plateau-opt %s --pass-pipeline='builtin.module(sched.program(sched-split-stages))' --split-input-file --verify-diagnostics
// RUN: not plateau-opt %S/Inputs/two-stage.mlir --pass-pipeline='builtin.module(sched.program(sched-split-stages{by=lane}))' 2>&1 | FileCheck %s --check-prefix=BY
// RUN: not plateau-opt %S/Inputs/two-stage.mlir --pass-pipeline='builtin.module(sched.program(sched-split-stages{in-flight=-1}))' 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// BY: error: sched-split-stages{by=lane}: stages can be made of phases, by=phase
// NEGATIVE: error: sched-split-stages{in-flight=-1}: must not be negative

sched.program @loop_inside ranks(1) {
  // expected-error @below {{is to overlap 2 iterations and has a loop inside}}
  sched.loop %i = 0 to 4 in_flight(2) {
    sched.loop %j = 0 to 1 {
    }
  }
  sched.return
}

// -----

#f = #sched.tag<"op", dense, forward>
#b = #sched.tag<"op", dense, backward>

// One needs what backward gives, the other writes what backward reads.
sched.program @forward_after_backward ranks(1) {
  sched.lane compute
  %s = sched.slot in device tag #f : memref<4xf32>
  %t = sched.slot in device tag #f : memref<4xf32>
  %u = sched.slot in device tag #f : memref<4xf32>
  sched.loop %i = 0 to 4 in_flight(2) {
    %e0, %x = sched.launch "f"([]) on compute writes(%s : memref<4xf32>) tag #f
    %e1, %y = sched.launch "b"([]) on compute reads(%x : memref<4xf32>) writes(%t : memref<4xf32>) tag #b
    %part = sched.view %y[8] : memref<4xf32> to memref<2xf32>
    // expected-remark @below {{2 calls of the forward phase depend on ones of the backward phase, and are in stage 1 as these are; the first is this one}}
    %e2, %z = sched.launch "late"([]) on compute reads(%part : memref<2xf32>) writes(%u : memref<4xf32>) tag #f
    %e3, %w = sched.launch "over"([]) on compute writes(%s : memref<4xf32>) tag #f
  }
  sched.return
}

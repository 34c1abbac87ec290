// RUN: plateau-opt %s --pass-pipeline='builtin.module(sched.program(sched-split-stages))' | FileCheck %s --check-prefixes=CHECK,ASKED
// RUN: plateau-opt %s --pass-pipeline='builtin.module(sched.program(sched-split-stages{by=phase in-flight=3}))' | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: plateau-opt %s --pass-pipeline='builtin.module(sched.program(sched-split-stages{in-flight=2},sched-pipeline-loops))' | FileCheck %s --check-prefix=OVER

#f = #sched.tag<"op", dense, forward>
#b = #sched.tag<"op", dense, backward>
#o = #sched.tag<"op", optimizer, optimizer>

// Micro-batches: forward adds up the loss, backward the gradients. The loss is added last, and moves to the other forward
// calls with what it names; the forward of one micro-batch then stands beside the backward of the one before.

// CHECK-LABEL: sched.program @micro_batches
// OVER-LABEL: sched.program @micro_batches
sched.program @micro_batches ranks(1) {
  sched.lane compute
  %rows = sched.buffer 0 in device tag #f : memref<4x16xf32>
  %loss = sched.buffer 1 writable in device tag #f : memref<f32>
  %grads = sched.buffer 2 writable in device tag #b : memref<16xf32>
  %e0, %l0 = sched.launch "zero"([]) on compute writes(%loss : memref<f32>) tag #f
  %e1, %g0 = sched.launch "zero"([]) on compute writes(%grads : memref<16xf32>) tag #b
  // CHECK: sched.loop %{{.*}} = 0 to 4 in_flight(2)
  // OVER: sched.launch "forward"
  // OVER: sched.launch "add_loss"
  // OVER: sched.loop %{{.*}} = 1 to 4 iter(
  %r:2 = sched.loop %i = 0 to 4 in_flight(2) iter(%l = %l0, %g = %g0) : memref<f32>, memref<16xf32> {
    // CHECK: sched.launch "forward"{{.*}} stage 0
    // CHECK-NEXT: %[[PART:.*]] = sched.view
    // CHECK-NEXT: sched.launch "add_loss"{{.*}} stage 0 reads(%{{.*}}, %[[PART]] :
    // CHECK: sched.launch "backward"{{.*}} stage 1
    // CHECK: sched.launch "add"{{.*}} stage 1
    // CHECK: sched.launch "clip"{{.*}} stage 1
    // OVER: sched.launch "forward"
    // OVER: sched.launch "add_loss"
    // OVER: sched.launch "backward"
    // OVER: sched.launch "add"
    // OVER: sched.launch "clip"
    // OVER: sched.yield
    %y = sched.slot in device tag #f : memref<16xf32>
    %d = sched.slot in device tag #b : memref<16xf32>
    %row = sched.view %rows[0] index(%i) stride(64) : memref<4x16xf32> to memref<16xf32>
    %e2, %v = sched.launch "forward"([]) on compute reads(%row : memref<16xf32>) writes(%y : memref<16xf32>) tag #f
    %e3, %w = sched.launch "backward"([]) on compute reads(%v : memref<16xf32>) writes(%d : memref<16xf32>) tag #b
    %e4, %gn = sched.launch "add"([]) on compute reads(%g, %w : memref<16xf32>, memref<16xf32>) writes(%grads : memref<16xf32>) tag #b
    %e5, %gc = sched.launch "clip"([]) on compute reads(%gn : memref<16xf32>) writes(%grads : memref<16xf32>) tag #o
    %part = sched.view %v[60] : memref<16xf32> to memref<f32>
    %e6, %ln = sched.launch "add_loss"([]) on compute reads(%l, %part : memref<f32>, memref<f32>) writes(%loss : memref<f32>) tag #f
    sched.yield %ln, %gc : memref<f32>, memref<16xf32>
  }
  // OVER: sched.launch "backward"
  // OVER: sched.launch "add"
  // OVER: sched.launch "clip"
  // OVER: sched.return
  sched.return %r#0, %r#1 : memref<f32>, memref<16xf32>
}

// A loop that does not ask has stages only by the option; one with a loop inside stays; a stage that is there stays.

// CHECK-LABEL: sched.program @others
sched.program @others ranks(1) {
  sched.lane compute
  %s = sched.slot in device tag #f : memref<16xf32>
  // ASKED: sched.loop %{{.*}} = 0 to 4 {
  // ASKED-NEXT: sched.launch "f"([]) on compute writes
  // ALL: sched.loop %{{.*}} = 0 to 4 in_flight(3) {
  // ALL-NEXT: sched.launch "f"([]) on compute stage 0 writes
  sched.loop %i = 0 to 4 {
    %e0, %v0 = sched.launch "f"([]) on compute writes(%s : memref<16xf32>) tag #f
  }
  // CHECK: sched.loop %{{.*}} = 0 to 4 {
  // ASKED-NEXT: sched.loop %{{.*}} = 0 to 4 {
  // ALL-NEXT: sched.loop %{{.*}} = 0 to 4 in_flight(3) {
  sched.loop %i = 0 to 4 {
    sched.loop %j = 0 to 4 {
    }
  }
  // CHECK: sched.loop %{{.*}} = 0 to 4 in_flight(1) {
  // CHECK-NEXT: sched.launch "f"([]) on compute stage 1 writes
  sched.loop %i = 0 to 4 in_flight(1) {
    %e0, %v0 = sched.launch "f"([]) on compute stage 1 writes(%s : memref<16xf32>) tag #f
  }
  sched.return
}

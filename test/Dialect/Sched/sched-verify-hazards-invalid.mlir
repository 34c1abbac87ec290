// RUN: plateau-opt %s --split-input-file --verify-diagnostics --mlir-print-op-on-diagnostic=false --pass-pipeline="builtin.module(sched.program(sched-verify-hazards))"

#t = #sched.tag<"op", dense, forward>
#a = #sched.tag<"first", dense, forward>

// A reader that does not wait for its writer.
sched.program @hz1_read ranks(1) {
  sched.lane compute
  sched.lane comm
  %s = sched.slot in device tag #a : memref<4xf32>
  // expected-note @below {{write #0 of sched.launch "f" on compute, bytes 0 ... 16 of the slot of first}}
  %e0, %v = sched.launch "f"([]) on compute writes(%s : memref<4xf32>) tag #t
  // expected-error @below {{HZ1: read #0 of sched.launch "g" on comm, bytes 0 ... 16 of the slot of first, is not ordered with write #0 of sched.launch "f" on compute: a wait is missing, or the bytes must not be shared}}
  %e1 = sched.launch "g"([]) on comm reads(%v : memref<4xf32>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// A writer that does not wait for a reader, of another slot on the same bytes. A later reader on the same lane does not hide it.
sched.program @hz1_arena ranks(1) {
  sched.lane compute
  sched.lane comm
  sched.arena device bytes(192)
  %a = sched.slot in device offset 64 tag #t : memref<32xf32>
  %b = sched.slot in device offset 128 tag #t : memref<16xf32>
  %e0, %v = sched.launch "f"([]) on compute writes(%a : memref<32xf32>) tag #t
  // expected-note @below {{read #0 of sched.launch "g" on comm, bytes 64 ... 192 of the device arena (0 ... 128 of the slot of op)}}
  %e1 = sched.launch "g"([]) on comm waits(%e0) reads(%v : memref<32xf32>) tag #t
  // expected-error @below {{HZ1: write #0 of sched.launch "h" on compute, bytes 128 ... 192 of the device arena (0 ... 64 of the slot of op), is not ordered with read #0 of sched.launch "g" on comm}}
  %e2, %w = sched.launch "h"([]) on compute writes(%b : memref<16xf32>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// A ring of 2 in which three iterations are in flight: the writer waits for the reader of three iterations ago.
// The prefix has 2 + 3 · 3 + 2 iterations or more, an even number: 14, and the first two find the places free.
// expected-error @below {{@hz1_ring has 12 faults that sched-verify-hazards refuses, 1 of them told above}}
sched.program @hz1_ring ranks(1) {
  sched.lane compute
  sched.lane comm
  %ring = sched.slot in device ring 2 tag #t : memref<4xf32>
  %none = sched.no_event
  %x, %y, %z = sched.loop %i = 0 to 100 iter(%p = %none, %q = %none, %r = %none) : !sched.event, !sched.event, !sched.event {
    %place = sched.view %ring[0] index(%i) ring(0) : memref<4xf32> to memref<4xf32>
    // expected-error @below {{HZ1: write #0 of sched.launch "f" on comm in iteration 2, bytes 0 ... 16 of the slot of op, is not ordered with read #0 of sched.launch "g" on compute in iteration 0}}
    %e0, %v = sched.launch "f"([]) on comm waits(%p) writes(%place : memref<4xf32>) tag #t
    // expected-note @below {{read #0 of sched.launch "g" on compute in iteration 0, bytes 0 ... 16}}
    %e1 = sched.launch "g"([]) on compute waits(%e0) reads(%v : memref<4xf32>) tag #t
    sched.yield %q, %r, %e1 : !sched.event, !sched.event, !sched.event
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// The call waits for the table; the host, which reads it when it issues the call, does not.
sched.program @hz2 ranks(1) {
  sched.lane compute
  sched.lane comm
  %s = sched.slot in host tag #t : memref<2x2xi64>
  // expected-note @below {{write #0 of sched.launch "f" on compute}}
  %e0, %v = sched.launch "f"([]) on compute writes(%s : memref<2x2xi64>) tag #t
  // expected-error @below {{HZ2: table #0 of sched.launch "g" on comm, bytes 0 ... 32 of the slot of op, is read by the host when it issues the call, before write #0 of sched.launch "f" on compute is known to be done: a fence is missing}}
  %e1 = sched.launch "g"([#sched.cell<0, 0, 0>]) on comm waits(%e0) tables(%v : memref<2x2xi64>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// Input and output of one call on the same bytes, though they are two slots.
sched.program @hz3 ranks(1) {
  sched.lane compute
  sched.arena device bytes(64)
  %a = sched.slot in device offset 0 tag #t : memref<16xf32>
  %b = sched.slot in device offset 0 tag #t : memref<16xf32>
  %e0, %v = sched.launch "f"([]) on compute writes(%a : memref<16xf32>) tag #t
  // expected-note @below {{read #0 of sched.launch "g" on compute}}
  // expected-error @below {{HZ3: write #0 of sched.launch "g" on compute, bytes 0 ... 64 of the device arena (0 ... 64 of the slot of op), overlaps read #0 of the same call, and is not the same place}}
  %e1, %w = sched.launch "g"([]) on compute reads(%v : memref<16xf32>) writes(%b : memref<16xf32>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// An update in place is none; nor are reads at a time.
sched.program @right ranks(1) {
  sched.lane compute
  sched.lane comm
  %a = sched.slot in device tag #t : memref<16xf32>
  %e0, %v = sched.launch "f"([]) on compute writes(%a : memref<16xf32>) tag #t
  %e1, %w = sched.launch "g"([]) on compute reads(%v, %v : memref<16xf32>, memref<16xf32>) writes(%a : memref<16xf32>) tag #t
  %e2 = sched.launch "g"([]) on comm waits(%e1) reads(%w : memref<16xf32>) tag #t
  %e3 = sched.launch "g"([]) on compute reads(%w : memref<16xf32>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// The first four faults are told, then the number of all.
// expected-error @below {{@many has 5 faults that sched-verify-hazards refuses, 4 of them told above}}
sched.program @many ranks(1) {
  sched.lane compute
  sched.lane comm
  %s = sched.slot in device tag #t : memref<4xf32>
  // expected-note @below {{write #0}}
  %e0, %v = sched.launch "f"([]) on compute writes(%s : memref<4xf32>) tag #t
  // expected-error @below {{HZ1}}
  %e1 = sched.launch "g"([]) on comm reads(%v : memref<4xf32>) tag #t
  // expected-error @below {{HZ1}}
  %e2 = sched.launch "g"([]) on comm reads(%v : memref<4xf32>) tag #t
  // expected-error @below {{HZ1}}
  %e3 = sched.launch "g"([]) on comm reads(%v : memref<4xf32>) tag #t
  // expected-error @below {{HZ1}}
  %e4 = sched.launch "g"([]) on comm reads(%v : memref<4xf32>) tag #t
  %e5 = sched.launch "g"([]) on comm reads(%v : memref<4xf32>) tag #t
  sched.return
}

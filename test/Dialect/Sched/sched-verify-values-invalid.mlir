// RUN: plateau-opt %s --split-input-file --verify-diagnostics --mlir-print-op-on-diagnostic=false --pass-pipeline="builtin.module(sched.program(sched-verify-values))"

#t = #sched.tag<"op", dense, forward>

// On one lane everything is ordered, and the value is gone all the same.
sched.program @va1_single_lane ranks(1) {
  sched.lane compute
  sched.arena device bytes(128)
  %a = sched.slot in device offset 0 tag #t : memref<32xf32>
  %b = sched.slot in device offset 64 tag #t : memref<16xf32>
  // expected-note @below {{write #0 of sched.launch "f" on compute, bytes 0 ... 128 of the device arena}}
  %e0, %v = sched.launch "f"([]) on compute writes(%a : memref<32xf32>) tag #t
  // expected-note @below {{write #0 of sched.launch "g" on compute, bytes 64 ... 128 of the device arena (0 ... 64 of the slot of op)}}
  %e1, %w = sched.launch "g"([]) on compute writes(%b : memref<16xf32>) tag #t
  // expected-error @below {{VA1: read #0 of sched.launch "h" on compute, bytes 64 ... 128 of the device arena (64 ... 128 of the slot of op), names what sched.launch "f" on compute wrote, and finds what sched.launch "g" on compute wrote}}
  %e2 = sched.launch "h"([]) on compute reads(%v : memref<32xf32>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// A value of the iteration before, at a place that this iteration has overwritten.
// The prefix has 1 + 2 · 1 + 1 iterations.
// expected-error @below {{@va1_loop has 4 faults that sched-verify-values refuses, 1 of them told above}}
sched.program @va1_loop ranks(1) {
  sched.lane compute
  %a = sched.slot in device tag #t : memref<4xf32>
  // expected-note @below {{write #0 of sched.launch "f" on compute}}
  %e0, %v = sched.launch "f"([]) on compute writes(%a : memref<4xf32>) tag #t
  %last = sched.loop %i = 0 to 100 iter(%p = %v) : memref<4xf32> {
    // expected-note @below {{write #0 of sched.launch "g" on compute in iteration 0}}
    %e1, %next = sched.launch "g"([]) on compute reads(%p : memref<4xf32>) writes(%a : memref<4xf32>) tag #t
    // expected-error @below {{VA1: read #0 of sched.launch "h" on compute in iteration 0, bytes 0 ... 16 of the slot of op, names what sched.launch "f" on compute wrote, and finds what sched.launch "g" on compute in iteration 0 wrote}}
    %e2 = sched.launch "h"([]) on compute reads(%p : memref<4xf32>) tag #t
    sched.yield %next : memref<4xf32>
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// A result that was overwritten before the end; and a buffer that is read as it was at the start, and was not any more.
// expected-error @below {{@va1_return has 4 faults that sched-verify-values refuses, 3 of them told above}}
sched.program @va1_return ranks(1) {
  sched.lane compute
  %out = sched.buffer 0 writable in device tag #t : memref<4xf32>
  // expected-note @below {{write #0 of sched.launch "f"}}
  %e0, %v = sched.launch "f"([]) on compute writes(%out : memref<4xf32>) tag #t
  %part = sched.view %out[4] : memref<4xf32> to memref<2xf32>
  // expected-note @below {{write #0 of sched.launch "g" on compute, bytes 4 ... 12 of buffer 0 (op)}}
  %e1, %w = sched.launch "g"([]) on compute writes(%part : memref<2xf32>) tag #t
  // expected-error @below {{VA1: read #0 of sched.launch "h" on compute, bytes 0 ... 4 of buffer 0 (op), names what was there before the program, and finds what sched.launch "f" on compute wrote}}
  // expected-error @below {{VA1: read #0 of sched.launch "h" on compute, bytes 4 ... 12 of buffer 0 (op), names what was there before the program, and finds what sched.launch "g" on compute wrote}}
  %e2 = sched.launch "h"([]) on compute reads(%out : memref<4xf32>) tag #t
  // expected-error @below {{VA1: read #0 of sched.return, bytes 4 ... 12 of buffer 0 (op), names what sched.launch "f" on compute wrote, and finds what sched.launch "g" on compute wrote}}
  sched.return %v : memref<4xf32>
}

// -----

#t = #sched.tag<"op", dense, forward>

sched.program @va2 ranks(1) {
  sched.lane compute
  %a = sched.slot in device tag #t : memref<4xf32>
  // expected-error @below {{VA2: read #0 of sched.launch "f" on compute, bytes 0 ... 16 of the slot of op, names what the slot held before the program, which is nothing}}
  %e0 = sched.launch "f"([]) on compute reads(%a : memref<4xf32>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

sched.program @va3 ranks(1) {
  sched.lane compute
  // expected-error @below {{VA3: buffer 7 is written by sched.launch "f" on compute, and sched.return names no value of it}}
  %out = sched.buffer 7 writable in device tag #t : memref<4xf32>
  // expected-note @below {{write #0, bytes 0 ... 16 of buffer 7 (op)}}
  %e0, %v = sched.launch "f"([]) on compute writes(%out : memref<4xf32>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// What a join leaves out may be anything, and what a view leaves out is not read.
sched.program @right ranks(1) {
  sched.lane compute
  %a = sched.slot in device tag #t : memref<4xf32>
  %low = sched.view %a[0] : memref<4xf32> to memref<1xf32>
  %high = sched.view %a[8] : memref<4xf32> to memref<2xf32>
  %e0, %v = sched.launch "f"([]) on compute writes(%low : memref<1xf32>) tag #t
  %e1, %w = sched.launch "f"([]) on compute writes(%high : memref<2xf32>) tag #t
  %both = sched.join %a from(%v, %w : memref<1xf32>, memref<2xf32>) : memref<4xf32>
  %e2 = sched.launch "f"([]) on compute reads(%both : memref<4xf32>) tag #t
  %e3, %x = sched.launch "f"([]) on compute writes(%low : memref<1xf32>) tag #t
  %rest = sched.view %both[4] : memref<4xf32> to memref<3xf32>
  %e4 = sched.launch "f"([]) on compute reads(%rest : memref<3xf32>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// An update stands for its part and for what its source holds around it. Its source is overwritten there.
sched.program @va1_update_source ranks(1) {
  sched.lane compute
  %s = sched.slot in device tag #t : memref<4xf32>
  // expected-note @below {{write #0 of sched.launch "f"}}
  %e0, %v = sched.launch "f"([]) on compute writes(%s : memref<4xf32>) tag #t
  %part = sched.view %s[4] : memref<4xf32> to memref<2xf32>
  // expected-note @below {{write #0 of sched.launch "g"}}
  %e1, %w = sched.launch "g"([]) on compute writes(%part : memref<2xf32>) tag #t
  %u = sched.update %v with %w : memref<4xf32>, memref<2xf32>
  %e2 = sched.launch "right"([]) on compute reads(%u : memref<4xf32>) tag #t
  // expected-error @below {{VA1: read #0 of sched.launch "wrong" on compute, bytes 4 ... 12 of the slot of op, names what sched.launch "f" on compute wrote, and finds what sched.launch "g" on compute wrote}}
  %e3 = sched.launch "wrong"([]) on compute reads(%v : memref<4xf32>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// In a loop: the rows of earlier iterations are those that they wrote, and nobody else.
sched.program @va1_update_loop ranks(1) {
  sched.lane compute
  %s = sched.slot in device tag #t : memref<4xf32>
  %first = sched.view %s[0] : memref<4xf32> to memref<1xf32>
  %e0, %v = sched.launch "f"([]) on compute writes(%s : memref<4xf32>) tag #t
  %r = sched.loop %i = 0 to 4 iter(%a = %v) : memref<4xf32> {
    %p = sched.view %s[0] index(%i) stride(4) : memref<4xf32> to memref<1xf32>
    // expected-note @below {{write #0 of sched.launch "g" on compute in iteration 0}}
    %e1, %w = sched.launch "g"([]) on compute writes(%p : memref<1xf32>) tag #t
    %u = sched.update %a with %w : memref<4xf32>, memref<1xf32>
    sched.yield %u : memref<4xf32>
  }
  // expected-note @below {{write #0 of sched.launch "h"}}
  %e2, %x = sched.launch "h"([]) on compute writes(%first : memref<1xf32>) tag #t
  // expected-error @below {{VA1: read #0 of sched.launch "wrong" on compute, bytes 0 ... 4 of the slot of op, names what sched.launch "g" on compute in iteration 0 wrote, and finds what sched.launch "h" on compute wrote}}
  %e3 = sched.launch "wrong"([]) on compute reads(%r : memref<4xf32>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

sched.program @u2 ranks(1) {
  sched.lane compute
  %s = sched.slot in device tag #t : memref<4xf32>
  %low = sched.view %s[0] : memref<4xf32> to memref<2xf32>
  %high = sched.view %s[4] : memref<4xf32> to memref<2xf32>
  %e0, %v = sched.launch "f"([]) on compute writes(%low : memref<2xf32>) tag #t
  %e1, %w = sched.launch "g"([]) on compute writes(%high : memref<2xf32>) tag #t
  // expected-error @below {{U2: has a part at bytes 4 ... 12, and its source lies at 0 ... 8}}
  %u = sched.update %v with %w : memref<2xf32>, memref<2xf32>
  sched.return
}

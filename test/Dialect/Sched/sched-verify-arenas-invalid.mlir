// RUN: plateau-opt %s --split-input-file --verify-diagnostics --mlir-print-op-on-diagnostic=false --pass-pipeline="builtin.module(sched.program(sched-verify-arenas{hbm-bytes=1000}))"

#t = #sched.tag<"moe.dispatch", dispatch, forward>

sched.program @ar1 ranks(1) {
  sched.arena device
  // expected-error @below {{AR1: the slot of moe.dispatch, 80 bytes of device memory, has no offset}}
  %s = sched.slot in device ring 2 tag #t : memref<4xf32>
  sched.return
}

// -----

#t = #sched.tag<"moe.dispatch", dispatch, forward>

sched.program @ar2 ranks(1) {
  sched.arena host
  // expected-error @below {{AR2: the slot of moe.dispatch has an offset, and the program has no device arena}}
  %s = sched.slot in device offset 0 tag #t : memref<4xf32>
  // expected-error @below {{AR2: the slot of moe.dispatch has an offset, and the program has no bytes for the host arena}}
  %r = sched.slot in host offset 0 tag #t : memref<4xf32>
  sched.return
}

// -----

#t = #sched.tag<"moe.dispatch", dispatch, forward>

sched.program @ar3 ranks(1) {
  // expected-note @below {{the arena}}
  sched.arena device bytes(143)
  // expected-error @below {{AR3: the slot of moe.dispatch lies at bytes 64 ... 144 of the device arena, which has 143}}
  %s = sched.slot in device ring 2 offset 64 tag #t : memref<4xf32>
  sched.return
}

// -----

#t = #sched.tag<"moe.dispatch", dispatch, forward>

sched.program @ar4 ranks(1) {
  // expected-error @below {{AR4: the device arena has 145 bytes, and its slots end at 144}}
  sched.arena device bytes(145)
  // expected-error @below {{AR4: the host arena has 64 bytes, and its slots end at 0}}
  sched.arena host bytes(64)
  %r = sched.slot in device offset 0 tag #t : memref<4xf32>
  // expected-note @below {{the slot that ends highest, of moe.dispatch}}
  %s = sched.slot in device ring 2 offset 64 tag #t : memref<4xf32>
  sched.return
}

// -----

#t = #sched.tag<"moe.dispatch", dispatch, forward, layer = 3>
#u = #sched.tag<"moe.combine", experts, backward>

// %a and %b are live together: 400 + 300 bytes, and the buffer counts 320. %c could lie where %a lay, and adds 64 + 192 all the
// same; but no packing saves the budget of 1000.
// expected-error @below {{AR5: @impossible needs 1344 bytes of device memory, 1024 for the arena and 320 for buffers, and the budget is 1000: 344 too many}}
// expected-note @below {{at the peak 700 bytes are live together, the lower bound of this schedule; fragmentation is 1024 - 700 = 324 bytes. It is impossible: no packing fits, since bound and buffers are 1024 bytes}}
sched.program @impossible ranks(1) {
  sched.lane compute
  sched.arena device bytes(1024)
  %p = sched.buffer 0 in device tag #t : memref<257xi8>
  // expected-note @below {{300 bytes of moe.dispatch (dispatch, forward, layer 3)}}
  %a = sched.slot in device offset 0 tag #t : memref<300xi8>
  // expected-note @below {{400 bytes of moe.combine (experts, backward)}}
  %b = sched.slot in device offset 320 tag #u : memref<400xi8>
  %c = sched.slot in device offset 768 tag #u : memref<256xi8>
  %e0, %v = sched.launch "f"([]) on compute writes(%a : memref<300xi8>) tag #t
  // expected-note @below {{the peak, sched.launch "g" on compute: 2 slots are live}}
  %e1, %w = sched.launch "g"([]) on compute reads(%v : memref<300xi8>) writes(%b : memref<400xi8>) tag #t
  %e2, %x = sched.launch "h"([]) on compute writes(%c : memref<256xi8>) tag #t
  %e3 = sched.launch "i"([]) on compute reads(%w : memref<400xi8>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"moe.dispatch", dispatch, forward>

// %b could lie where %a lay. An update in place counts once.
// expected-error @below {{AR5: @packed needs 1088 bytes of device memory, 1024 for the arena and 64 for buffers, and the budget is 1000: 88 too many}}
// expected-note @below {{at the peak 512 bytes are live together, the lower bound of this schedule; fragmentation is 1024 - 512 = 512 bytes. It is badly packed: bound and buffers are 576 bytes, which would fit}}
sched.program @packed ranks(1) {
  sched.lane compute
  sched.arena device bytes(1024)
  %p = sched.buffer 0 in device tag #t : memref<64xi8>
  // expected-note @below {{512 bytes of moe.dispatch (dispatch, forward)}}
  %a = sched.slot in device offset 0 tag #t : memref<512xi8>
  %b = sched.slot in device offset 512 tag #t : memref<512xi8>
  // expected-note @below {{the peak, sched.launch "f" on compute: 1 slots are live}}
  %e0, %v = sched.launch "f"([]) on compute writes(%a : memref<512xi8>) tag #t
  %e1, %w = sched.launch "g"([]) on compute reads(%v : memref<512xi8>) writes(%a : memref<512xi8>) tag #t
  %e2 = sched.launch "h"([]) on compute reads(%w : memref<512xi8>) tag #t
  %e3, %x = sched.launch "i"([]) on compute writes(%b : memref<512xi8>) tag #t
  sched.return
}

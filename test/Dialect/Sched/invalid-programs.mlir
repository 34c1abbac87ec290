// RUN: plateau-opt %s -split-input-file -verify-diagnostics

// What would let a program be proven that is not the one that runs.

#t = #sched.tag<"op", dense, forward>
sched.program @join_j1_terms ranks(1) {
  sched.lane compute
  %s = sched.slot in device tag #t : memref<16xf32>
  %p = sched.view %s[0] : memref<16xf32> to memref<4xf32>
  sched.loop %i = 1 to 3 {
    %q = sched.view %s[0] index(%i) stride(16) : memref<16xf32> to memref<4xf32>
    %e, %v = sched.launch "f"([#sched.write<0>]) on compute writes(%q : memref<4xf32>) tag #t
    // expected-error @+1 {{J1: part #0 does not lie inside the place}}
    %j = sched.join %p from(%v : memref<4xf32>) : memref<4xf32>
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>
sched.program @update_u1_elsewhere ranks(1) {
  sched.lane compute
  %s = sched.slot in device tag #t : memref<4xf32>
  %o = sched.slot in device tag #t : memref<2xf32>
  %e, %v:2 = sched.launch "f"([]) on compute writes(%s, %o : memref<4xf32>, memref<2xf32>) tag #t
  // expected-error @+1 {{U1: has a part that does not lie where the source does}}
  %u = sched.update %v#0 with %v#1 : memref<4xf32>, memref<2xf32>
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>
sched.program @update_u1_ring ranks(1) {
  sched.lane compute
  %s = sched.slot in device ring 2 tag #t : memref<4xf32>
  %p0 = sched.view %s[0] ring(0) : memref<4xf32> to memref<4xf32>
  %p1 = sched.view %s[0] ring(1) : memref<4xf32> to memref<2xf32>
  %e, %v:2 = sched.launch "f"([]) on compute writes(%p0, %p1 : memref<4xf32>, memref<2xf32>) tag #t
  // expected-error @+1 {{U1: has a part that does not lie where the source does}}
  %u = sched.update %v#0 with %v#1 : memref<4xf32>, memref<2xf32>
  sched.return
}

// -----

sched.program @loop_l1_downwards ranks(1) {
  // expected-error @+1 {{L1: goes from 0 to -1}}
  sched.loop %i = 0 to -1 {
  }
  sched.return
}

// -----

sched.program @loop_l1_negative ranks(1) {
  // expected-error @+1 {{L1: goes from -6 to -3}}
  sched.loop %i = -6 to -3 {
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>
sched.program @loop_l2_no_yield ranks(1) {
  sched.lane compute
  %s = sched.slot in device tag #t : memref<4xf32>
  sched.loop %i = 0 to 3 iter(%v = %s) : memref<4xf32> {
    // expected-error @+1 {{C1: read #0 lies at no place that can be found}}
    %e = sched.launch "f"([#sched.read<0>]) on compute reads(%v : memref<4xf32>) tag #t
    sched.yield
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>
sched.program @buffer_in_loop ranks(1) {
  %a = sched.buffer 0 in device tag #t : memref<4xf32>
  sched.loop %i = 0 to 3 {
    // expected-error @+1 {{expects parent op 'sched.program'}}
    %b = sched.buffer 0 in device tag #t : memref<4xf32>
  }
  sched.return
}

// -----

sched.program @arena_in_loop ranks(1) {
  sched.arena device bytes(4096)
  sched.loop %i = 0 to 3 {
    // expected-error @+1 {{expects parent op 'sched.program'}}
    sched.arena device bytes(64)
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>
sched.program @buffer_b2_number ranks(1) {
  // expected-error @+1 {{whose maximum value is 2147483647}}
  %a = sched.buffer 4294967296 in device tag #t : memref<4xf32>
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>
sched.program @view_v1_bytes ranks(1) {
  %s = sched.slot in device tag #t : memref<4xf32>
  // expected-error @+1 {{has more than 2^60 bytes}}
  %v = sched.view %s[0] : memref<4xf32> to memref<4611686018427387904xf32>
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>
sched.program @view_v1_strided ranks(1) {
  %s = sched.slot in device tag #t : memref<4xf32>
  // expected-error @+1 {{must be a static, contiguous memref of numbers}}
  %v = sched.view %s[0] : memref<4xf32> to memref<1xf32, strided<[100], offset: 7>>
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>
sched.program @cell_c1_overflow ranks(1) {
  sched.lane compute
  %t = sched.table dense<1> : tensor<1x1xi64> as memref<1x1xi64>
  sched.loop %i = 0 to 9223372036854775807 {
    // expected-error @+1 {{C1: takes rows 5 ... 9223372036854775807 of a table}}
    %e = sched.launch "f"([#sched.cell<0, 5, 0>]) on compute tables(%t : memref<1x1xi64>) tag #t
  }
  sched.return
}

// -----

sched.program @foreign_p4 ranks(1) {
  // expected-error @+1 {{P4: stands in a program, and no checker knows what it does}}
  %c = arith.constant 0 : index
  sched.return
}

// -----

// expected-error @+1 {{F1: stands in no program}}
"sched.fence"() : () -> ()

// -----

#t = #sched.tag<"op", dense, forward>
sched.program @rows_c1_number ranks(1) {
  sched.lane compute
  %h = sched.slot in host tag #t : memref<64xi8>
  // expected-error @+1 {{C1: names an iteration that is no number: #sched.null}}
  %e = sched.launch "f"([#sched.rows<0, #sched.null>]) on compute tables(%h : memref<64xi8>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>
sched.program @rows_c1_cell ranks(1) {
  sched.lane compute
  %h = sched.slot in host tag #t : memref<64xi8>
  %n = sched.table dense<1> : tensor<1x1xi64> as memref<1x1xi64>
  // expected-error @+1 {{C1: takes rows 3 ... 3 of a table}}
  %e = sched.launch "f"([#sched.rows<0, #sched.cell<1, 3, 0>>]) on compute tables(%h, %n : memref<64xi8>, memref<1x1xi64>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>
sched.program @loop_l5_call ranks(1) {
  sched.lane compute
  %h = sched.slot in host tag #t : memref<64xi8>
  %s = sched.slot in device tag #t : memref<4xf32>
  sched.loop %i = 0 to 3 until(%h : memref<64xi8>, 1) {
    %e0 = sched.launch "f"([#sched.table<0>]) on compute tables(%h : memref<64xi8>) tag #t
    // expected-error @+1 {{L5: stands in a loop that ends with the iterations of a plan, and is no call by that plan}}
    %e1, %v = sched.launch "g"([#sched.write<0>]) on compute writes(%s : memref<4xf32>) tag #t
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>
sched.program @loop_l5_event ranks(1) {
  sched.lane compute
  %h = sched.slot in host tag #t : memref<64xi8>
  %none = sched.no_event
  // expected-error @+1 {{L5: ends with the iterations of a plan, and event #1, of an earlier iteration than the last, is used behind it}}
  %r:2 = sched.loop %i = 0 to 3 until(%h : memref<64xi8>, 1) iter(%a = %none, %b = %none) : !sched.event, !sched.event {
    %e = sched.launch "f"([#sched.table<0>]) on compute tables(%h : memref<64xi8>) tag #t
    sched.yield %e, %a : !sched.event, !sched.event
  }
  %e = sched.launch "f"([]) on compute waits(%r#1) tag #t
  sched.return
}

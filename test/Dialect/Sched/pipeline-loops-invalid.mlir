// RUN: plateau-opt %s --sched-pipeline-loops --split-input-file --verify-diagnostics

#t = #sched.tag<"op", dense, forward>

sched.program @no_stage ranks(1) {
  sched.lane compute
  %s = sched.slot in device tag #t : memref<4xf32>
  sched.loop %i = 0 to 4 in_flight(2) {
    // expected-error @below {{has no stage, and stands in a loop that overlaps 2 iterations by stages: give it one, or the whole loop by sched-split-stages}}
    %e, %v = sched.launch "f"([]) on compute writes(%s : memref<4xf32>) tag #t
  }
  sched.return
}

// -----

sched.program @loop_inside ranks(1) {
  sched.loop %i = 0 to 4 in_flight(2) {
    // expected-error @below {{stands in a loop that is to overlap 2 iterations: only a loop without loops inside can}}
    sched.loop %j = 0 to 1 in_flight(2) {
    }
  }
  sched.return
}

// -----

sched.program @too_many ranks(1) {
  // expected-error @below {{is to overlap 4097 iterations: at most 4096 can}}
  sched.loop %i = 0 to 4 in_flight(4097) {
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

sched.program @too_high ranks(1) {
  sched.lane compute
  %s = sched.slot in device tag #t : memref<4xf32>
  sched.loop %i = 0 to 4 in_flight(2) {
    // expected-error @below {{is in stage 4097: stages are numbered 0 ... 4096}}
    %e, %v = sched.launch "f"([]) on compute stage 4097 writes(%s : memref<4xf32>) tag #t
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

sched.program @one_stage ranks(1) {
  sched.lane compute
  // expected-remark @below {{all calls are in one stage, so in_flight(2) overlaps nothing}}
  sched.loop %i = 0 to 4 in_flight(2) {
    %s = sched.slot in device tag #t : memref<4xf32>
    %e, %v = sched.launch "f"([]) on compute stage 0 writes(%s : memref<4xf32>) tag #t
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

sched.program @accumulator_in_two_stages ranks(1) {
  sched.lane compute
  // expected-note @below {{the memory that both use}}
  %acc = sched.slot in device tag #t : memref<4xf32>
  %e0, %zero = sched.launch "zero"([]) on compute writes(%acc : memref<4xf32>) tag #t
  %sum = sched.loop %i = 0 to 4 in_flight(2) iter(%a = %zero) : memref<4xf32> {
    // expected-error @below {{writes in stage 0 what a call of stage 1 writes in an earlier iteration, and would come before it when 2 iterations overlap: put both in one stage, or give iterations a slot of their own in the loop's body}}
    %e1, %x = sched.launch "f"([]) on compute stage 0 reads(%a : memref<4xf32>) writes(%acc : memref<4xf32>) tag #t
    // expected-note @below {{the call of stage 1}}
    %e2, %y = sched.launch "g"([]) on compute stage 1 reads(%x : memref<4xf32>) writes(%acc : memref<4xf32>) tag #t
    sched.yield %y : memref<4xf32>
  }
  sched.return %sum : memref<4xf32>
}

// -----

#t = #sched.tag<"op", dense, forward>

// Iteration i of stage 1 reads the part that iteration i + 1 of stage 0 has overwritten by then.
sched.program @parts_that_meet ranks(1) {
  sched.lane compute
  // expected-note @below {{the memory that both use}}
  %out = sched.buffer 0 writable in device tag #t : memref<8xf32>
  %to = sched.buffer 1 writable in device tag #t : memref<4xf32>
  sched.loop %i = 0 to 4 in_flight(2) {
    %part = sched.view %out[0] index(%i) stride(4) : memref<8xf32> to memref<2xf32>
    // expected-error @below {{writes in stage 0 what a call of stage 1 reads in an earlier iteration, and would come before it when 2 iterations overlap: put both in one stage}}
    %e1, %x = sched.launch "f"([]) on compute stage 0 writes(%part : memref<2xf32>) tag #t
    %place = sched.view %to[0] : memref<4xf32> to memref<2xf32>
    // expected-note @below {{the call of stage 1}}
    %e2, %y = sched.launch "g"([]) on compute stage 1 reads(%x : memref<2xf32>) writes(%place : memref<2xf32>) tag #t
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

sched.program @wait_that_leads_back ranks(1) {
  sched.lane compute
  sched.lane h2d
  %none = sched.no_event
  %out = sched.buffer 0 writable in device tag #t : memref<4xf32>
  %done = sched.loop %i = 0 to 4 in_flight(2) iter(%e = %none) : !sched.event {
    %s = sched.slot in device tag #t : memref<4xf32>
    // expected-error @below {{waits in stage 0 for stage 1 of an earlier iteration, and would come before it when 2 iterations overlap: place waits after sched-pipeline-loops}}
    %e1, %x = sched.launch "f"([]) on h2d stage 0 waits(%e) writes(%s : memref<4xf32>) tag #t
    // expected-note @below {{the call of stage 1}}
    %e2, %y = sched.launch "g"([]) on compute stage 1 reads(%x : memref<4xf32>) writes(%out : memref<4xf32>) tag #t
    sched.yield %e2 : !sched.event
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

sched.program @values_that_change_places ranks(1) {
  sched.lane compute
  %none = sched.no_event
  // expected-error @below {{carried value #0 only changes places with other carried values, so that no call gives it}}
  sched.loop %i = 0 to 4 in_flight(2) iter(%a = %none, %b = %none) : !sched.event, !sched.event {
    %s = sched.slot in device tag #t : memref<4xf32>
    %e1, %x = sched.launch "f"([]) on compute stage 0 waits(%a) writes(%s : memref<4xf32>) tag #t
    %e2, %y = sched.launch "g"([]) on compute stage 1 reads(%x : memref<4xf32>) writes(%s : memref<4xf32>) tag #t
    sched.yield %b, %a : !sched.event, !sched.event
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

sched.program @planned ranks(1) {
  sched.lane compute
  sched.arena device bytes(16)
  sched.loop %i = 0 to 4 in_flight(2) {
    // expected-error @below {{has offset 0, and is used in a loop whose iterations are to overlap: plan arenas after sched-pipeline-loops}}
    %s = sched.slot in device offset 0 tag #t : memref<4xf32>
    %e1, %x = sched.launch "f"([]) on compute stage 0 writes(%s : memref<4xf32>) tag #t
    %e2, %y = sched.launch "g"([]) on compute stage 1 reads(%x : memref<4xf32>) writes(%s : memref<4xf32>) tag #t
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

sched.program @ring_in_body ranks(1) {
  sched.lane compute
  sched.loop %i = 0 to 4 in_flight(2) {
    // expected-error @below {{has a ring of 2 in the body of a loop with in_flight, where each iteration has one place and sched-pipeline-loops makes the ring}}
    %s = sched.slot in device ring 2 tag #t : memref<4xf32>
    %p = sched.view %s[0] index(%i) ring(0) : memref<4xf32> to memref<4xf32>
    %e1, %x = sched.launch "f"([]) on compute stage 0 writes(%p : memref<4xf32>) tag #t
    %e2, %y = sched.launch "g"([]) on compute stage 1 reads(%x : memref<4xf32>) writes(%p : memref<4xf32>) tag #t
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

sched.program @rows_of_the_body ranks(1) {
  sched.lane compute
  sched.loop %i = 0 to 4 in_flight(2) {
    %plan = sched.slot in device tag #t : memref<4xi32>
    %e0, %p = sched.launch "plan"([]) on compute stage 0 writes(%plan : memref<4xi32>) tag #t
    // expected-error @below {{has the rows of a plan that the loop's body computes, so that no ring of it can be made in front of the loop}}
    %s = sched.slot in device rows(%p : memref<4xi32>) tag #t : memref<4xf32>
    %e1, %x = sched.launch "f"([]) on compute stage 0 reads(%p : memref<4xi32>) writes(%s : memref<4xf32>) tag #t
    %e2, %y = sched.launch "g"([]) on compute stage 1 reads(%x : memref<4xf32>) writes(%s : memref<4xf32>) tag #t
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

sched.program @cells_in_a_loop_in_a_loop ranks(1) {
  sched.lane compute
  %table = sched.table dense<[[1], [2], [3], [4]]> : tensor<4x1xi64> as memref<4x1xi64>
  sched.loop %k = 0 to 2 {
    sched.loop %i = 0 to 4 in_flight(2) {
      %s = sched.slot in device tag #t : memref<4xf32>
      // expected-error @below {{takes a row of a table by the iteration of a loop that stands in another: what is overlapped before and after the inner loop would count with the outer one}}
      %e1, %x = sched.launch "f"([#sched.cell<0, 0, 0>]) on compute stage 0 tables(%table : memref<4x1xi64>) writes(%s : memref<4xf32>) tag #t
      %e2, %y = sched.launch "g"([]) on compute stage 1 reads(%x : memref<4xf32>) writes(%s : memref<4xf32>) tag #t
    }
  }
  sched.return
}

// RUN: plateau-opt %s --split-input-file --verify-diagnostics --mlir-print-op-on-diagnostic=false --pass-pipeline="builtin.module(sched.program(sched-verify-collectives))"

#t = #sched.tag<"op", dense, forward>
shard.grid @world(shape = 2)

// The ranks agreed on "b" first.
sched.program @co1 ranks(2) {
  sched.lane comm
  // expected-note @below {{collective "a" on comm, number 3}}
  %e0 = sched.collective "a"([]) over @world axes [0] number 3 on comm tag #t
  // expected-error @below {{CO1: collective "b" on comm, number 1, is issued behind number 3: the ranks agreed on the order of their numbers}}
  %e1 = sched.collective "b"([]) over @world axes [0] number 1 on comm tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>
shard.grid @world(shape = 2)

// A copy is a collective of its own.
sched.program @co1_copy ranks(2) {
  sched.lane comm
  // expected-note @below {{collective "a" on comm, number 0}}
  %e0 = sched.collective "a"([]) over @world axes [0] number 0 on comm tag #t
  sched.loop %i = 0 to 4 {
    // expected-error @below {{CO1: collective "a" on comm, number 0, is issued behind number 0}}
    %e1 = sched.collective "a"([]) over @world axes [0] number 0 on comm tag #t
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>
shard.grid @pairs(shape = 2x2)

// Rows and columns of a grid of 2 x 2: two ranks of a row could wait for each other round the square.
sched.program @co2 ranks(4) {
  sched.lane comm
  sched.lane compute
  // expected-note @below {{sched.collective "a" on comm}}
  %e0 = sched.collective "a"([]) over @pairs axes [0] number 0 on comm tag #t
  // expected-error @below {{CO2: sched.collective "b" on compute is not ordered with sched.collective "a" on comm: two ranks could enter them in different orders and wait for each other}}
  %e1 = sched.collective "b"([]) over @pairs axes [1] number 1 on compute tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>
shard.grid @pairs(shape = 2x1x2)

// Groups of one rank wait for nobody, and what is ordered cannot be entered the other way round.
sched.program @right ranks(4) {
  sched.lane comm
  sched.lane compute
  %e0 = sched.collective "a"([]) over @pairs axes [0] number 0 on comm tag #t
  %e1 = sched.collective "b"([]) over @pairs axes [1] number 1 on compute tag #t
  %e2 = sched.collective "b"([]) over @pairs axes [0, 2] number 2 on compute waits(%e0) tag #t
  sched.return
}

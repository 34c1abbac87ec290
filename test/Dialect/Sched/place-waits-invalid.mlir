// RUN: plateau-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(sched.program(sched-place-waits))'

#t = #sched.tag<"op", dense, forward>

sched.program @no_fence ranks(1) {
  sched.lane compute
  sched.lane host
  %t = sched.slot in host tag #t : memref<2x2xi64>
  // expected-note @below {{the table is written here}}
  %e1, %1 = sched.launch "fill"([]) on host writes(%t : memref<2x2xi64>) tag #t
  // expected-error @below {{reads a table when the host issues it, and no fence stands between it and the call that writes the table}}
  %e2 = sched.launch "use"([#sched.cell<0, 0, 0>]) on compute tables(%1 : memref<2x2xi64>) tag #t
  sched.return
}

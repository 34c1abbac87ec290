// RUN: plateau-opt %s --split-input-file --verify-diagnostics --mlir-print-op-on-diagnostic=false --pass-pipeline="builtin.module(sched.program(sched-verify-fences))"

#t = #sched.tag<"op", dense, forward>

// The fence covers what came before on that lane, and no more.
sched.program @fe1 ranks(1) {
  sched.lane compute
  sched.lane comm
  %s = sched.slot in host tag #t : memref<2x2xi64>
  %r = sched.slot in host tag #t : memref<2x2xi64>
  %e0, %v = sched.launch "f"([]) on compute writes(%s : memref<2x2xi64>) tag #t
  %e1 = sched.launch "f"([]) on compute tag #t
  // expected-note @below {{the writer, sched.launch "g" on compute}}
  %e2, %w = sched.launch "g"([]) on compute writes(%r : memref<2x2xi64>) tag #t
  sched.fence %e1
  // expected-error @below {{FE1: table #1 of sched.launch "h" on comm, bytes 0 ... 32 of the slot of op, is read by the host when it issues the call, and no fence before it covers its writer, sched.launch "g" on compute}}
  %e3 = sched.launch "h"([]) on comm waits(%e2) tables(%v, %w : memref<2x2xi64>, memref<2x2xi64>) tag #t
  sched.return
}

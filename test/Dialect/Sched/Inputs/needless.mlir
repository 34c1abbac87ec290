#t = #sched.tag<"op", dense, forward>
sched.program @needless ranks(1) {
  sched.lane compute
  sched.lane comm
  %s = sched.slot in device tag #t : memref<4xf32>
  %e0, %v = sched.launch "f"([]) on compute writes(%s : memref<4xf32>) tag #t
  // The first event is implied by the second.
  %e1 = sched.launch "g"([]) on comm tag #t
  %e2 = sched.launch "g"([]) on compute waits(%e1) tag #t
  %e3 = sched.launch "g"([]) on comm waits(%e0, %e2) reads(%v : memref<4xf32>) tag #t
  sched.return
}

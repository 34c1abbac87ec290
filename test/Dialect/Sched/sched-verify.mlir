// RUN: %python %S/Inputs/two-stage.py 1 9 >%t.1
// RUN: %python %S/Inputs/two-stage.py 3 9 >%t.3
// RUN: %python %S/Inputs/two-stage.py 3 9 --single-lane >%t.single
// RUN: plateau-opt %t.1 --pass-pipeline="builtin.module(sched.program(sched-verify{hbm-bytes=1280 host-bytes=192}))" -o /dev/null
// RUN: plateau-opt %t.3 --pass-pipeline="builtin.module(sched.program(sched-verify{unroll-loops}))" -o /dev/null
// RUN: plateau-opt %t.single --pass-pipeline="builtin.module(sched.program(sched-verify))" -o /dev/null
// RUN: plateau-opt %t.3 --pass-pipeline="builtin.module(sched.program(sched-verify-arenas,sched-verify-hazards,sched-verify-values,sched-verify-collectives,sched-verify-fences))" -o /dev/null

// The fences are counted.
// RUN: plateau-opt %t.3 --pass-pipeline="builtin.module(sched.program(sched-verify-fences{report-fences},sched-verify{report-fences}))" -o /dev/null 2>&1 | FileCheck %s
// CHECK-COUNT-2: remark: host_fences: 1

// All faults are told, whichever checker finds them.
// RUN: not plateau-opt %s --pass-pipeline="builtin.module(sched.program(sched-verify{host-bytes=0}))" -o /dev/null 2>&1 | FileCheck %s --check-prefix=ALL
// ALL-DAG: error: AR4:
// ALL-DAG: error: AR5:
// ALL-DAG: error: HZ1:
// ALL-DAG: error: HZ2:
// ALL-DAG: error: VA1:
// ALL-DAG: error: FE1:
// ALL-DAG: error: CO2:

#t = #sched.tag<"op", dense, forward>
shard.grid @world(shape = 2)
sched.program @wrong ranks(2) {
  sched.lane compute
  sched.lane comm
  sched.arena host bytes(128)
  %s = sched.slot in host offset 0 tag #t : memref<2x2xi64>
  %x = sched.slot in host offset 0 tag #t : memref<2x2xi64>
  %e0, %v = sched.collective "a"([]) over @world axes [0] number 0 on compute writes(%s : memref<2x2xi64>) tag #t
  %e1 = sched.collective "b"([]) over @world axes [0] number 1 on comm tables(%v : memref<2x2xi64>) tag #t
  %e2, %w = sched.launch "c"([]) on compute writes(%x : memref<2x2xi64>) tag #t
  %e3 = sched.launch "d"([]) on compute reads(%v : memref<2x2xi64>) tag #t
  sched.return
}

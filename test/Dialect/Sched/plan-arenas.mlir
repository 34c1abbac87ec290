// RUN: plateau-opt %s --split-input-file --pass-pipeline='builtin.module(sched.program(sched-plan-arenas))' | FileCheck %s
// RUN: plateau-opt %s --split-input-file --pass-pipeline='builtin.module(sched.program(sched-plan-arenas{work-per-slot=0}))' | FileCheck %s --check-prefix=GREEDY
// RUN: plateau-opt %s --split-input-file --pass-pipeline='builtin.module(sched.program(sched-plan-arenas))' --remarks-filter-analyse=sched-plan-arenas -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#t = #sched.tag<"op", dense, forward>

// A chain of three values: the third may lie where the first did, not where the second is read at the same call.
// CHECK-LABEL: sched.program @chain
// CHECK: sched.arena device bytes(80) lower_bound(80)
// REMARK: remark: {{.*}}ArenaBytes=80, BoundBytes=80, BoundIsExact=true, LiveBytes=32, Program=chain, SlotBytes=48, Slots=3,
sched.program @chain ranks(1) {
  sched.lane compute
  // CHECK: sched.slot in device offset [[A:(0|64)]] tag
  %a = sched.slot in device tag #t : memref<4xf32>
  // CHECK: sched.slot in device offset [[B:(0|64)]] tag
  %b = sched.slot in device tag #t : memref<4xf32>
  // CHECK: sched.slot in device offset [[A]] tag
  %c = sched.slot in device tag #t : memref<4xf32>
  %e0, %0 = sched.launch "f"([]) on compute writes(%a : memref<4xf32>) tag #t
  %e1, %1 = sched.launch "f"([]) on compute reads(%0 : memref<4xf32>) writes(%b : memref<4xf32>) tag #t
  %e2, %2 = sched.launch "f"([]) on compute reads(%1 : memref<4xf32>) writes(%c : memref<4xf32>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// Two lanes, each with one value after the other: nothing orders a value of one lane with one of the other.
// CHECK-LABEL: sched.program @lanes
// CHECK: sched.arena device bytes(1024) lower_bound(1024)
// REMARK: remark: {{.*}}ArenaBytes=1024, BoundBytes=1024, BoundIsExact=true, LiveBytes=512,
sched.program @lanes ranks(1) {
  sched.lane compute
  sched.lane comm
  %a = sched.slot in device tag #t : memref<128xf32>
  %b = sched.slot in device tag #t : memref<128xf32>
  %c = sched.slot in device tag #t : memref<128xf32>
  %d = sched.slot in device tag #t : memref<128xf32>
  %e0, %0 = sched.launch "f"([]) on compute writes(%a : memref<128xf32>) tag #t
  %e1, %1 = sched.launch "f"([]) on compute writes(%b : memref<128xf32>) tag #t
  %e2, %2 = sched.launch "f"([]) on comm writes(%c : memref<128xf32>) tag #t
  %e3, %3 = sched.launch "f"([]) on comm writes(%d : memref<128xf32>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// The same, and the other lane waits: each of its values comes after both of the first.
// CHECK-LABEL: sched.program @waits
// CHECK: sched.arena device bytes(512) lower_bound(512)
sched.program @waits ranks(1) {
  sched.lane compute
  sched.lane comm
  %a = sched.slot in device tag #t : memref<128xf32>
  %b = sched.slot in device tag #t : memref<128xf32>
  %c = sched.slot in device tag #t : memref<128xf32>
  %d = sched.slot in device tag #t : memref<128xf32>
  %e0, %0 = sched.launch "f"([]) on compute writes(%a : memref<128xf32>) tag #t
  %e1, %1 = sched.launch "f"([]) on compute writes(%b : memref<128xf32>) tag #t
  %e2, %2 = sched.launch "f"([]) on comm waits(%e1) writes(%c : memref<128xf32>) tag #t
  %e3, %3 = sched.launch "f"([]) on comm writes(%d : memref<128xf32>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// A loop: what each iteration writes anew lives in each iteration, the accumulator in all of them. %x and %z of an
// iteration are never used at once; the ring keeps its places through the loop.
// CHECK-LABEL: sched.program @loop
// CHECK: sched.arena device bytes(320) lower_bound(320)
// CHECK: sched.slot in device offset [[ACC:[0-9]+]] tag {{.*}} : memref<16xf32>
// CHECK: sched.slot in device ring 2 offset [[RING:[0-9]+]] tag
// CHECK: sched.slot in device offset [[X:[0-9]+]] tag
// CHECK: sched.slot in device offset [[Y:[0-9]+]] tag
// CHECK: sched.slot in device offset [[X]] tag
sched.program @loop ranks(1) {
  sched.lane compute
  %acc = sched.slot in device tag #t : memref<16xf32>
  %ring = sched.slot in device ring 2 tag #t : memref<16xf32>
  %x = sched.slot in device tag #t : memref<16xf32>
  %y = sched.slot in device tag #t : memref<16xf32>
  %z = sched.slot in device tag #t : memref<16xf32>
  %first = sched.view %ring[0] ring(0) : memref<16xf32> to memref<16xf32>
  %e0, %zero = sched.launch "f"([]) on compute writes(%acc : memref<16xf32>) tag #t
  %e1, %start = sched.launch "f"([]) on compute writes(%first : memref<16xf32>) tag #t
  %sum, %last = sched.loop %i = 0 to 100 iter(%a = %zero, %r = %start) : memref<16xf32>, memref<16xf32> {
    %next = sched.view %ring[0] index(%i) ring(1) : memref<16xf32> to memref<16xf32>
    %f0, %0 = sched.launch "f"([]) on compute reads(%r : memref<16xf32>) writes(%x : memref<16xf32>) tag #t
    %f1, %1 = sched.launch "f"([]) on compute reads(%0 : memref<16xf32>) writes(%y : memref<16xf32>) tag #t
    %f2, %2 = sched.launch "f"([]) on compute reads(%1 : memref<16xf32>) writes(%z : memref<16xf32>) tag #t
    %f3, %3 = sched.launch "f"([]) on compute reads(%2, %a : memref<16xf32>, memref<16xf32>) writes(%acc : memref<16xf32>) tag #t
    %f4, %4 = sched.launch "f"([]) on compute reads(%r : memref<16xf32>) writes(%next : memref<16xf32>) tag #t
    sched.yield %3, %4 : memref<16xf32>, memref<16xf32>
  }
  %e2 = sched.launch "f"([]) on compute reads(%sum : memref<16xf32>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// Spaces have arenas of their own, and a slot of no bytes takes none.
// CHECK-LABEL: sched.program @spaces
// CHECK-DAG: sched.arena device bytes(0) lower_bound(0)
// CHECK-DAG: sched.arena host bytes(12) lower_bound(12)
sched.program @spaces ranks(1) {
  sched.lane compute
  %a = sched.slot in device tag #t : memref<0xf32>
  %b = sched.slot in host tag #t : memref<3xf32>
  %e0, %0 = sched.launch "f"([]) on compute writes(%a : memref<0xf32>) tag #t
  %e1, %1 = sched.launch "f"([]) on compute writes(%b : memref<3xf32>) tag #t
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// Live at the fourth call: 256 + 256 + 320 bytes; at the fifth 256 + 256 + 320 + 320, the bound; at the last 384 + 320 + 64 + 320.
// Each greedy solver leaves a gap that nothing fits in; what ends above the bound, placed earlier, closes it.
// CHECK-LABEL: sched.program @fragments
// CHECK: sched.arena device bytes(1152) lower_bound(1152)
// GREEDY-LABEL: sched.program @fragments
// GREEDY: sched.arena device bytes(1280) lower_bound(1152)
// REMARK: remark: {{.*}}ArenaBytes=1152, BoundBytes=1152, BoundIsExact=true, LiveBytes=1152, Program=fragments, SlotBytes=1600, Slots=6, Solver=repair
sched.program @fragments ranks(1) {
  sched.lane compute
  %a = sched.slot in device tag #t : memref<64xf32>
  %b = sched.slot in device tag #t : memref<96xf32>
  %c = sched.slot in device tag #t : memref<64xf32>
  %d = sched.slot in device tag #t : memref<80xf32>
  %e = sched.slot in device tag #t : memref<16xf32>
  %f = sched.slot in device tag #t : memref<80xf32>
  %e0, %vc = sched.launch "f"([]) on compute writes(%c : memref<64xf32>) tag #t
  %e1 = sched.launch "f"([]) on compute tag #t
  %e2 = sched.launch "f"([]) on compute tag #t
  %e3, %va, %vf = sched.launch "f"([]) on compute writes(%a, %f : memref<64xf32>, memref<80xf32>) tag #t
  %e4, %vd = sched.launch "f"([]) on compute reads(%va, %vc : memref<64xf32>, memref<64xf32>) writes(%d : memref<80xf32>) tag #t
  %e5 = sched.launch "f"([]) on compute tag #t
  %e6, %vb, %ve = sched.launch "f"([]) on compute reads(%vd, %vf : memref<80xf32>, memref<80xf32>) writes(%b, %e : memref<96xf32>, memref<16xf32>) tag #t
  sched.return
}

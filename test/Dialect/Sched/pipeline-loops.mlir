// RUN: plateau-opt %S/Inputs/two-stage.mlir --sched-pipeline-loops | FileCheck %s --check-prefix=TWO
// RUN: plateau-opt %S/Inputs/two-stage.mlir --sched-pipeline-loops --remarks-filter-passed=sched-pipeline-loops -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: plateau-opt %s --sched-pipeline-loops --split-input-file | FileCheck %s

// 256 bytes come in and stay one iteration longer; 128 are made and used in one stage.
// REMARK: remark: [Passed] overlap | Category:sched-pipeline-loops | BytesAfter=640, BytesBefore=384, InFlight=2, Iterations=5

// Planned and checked, for 1 to 4 iterations in flight: the accumulator of 64 bytes, what comes in of 256 D bytes, what is made of 128.
// DEFINE: %{flight} = 1
// DEFINE: %{planned} = sed 's/in_flight(2)/in_flight(%{flight})/' %S/Inputs/two-stage.mlir | plateau-opt \
// DEFINE:   --pass-pipeline='builtin.module(sched.program(sched-pipeline-loops,sched-place-waits,sched-elide-waits,sched-plan-arenas,sched-verify))'
// RUN: %{planned} | FileCheck %s --check-prefix=FLIGHT1
// REDEFINE: %{flight} = 2
// RUN: %{planned} | FileCheck %s --check-prefix=FLIGHT2
// REDEFINE: %{flight} = 3
// RUN: %{planned} | FileCheck %s --check-prefix=FLIGHT3
// REDEFINE: %{flight} = 4
// RUN: %{planned} | FileCheck %s --check-prefix=FLIGHT4
// FLIGHT1: sched.arena device bytes(448)
// FLIGHT2: sched.arena device bytes(704)
// FLIGHT3: sched.arena device bytes(960)
// FLIGHT4: sched.arena device bytes(1216)

// Stage 1 runs one iteration behind stage 0; what is missing at the ends stands around the loop.

// TWO: %[[ROWS:.*]] = sched.buffer 0
// TWO: %[[OUT:.*]] = sched.buffer 1
// TWO: %[[ACC:.*]] = sched.slot in device tag #{{.*}} : memref<16xf32>
// TWO: %{{.*}}, %[[ZERO:.*]] = sched.launch "plr_zero"
// TWO: %[[IN:.*]] = sched.slot in device ring 2 tag #{{.*}} : memref<64xf32>
// TWO: %[[MADE:.*]] = sched.slot in device tag #{{.*}} : memref<32xf32>
// TWO: %[[ROW:.*]] = sched.view %[[ROWS]][0] : memref<5x64xf32> to memref<64xf32>
// TWO: %[[PLACE:.*]] = sched.view %[[IN]][0] ring(0) :
// TWO: %{{.*}}, %[[FIRST:.*]] = sched.copy on h2d reads(%[[ROW]] : memref<64xf32>) writes(%[[PLACE]] : memref<64xf32>)
// TWO: %[[LOOP:.*]]:2 = sched.loop %[[T:.*]] = 1 to 5 iter(%[[X:.*]] = %[[FIRST]], %[[A:.*]] = %[[ZERO]]) : memref<64xf32>, memref<16xf32> {
// TWO:   %[[ROW:.*]] = sched.view %[[ROWS]][0] index(%[[T]]) stride(256) :
// TWO:   %[[PLACE:.*]] = sched.view %[[IN]][0] index(%[[T]]) ring(0) :
// TWO:   %{{.*}}, %[[NEXT:.*]] = sched.copy on h2d reads(%[[ROW]] : memref<64xf32>) writes(%[[PLACE]] : memref<64xf32>)
// TWO:   %{{.*}}, %[[Y:.*]] = sched.launch "halve"([#sched.cell<0, -1, 0>, {{.*}}]) on compute reads(%[[X]] : memref<64xf32>) {{.*}} writes(%[[MADE]] :
// TWO:   %{{.*}}, %[[SUM:.*]] = sched.launch "add"([#sched.cell<0, -1, 0>, #sched.cell<0, -1, 1>, {{.*}}]) on compute reads(%[[A]], %[[Y]] : {{.*}}) {{.*}} writes(%[[ACC]] :
// TWO:   %[[PART:.*]] = sched.view %[[OUT]][0] index(%[[T]]) stride(128) :
// TWO:   sched.copy on compute reads(%[[Y]] : memref<32xf32>) writes(%[[PART]] : memref<32xf32>)
// TWO:   sched.yield %[[NEXT]], %[[SUM]] :
// TWO: }
// TWO: %{{.*}}, %[[Y:.*]] = sched.launch "halve"([#sched.cell<0, 4, 0>, {{.*}}]) on compute reads(%[[LOOP]]#0 :
// TWO: %{{.*}}, %[[SUM:.*]] = sched.launch "add"([#sched.cell<0, 4, 0>, #sched.cell<0, 4, 1>, {{.*}}]) on compute reads(%[[LOOP]]#1, %[[Y]] :
// TWO: %[[PART:.*]] = sched.view %[[OUT]][640] :
// TWO: sched.copy on compute reads(%[[Y]] : memref<32xf32>) writes(%[[PART]] : memref<32xf32>)
// TWO: sched.copy on compute reads(%[[SUM]] :

#t = #sched.tag<"op", dense, forward>

// Three stages, four iterations in flight: delays 0, 2, 3. The first slot has 2 - 0 + 1 places, the second 3 - 2 + 1.
// A value that waits two times is carried twice, an event as well.

// CHECK-LABEL: sched.program @three_stages
sched.program @three_stages ranks(1) {
  sched.lane compute
  sched.lane comm
  sched.lane h2d
  %in = sched.buffer 0 in device tag #t : memref<8x16xf32>
  %out = sched.buffer 1 writable in device tag #t : memref<8x16xf32>
  // CHECK: %[[A:.*]] = sched.slot in device ring 3
  // CHECK: %[[B:.*]] = sched.slot in device ring 2
  // CHECK: sched.copy on h2d
  // CHECK: sched.copy on h2d
  // CHECK: sched.copy on h2d
  // CHECK: sched.launch "f"
  // CHECK: %[[LOOP:.*]]:5 = sched.loop %[[T:.*]] = 3 to 8 iter(%[[E2:.*]] = {{.*}}, %[[E1:.*]] = {{.*}}, %[[A2:.*]] = {{.*}}, %[[A1:.*]] = {{.*}}, %[[B1:.*]] = {{.*}}) : !sched.event, !sched.event, memref<16xf32>, memref<16xf32>, memref<16xf32> {
  sched.loop %i = 0 to 8 in_flight(4) {
    %a = sched.slot in device tag #t : memref<16xf32>
    %b = sched.slot in device tag #t : memref<16xf32>
    %row = sched.view %in[0] index(%i) stride(64) : memref<8x16xf32> to memref<16xf32>
    // CHECK: %[[PA:.*]] = sched.view %[[A]][0] index(%[[T]]) ring(0) :
    // CHECK: %[[E:.*]], %[[X:.*]] = sched.copy on h2d reads({{.*}}) writes(%[[PA]] :
    %e0, %x = sched.copy on h2d stage 0 reads(%row : memref<16xf32>) writes(%a : memref<16xf32>) tag #t
    // CHECK: %[[PB:.*]] = sched.view %[[B]][0] index(%[[T]]) ring(0) :
    // CHECK: %{{.*}}, %[[Y:.*]] = sched.launch "f"{{.*}} waits(%[[E2]]) reads(%[[A2]] : memref<16xf32>) writes(%[[PB]] :
    %e1, %y = sched.launch "f"([]) on compute stage 1 waits(%e0) reads(%x : memref<16xf32>) writes(%b : memref<16xf32>) tag #t
    // CHECK: %[[PO:.*]] = sched.view %{{.*}}[-192] index(%[[T]]) stride(64) :
    // CHECK: sched.copy on comm reads(%[[B1]] : memref<16xf32>) writes(%[[PO]] :
    %place = sched.view %out[0] index(%i) stride(64) : memref<8x16xf32> to memref<16xf32>
    %e2, %z = sched.copy on comm stage 2 reads(%y : memref<16xf32>) writes(%place : memref<16xf32>) tag #t
    // CHECK: sched.yield %[[E1]], %[[E]], %[[A1]], %[[X]], %[[Y]] :
  }
  // CHECK-COUNT-2: sched.launch "f"
  // CHECK-NOT: sched.launch "f"
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// Fewer iterations than are in flight: no loop, and a place for each iteration, number i mod 2.

// CHECK-LABEL: sched.program @short
sched.program @short ranks(1) {
  sched.lane compute
  %out = sched.buffer 0 writable in device tag #t : memref<4x16xf32>
  // CHECK: %[[A:.*]] = sched.slot in device ring 2
  // CHECK-NOT: sched.loop
  // CHECK: sched.view %[[A]][0] ring(1)
  // CHECK: "make"([#sched.cell<0, 1, 0>])
  // CHECK: sched.view %[[A]][0] ring(0)
  // CHECK: "make"([#sched.cell<0, 2, 0>])
  // CHECK: sched.view %{{.*}}[64] :
  // CHECK: sched.copy
  // CHECK: sched.view %{{.*}}[128] :
  // CHECK: sched.copy
  %table = sched.table dense<[[1], [2], [3]]> : tensor<3x1xi64> as memref<3x1xi64>
  sched.loop %i = 1 to 3 in_flight(4) {
    %a = sched.slot in device tag #t : memref<16xf32>
    %e0, %x = sched.launch "make"([#sched.cell<0, 0, 0>]) on compute stage 0 tables(%table : memref<3x1xi64>) writes(%a : memref<16xf32>) tag #t
    %place = sched.view %out[0] index(%i) stride(64) : memref<4x16xf32> to memref<16xf32>
    %e1, %y = sched.copy on compute stage 1 reads(%x : memref<16xf32>) writes(%place : memref<16xf32>) tag #t
  }
  // CHECK: sched.return
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// No iteration: what is carried comes out, and no slot is left.

// CHECK-LABEL: sched.program @no_iteration
sched.program @no_iteration ranks(1) {
  sched.lane compute
  // CHECK: %[[ACC:.*]] = sched.slot
  %acc = sched.slot in device tag #t : memref<16xf32>
  // CHECK: %{{.*}}, %[[ZERO:.*]] = sched.launch
  %e0, %zero = sched.launch "zero"([]) on compute writes(%acc : memref<16xf32>) tag #t
  %sum = sched.loop %i = 0 to 0 in_flight(2) iter(%s = %zero) : memref<16xf32> {
    %a = sched.slot in device tag #t : memref<16xf32>
    %e1, %x = sched.launch "make"([]) on compute stage 0 writes(%a : memref<16xf32>) tag #t
    %e2, %next = sched.launch "add"([]) on compute stage 1 reads(%s, %x : memref<16xf32>, memref<16xf32>) writes(%acc : memref<16xf32>) tag #t
    sched.yield %next : memref<16xf32>
  }
  // CHECK-NEXT: sched.return %[[ZERO]]
  sched.return %sum : memref<16xf32>
}

// -----

#t = #sched.tag<"op", dense, forward>

// One in flight: slots move out of the loop, and stages go. A loop that asks for nothing stays as it is.

// CHECK-LABEL: sched.program @one
sched.program @one ranks(1) {
  sched.lane compute
  %out = sched.buffer 0 writable in device tag #t : memref<16xf32>
  // CHECK: %[[A:.*]] = sched.slot in device tag
  // CHECK-NEXT: sched.loop %{{.*}} = 0 to 8 {
  // CHECK-NEXT: sched.launch "make"([]) on compute writes(%[[A]] :
  // CHECK-NEXT: sched.copy on compute reads
  sched.loop %i = 0 to 8 in_flight(1) {
    %a = sched.slot in device tag #t : memref<16xf32>
    %e0, %x = sched.launch "make"([]) on compute stage 0 writes(%a : memref<16xf32>) tag #t
    %e1, %y = sched.copy on compute stage 1 reads(%x : memref<16xf32>) writes(%out : memref<16xf32>) tag #t
  }
  // CHECK: sched.loop %{{.*}} = 0 to 8 {
  // CHECK-NEXT: sched.slot
  // CHECK-NEXT: sched.launch "make"([]) on compute stage 0
  sched.loop %i = 0 to 8 {
    %a = sched.slot in device tag #t : memref<16xf32>
    %e0, %x = sched.launch "make"([]) on compute stage 0 writes(%a : memref<16xf32>) tag #t
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// A slot outside that the loop alone uses is an iteration's as well. Inside another loop, views by the outer counter stay.

// CHECK-LABEL: sched.program @nested
sched.program @nested ranks(1) {
  sched.lane compute
  sched.lane comm
  %in = sched.buffer 0 in device tag #t : memref<32xf32>
  %out = sched.buffer 1 writable in device tag #t : memref<32xf32>
  // CHECK: %[[A:.*]] = sched.slot in device ring 2
  %a = sched.slot in device tag #t : memref<16xf32>
  // CHECK: sched.loop %[[K:.*]] = 0 to 2 {
  sched.loop %k = 0 to 2 {
    // CHECK: %[[P:.*]] = sched.view %[[A]][0] ring(0) :
    // CHECK: sched.view %[[P]][0] index(%[[K]]) stride(32) :
    // CHECK: sched.loop %[[T:.*]] = 1 to 4
    // CHECK: %[[P:.*]] = sched.view %[[A]][0] index(%[[T]]) ring(0) :
    // CHECK: sched.view %[[P]][0] index(%[[K]]) stride(32) :
    sched.loop %i = 0 to 4 in_flight(2) {
      %part = sched.view %a[0] index(%k) stride(32) : memref<16xf32> to memref<8xf32>
      %row = sched.view %in[0] index(%i) stride(32) : memref<32xf32> to memref<8xf32>
      %e0, %x = sched.copy on comm stage 0 reads(%row : memref<8xf32>) writes(%part : memref<8xf32>) tag #t
      %to = sched.view %out[0] index(%i) stride(32) : memref<32xf32> to memref<8xf32>
      %e1, %y = sched.copy on compute stage 1 reads(%x : memref<8xf32>) writes(%to : memref<8xf32>) tag #t
    }
  }
  sched.return
}

// -----

#t = #sched.tag<"op", dense, forward>

// Copies of a collective are collectives of their own, numbered in the order in which they now stand.

shard.grid @world(shape = 2)
// CHECK-LABEL: sched.program @collectives
sched.program @collectives ranks(2) {
  sched.lane compute
  sched.lane comm
  %in = sched.buffer 0 in device tag #t : memref<4x16xf32>
  %acc = sched.buffer 1 writable in device tag #t : memref<16xf32>
  // CHECK: sched.collective "all_gather"{{.*}} number 0 on comm
  // CHECK: sched.loop
  // CHECK: sched.collective "all_gather"{{.*}} number 1 on comm
  // CHECK: sched.collective "all_reduce"{{.*}} number 2 on comm
  // CHECK: sched.collective "all_reduce"{{.*}} number 3 on comm
  // CHECK: sched.collective "last"{{.*}} number 4 on comm
  sched.loop %i = 0 to 4 in_flight(2) {
    %s = sched.slot in device tag #t : memref<16xf32>
    %row = sched.view %in[0] index(%i) stride(64) : memref<4x16xf32> to memref<16xf32>
    %e0, %x = sched.collective "all_gather"([]) over @world axes [0] number 0 on comm stage 0 reads(%row : memref<16xf32>) writes(%s : memref<16xf32>) tag #t
    %e1, %y = sched.collective "all_reduce"([]) over @world axes [0] number 1 on comm stage 1 reads(%x : memref<16xf32>) writes(%acc : memref<16xf32>) tag #t
  }
  %e2, %z = sched.collective "last"([]) over @world axes [0] number 2 on comm writes(%acc : memref<16xf32>) tag #t
  sched.return %z : memref<16xf32>
}

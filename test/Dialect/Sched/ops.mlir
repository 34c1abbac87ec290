// RUN: plateau-opt %s | FileCheck %s
// RUN: plateau-opt %s | plateau-opt | FileCheck %s
// RUN: plateau-opt %s --mlir-print-op-generic | plateau-opt | FileCheck %s
// RUN: plateau-opt %s --emit-bytecode | plateau-opt | FileCheck %s

shard.grid @world(shape = 2)

#copy = #sched.tag<"copy", staging, forward>
#sum = #sched.tag<"shard.all_reduce", gradients, backward>
#zero = #sched.tag<"linalg.fill", dense, forward, layer = 0>

// CHECK-LABEL: sched.program @step ranks(2) {
sched.program @step ranks(2) {
  // CHECK: sched.lane compute
  sched.lane compute
  sched.lane comm
  sched.lane h2d
  // CHECK: sched.arena device bytes(256)
  sched.arena device bytes(256)
  sched.arena host
  // CHECK: sched.buffer 0 in host tag #tag{{.*}} : memref<4x4xf32>
  %in = sched.buffer 0 in host tag #copy : memref<4x4xf32>
  // CHECK: sched.buffer 1 writable in device
  %out = sched.buffer 1 writable in device tag #sum : memref<4xf32>
  // CHECK: sched.table dense<{{.*}}> : tensor<2x2xi64> as memref<2x2xi64>
  %t = sched.table dense<[[4, 0], [3, 4]]> : tensor<2x2xi64> as memref<2x2xi64>
  // CHECK: sched.constant dense<1.000000e+00> : tensor<4xf32> as memref<4xf32>
  %one = sched.constant dense<1.0> : tensor<4xf32> as memref<4xf32>
  // CHECK: sched.slot in device ring 2 offset 64 tag #tag{{.*}} : memref<4xf32>
  %ring = sched.slot in device ring 2 offset 64 tag #copy : memref<4xf32>
  %acc = sched.slot in device offset 0 tag #zero : memref<4xf32>
  // CHECK: sched.launch "plr_zero"([#sched.write<0>, 16]) on compute writes(%{{.*}} : memref<4xf32>) tag
  %e0, %zero = sched.launch "plr_zero"([#sched.write<0>, 16 : i64]) on compute writes(%acc : memref<4xf32>) tag #zero
  %none = sched.no_event
  // CHECK: sched.loop %[[I:.*]] = 0 to 4 in_flight(2) iter(%[[A:.*]] = %{{.*}}, %{{.*}} = %{{.*}}) : memref<4xf32>, !sched.event {
  %sum, %done = sched.loop %i = 0 to 4 in_flight(2) iter(%a = %zero, %e = %none) : memref<4xf32>, !sched.event {
    // CHECK: sched.view %{{.*}}[0] index(%[[I]]) stride(16) : memref<4x4xf32> to memref<4xf32>
    %row = sched.view %in[0] index(%i) stride(16) : memref<4x4xf32> to memref<4xf32>
    // CHECK: sched.view %{{.*}}[0] index(%[[I]]) ring(1) : memref<4xf32> to memref<4xf32>
    %place = sched.view %ring[0] index(%i) ring(1) : memref<4xf32> to memref<4xf32>
    // CHECK: sched.copy on h2d stage 0 waits(%{{.*}}) reads(%{{.*}} : memref<4xf32>) writes(%{{.*}} : memref<4xf32>) tag
    %e1, %x = sched.copy on h2d stage 0 waits(%e) reads(%row : memref<4xf32>) writes(%place : memref<4xf32>) tag #copy
    // CHECK: sched.launch "add"([#sched.read<0>, #sched.pointers<[#sched.read<1>, #sched.null]>, #sched.write<0>, #sched.struct<[1, 2.000000e+00 : f32]>, array<i64: 1, 2>, @kernel])
    %e2, %next = sched.launch "add"([#sched.read<0>, #sched.pointers<[#sched.read<1>, #sched.null]>, #sched.write<0>, #sched.struct<[1 : i64, 2.0 : f32]>, array<i64: 1, 2>, @kernel])
      on compute stage 1 waits(%e1) reads(%a, %x : memref<4xf32>, memref<4xf32>) writes(%acc : memref<4xf32>) tag #zero
    sched.yield %next, %e2 : memref<4xf32>, !sched.event
  }
  // CHECK: sched.collective "plr_all_reduce"([#sched.group, 0 : i32, 4, #sched.read<0>, #sched.write<0>]) over @world axes [0] number 0 on comm
  %e3, %all = sched.collective "plr_all_reduce"([#sched.group, 0 : i32, 4 : i64, #sched.read<0>, #sched.write<0>]) over @world axes [0] number 0 on comm
    waits(%done) reads(%sum : memref<4xf32>) writes(%acc : memref<4xf32>) tag #sum
  // CHECK: sched.fence %{{.*}}
  sched.fence %e3
  %half = sched.view %out[0] : memref<4xf32> to memref<2xf32>
  %rest = sched.view %out[8] : memref<4xf32> to memref<2xf32>
  %from = sched.view %all[8] : memref<4xf32> to memref<2xf32>
  %e4, %r0 = sched.copy on compute reads(%from : memref<2xf32>) writes(%half : memref<2xf32>) tag #copy
  %e5, %r1 = sched.copy on compute reads(%from : memref<2xf32>) writes(%rest : memref<2xf32>) tag #copy
  // CHECK: sched.join %{{.*}} from(%{{.*}}, %{{.*}} : memref<2xf32>, memref<2xf32>) : memref<4xf32>
  %result = sched.join %out from(%r0, %r1 : memref<2xf32>, memref<2xf32>) : memref<4xf32>
  %e6, %r2 = sched.copy on compute reads(%r0 : memref<2xf32>) writes(%rest : memref<2xf32>) tag #copy
  // CHECK: sched.update %{{.*}} with %{{.*}} : memref<4xf32>, memref<2xf32>
  %again = sched.update %result with %r2 : memref<4xf32>, memref<2xf32>
  // CHECK: sched.return %{{.*}} : memref<4xf32>
  sched.return %again : memref<4xf32>
}

// A loop that ends with the iterations of a plan, whose calls take the rows of theirs.
// CHECK-LABEL: sched.program @iterations ranks(1)
sched.program @iterations ranks(1) {
  sched.lane compute
  %plan = sched.slot in host tag #zero : memref<64xi8>
  %t = sched.table dense<[[0], [1], [2]]> : tensor<3x1xi64> as memref<3x1xi64>
  // CHECK: sched.loop %{{.*}} = 0 to 3 in_flight(1) until(%[[PLAN:.*]] : memref<64xi8>, 1) {
  sched.loop %i = 0 to 3 in_flight(1) until(%plan : memref<64xi8>, 1) {
    // CHECK: sched.launch "rows"([#sched.rows<0, #sched.cell<1, 0, 0>>, #sched.rows<0, 2 : i64>, #sched.rows<0>])
    %e = sched.launch "rows"([#sched.rows<0, #sched.cell<1, 0, 0>>, #sched.rows<0, 2 : i64>, #sched.rows<0>]) on compute stage 0 tables(%plan, %t : memref<64xi8>, memref<3x1xi64>) tag #zero
  }
  sched.return
}

// RUN: plateau-opt %s -split-input-file -convert-moe-to-sched | FileCheck %s

// A plan is a table of the host space and one of the device space, filled by a collective; the host waits before it is used. Rows have slots for the
// most that any routing gives, 2 ranks · 8 tokens · 2 = 32, and name their plan, which says how many there are. Staging is scratch memory:
// 16 rows of 5 numbers are sent, 320 bytes; of 3 numbers 192. Collectives are numbered through; their group is by
// axes of a grid, which stays.
// CHECK: shard.grid @experts(shape = 3x2)
// CHECK-LABEL: sched.program @lifetimes ranks(6) {
// CHECK: %[[IDS:.*]] = sched.buffer 0 in device
// CHECK: %[[X:.*]] = sched.buffer 1 in device
// CHECK: %[[W:.*]] = sched.buffer 2 in device
// CHECK: %[[OUT:.*]] = sched.buffer 3 writable in device
// The tables of one iteration, 1152 bytes of the host in lines of 64 (plr_footprint_plan_host); 4 bytes for each of 16 slots on the device.
// CHECK-NEXT: %[[HOST:.*]] = sched.slot in host tag #[[PLAN_TAG:.*]] : memref<1152xi8>
// CHECK-NEXT: %[[DEVICE:.*]] = sched.slot in device tag #[[PLAN_TAG]] : memref<64xi8>
// CHECK-NEXT: %[[FILLED:.*]], %[[PLAN:.*]]:2 = sched.collective "plr_plan_fill"([#sched.group, #sched.struct<[8, 2, 4, 0, 1, 1, 0, 0, 1, 1, 1, 1]>, #sched.read<0>, #sched.write<0>, 1152, #sched.write<1>, 64]) over @experts axes [1] number 0 on compute reads(%[[IDS]] : memref<8x2xi32>) writes(%[[HOST]], %[[DEVICE]] : memref<1152xi8>, memref<64xi8>)
// CHECK-NEXT: sched.fence %[[FILLED]]
// CHECK-NEXT: %[[ROWS:.*]] = sched.slot in device rows(%[[PLAN]]#0 : memref<1152xi8>) tag #[[DISPATCH_TAG:.*]] : memref<32x5xf32>
// CHECK-NEXT: %[[STAGING:.*]] = sched.slot in device scratch tag #[[DISPATCH_TAG]] : memref<320xi8>
// CHECK-NEXT: %{{.*}}, %[[VROWS:.*]]:2 = sched.collective "plr_dispatch"([#sched.table<0>, 0, 0 : i32, 5, #sched.read<1>, #sched.null, #sched.write<0>, #sched.null, #sched.write<1>, #sched.bytes<1>]) over @experts axes [1] number 1 on compute reads(%[[PLAN]]#1, %[[X]] : {{.*}}) tables(%[[PLAN]]#0 : {{.*}}) writes(%[[ROWS]], %[[STAGING]] :
// CHECK: %[[H:.*]] = sched.slot in device rows(%[[PLAN]]#0 : memref<1152xi8>) tag #{{.*}} : memref<32x6xf32>
// CHECK: %{{.*}}, %[[VH:.*]]:2 = sched.launch "plr_grouped_gemm"([#sched.table<0>, 0, 1 : i32, 0 : i32, 6, 5, #sched.read<1>, #sched.read<2>, #sched.null, #sched.write<0>, #sched.write<1>, #sched.bytes<1>]) on compute reads(%[[PLAN]]#1, %[[VROWS]]#0, %[[W]] : {{.*}}) tables(%[[PLAN]]#0 : {{.*}}) writes(%[[H]],
// CHECK: %[[A:.*]] = sched.slot in device rows(%[[PLAN]]#0 : memref<1152xi8>) tag #{{.*}} : memref<32x3xf32>
// CHECK-NEXT: %{{.*}}, %[[VA:.*]] = sched.launch "plr_swiglu"([0 : i32, #sched.rows<0>, 3, #sched.read<0>, #sched.write<0>]) on compute reads(%[[VH]]#0 : {{.*}}) tables(%[[PLAN]]#0 : {{.*}}) writes(%[[A]] :
// CHECK: %[[Y:.*]] = sched.slot in device tag #[[COMBINE_TAG:.*]] : memref<8x3xf32>
// CHECK-NEXT: %[[BACK:.*]] = sched.slot in device scratch tag #[[COMBINE_TAG]] : memref<192xi8>
// CHECK-NEXT: %{{.*}}, %[[VY:.*]]:2 = sched.collective "plr_combine"([#sched.table<0>, 0, 0 : i32, 3, #sched.read<1>, #sched.null, #sched.write<0>, #sched.null, #sched.write<1>, #sched.bytes<1>]) over @experts axes [1] number 2 on compute reads(%[[PLAN]]#1, %[[VA]] : {{.*}}) tables(%[[PLAN]]#0 : {{.*}}) writes(%[[Y]], %[[BACK]] :
// CHECK-NEXT: sched.copy on compute reads(%[[VY]]#0 : memref<8x3xf32>) writes(%[[OUT]] :
// CHECK-NOT: sched.fence
!plan = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2>
shard.grid @experts(shape = 3x2)
func.func @lifetimes(%ids: tensor<8x2xi32>, %x: tensor<8x5xf32>, %w: tensor<2x6x5xf32>) -> tensor<8x3xf32> {
  %plan = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<8x5xf32> -> tensor<?x5xf32>) by %plan on @experts : !plan
  %h = moe.grouped_matmul %rows, %w transpose by %plan : (tensor<?x5xf32>, tensor<2x6x5xf32>, !plan) -> tensor<?x6xf32>
  %a = moe.swiglu %h : tensor<?x6xf32> -> tensor<?x3xf32>
  %y = moe.combine rows(%a : tensor<?x3xf32> -> tensor<8x3xf32>) by %plan on @experts : !plan
  return %y : tensor<8x3xf32>
}

// -----

// Values travel beside rows: both have slots of their own, and bf16 rows are of bf16. What is not sent is null, and a rank that is alone stages
// nothing.
// CHECK-LABEL: sched.program @pairs
// CHECK: %[[X:.*]] = sched.buffer 1 in device
// CHECK: %[[P:.*]] = sched.buffer 2 in device
// CHECK: %{{.*}}, %[[PLAN:.*]]:2 = sched.collective "plr_plan_fill"
// CHECK: %[[ROWS:.*]] = sched.slot in device rows(%[[PLAN]]#0 : {{.*}}) tag #{{.*}} : memref<16x5xbf16>
// CHECK-NEXT: %[[VALUES:.*]] = sched.slot in device rows(%[[PLAN]]#0 : {{.*}}) tag #{{.*}} : memref<16xf32>
// CHECK-NEXT: %{{.*}}, %[[SENT:.*]]:2 = sched.collective "plr_dispatch"([#sched.table<0>, 0, 1 : i32, 5, #sched.read<1>, #sched.read<2>, #sched.write<0>, #sched.write<1>, #sched.null, 0]) {{.*}} reads(%[[PLAN]]#1, %[[X]], %[[P]] : {{.*}}) tables(%[[PLAN]]#0 : {{.*}}) writes(%[[ROWS]], %[[VALUES]] :
// CHECK: %[[Y:.*]] = sched.slot in device tag #{{.*}} : memref<8x5xbf16>
// CHECK-NEXT: sched.collective "plr_combine"([#sched.table<0>, 0, 1 : i32, 5, #sched.read<1>, #sched.null, #sched.write<0>, #sched.null, #sched.null, 0]) {{.*}} reads(%[[PLAN]]#1, %[[SENT]]#0 : {{.*}}) tables(%[[PLAN]]#0 : {{.*}}) writes(%[[Y]] :
// CHECK: %[[Q:.*]] = sched.slot in device tag #{{.*}} : memref<8x2xf32>
// CHECK-NEXT: sched.collective "plr_combine"([#sched.table<0>, 0, 0 : i32, 0, #sched.null, #sched.read<1>, #sched.null, #sched.write<0>, #sched.null, 0]) {{.*}} reads(%[[PLAN]]#1, %[[SENT]]#1 : {{.*}}) tables(%[[PLAN]]#0 : {{.*}}) writes(%[[Q]] :
!plan = !moe.plan<experts = 4, ranks = 1, tokens = 8, top_k = 2>
shard.grid @experts(shape = 1)
func.func @pairs(%ids: tensor<8x2xi32>, %x: tensor<8x5xbf16>, %p: tensor<8x2xf32>) -> (tensor<8x5xbf16>, tensor<8x2xf32>) {
  %plan = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
  %rows, %values = moe.dispatch rows(%x : tensor<8x5xbf16> -> tensor<?x5xbf16>) values(%p : tensor<8x2xf32> -> tensor<?xf32>) by %plan on @experts : !plan
  %y = moe.combine rows(%rows : tensor<?x5xbf16> -> tensor<8x5xbf16>) by %plan on @experts : !plan
  %q = moe.combine values(%values : tensor<?xf32> -> tensor<8x2xf32>) by %plan on @experts : !plan
  return %y, %q : tensor<8x5xbf16>, tensor<8x2xf32>
}

// -----

// Each plan has tables of its own, and a fence.
// CHECK-LABEL: sched.program @plans
// CHECK: %[[AH:.*]] = sched.slot in host
// CHECK-NEXT: %[[AD:.*]] = sched.slot in device
// CHECK-NEXT: %[[A_FILLED:.*]], %[[A:.*]]:2 = sched.collective "plr_plan_fill"({{.*}} number 0 {{.*}} writes(%[[AH]], %[[AD]] :
// CHECK-NEXT: sched.fence %[[A_FILLED]]
// CHECK-NEXT: %[[BH:.*]] = sched.slot in host
// CHECK-NEXT: %[[BD:.*]] = sched.slot in device
// CHECK-NEXT: %[[B_FILLED:.*]], %[[B:.*]]:2 = sched.collective "plr_plan_fill"({{.*}} number 1 {{.*}} writes(%[[BH]], %[[BD]] :
// CHECK-NEXT: sched.fence %[[B_FILLED]]
// CHECK: sched.collective "plr_dispatch"({{.*}} number 2 {{.*}} reads(%[[A]]#1, {{.*}} tables(%[[A]]#0
// CHECK: sched.collective "plr_combine"({{.*}} number 3 {{.*}} reads(%[[A]]#1, {{.*}} tables(%[[A]]#0
// CHECK-NOT: %[[B]]
// CHECK: sched.return
!plan = !moe.plan<experts = 4, ranks = 1, tokens = 8, top_k = 2>
shard.grid @experts(shape = 1)
func.func @plans(%ids: tensor<8x2xi32>, %p: tensor<8x2xf32>) -> tensor<8x2xf32> {
  %plan = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
  %other = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
  %v = moe.dispatch values(%p : tensor<8x2xf32> -> tensor<?xf32>) by %plan on @experts : !plan
  %q = moe.combine values(%v : tensor<?xf32> -> tensor<8x2xf32>) by %plan on @experts : !plan
  return %q : tensor<8x2xf32>
}

// -----

// Scaled rows take the slot of rows that nobody reads again; otherwise they have their own.
// CHECK-LABEL: sched.program @scale
// CHECK: %[[ROWS:.*]] = sched.slot in device rows(
// CHECK: %[[F:.*]] = sched.slot in device rows(
// CHECK: %{{.*}}, %[[SENT:.*]]:2 = sched.collective "plr_dispatch"({{.*}} writes(%[[ROWS]], %[[F]] :
// CHECK: %[[Z:.*]] = sched.slot in device rows({{.*}} : memref<16x5xf32>
// CHECK: %{{.*}}, %[[VZ:.*]] = sched.launch "plr_scale_rows"([0 : i32, #sched.rows<0>, 5, #sched.read<0>, #sched.read<1>, #sched.write<0>]) on compute reads(%[[SENT]]#0, %[[SENT]]#1 : {{.*}} writes(%[[Z]] :
// CHECK-NEXT: %{{.*}}, %[[VW:.*]] = sched.launch "plr_scale_rows"({{.*}}) on compute reads(%[[SENT]]#0, %[[SENT]]#1 : {{.*}} writes(%[[ROWS]] :
// CHECK: sched.collective "plr_combine"({{.*}} reads(%{{.*}}, %[[VZ]] :
// CHECK: sched.collective "plr_combine"({{.*}} reads(%{{.*}}, %[[VW]] :
!plan = !moe.plan<experts = 4, ranks = 1, tokens = 8, top_k = 2>
shard.grid @experts(shape = 1)
func.func @scale(%ids: tensor<8x2xi32>, %x: tensor<8x5xf32>, %p: tensor<8x2xf32>) -> (tensor<8x5xf32>, tensor<8x5xf32>) {
  %plan = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
  %rows, %f = moe.dispatch rows(%x : tensor<8x5xf32> -> tensor<?x5xf32>) values(%p : tensor<8x2xf32> -> tensor<?xf32>) by %plan on @experts : !plan
  %z = moe.scale_rows %rows, %f : tensor<?x5xf32>, tensor<?xf32>
  %w = moe.scale_rows %rows, %f : tensor<?x5xf32>, tensor<?xf32>
  %y = moe.combine rows(%z : tensor<?x5xf32> -> tensor<8x5xf32>) by %plan on @experts : !plan
  %u = moe.combine rows(%w : tensor<?x5xf32> -> tensor<8x5xf32>) by %plan on @experts : !plan
  return %y, %u : tensor<8x5xf32>, tensor<8x5xf32>
}

// -----

// A gradient of experts is computed in its place in the group, and the sum over ranks is taken there: 30 numbers from byte 16 on. What a call
// reads is listed once.
// CHECK-LABEL: sched.program @in_group
// CHECK: %[[GROUP:.*]] = sched.buffer 3 writable in device
// CHECK-NOT: sched.copy
// CHECK: %{{.*}}, %[[ROWS:.*]] = sched.collective "plr_dispatch"({{.*}} axes [1] number 1 on compute
// CHECK: %{{.*}}, %[[DROWS:.*]] = sched.collective "plr_dispatch"({{.*}} axes [1] number 2 on compute
// CHECK: %[[PLACE:.*]] = sched.view %[[GROUP]][16] : memref<34xf32> to memref<2x3x5xf32>
// CHECK: %{{.*}}, %[[W:.*]]:2 = sched.launch "plr_grouped_gemm_grad"([#sched.table<0>, 0, 0 : i32, 0 : i32, 0 : i32, 3, 5, #sched.read<1>, #sched.read<2>, #sched.write<0>, #sched.null, #sched.write<1>, #sched.bytes<1>]) on compute reads(%{{.*}}, %[[DROWS]], %[[ROWS]] : {{.*}} writes(%[[PLACE]],
// CHECK: %[[AGAIN:.*]] = sched.view %[[GROUP]][16] : memref<34xf32> to memref<2x3x5xf32>
// CHECK: %{{.*}}, %[[S:.*]] = sched.collective "plr_all_reduce"([#sched.group, 0 : i32, 30, #sched.read<0>, #sched.write<0>]) over @experts axes [0] number 3 on compute reads(%[[W]]#0 : {{.*}}) writes(%[[AGAIN]] :
// CHECK: %[[FRONT:.*]] = sched.view %[[GROUP]][0] : memref<34xf32> to memref<4xf32>
// CHECK: %{{.*}}, %[[ZERO:.*]] = sched.launch "plr_zero"([#sched.write<0>, 16]) on compute writes(%[[FRONT]] :
// CHECK-NOT: sched.copy
// CHECK: %[[ALL:.*]] = sched.join %[[GROUP]] from(%[[ZERO]], %[[S]] :
// CHECK: sched.return %[[ALL]]
!plan = !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 2>
shard.grid @experts(shape = 2x1)
func.func @in_group(%ids: tensor<8x2xi32>, %x: tensor<8x5xf32>, %d: tensor<8x3xf32>, %group: tensor<34xf32> {moe.donated = 0 : i64}) -> tensor<34xf32> {
  %zero = arith.constant dense<0.0> : tensor<4xf32>
  %plan = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<8x5xf32> -> tensor<?x5xf32>) by %plan on @experts : !plan
  %drows = moe.dispatch rows(%d : tensor<8x3xf32> -> tensor<?x3xf32>) by %plan on @experts : !plan
  %w = moe.grouped_matmul_grad %drows, %rows by %plan : (tensor<?x3xf32>, tensor<?x5xf32>, !plan) -> tensor<2x3x5xf32>
  %s = shard.all_reduce %w on @experts grid_axes = [0] : tensor<2x3x5xf32> -> tensor<2x3x5xf32>
  %g = moe.pack %zero, %s into %group layout <[<<"zero", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 0, shape = [4]>, <<"w", decay = true, mean = 0.0 : f64, deviation = 0.02 : f64>, offset = 4, shape = [2, 3, 5]>]> : tensor<4xf32>, tensor<2x3x5xf32> into tensor<34xf32>
  return %g : tensor<34xf32>
}

// -----

// A sum takes the slot of a value that dies, and one of its own beside a value that is read again or is the caller's. A gather and a scatter have
// their own: 4 parts from one, and one of 4. The group is that of the axes, and the numbers are those of the function's order.
// CHECK-LABEL: sched.program @collectives ranks(4) {
// CHECK: %[[X:.*]] = sched.buffer 0 in device
// CHECK: %[[A:.*]] = sched.slot in device {{.*}} : memref<4x2xf32>
// CHECK-NEXT: %{{.*}}, %[[VA:.*]] = sched.collective "plr_all_reduce"([#sched.group, 0 : i32, 8, #sched.read<0>, #sched.write<0>]) over @grid axes [0, 1] number 0 on compute reads(%[[X]] : {{.*}}) writes(%[[A]] :
// CHECK-NEXT: %{{.*}}, %[[VC:.*]] = sched.collective "plr_all_reduce"({{.*}}) over @grid axes [0, 1] number 1 on compute reads(%[[VA]] : {{.*}}) writes(%[[A]] :
// CHECK-NEXT: %[[B:.*]] = sched.slot in device {{.*}} : memref<4x2xf32>
// CHECK-NEXT: %{{.*}}, %[[VB:.*]] = sched.collective "plr_all_reduce"({{.*}}) over @grid axes [0] number 2 on compute reads(%[[VC]] : {{.*}}) writes(%[[B]] :
// CHECK-NEXT: %[[G:.*]] = sched.slot in device {{.*}} : memref<16x2xf32>
// CHECK-NEXT: %{{.*}}, %[[VG:.*]] = sched.collective "plr_all_gather"([#sched.group, 0 : i32, 8, #sched.read<0>, #sched.write<0>]) over @grid axes [0, 1] number 3 on compute reads(%[[VC]] : {{.*}}) writes(%[[G]] :
// CHECK-NEXT: %[[S:.*]] = sched.slot in device {{.*}} : memref<1x2xf32>
// CHECK-NEXT: %{{.*}}, %[[VS:.*]] = sched.collective "plr_reduce_scatter"([#sched.group, 0 : i32, 2, #sched.read<0>, #sched.write<0>]) over @grid axes [0, 1] number 4 on compute reads(%[[VB]] : {{.*}}) writes(%[[S]] :
shard.grid @grid(shape = 2x2)
func.func @collectives(%x: tensor<4x2xf32>) -> (tensor<16x2xf32>, tensor<1x2xf32>) {
  %a = shard.all_reduce %x on @grid grid_axes = [0, 1] : tensor<4x2xf32> -> tensor<4x2xf32>
  %c = shard.all_reduce %a on @grid grid_axes = [0, 1] : tensor<4x2xf32> -> tensor<4x2xf32>
  %b = shard.all_reduce %c on @grid grid_axes = [0] : tensor<4x2xf32> -> tensor<4x2xf32>
  %g = shard.all_gather %c on @grid grid_axes = [0, 1] gather_axis = 0 : tensor<4x2xf32> -> tensor<16x2xf32>
  %s = shard.reduce_scatter %b on @grid grid_axes = [0, 1] scatter_axis = 0 : tensor<4x2xf32> -> tensor<1x2xf32>
  return %g, %s : tensor<16x2xf32>, tensor<1x2xf32>
}

// -----

// A gradient onto a value that dies takes its slot and reads it; onto one that is read again, a copy.
// CHECK-LABEL: sched.program @onto
// CHECK: %{{.*}}, %[[PLAN:.*]]:2 = sched.collective "plr_plan_fill"
// CHECK: %{{.*}}, %[[ROWS:.*]] = sched.collective "plr_dispatch"
// CHECK: %[[W:.*]] = sched.slot in device tag #{{.*}} : memref<2x5x5xf32>
// CHECK: %{{.*}}, %[[VW:.*]]:2 = sched.launch "plr_grouped_gemm_grad"([#sched.table<0>, 0, 0 : i32, {{.*}}, #sched.read<1>, #sched.read<1>, #sched.write<0>, {{.*}}]) on compute reads(%[[PLAN]]#1, %[[ROWS]] : {{.*}} writes(%[[W]],
// CHECK: %{{.*}}, %[[VV:.*]]:2 = sched.launch "plr_grouped_gemm_grad"([#sched.table<0>, 0, 1 : i32, {{.*}}, #sched.read<2>, #sched.read<2>, #sched.write<0>, {{.*}}]) on compute reads(%[[VW]]#0, %[[PLAN]]#1, %[[ROWS]] : {{.*}} writes(%[[W]],
// CHECK: %[[U:.*]] = sched.slot in device tag #{{.*}} : memref<2x5x5xf32>
// CHECK-NEXT: %{{.*}}, %[[COPIED:.*]] = sched.copy on compute reads(%[[VV]]#0 : {{.*}}) writes(%[[U]] :
// CHECK: %{{.*}}, %[[VU:.*]]:2 = sched.launch "plr_grouped_gemm_grad"([#sched.table<0>, 0, 1 : i32, {{.*}}]) on compute reads(%[[COPIED]], %[[PLAN]]#1, %[[ROWS]] : {{.*}} writes(%[[U]],
// CHECK: sched.copy on compute reads(%[[VV]]#0
// CHECK: sched.copy on compute reads(%[[VU]]#0
!plan = !moe.plan<experts = 2, ranks = 1, tokens = 8, top_k = 2>
shard.grid @experts(shape = 1)
func.func @onto(%ids: tensor<8x2xi32>, %x: tensor<8x5xf32>) -> (tensor<2x5x5xf32>, tensor<2x5x5xf32>) {
  %plan = moe.plan %ids on @experts : tensor<8x2xi32> -> !plan
  %rows = moe.dispatch rows(%x : tensor<8x5xf32> -> tensor<?x5xf32>) by %plan on @experts : !plan
  %w = moe.grouped_matmul_grad %rows, %rows by %plan : (tensor<?x5xf32>, tensor<?x5xf32>, !plan) -> tensor<2x5x5xf32>
  %v = moe.grouped_matmul_grad %rows, %rows by %plan onto %w : (tensor<?x5xf32>, tensor<?x5xf32>, !plan, tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %u = moe.grouped_matmul_grad %rows, %rows by %plan onto %v : (tensor<?x5xf32>, tensor<?x5xf32>, !plan, tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %v, %u : tensor<2x5x5xf32>, tensor<2x5x5xf32>
}

// -----

// The fields of a routing are a constant struct; the score is the runtime's number (sigmoid, 2). Results that nobody reads have slots too.
// CHECK-LABEL: sched.program @route
// CHECK: %[[L:.*]] = sched.buffer 0 in device
// CHECK: %[[B:.*]] = sched.buffer 1 in device
// CHECK: %[[D:.*]] = sched.buffer 2 in device
// CHECK: %[[IDS:.*]] = sched.slot in device {{.*}} : memref<8x3xi32>
// CHECK-NEXT: %[[W:.*]] = sched.slot in device {{.*}} : memref<8x3xf32>
// CHECK-NEXT: %[[COUNTS:.*]] = sched.slot in device {{.*}} : memref<6xi32>
// CHECK-NEXT: %{{.*}}, %[[V:.*]]:3 = sched.launch "plr_route"([#sched.struct<[6, 3, 3, 2, 2 : i32, 1 : i32, 2.500000e+00 : f32]>, 8, #sched.read<0>, #sched.read<1>, #sched.null, #sched.write<0>, #sched.write<1>, #sched.write<2>]) on compute reads(%[[L]], %[[B]] : {{.*}}) writes(%[[IDS]], %[[W]], %[[COUNTS]] :
// CHECK: sched.launch "plr_route_grad"([#sched.struct<[6, 3, 3, 2, 2 : i32, 1 : i32, 2.500000e+00 : f32]>, 8, #sched.read<0>, #sched.read<1>, #sched.read<2>, #sched.write<0>]) on compute reads(%[[D]], %[[L]], %[[V]]#0 :
// CHECK: sched.copy on compute reads(%[[V]]#2 : memref<6xi32>)
func.func @route(%l: tensor<8x6xf32>, %b: tensor<6xf32>, %d: tensor<8x3xf32>) -> (tensor<6xi32>, tensor<8x6xf32>) {
  %ids, %w, %counts = moe.route %l bias(%b) routing <top_k = 3, score = sigmoid, groups = 3, kept_groups = 2, normalize = true, scale = 2.5 : f32> : (tensor<8x6xf32>, tensor<6xf32>) -> (tensor<8x3xi32>, tensor<8x3xf32>, tensor<6xi32>)
  %dl = moe.route_grad %d, %l, %ids routing <top_k = 3, score = sigmoid, groups = 3, kept_groups = 2, normalize = true, scale = 2.5 : f32> : (tensor<8x3xf32>, tensor<8x6xf32>, tensor<8x3xi32>) -> tensor<8x6xf32>
  return %counts, %dl : tensor<6xi32>, tensor<8x6xf32>
}

// -----

// Rows of padding: the number of tokens is read when the step runs. There is no bias.
// CHECK-LABEL: sched.program @route_padded
// CHECK: %[[L:.*]] = sched.buffer 0 in device
// CHECK: %[[N:.*]] = sched.buffer 1 in device
// CHECK: sched.launch "plr_route"([#sched.struct<[4, 2, 1, 1, 0 : i32, 1 : i32, 1.000000e+00 : f32]>, 8, #sched.read<0>, #sched.null, #sched.read<1>, {{.*}}]) on compute reads(%[[L]], %[[N]] :
func.func @route_padded(%l: tensor<8x4xf32>, %n: tensor<i32>) -> tensor<4xi32> {
  %ids, %w, %counts = moe.route %l token_count(%n) routing <top_k = 2, score = softmax, groups = 1, kept_groups = 1, normalize = true, scale = 1.0 : f32> : (tensor<8x4xf32>, tensor<i32>) -> (tensor<8x2xi32>, tensor<8x2xf32>, tensor<4xi32>)
  return %counts : tensor<4xi32>
}

// -----

// Iterations: all calls of the loop take the number of theirs from one table of numbers, so the loop ends with the plan's. Slots have the
// capacity and name no plan; what is sent is staged for the tokens of one chunk, 4 of 2 rows of 16 + 4 bytes. Tokens come home in the place of the
// tensor that grows, and so do gradients, helpers' too.
// CHECK-LABEL: sched.program @iterations ranks(2) {
// CHECK: %{{.*}}, %[[PLAN:.*]]:2 = sched.collective "plr_plan_fill"([#sched.group, #sched.struct<[8, 2, 4, 1, 2, 2, 9, 11, 10, 3, 13, 10]>
// CHECK-NEXT: sched.fence
// CHECK: %[[HELPERS:.*]] = sched.slot in device tag #{{.*}} : memref<1x4x4xf32>
// CHECK-NEXT: %{{.*}}, %[[WH:.*]] = sched.collective "plr_migrate_experts"([#sched.table<0>, 0 : i32, 16, #sched.read<1>, #sched.write<0>]) {{.*}} reads(%[[PLAN]]#1, %{{.*}}) tables(%[[PLAN]]#0 : {{.*}}) writes(%[[HELPERS]] :
// CHECK: %[[NUMBERS:.*]] = sched.table dense<{{\[\[}}0], [1], [2], [3]]> : tensor<4x1xi64> as memref<4x1xi64>
// CHECK-NOT: sched.table
// CHECK: %[[DONE:.*]]:3 = sched.loop %{{.*}} = 0 to 4 in_flight(2) until(%[[PLAN]]#0 : {{.*}}, 1) iter(
// CHECK: %[[ROWS:.*]] = sched.slot in device tag #{{.*}} : memref<9x4xf32>
// CHECK-NEXT: %[[VALUES:.*]] = sched.slot in device tag #{{.*}} : memref<9xf32>
// CHECK-NEXT: %[[STAGING:.*]] = sched.slot in device scratch tag #{{.*}} : memref<192xi8>
// CHECK-NEXT: %{{.*}}, %[[SENT:.*]]:3 = sched.collective "plr_dispatch"([#sched.table<1>, #sched.cell<0, 0, 0>, 0 : i32, 4, {{.*}} stage 0 {{.*}} tables(%[[NUMBERS]], %[[PLAN]]#0 : {{.*}}) writes(%[[ROWS]], %[[VALUES]], %[[STAGING]] :
// CHECK: sched.launch "plr_grouped_gemm"([#sched.table<1>, #sched.cell<0, 0, 0>, 1 : i32, 0 : i32, 4, 4, #sched.read<1>, #sched.read<2>, #sched.read<3>, #sched.write<0>, {{.*}} stage 1
// CHECK: sched.launch "plr_scale_rows"([0 : i32, #sched.rows<1, #sched.cell<0, 0, 0>>, 4, {{.*}} stage 1
// CHECK: %{{.*}}, %[[GRADS:.*]]:3 = sched.launch "plr_grouped_gemm_grad"([#sched.table<1>, #sched.cell<0, 0, 0>, 1 : i32, {{.*}}, #sched.write<0>, #sched.write<1>, #sched.write<2>, #sched.bytes<2>])
// CHECK: sched.collective "plr_combine"([#sched.table<1>, #sched.cell<0, 0, 0>, 0 : i32, 4, {{.*}} stage 2
// CHECK: sched.collective "plr_return_expert_grads"([#sched.table<0>, 16, #sched.read<2>, #sched.write<0>, #sched.write<1>, 64]) {{.*}} reads(%[[DONE]]#1, %[[PLAN]]#1, %[[DONE]]#2 :
!chunked = !moe.plan<experts = 4, ranks = 2, tokens = 8, top_k = 2, helper_slots = 1, chunks = 2, leaves = 2, capacity = 9>
shard.grid @experts(shape = 2)
func.func @iterations(%x: tensor<8x4xf32>, %p: tensor<8x2xf32>, %ids: tensor<8x2xi32>, %w: tensor<2x4x4xf32>) -> (tensor<8x4xf32>, tensor<2x4x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %plan = moe.plan %ids balance <alpha = 11 over 10, min_rows = 3, threshold = 13 over 10> on @experts : tensor<8x2xi32> -> !chunked
  %wh = moe.migrate_experts %w by %plan on @experts : (tensor<2x4x4xf32>, !chunked) -> tensor<1x4x4xf32>
  %e0 = tensor.empty() : tensor<8x4xf32>
  %y0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<8x4xf32>) -> tensor<8x4xf32>
  %e1 = tensor.empty() : tensor<2x4x4xf32>
  %d0 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %e2 = tensor.empty() : tensor<1x4x4xf32>
  %h0 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  %r:3 = scf.for %i = %c0 to %c4 step %c1 iter_args(%y = %y0, %d = %d0, %h = %h0) -> (tensor<8x4xf32>, tensor<2x4x4xf32>, tensor<1x4x4xf32>) {
    %rows, %rp = moe.dispatch rows(%x : tensor<8x4xf32> -> tensor<?x4xf32>) values(%p : tensor<8x2xf32> -> tensor<?xf32>) by %plan at %i on @experts {moe.stage = 0} : !chunked
    %u = moe.grouped_matmul %rows, %w helpers(%wh) transpose by %plan at %i {moe.stage = 1} : (tensor<?x4xf32>, tensor<2x4x4xf32>, !chunked, tensor<1x4x4xf32>, index) -> tensor<?x4xf32>
    %z = moe.scale_rows %u, %rp {moe.stage = 1} : tensor<?x4xf32>, tensor<?xf32>
    %dn, %hn = moe.grouped_matmul_grad %z, %rows by %plan at %i onto %d, %h {moe.stage = 1} : (tensor<?x4xf32>, tensor<?x4xf32>, !chunked, tensor<2x4x4xf32>, tensor<1x4x4xf32>, index) -> (tensor<2x4x4xf32>, tensor<1x4x4xf32>)
    %yn = moe.combine rows(%z : tensor<?x4xf32> -> tensor<8x4xf32>) by %plan at %i into(%y : tensor<8x4xf32>) on @experts {moe.stage = 2} : !chunked
    scf.yield %yn, %dn, %hn : tensor<8x4xf32>, tensor<2x4x4xf32>, tensor<1x4x4xf32>
  } {moe.in_flight = 2}
  %sum = moe.return_expert_grads %r#1, %r#2 by %plan on @experts : tensor<2x4x4xf32>, tensor<1x4x4xf32>, !chunked
  return %r#0, %sum : tensor<8x4xf32>, tensor<2x4x4xf32>
}

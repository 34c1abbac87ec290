// A loop of two stages that overlaps two iterations: rows come by h2d, compute adds them up and writes what it makes of them
// to the parts of an output, behind a first part that is there before. The table says how many rows an iteration has, and where
// they begin.

#load = #sched.tag<"copy", staging, forward>
#sum = #sched.tag<"accumulate", dense, backward>
#out = #sched.tag<"argument out", external, forward>

sched.program @two_stage ranks(1) {
  sched.lane compute
  sched.lane h2d
  sched.arena device
  %rows = sched.buffer 0 in host tag #load : memref<5x64xf32>
  %out = sched.buffer 1 writable in device tag #out : memref<6x32xf32>
  %total = sched.buffer 2 writable in device tag #out : memref<16xf32>
  %table = sched.table dense<[[64, 0], [48, 64], [64, 112], [1, 176], [17, 177]]> : tensor<5x2xi64> as memref<5x2xi64>
  %acc = sched.slot in device tag #sum : memref<16xf32>
  %e0, %zero = sched.launch "plr_zero"([#sched.write<0>, 64 : i64]) on compute writes(%acc : memref<16xf32>) tag #sum
  %head = sched.view %out[0] : memref<6x32xf32> to memref<32xf32>
  %e6, %first = sched.launch "plr_zero"([#sched.write<0>, 128 : i64]) on compute writes(%head : memref<32xf32>) tag #out
  %sum, %last = sched.loop %i = 0 to 5 in_flight(2) iter(%a = %zero, %b = %first) : memref<16xf32>, memref<32xf32> {
    %in = sched.slot in device tag #load : memref<64xf32>
    %made = sched.slot in device tag #sum : memref<32xf32>
    %row = sched.view %rows[0] index(%i) stride(256) : memref<5x64xf32> to memref<64xf32>
    %e1, %x = sched.copy on h2d stage 0 reads(%row : memref<64xf32>) writes(%in : memref<64xf32>) tag #load
    %e2, %y = sched.launch "halve"([#sched.cell<0, 0, 0>, #sched.read<0>, #sched.write<0>]) on compute stage 1
      reads(%x : memref<64xf32>) tables(%table : memref<5x2xi64>) writes(%made : memref<32xf32>) tag #sum
    %e3, %next = sched.launch "add"([#sched.cell<0, 0, 0>, #sched.cell<0, 0, 1>, #sched.read<0>, #sched.read<1>, #sched.write<0>]) on compute stage 1
      reads(%a, %y : memref<16xf32>, memref<32xf32>) tables(%table : memref<5x2xi64>) writes(%acc : memref<16xf32>) tag #sum
    %part = sched.view %out[128] index(%i) stride(128) : memref<6x32xf32> to memref<32xf32>
    %e4, %o = sched.copy on compute stage 1 reads(%y : memref<32xf32>) writes(%part : memref<32xf32>) tag #out
    sched.yield %next, %o : memref<16xf32>, memref<32xf32>
  }
  %e5, %result = sched.copy on compute reads(%sum : memref<16xf32>) writes(%total : memref<16xf32>) tag #out
  %ends = sched.join %out from(%first, %last : memref<32xf32>, memref<32xf32>) : memref<6x32xf32>
  sched.return %result, %ends : memref<16xf32>, memref<6x32xf32>
}

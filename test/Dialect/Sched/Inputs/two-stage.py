"""Prints a program with a loop of two stages on two lanes, DEPTH iterations in flight: exchange, then sum.

usage: two-stage.py DEPTH ITERATIONS [--single-lane]

The sizes of each iteration are a table that is filled when the program runs, so there is a fence before the loop. Offsets
are planned by hand: %early is dead when the loop starts, and %late, behind it, lies where %early lay.
"""

import sys

depth, iterations = int(sys.argv[1]), int(sys.argv[2])
single = "--single-lane" in sys.argv
comm = "compute" if single else "comm"
d2h = "compute" if single else "d2h"
names = [f"%f{k}" for k in range(depth)]  # Oldest first.
# On one lane everything is ordered, and a wait would be implied.
wait = lambda event: "" if single else f"waits({event}) "

lanes = ["compute"] if single else ["compute", "comm", "d2h"]
print("shard.grid @world(shape = 2)")
print('#t = #sched.tag<"op", dense, forward>')
print("sched.program @step ranks(2) {")
for lane in lanes:
    print(f"  sched.lane {lane}")
ring_bytes = 128 * (depth - 1) + 128
acc, early = ring_bytes, ring_bytes + 64
print(f"  sched.arena device bytes({early + 64})")
print(f"  sched.arena host bytes({16 * iterations})")
print(f"""  %in = sched.buffer 0 in device tag #t : memref<32xf32>
  %out = sched.buffer 1 writable in device tag #t : memref<16xf32>
  %early = sched.slot in device offset {early} tag #t : memref<16xf32>
  %late = sched.slot in device offset {early} tag #t : memref<16xf32>
  %ring = sched.slot in device ring {depth} offset 0 tag #t : memref<32xf32>
  %acc = sched.slot in device offset {acc} tag #t : memref<16xf32>
  %sizes = sched.slot in host offset 0 tag #t : memref<{iterations}x2xi64>
  %counts = sched.buffer 2 in device tag #t : memref<{iterations}x2xi64>
  %none = sched.no_event
  %e0, %scaled = sched.launch "scale"([]) on compute reads(%in : memref<32xf32>) writes(%early : memref<16xf32>) tag #t
  %e1, %zero = sched.launch "sum"([]) on compute reads(%scaled : memref<16xf32>) writes(%acc : memref<16xf32>) tag #t
  %e2, %table = sched.copy on {d2h} reads(%counts : memref<{iterations}x2xi64>) writes(%sizes : memref<{iterations}x2xi64>) tag #t
  sched.fence %e2""")
inits = ", ".join([f"%a = %zero"] + [f"{name} = %none" for name in names])
types = ", ".join(["memref<16xf32>"] + ["!sched.event"] * depth)
results = ", ".join(["%sum"] + [f"%g{k}" for k in range(depth)])
print(f"""  {results} = sched.loop %i = 0 to {iterations} in_flight({depth}) iter({inits}) : {types} {{
    %place = sched.view %ring[0] index(%i) ring(0) : memref<32xf32> to memref<32xf32>
    %e3, %rows = sched.collective "exchange"([#sched.cell<0, 0, 0>]) over @world axes [0] number 0 on {comm} stage 0 {wait(names[0])}reads(%in : memref<32xf32>) tables(%table : memref<{iterations}x2xi64>) writes(%place : memref<32xf32>) tag #t
    %e4, %next = sched.launch "add"([#sched.cell<0, 0, 1>]) on compute stage 1 {wait("%e3")}reads(%a, %rows : memref<16xf32>, memref<32xf32>) tables(%table : memref<{iterations}x2xi64>) writes(%acc : memref<16xf32>) tag #t
    sched.yield {", ".join(["%next"] + names[1:] + ["%e4"])} : {types}
  }}
  %e5, %all = sched.collective "reduce"([]) over @world axes [0] number 1 on {comm} {wait(f"%g{depth - 1}")}reads(%sum : memref<16xf32>) writes(%late : memref<16xf32>) tag #t
  %half = sched.view %out[0] : memref<16xf32> to memref<8xf32>
  %rest = sched.view %out[32] : memref<16xf32> to memref<8xf32>
  %first = sched.view %all[0] : memref<16xf32> to memref<8xf32>
  %second = sched.view %all[32] : memref<16xf32> to memref<8xf32>
  %e6, %r0 = sched.collective "gather"([]) over @world axes [0] number 2 on {comm} reads(%first : memref<8xf32>) writes(%half : memref<8xf32>) tag #t
  %e7, %r1 = sched.collective "scatter"([]) over @world axes [0] number 3 on {comm} reads(%second : memref<8xf32>) writes(%rest : memref<8xf32>) tag #t
  %result = sched.join %out from(%r0, %r1 : memref<8xf32>, memref<8xf32>) : memref<16xf32>
  sched.return %result : memref<16xf32>
}}""")

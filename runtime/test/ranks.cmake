# Tests of several ranks in one process; plateau_rt_test is CMakeLists.txt's.
plateau_rt_test(plateau-rt-ranks-test
  collectives_test.cpp
  communication_test.cpp
  dispatch_test.cpp
  interleaving_ranks_test.cpp
  planned_layer_test.cpp
  routes_test.cpp
  shift_test.cpp)

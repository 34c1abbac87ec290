# Tests of several ranks in one process; plateau_rt_test is CMakeLists.txt's.
plateau_rt_test(plateau-rt-ranks-test
  chunked_calls_test.cpp
  chunked_plan_test.cpp
  collectives_test.cpp
  communication_test.cpp
  dispatch_test.cpp
  helper_calls_test.cpp
  interleaving_ranks_test.cpp
  planned_layer_test.cpp
  routes_test.cpp
  shift_test.cpp)

# Tests of the host kernels, straight on their functions; plateau_rt_test is CMakeLists.txt's.
plateau_rt_test(plateau-rt-kernels-test
  kernels_attention.cpp
  kernels_balance.cpp
  kernels_embedding.cpp
  kernels_exponential.cpp
  kernels_loss_options.cpp
  kernels_loss_tiles.cpp
  kernels_norm.cpp
  kernels_optimizer.cpp
  kernels_rotary.cpp
  kernels_route.cpp
  kernels_rows.cpp
  kernels_swiglu.cpp
  kernels_vocabulary.cpp)

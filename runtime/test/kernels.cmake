# Tests of the host kernels, straight on their functions.
add_executable(plateau-kernels-test)
foreach(part attention embedding exponential norm optimizer rotary vocabulary)
  target_sources(plateau-kernels-test PRIVATE ${CMAKE_CURRENT_LIST_DIR}/kernels_${part}.cpp)
endforeach()
target_include_directories(plateau-kernels-test PRIVATE ${CMAKE_CURRENT_LIST_DIR}/../lib)
target_link_libraries(plateau-kernels-test PRIVATE plateau_rt plateau_rt_headers GTest::gtest GTest::gtest_main)
target_compile_options(plateau-kernels-test PRIVATE -Wall -Wextra)
add_test(NAME kernels COMMAND plateau-kernels-test)

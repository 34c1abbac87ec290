add_executable(plateau-grouped-gemm-bench grouped_gemm_bench.cpp)
# A plan is made by hand, and the bare loop runs on one thread, by the same means as a lane.
target_include_directories(plateau-grouped-gemm-bench PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/../lib)
target_include_directories(plateau-grouped-gemm-bench SYSTEM PRIVATE ${DNNL_INCLUDE_DIR})
target_link_libraries(plateau-grouped-gemm-bench PRIVATE plateau_rt ${DNNL_LIBRARY})
target_compile_options(plateau-grouped-gemm-bench PRIVATE -Wall -Wextra)

# The host kernels. Sets PLATEAU_RT_KERNEL_SOURCES, to be compiled into one library, and defines one object library for each
# instruction set: the files under simd/ are compiled once for each, and the machine chooses when it runs.
set(PLATEAU_RT_KERNEL_DIR ${CMAKE_CURRENT_LIST_DIR})
set(PLATEAU_RT_KERNEL_SOURCES)
foreach(family attention balance embedding norm optimizer rotary route vocabulary vocabulary_tiles simd/variants)
  list(APPEND PLATEAU_RT_KERNEL_SOURCES ${PLATEAU_RT_KERNEL_DIR}/${family}.cpp)
endforeach()
# Products and sums are fused only where the code says so, else bits would depend on the compiler.
set_source_files_properties(${PLATEAU_RT_KERNEL_SOURCES} PROPERTIES COMPILE_OPTIONS -ffp-contract=off)

set(PLATEAU_RT_OPTIONS_baseline "")
set(PLATEAU_RT_OPTIONS_avx2 -mavx2 -mfma)
# Compilers prefer half vectors for some of these machines.
set(PLATEAU_RT_OPTIONS_avx512 -mavx2 -mfma -mavx512f -mavx512bw -mavx512vl -mavx512dq -mprefer-vector-width=512)
foreach(variant baseline avx2 avx512)
  set(library plateau_rt_kernels_${variant})
  add_library(${library} OBJECT)
  foreach(family attention attention_grad embedding norm optimizer rotary rows swiglu variant vocabulary vocabulary_tiles)
    target_sources(${library} PRIVATE ${PLATEAU_RT_KERNEL_DIR}/simd/${family}.cpp)
  endforeach()
  target_link_libraries(${library} PRIVATE plateau_rt_headers)
  target_compile_definitions(${library} PRIVATE PLATEAU_RT_VARIANT=${variant})
  # -O3 in every configuration: without it the tiles of accumulators do not stay in registers.
  target_compile_options(${library} PRIVATE -Wall -Wextra -O3 -ffp-contract=off ${PLATEAU_RT_OPTIONS_${variant}})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Of its own header of AVX-512 functions.
    target_compile_options(${library} PRIVATE -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  list(APPEND PLATEAU_RT_KERNEL_SOURCES $<TARGET_OBJECTS:${library}>)
endforeach()

# The one way every target of the compiler is declared.
#
#   plateau_library(NAME SOURCES ... [LINK ...] [PCH FROM | PCH_OWN header...])
#   plateau_tool(NAME SOURCES ... LINK ...)
#
# Our libraries are static; MLIR and LLVM are the two shared libraries and nothing else. A static libMLIR*.a beside them
# would give a process two copies of the type registry, with no error at link time: test/Tools/link.test looks for that.

add_library(plateau_mlir INTERFACE)
target_link_libraries(plateau_mlir INTERFACE MLIR LLVM)
target_compile_options(plateau_mlir INTERFACE -Wall -Wextra -Wno-unused-parameter)

# Precompiled headers, one per group: what a library includes anyway, parsed once.
set(PLATEAU_IR_HEADERS
  <mlir/IR/Builders.h> <mlir/IR/BuiltinTypes.h> <mlir/IR/DialectImplementation.h> <mlir/IR/PatternMatch.h>
  <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Func/IR/FuncOps.h> <mlir/Dialect/Linalg/IR/Linalg.h>
  <mlir/Dialect/Math/IR/Math.h> <mlir/Dialect/Tensor/IR/Tensor.h> <mlir/Pass/Pass.h>)

function(plateau_library name)
  cmake_parse_arguments(ARG "" "PCH" "SOURCES;LINK;PCH_OWN" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC plateau_mlir ${ARG_LINK})
  add_dependencies(${name} PlateauIncGen)
  if(ARG_PCH_OWN)
    target_precompile_headers(${name} PRIVATE ${ARG_PCH_OWN})
  elseif(ARG_PCH)
    target_precompile_headers(${name} REUSE_FROM ${ARG_PCH})
  endif()
endfunction()

function(plateau_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE plateau_mlir ${ARG_LINK})
  add_dependencies(${name} PlateauIncGen)
endfunction()

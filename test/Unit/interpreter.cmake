# The interpreter's tests: unit.interpreter.<suite>.<test>
include(GoogleTest)
set(directory ${CMAKE_SOURCE_DIR}/test/Unit)
# Objects of a library, not of an executable: those share the precompiled header.
add_library(interpreter_test_objects OBJECT
  ${directory}/InterpreterExactTest.cpp
  ${directory}/InterpreterExecutorTest.cpp
  ${directory}/InterpreterGradientTest.cpp
  ${directory}/InterpreterLinalgTest.cpp
  ${directory}/InterpreterModelOpsTest.cpp
  ${directory}/InterpreterUpstreamOpsTest.cpp)
target_link_libraries(interpreter_test_objects PUBLIC PlateauInterpreter GTest::gtest_main)
add_dependencies(interpreter_test_objects PlateauIncGen)
target_precompile_headers(interpreter_test_objects REUSE_FROM PlateauMoE)
add_executable(interpreter_test)
target_link_libraries(interpreter_test PRIVATE interpreter_test_objects)
gtest_discover_tests(interpreter_test TEST_PREFIX unit.interpreter. DISCOVERY_MODE PRE_TEST)

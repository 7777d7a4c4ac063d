# add_test_program(NAME SOURCE...): a test program with GoogleTest. All of them share one
# precompiled header.
find_package(GTest REQUIRED)
function(add_test_program NAME)
  add_executable(${NAME} ${ARGN})
  target_include_directories(${NAME} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${NAME} PRIVATE fovea_cli GTest::gtest GTest::gtest_main)
  target_compile_definitions(${NAME} PRIVATE FOVEA_SOURCE="${CMAKE_SOURCE_DIR}")
  target_compile_options(${NAME} PRIVATE ${LITTLE} $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  if(NAME STREQUAL test_base)
    target_precompile_headers(${NAME} PRIVATE <gtest/gtest.h> <filesystem> <fstream> <random>)
  else()
    target_precompile_headers(${NAME} REUSE_FROM test_base)
  endif()
endfunction()

# One test program per module, from its x_test.cpp files.
foreach(MODULE ${MODULES})
  file(GLOB TESTS CONFIGURE_DEPENDS src/${MODULE}/*_test.cpp)
  if(TESTS)
    add_test_program(test_${MODULE} ${TESTS})
    list(APPEND TESTED ${MODULE})
  endif()
endforeach()

# An independent HTML parser, for comparison.
find_library(GUMBO gumbo REQUIRED)
target_link_libraries(test_document PRIVATE ${GUMBO})

# The golden cases of a folder: test_goldens [DIR].
file(GLOB GOLDENS CONFIGURE_DEPENDS tests/goldens/*.cpp)
add_executable(test_goldens ${GOLDENS})
target_include_directories(test_goldens PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(test_goldens PRIVATE fovea_core)
target_compile_options(test_goldens PRIVATE ${LITTLE})
target_compile_definitions(test_goldens PRIVATE FOVEA_SOURCE="${CMAKE_SOURCE_DIR}")
set_target_properties(test_goldens PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# Models that learn small tasks for which attention is needed: test_learning.
file(GLOB LEARNING CONFIGURE_DEPENDS tests/learning/*.cpp)
add_test_program(test_learning ${LEARNING})

# Compares every op, layer, mechanism and model on one device with the CPU in double: test_parity.
file(GLOB PARITY CONFIGURE_DEPENDS tests/parity/*.cpp)
add_test_program(test_parity ${PARITY})

# Fuzz targets: fuzz_NAME from tests/fuzz/NAME_fuzz.cpp. tests/fuzz/run builds and runs them.
if(FOVEA_FUZZ)
  file(GLOB TARGETS CONFIGURE_DEPENDS tests/fuzz/*_fuzz.cpp)
  foreach(TARGET ${TARGETS})
    string(REGEX REPLACE ".*/(.*)_fuzz.cpp" "fuzz_\\1" NAME ${TARGET})
    add_executable(${NAME} EXCLUDE_FROM_ALL ${TARGET})
    target_include_directories(${NAME} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    target_compile_options(${NAME} PRIVATE ${READ_BY})
    target_link_libraries(${NAME} PRIVATE fovea_core)
    target_link_options(${NAME} PRIVATE -fsanitize=fuzzer -Wl,--as-needed)
    set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  endforeach()
endif()

include(cmake/suite.cmake)

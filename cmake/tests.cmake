# One test program per room, from the x_test.cpp files that stand beside the code.
find_package(GTest REQUIRED)
foreach(ROOM ${ROOMS})
  file(GLOB TESTS CONFIGURE_DEPENDS src/${ROOM}/*_test.cpp)
  if(TESTS)
    add_executable(test_${ROOM} ${TESTS})
    target_include_directories(test_${ROOM} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    target_link_libraries(test_${ROOM} PRIVATE fovea_core GTest::gtest GTest::gtest_main)
    target_compile_definitions(test_${ROOM} PRIVATE FOVEA_SOURCE="${CMAKE_SOURCE_DIR}")
    set_target_properties(test_${ROOM} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
    add_test(NAME ${ROOM} COMMAND test_${ROOM})
  endif()
endforeach()

# Golden cases of a folder: test_goldens [DIR].
file(GLOB GOLDENS CONFIGURE_DEPENDS tests/goldens/*.cpp)
add_executable(test_goldens ${GOLDENS})
target_include_directories(test_goldens PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(test_goldens PRIVATE fovea_core)
target_compile_definitions(test_goldens PRIVATE FOVEA_SOURCE="${CMAKE_SOURCE_DIR}")
set_target_properties(test_goldens PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
add_test(NAME goldens COMMAND test_goldens)

# Models that learn from nothing what attention was invented for: test_learning.
file(GLOB LEARNING CONFIGURE_DEPENDS tests/learning/*.cpp)
add_executable(test_learning ${LEARNING})
target_include_directories(test_learning PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(test_learning PRIVATE fovea_core GTest::gtest GTest::gtest_main)
set_target_properties(test_learning PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# Every op, layer, mechanism and model on one device against the CPU in double: test_parity.
file(GLOB PARITY CONFIGURE_DEPENDS tests/parity/*.cpp)
add_executable(test_parity ${PARITY})
target_include_directories(test_parity PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(test_parity PRIVATE fovea_core GTest::gtest GTest::gtest_main)
set_target_properties(test_parity PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
add_test(NAME parity COMMAND test_parity)

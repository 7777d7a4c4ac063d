# The parts of ./test, in the order in which it runs them. TESTED: the modules with unit tests.
include(cmake/ctest.cmake)

set(TESTS ${CMAKE_SOURCE_DIR}/tests)
register(check/rules COMMAND ${CMAKE_SOURCE_DIR}/tools/check)
register(check/self-test COMMAND ${CMAKE_SOURCE_DIR}/tools/check --self-test)
foreach(MODULE ${TESTED})
  set(NAME ${MODULE})
  if(MODULE STREQUAL "cli")  # a part that has scripts too
    set(NAME cli/units)
  elseif(MODULE STREQUAL "serve")  # measures processor time
    set(MORE ALONE)
  endif()
  register(${NAME} ${MORE} THREADS 2 COMMAND test_${MODULE} --gtest_brief=1)
  set(MORE)
endforeach()
register(goldens THREADS 2 COMMAND test_goldens)
register_shards(8 parity/shapes COMMAND test_parity --gtest_brief=1)
foreach(LEVEL none x86-64-v3 x86-64-v4)
  register(levels/ops.${LEVEL} COMMAND ${TESTS}/at_level ${LEVEL} $<TARGET_FILE:test_ops>
           --gtest_brief=1)
  register(levels/goldens.${LEVEL} COMMAND ${TESTS}/at_level ${LEVEL} $<TARGET_FILE:test_goldens>)
endforeach()
register_scripts(cli)
register_scripts(web)
register_scripts(faults)
register_shards(8 learning/models COMMAND test_learning --gtest_brief=1)

# Programs of other presets: the first test of a part builds them, and the others need it.
# register_sanitized(PART PRESET TARGET...)
function(register_sanitized PART PRESET)
  register(${PART}/build ALONE THREADS 2 PROPERTIES FIXTURES_SETUP ${PART}
           COMMAND ${TESTS}/sanitized build ${PRESET} ${ARGN})
endfunction()

if(NOT FOVEA_SANITIZE)
  list(TRANSFORM TESTED PREPEND test_ OUTPUT_VARIABLE PROGRAMS)
  register_sanitized(sanitizers dev ${PROGRAMS})
  foreach(MODULE ${TESTED})
    register_shards(4 sanitizers/${MODULE} PROPERTIES FIXTURES_REQUIRED sanitizers
                    COMMAND ${TESTS}/sanitized run dev test_${MODULE})
  endforeach()

  file(GLOB TARGETS CONFIGURE_DEPENDS tests/fuzz/*_fuzz.cpp)
  list(TRANSFORM TARGETS REPLACE ".*/(.*)_fuzz.cpp" "\\1")
  list(TRANSFORM TARGETS PREPEND fuzz_ OUTPUT_VARIABLE PROGRAMS)
  register_sanitized(fuzz dev ${PROGRAMS})
  foreach(TARGET ${TARGETS})
    register(fuzz/${TARGET} PROPERTIES FIXTURES_REQUIRED fuzz
             COMMAND ${TESTS}/sanitized fuzz dev ${TARGET})
  endforeach()

  # The threads of the server, of the search and of the trainer, under the thread sanitizer.
  register_sanitized(threads tsan test_http test_serve test_train test_decode)
  foreach(TEST IN ITEMS "http *" "serve *-Cost.*:IoTime*" "decode BatchSearch.*:Search.*"
          "train StreamTest.*:TrainerTest.*:ValidatedRun.*")
    string(REPLACE " " ";" TEST ${TEST})
    list(GET TEST 0 MODULE)
    list(GET TEST 1 FILTER)
    register(threads/${MODULE} PROPERTIES FIXTURES_REQUIRED threads
             COMMAND ${TESTS}/sanitized run tsan test_${MODULE} --gtest_filter=${FILTER})
  endforeach()
endif()

# Every test of the project as a test of CTest. A test is named PART or PART/NAME and has the label
# PART, one of the parts of ./test. A test that exits with 77 was skipped.

# register(NAME [ALONE] [THREADS N] [ENVIRONMENT VAR=VALUE...] [PROPERTIES KEY VALUE...]
#          COMMAND COMMAND...)
# ALONE: no other test runs at the same time. THREADS: of OpenMP, by default 1. A test sees no other
# setting of the user's environment that could change its result.
function(register NAME)
  cmake_parse_arguments(PARSE_ARGV 1 TEST "ALONE" "THREADS" "ENVIRONMENT;PROPERTIES;COMMAND")
  string(REGEX REPLACE "/.*" "" PART ${NAME})
  if(NOT TEST_THREADS)
    set(TEST_THREADS 1)
  endif()
  set(OTHERS LANGUAGE COLUMNS LINES CDPATH http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy
      ALL_PROXY no_proxy NO_PROXY)
  list(TRANSFORM OTHERS APPEND "=unset:")
  add_test(NAME ${NAME} COMMAND ${TEST_COMMAND})
  set_tests_properties(${NAME} PROPERTIES LABELS ${PART} TIMEOUT 1200 SKIP_RETURN_CODE 77
                       PROCESSORS ${TEST_THREADS} ${TEST_PROPERTIES})
  set_property(TEST ${NAME} PROPERTY ENVIRONMENT LC_ALL=C.UTF-8 TZ=UTC0
               FOVEA=${CMAKE_BINARY_DIR}/bin/fovea OMP_NUM_THREADS=${TEST_THREADS}
               ${TEST_ENVIRONMENT})
  set_property(TEST ${NAME} PROPERTY ENVIRONMENT_MODIFICATION ${OTHERS})
  if(TEST_ALONE)
    set_property(TEST ${NAME} PROPERTY RUN_SERIAL TRUE)
  endif()
endfunction()

# register_shards(COUNT NAME ...): the tests of a GoogleTest program in COUNT tests that run beside
# each other; the other arguments are those of register.
function(register_shards COUNT NAME)
  math(EXPR LAST "${COUNT} - 1")
  foreach(SHARD RANGE ${LAST})
    register(${NAME}.${SHARD} ${ARGN})
    set_property(TEST ${NAME}.${SHARD} APPEND PROPERTY ENVIRONMENT
                 GTEST_TOTAL_SHARDS=${COUNT} GTEST_SHARD_INDEX=${SHARD})
  endforeach()
endfunction()

# register_scripts(PART): the executable files of tests/PART. A script with a line "# Runs alone: "
# measures times, or depends on the timing of another program.
function(register_scripts PART)
  file(GLOB FILES CONFIGURE_DEPENDS LIST_DIRECTORIES false ${CMAKE_SOURCE_DIR}/tests/${PART}/*)
  foreach(FILE ${FILES})
    get_filename_component(NAME ${FILE} NAME)
    execute_process(COMMAND test -x ${FILE} RESULT_VARIABLE NO_SCRIPT)
    if(NO_SCRIPT)
      continue()
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${FILE})
    file(STRINGS ${FILE} REASON REGEX "^# Runs alone: ")
    if(REASON)
      register(${PART}/${NAME} ALONE THREADS 2 COMMAND ${FILE})
    else()
      register(${PART}/${NAME} COMMAND ${FILE})
    endif()
  endforeach()
endfunction()

# embed(TARGET FUNCTION FILE): the content of FILE as bytes of the program, which
# `std::string_view fovea::FUNCTION()` returns. Run with -P it writes FILE into OUT.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${FILE} HEX HEX)
  string(REGEX REPLACE "(..)" "0x\\1," HEX "${HEX}")
  file(WRITE ${OUT} "// Made by cmake/embed.cmake.
#include <string_view>

namespace fovea {

std::string_view ${FUNCTION}();

static constexpr unsigned char kBytes[] = {${HEX}};

std::string_view ${FUNCTION}() { return {reinterpret_cast<const char*>(kBytes), sizeof kBytes}; }

}  // namespace fovea
")
  return()
endif()

function(embed TARGET FUNCTION FILE)
  set(OUT ${CMAKE_BINARY_DIR}/${FUNCTION}.cpp)
  add_custom_command(OUTPUT ${OUT} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DFUNCTION=${FUNCTION} -DFILE=${CMAKE_SOURCE_DIR}/${FILE} -DOUT=${OUT}
            -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${CMAKE_SOURCE_DIR}/${FILE} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake)
  target_sources(${TARGET} PRIVATE ${OUT})
endfunction()

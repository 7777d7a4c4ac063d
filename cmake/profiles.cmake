# Compiles src/text/language_profiles.txt into the program as bytes. With -P it writes FILE to OUT.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${FILE} HEX HEX)
  string(REGEX REPLACE "(..)" "0x\\1," HEX "${HEX}")
  file(WRITE ${OUT} "// Made by cmake/profiles.cmake.
#include \"text/language_profiles.h\"

namespace fovea {
namespace {

constexpr unsigned char kBytes[] = {${HEX}};

}  // namespace

std::string_view language_profiles() {
  return {reinterpret_cast<const char*>(kBytes), sizeof kBytes};
}

}  // namespace fovea
")
  return()
endif()

set(PROFILES ${CMAKE_SOURCE_DIR}/src/text/language_profiles.txt)
set(PROFILE_BYTES ${CMAKE_BINARY_DIR}/language_profiles.cpp)
add_custom_command(OUTPUT ${PROFILE_BYTES} VERBATIM
  COMMAND ${CMAKE_COMMAND} -DFILE=${PROFILES} -DOUT=${PROFILE_BYTES}
          -P ${CMAKE_SOURCE_DIR}/cmake/profiles.cmake
  DEPENDS ${PROFILES} ${CMAKE_SOURCE_DIR}/cmake/profiles.cmake)
target_sources(fovea_readers PRIVATE ${PROFILE_BYTES})

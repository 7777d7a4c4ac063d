# The page and the descriptions of the endpoints as bytes of the program. Run with -P it writes
# FILES as the function NAME into OUT.
if(CMAKE_SCRIPT_MODE_FILE)
  set(TYPE_html "text/html; charset=utf-8")
  set(TYPE_css "text/css; charset=utf-8")
  set(TYPE_js "text/javascript; charset=utf-8")
  set(TYPE_svg "image/svg+xml")
  set(TYPE_json "application/json")
  set(BYTES "")
  set(TABLE "")
  foreach(FILE ${FILES})
    get_filename_component(FILE_NAME ${FILE} NAME)
    string(REGEX REPLACE ".*\\." "" ENDING ${FILE_NAME})
    if(NOT TYPE_${ENDING})
      message(FATAL_ERROR "${FILE}: no media type for .${ENDING} in cmake/embedded_files.cmake")
    endif()
    string(MAKE_C_IDENTIFIER ${FILE_NAME} ID)
    file(SHA256 ${FILE} HASH)
    string(SUBSTRING ${HASH} 0 16 HASH)
    file(READ ${FILE} HEX HEX)
    string(REGEX REPLACE "(..)" "0x\\1," HEX "${HEX}")
    string(APPEND BYTES "constexpr unsigned char k_${ID}[] = {${HEX}};\n")
    string(APPEND TABLE "      {\"${FILE_NAME}\", \"${TYPE_${ENDING}}\", \"\\\"${HASH}\\\"\", "
                        "text(k_${ID}, sizeof k_${ID})},\n")
  endforeach()
  file(WRITE ${OUT} "// Made by cmake/embedded_files.cmake.
#include \"serve/embedded_files.h\"

namespace fovea {
namespace {

${BYTES}
std::string_view text(const unsigned char* bytes, size_t count) {
  return {reinterpret_cast<const char*>(bytes), count};
}

}  // namespace

const std::vector<EmbeddedFile>& ${NAME}() {
  static const std::vector<EmbeddedFile> all = {
${TABLE}  };
  return all;
}

}  // namespace fovea
")
  return()
endif()

function(embed_files NAME)
  set(OUT ${CMAKE_BINARY_DIR}/${NAME}.cpp)
  add_custom_command(OUTPUT ${OUT} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DNAME=${NAME} "-DFILES=${ARGN}" -DOUT=${OUT}
            -P ${CMAKE_SOURCE_DIR}/cmake/embedded_files.cmake
    DEPENDS ${ARGN} ${CMAKE_SOURCE_DIR}/cmake/embedded_files.cmake)
  target_sources(fovea_core PRIVATE ${OUT})
endfunction()

file(GLOB PAGE CONFIGURE_DEPENDS web/*.html web/*.css web/*.js web/*.svg)
embed_files(page_files ${PAGE})
file(GLOB DESCRIPTIONS CONFIGURE_DEPENDS src/serve/*.json)
embed_files(openapi_files ${DESCRIPTIONS})

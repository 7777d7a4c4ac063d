# The page: compiles the files of web/ into the program as bytes. With -P it writes FILES to OUT.
if(CMAKE_SCRIPT_MODE_FILE)
  set(TYPE_html "text/html; charset=utf-8")
  set(TYPE_css "text/css; charset=utf-8")
  set(TYPE_js "text/javascript; charset=utf-8")
  set(TYPE_svg "image/svg+xml")
  set(BYTES "")
  set(TABLE "")
  foreach(FILE ${FILES})
    get_filename_component(NAME ${FILE} NAME)
    string(REGEX REPLACE ".*\\." "" ENDING ${NAME})
    if(NOT TYPE_${ENDING})
      message(FATAL_ERROR "${FILE}: no media type for .${ENDING} in cmake/page.cmake")
    endif()
    string(MAKE_C_IDENTIFIER ${NAME} ID)
    file(SHA256 ${FILE} HASH)
    string(SUBSTRING ${HASH} 0 16 HASH)
    file(READ ${FILE} HEX HEX)
    string(REGEX REPLACE "(..)" "0x\\1," HEX "${HEX}")
    string(APPEND BYTES "constexpr unsigned char k_${ID}[] = {${HEX}};\n")
    string(APPEND TABLE "      {\"${NAME}\", \"${TYPE_${ENDING}}\", \"\\\"${HASH}\\\"\", "
                        "text(k_${ID}, sizeof k_${ID})},\n")
  endforeach()
  file(WRITE ${OUT} "// Made by cmake/page.cmake of the files of web/.
#include \"serve/web_page.h\"

namespace fovea {
namespace {

${BYTES}
std::string_view text(const unsigned char* bytes, size_t count) {
  return {reinterpret_cast<const char*>(bytes), count};
}

}  // namespace

const std::vector<PageFile>& page_files() {
  static const std::vector<PageFile> all = {
${TABLE}  };
  return all;
}

}  // namespace fovea
")
  return()
endif()

file(GLOB PAGE CONFIGURE_DEPENDS web/*.html web/*.css web/*.js web/*.svg)
set(PAGE_FILES ${CMAKE_BINARY_DIR}/page_files.cpp)
add_custom_command(OUTPUT ${PAGE_FILES} VERBATIM
  COMMAND ${CMAKE_COMMAND} "-DFILES=${PAGE}" -DOUT=${PAGE_FILES}
          -P ${CMAKE_SOURCE_DIR}/cmake/page.cmake
  DEPENDS ${PAGE} ${CMAKE_SOURCE_DIR}/cmake/page.cmake)
target_sources(fovea_core PRIVATE ${PAGE_FILES})

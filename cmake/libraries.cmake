# Libraries. tools/packages lists the Debian packages. CMake finds your own builds in
# CMAKE_PREFIX_PATH.
find_package(OpenMP REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(ICU REQUIRED COMPONENTS uc i18n)
find_package(ZLIB REQUIRED)
find_package(CLI11 REQUIRED)
find_library(DNNL dnnl REQUIRED)
find_library(ZIP zip REQUIRED)  # Debian 12's CMake file of libzip needs programs that are elsewhere
find_library(SENTENCEPIECE sentencepiece REQUIRED)
find_library(SENTENCEPIECE_TRAIN sentencepiece_train REQUIRED)
find_path(DNNL_HEADERS oneapi/dnnl/dnnl.hpp REQUIRED)
find_path(ZIP_HEADERS zip.h REQUIRED)
find_path(SENTENCEPIECE_HEADERS sentencepiece_processor.h REQUIRED)
find_path(BOOST_HEADERS boost/beast/http/parser.hpp REQUIRED)

# The oldest supported versions: those of Debian 12.
function(require_version NAME FOUND OLDEST)
  if(FOUND VERSION_LESS OLDEST)
    message(FATAL_ERROR "${NAME} ${FOUND} is too old: Fovea needs ${NAME} ${OLDEST} or newer")
  endif()
  message(STATUS "Found ${NAME} ${FOUND}")
endfunction()
file(STRINGS ${DNNL_HEADERS}/oneapi/dnnl/dnnl_version.h LINES REGEX "VERSION_M(AJ|IN)OR +[0-9]+")
string(REGEX REPLACE "[^0-9]*([0-9]+)[^0-9]+([0-9]+).*" "\\1.\\2" FOUND "${LINES}")
require_version(oneDNN "${FOUND}" 2.6)
file(STRINGS ${BOOST_HEADERS}/boost/version.hpp LINES REGEX "BOOST_LIB_VERSION \"")
string(REGEX REPLACE ".*\"([0-9]+)_([0-9]+).*" "\\1.\\2" FOUND "${LINES}")
require_version(Boost "${FOUND}" 1.74)

set(YAML yaml-cpp)
if(TARGET yaml-cpp::yaml-cpp)  # the name from version 0.8 on
  set(YAML yaml-cpp::yaml-cpp)
endif()
add_library(fovea_headers INTERFACE)
target_include_directories(fovea_headers SYSTEM INTERFACE
  ${DNNL_HEADERS} ${ZIP_HEADERS} ${SENTENCEPIECE_HEADERS} ${BOOST_HEADERS})
set(FOVEA_LIBRARIES fovea_headers
  OpenMP::OpenMP_CXX fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json ${YAML}
  ICU::uc ICU::i18n ZLIB::ZLIB ${ZIP} CLI11::CLI11 ${SENTENCEPIECE_TRAIN} ${SENTENCEPIECE})

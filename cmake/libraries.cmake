# Debian's libraries, by the names their packages give them.
find_package(OpenMP REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(ICU REQUIRED COMPONENTS uc i18n)
find_package(ZLIB REQUIRED)
find_package(CLI11 REQUIRED)
find_path(BOOST_BEAST boost/beast/http/parser.hpp REQUIRED)
find_library(DNNL dnnl REQUIRED)
find_library(SENTENCEPIECE sentencepiece REQUIRED)
find_library(SENTENCEPIECE_TRAIN sentencepiece_train REQUIRED)
set(FOVEA_LIBRARIES
  OpenMP::OpenMP_CXX fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json yaml-cpp
  ICU::uc ICU::i18n ZLIB::ZLIB CLI11::CLI11 ${SENTENCEPIECE_TRAIN} ${SENTENCEPIECE})

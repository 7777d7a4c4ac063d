#include "goldens/case.h"

namespace fovea::goldens {
namespace {

const std::vector<std::string> kNotBuilt = {
    "decoder_bahdanau",
    "decoder_luong",
    "decoder_luong_2layers",
    "decoder_luong_nofeed",
    "seq2seq_plain",
};

}  // namespace

const std::vector<std::string>& cases_not_built() { return kNotBuilt; }

}  // namespace fovea::goldens

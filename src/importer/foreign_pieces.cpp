#include "importer/foreign_pieces.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace fovea {
ForeignPieces::ForeignPieces(std::vector<std::string> names, const SpecialNames& specials,
                             const std::vector<std::string>& controls, const std::string& file)
    : order_(order_pieces(names, specials, controls, file)), ids_(names.size(), -1), file_(file) {
  check(!specials.eos.empty(), ExitCode::model, file,
        ": found no piece for the end of a sentence, ",
        "expected </s>; use the vocabulary of the original model");
  for (size_t id = 0; id < order_.rows.size(); ++id)
    if (const int32_t row = order_.rows[id]; row >= 0) ids_[row] = static_cast<int32_t>(id);
}

int32_t ForeignPieces::id(int64_t foreign, const std::string& where) const {
  check(foreign >= 0 && foreign < foreign_size(), ExitCode::model, where, ": ", foreign,
        ", expected an id of ", file_, ", 0 to ", foreign_size() - 1,
        "; use the files of the same model");
  return ids_[static_cast<size_t>(foreign)];
}

const std::string& ForeignPieces::name(int64_t foreign, const std::string& where) const {
  return order_.pieces[static_cast<size_t>(id(foreign, where))].name;
}

std::string zero_start(const ForeignPieces& target) {
  for (const int32_t id : {kBos, kPad})
    if (target.order().rows[static_cast<size_t>(id)] < 0)
      return target.order().pieces[static_cast<size_t>(id)].name;
  fail(ExitCode::model, target.file(), ": the decoder starts from a zero vector, but the ",
       "vocabulary has both <s> and <pad>; this variant of the model is not supported");
}

std::string name_at(const std::vector<std::string>& pieces, int64_t id, const std::string& where) {
  check(id < std::ssize(pieces), ExitCode::model, where, ": ", id, ", but the vocabulary has only ",
        pieces.size(), " pieces; use the files of the same model");
  return id < 0 ? "" : pieces[static_cast<size_t>(id)];
}

std::string if_present(const std::vector<std::string>& pieces, const std::string& name) {
  return std::ranges::find(pieces, name) == pieces.end() ? "" : name;
}

void add_unused_pieces(std::vector<std::string>& pieces, int64_t rows) {
  while (std::ssize(pieces) < rows) pieces.push_back(fmt::format("<unused-{}>", pieces.size()));
}

}  // namespace fovea

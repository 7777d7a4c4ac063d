#include "text/vocabulary_table.h"

namespace fovea {

std::vector<SentencePieceModel::Token> Vocabulary::Table::foreign_tokens(
    const std::string& line) const {
  std::vector<SentencePieceModel::Token> tokens;
  size_t end = 0;
  bool prefix = foreign->prefix_blank && !line.starts_with(' ');
  for (std::string& piece : foreign->pieces(line)) {
    if (segmentation == Segmentation::bytes) end += bytes_of_characters(piece).size() - prefix;
    prefix = false;
    const int32_t id = text_id(piece);
    tokens.push_back({std::move(piece), id, end});
  }
  return tokens;
}

std::vector<SentencePieceModel::Token> Vocabulary::Table::tokens(const std::string& line) const {
  if (foreign) return foreign_tokens(line);
  auto tokens = model->tokens(line);
  if (!imported) return tokens;
  for (auto& token : tokens) {
    token.id = library_ids[static_cast<size_t>(token.id)];
    if (token.id < 0) token.id = text_id(token.text);
  }
  return tokens;
}

std::vector<int32_t> Vocabulary::Table::encode(const std::string& line) const {
  std::vector<int32_t> ids;
  if (foreign) {
    for (const auto& token : foreign_tokens(line)) ids.push_back(token.id);
    return ids;
  }
  ids = model->encode(line);
  for (int32_t& id : ids) {
    if (imported) id = library_ids[static_cast<size_t>(id)];
    if (id < 0) {  // the ids depend on the text of unknown pieces
      ids.clear();
      for (const auto& token : tokens(line)) ids.push_back(token.id);
      return ids;
    }
    if (id < kSpecials || id >= size()) id = kUnk;
  }
  return ids;
}

}  // namespace fovea

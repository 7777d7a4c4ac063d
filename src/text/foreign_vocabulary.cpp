#include "text/foreign_vocabulary.h"

#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "base/sip_hash.h"
#include "text/vocabulary_table.h"

namespace fovea {

PieceOrder order_pieces(std::span<const std::string> names, const SpecialNames& specials,
                        std::span<const std::string> controls, const std::string& file) {
  std::unordered_map<std::string_view, int32_t, TableHash> first;
  for (size_t i = 0; i < names.size(); ++i) first.emplace(names[i], static_cast<int32_t>(i));

  PieceOrder order;
  std::vector<bool> used(names.size(), false);
  const std::string* const originals[kSpecials] = {&specials.pad, &specials.bos, &specials.eos,
                                                   &specials.unk};
  order.pieces.resize(kSpecials);
  order.rows.assign(kSpecials, -1);
  for (const int32_t id : {kEos, kUnk, kPad, kBos}) {  // several may be one piece: </s> is its name
    order.pieces[id] = {std::string(kSpecialNames[id]), id != kUnk};
    if (originals[id]->empty()) continue;
    const auto found = first.find(*originals[id]);
    check(found != first.end(), ExitCode::model, file, ": the special piece '", *originals[id],
          "' is not in the vocabulary; correct the name in the configuration of the model");
    if (used[found->second]) continue;
    order.rows[id] = found->second;
    used[found->second] = true;
  }

  const std::unordered_set<std::string_view, TableHash> control(controls.begin(), controls.end());
  std::unordered_set<std::string_view, TableHash> seen(std::begin(kSpecialNames),
                                                       std::end(kSpecialNames));
  for (size_t row = 0; row < names.size(); ++row) {
    if (used[row]) continue;
    PieceOrder::Piece piece{names[row], control.contains(names[row])};
    if (names[row].empty() || !seen.insert(names[row]).second)
      piece = {"<row-" + std::to_string(row) + ">", true};
    order.pieces.push_back(std::move(piece));
    order.rows.push_back(static_cast<int32_t>(row));
  }
  return order;
}

Vocabulary import_sentencepiece(std::string_view model, const PieceOrder& order,
                                const std::string& name) {
  const SentencePieceFile file = check_foreign_sentencepiece(model, name);
  std::unordered_set<std::string_view, TableHash> bytes;
  for (const StoredPiece& piece : file.pieces)
    if (piece.type == PieceType::byte) bytes.insert(piece.text);
  std::vector<OrderedPiece> pieces;
  for (const PieceOrder::Piece& piece : order.pieces) {
    const PieceRole text = bytes.contains(piece.name) ? PieceRole::byte : PieceRole::text;
    pieces.push_back({piece.name, piece.control ? PieceRole::control : text});
  }
  return Vocabulary::parse_sentencepiece(with_order(model, pieces), name);
}

std::vector<std::string> sentencepiece_names(std::string_view model, const std::string& name) {
  std::vector<std::string> names;
  for (const StoredPiece& piece : check_foreign_sentencepiece(model, name).pieces)
    names.emplace_back(piece.text);
  return names;
}

}  // namespace fovea

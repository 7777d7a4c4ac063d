#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/foreign_vocabulary.h"

namespace fovea {

// The pieces of a foreign vocabulary by their foreign ids, and their order in Fovea.
class ForeignPieces {
 public:
  ForeignPieces() = default;
  // names[i] is the piece of the foreign id i. See order_pieces().
  ForeignPieces(std::vector<std::string> names, const SpecialNames& specials,
                const std::vector<std::string>& controls, const std::string& file);

  const PieceOrder& order() const { return order_; }
  int64_t size() const { return static_cast<int64_t>(order_.pieces.size()); }
  int64_t foreign_size() const { return static_cast<int64_t>(ids_.size()); }
  const std::string& file() const { return file_; }

  // Fovea's id and name of a foreign id. ExitCode::model with `where`, for example
  // "config.json: eos_token_id", if the vocabulary has no such id.
  int32_t id(int64_t foreign, const std::string& where) const;
  const std::string& name(int64_t foreign, const std::string& where) const;

 private:
  PieceOrder order_;
  std::vector<int32_t> ids_;  // of each foreign id
  std::string file_;
};

// The name of a special piece without a row, whose embedding is therefore zero: the start of a
// decoder that begins with a zero vector. ExitCode::model if all special pieces have rows.
std::string zero_start(const ForeignPieces& target);

// The name of a foreign id; "" if the id is negative. ExitCode::model with `where` if not.
std::string name_at(const std::vector<std::string>& pieces, int64_t id, const std::string& where);

// The given name if the list has this piece, otherwise "".
std::string if_present(const std::vector<std::string>& pieces, const std::string& name);

// Adds pieces without text up to `rows`, for rows of the weights that have no piece.
void add_unused_pieces(std::vector<std::string>& pieces, int64_t rows);

}  // namespace fovea

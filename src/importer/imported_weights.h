#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/safetensors.h"
#include "importer/foreign_pieces.h"
#include "models/model_config.h"

namespace fovea {

// The weights of a model under construction. Every parameter of the configuration must be set once.
// Errors name the file of the foreign weights.
class ImportedWeights {
 public:
  // `origin`: the file of the foreign weights, for messages. REQUIRES: config.check() passes.
  ImportedWeights(const ModelConfig& config, std::string origin);

  const std::string& origin() const { return origin_; }
  bool has(const std::string& parameter) const { return shapes_.contains(parameter); }
  const std::vector<int64_t>& shape(const std::string& parameter) const;
  int64_t elements() const;

  // Sets a parameter. `from` is the name of the foreign tensor for messages. Fails if a value is
  // not finite.
  void set(const std::string& parameter, std::vector<float> values, const std::string& from);
  void zero_biases();  // of the parameters without values: names like W_O/b and b_Q
  const std::vector<float>& values(const std::string& parameter) const {
    return values_.at(parameter);
  }

  // Writes model.safetensors. `stored` is F32 or BF16. REQUIRES: all parameters are set.
  void write(const std::string& path, StoredType stored) const;

 private:
  std::string origin_;
  std::vector<std::string> order_;
  std::map<std::string, std::vector<int64_t>, std::less<>> shapes_;
  std::map<std::string, std::vector<float>, std::less<>> values_;
};

// The output bias of pieces that a model does not have: their probability is 0 in f32.
inline constexpr float kNoPieceBias = -1e9f;

// The rows of a foreign matrix [foreign words, columns] in the order of Fovea's ids. A piece
// without a row gets `missing`.
std::vector<float> in_piece_order(const std::vector<float>& matrix, int64_t columns,
                                  const ForeignPieces& pieces, float missing);

// The transpose of a matrix [rows, columns].
std::vector<float> transposed(const std::vector<float>& matrix, int64_t rows, int64_t columns);

}  // namespace fovea

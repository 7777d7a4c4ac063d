#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// Numbers of an attention mechanism that pictures show beside its weights. The kind says what the
// numbers are and how they are drawn. Positions count from 1, columns from 0.
struct NamedSeries {
  enum class Kind {
    position,      // [rows]: p, drawn as a marker; it may lie between two words
    half_width,    // [1]: D; a row attends to ⌊p + ½⌋ ± D, p of the kind position
    deviation,     // [1]: σ of the Gaussian around p that multiplies the weights
    centres,       // [rows, K]: K markers per row, possibly beyond the last word
    distribution,  // [rows, columns]: the distribution from which one word is chosen
    frontier,      // [rows]: the first column that each row may attend to
  };
  std::string name;   // the key in JSON of the service, plain ASCII
  std::string label;  // the name in pictures
  Kind kind;
  std::vector<float> values = {};

  bool of_rows() const { return kind != Kind::half_width && kind != Kind::deviation; }
};

// One attention matrix of one sentence pair. Rows are queries, columns are keys. Each row sums to
// 1; only for local-p the sum is lower, because its Gaussian reduces the weights.
struct AttentionMap {
  std::string kind;  // "encoder", "decoder", "cross"
  int64_t layer = 0, head = 0;
  int64_t rows = 0, cols = 0;
  std::vector<float> weights;  // rows × cols

  std::string mechanism = {};            // name in recipes, such as "local-p"; empty: multi-head
  std::vector<NamedSeries> series = {};  // the series of the mechanism

  // The first series of this kind (or of this name, below). If there is none, null.
  const NamedSeries* find(NamedSeries::Kind wanted) const {
    return found(std::ranges::find(series, wanted, &NamedSeries::kind));
  }
  const NamedSeries* find(std::string_view name) const {
    return found(std::ranges::find(series, name, &NamedSeries::name));
  }

 private:
  const NamedSeries* found(std::vector<NamedSeries>::const_iterator at) const {
    return at == series.end() ? nullptr : &*at;
  }
};

}  // namespace fovea

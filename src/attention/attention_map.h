#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// Numbers of an attention mechanism that pictures show with its weights. The kind defines the shape
// of the numbers and how they are drawn. Positions count from 1, columns from 0.
struct NamedSeries {
  enum class Kind {
    position,    // [rows]: a marker; a position may lie between two words
    half_width,  // [1]: D; a row attends to ⌊p + ½⌋ ± D; p is in the series of kind position
    deviation,   // [1]: σ of a Gaussian around p, by which weights are multiplied
    centres,     // [rows, K]: markers that may lie beyond the last word
    distribution,  // [rows, columns]: the distribution from which one word is chosen
    frontier,      // [rows]: the first column that a row may attend to
  };
  std::string name;   // the key in the JSON of the service, plain ASCII
  std::string label;  // the name in pictures
  Kind kind;
  std::vector<float> values = {};

  bool of_rows() const { return kind != Kind::half_width && kind != Kind::deviation; }
};

// One attention matrix of one sentence pair. Rows are queries, columns are keys. Each row sums to
// 1, except for local-p, whose Gaussian reduces the sum.
struct AttentionMap {
  std::string kind;  // "encoder", "decoder", "cross"
  int64_t layer = 0, head = 0;
  int64_t rows = 0, cols = 0;
  std::vector<float> weights;  // rows × cols

  std::string mechanism = {};            // name in recipes, such as "local-p"; empty: multi-head
  std::vector<NamedSeries> series = {};  // series of the mechanism

  // The first series of this kind or name; null if there is none.
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

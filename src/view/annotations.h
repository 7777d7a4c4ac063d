#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fovea {

// One series of marks that an attention mechanism adds to the picture of its weights. `places` has
// a list of numbers for each target word. Most of these numbers are places: horizontal positions in
// units of source words. 0 is the middle of the first word, −0.5 its left edge. A place that is not
// finite is not drawn.
struct MatrixSeries {
  enum class Kind {
    position,  // {p}: a marker at p
    window,    // {low, high}: edges of the words to which a target word may attend
    gaussian,  // {p, σ, low, high}: a curve around p between low and high
    centres,   // {κ_1, κ_2, …}: dots, which may lie beyond the last word
    chosen,    // {j, …}: indices of source words, drawn with an outline
    frontier,  // {f}: a target word attends to no source word left of f
  };
  Kind kind;
  std::string name, label;  // name in ASCII; text in pictures, with Unicode
  std::vector<std::vector<float>> places = {};
};

// The marks that a picture of one attention matrix shows over the weights.
struct MatrixAnnotations {
  std::vector<MatrixSeries> series = {};
  enum class Rows { own, same } rows = Rows::own;  // same: the marks of row 0 are those of all rows
  std::string note = {};                           // a text that explains the picture

  // Returns all series of this kind.
  std::vector<const MatrixSeries*> all(MatrixSeries::Kind kind) const;
  bool has(MatrixSeries::Kind kind) const { return !all(kind).empty(); }
  // Whether the marks say that target word i cannot attend to source word j.
  bool bars(size_t i, size_t j) const;
};

// If a series has a wrong number of values for a target word, or `chosen` has a number that is not
// the index of a source word, throws ExitCode::data.
void check_marks(const MatrixAnnotations& marks, size_t target, size_t source);

}  // namespace fovea

#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fovea {

// One series of marks that an attention mechanism adds to the picture of its weights, with a list
// of numbers per target word. Most of these are places, in units of source words: 0 is the middle
// of the first word, −0.5 its left edge. A place that is not finite is not drawn.
struct MatrixSeries {
  enum class Kind {
    position,  // {p}: a marker
    window,    // {low, high}: the edges of the words that a target word may attend to
    gaussian,  // {p, σ, low, high}: a curve between these edges
    centres,   // {κ_1, κ_2, …}: dots that may lie beyond the end
    chosen,    // {j, …}: numbers of source words, outlined
    frontier,  // {f}: a target word attends to no word left of it
  };
  Kind kind;
  std::string name, label;  // in ASCII; the text in pictures, with Unicode
  std::vector<std::vector<float>> places = {};
};

// The marks over the weights of one attention matrix.
struct MatrixAnnotations {
  std::vector<MatrixSeries> series = {};
  enum class Rows { own, same } rows = Rows::own;  // same: row 0 is valid for all target words
  std::string note = {};                           // a text that explains the picture

  // Returns the series of one kind.
  std::vector<const MatrixSeries*> all(MatrixSeries::Kind kind) const;
  bool has(MatrixSeries::Kind kind) const { return !all(kind).empty(); }
  // Whether target word i cannot attend to source word j.
  bool bars(size_t i, size_t j) const;
};

// Throws ExitCode::data if a series does not have the right number of places for each target word,
// or if an entry of `chosen` is not the number of a source word.
void check_marks(const MatrixAnnotations& marks, size_t target, size_t source);

}  // namespace fovea

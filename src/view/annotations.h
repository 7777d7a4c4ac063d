#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fovea {

// One series of marks that an attention mechanism adds to the picture of its weights, with a list
// of places per target word. Places are counted in source words: 0 is the middle of the first, −0.5
// its left edge. A place that is not finite is not drawn.
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
  std::string name, label;  // in plain ASCII, and for terminals and pictures with Unicode
  std::vector<std::vector<float>> places = {};
};

// The marks over the weights of one attention matrix.
struct MatrixAnnotations {
  std::vector<MatrixSeries> series = {};
  enum class Rows { own, same } rows = Rows::own;  // same: one row stands for all
  std::string note = {};                           // an explanation of the picture

  // The series of one kind.
  std::vector<const MatrixSeries*> all(MatrixSeries::Kind kind) const;
  bool has(MatrixSeries::Kind kind) const { return !all(kind).empty(); }
  // Whether target word i cannot attend to source word j.
  bool bars(size_t i, size_t j) const;
};

// Throws ExitCode::data if a series does not have the right count of places for each target word,
// or if a choice is no source word.
void check_marks(const MatrixAnnotations& marks, size_t target, size_t source);

}  // namespace fovea

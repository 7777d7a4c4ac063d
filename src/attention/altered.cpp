#include "attention/altered.h"

#include <algorithm>
#include <cassert>

#include "ops/elementwise.h"

namespace fovea {
namespace {

constexpr double kNever = -1e30;  // beside any score, exp is 0

}  // namespace

// Before the softmax, so that the other words share what those masked would have had, and a choice
// falls on one of them.
Memory AlteredAttention::remember(const Tensor& h, const Packing& sentences) const {
  Memory memory = inner_.remember(h, sentences);
  if (change_.masked.empty()) return memory;
  const int64_t rows = sentences.sentences, columns = sentences.longest;
  assert(sentences.tokens == rows * columns);  // one sentence, or several times the same
  std::vector<double> veto(static_cast<size_t>(rows * columns), 0);
  for (int64_t i = 0; i < rows; ++i)
    for (const int32_t word : change_.masked) veto.at(i * columns + word) = kNever;
  memory.veto = Tensor::of({rows, columns}, veto, h.type(), h.device());
  return memory;
}

// Where a mechanism does not normalise (window), or has nothing else to look at (a window that is
// masked as a whole), words that are masked had weight until now.
std::vector<double> AlteredAttention::changed(std::vector<double> alpha, int64_t columns,
                                              int64_t step) const {
  if (change_.silent) std::ranges::fill(alpha, 0.0);
  if (change_.silent) return alpha;
  for (auto row = alpha.begin(); row != alpha.end(); row += columns) {
    for (const int32_t word : change_.masked) row[word] = 0;
    for (const Change::Row& forced : change_.forced)
      if (forced.step == step) std::ranges::copy(forced.weights, row);
  }
  return alpha;
}

// Forward attention falls back on the last word where nothing is left; here, on the last word that
// is not masked.
void AlteredAttention::fall_back(std::vector<double>& alpha, int64_t columns) const {
  int64_t last = columns - 1;
  while (std::ranges::find(change_.masked, last) != change_.masked.end()) --last;
  for (auto row = alpha.begin(); row != alpha.end(); row += columns)
    if (std::all_of(row, row + columns, [](double w) { return w == 0; })) row[last] = 1;
}

Attended AlteredAttention::attend(const Query& query, const Memory& memory,
                                  const Before& before) const {
  Attended a = inner_.attend(query, memory, before);
  const Tensor& was = a.weights;
  std::vector<double> values = changed(was.values(), was.cols(), before.steps);
  if (a.now.covered && !change_.silent) fall_back(values, was.cols());
  const Tensor alpha = Tensor::of(was.shape(), values, was.type(), was.device());
  a.weights = alpha;
  a.context = weighted_sum(alpha, memory.h, {memory.sentences, query.sentence});
  if (a.now.covered) {  // forward: later steps find what was really taken
    a.now.weights = alpha;
    a.now.covered = before.covered ? before.covered + alpha : alpha;
  }
  return a;
}

}  // namespace fovea

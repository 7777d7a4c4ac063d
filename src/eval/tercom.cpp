#include "eval/tercom.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>

namespace fovea {
namespace {

using Words = std::vector<uint32_t>;

constexpr int kLongestShift = 10;
constexpr int kFarthestShift = 50;
constexpr int kBeam = 25;
constexpr int kMostCandidates = 1000;
constexpr int kInfinity = 1 << 29;

// A table of Levenshtein distances between a hypothesis and the reference, inside a band around the
// diagonal. All hypotheses that it gets have the same length. It keeps the whole band of the
// current hypothesis for two purposes. The alignment can be read from it. And for a candidate (a
// changed hypothesis), only the rows from the first changed word on must be computed.
class EditTable {
 public:
  EditTable(std::span<const uint32_t> reference, int hypothesis_length)
      : reference_(reference), H_(hypothesis_length), R_(static_cast<int>(reference.size())) {
    ratio_ = H_ > 0 ? static_cast<double>(R_) / H_ : 1.0;
    beam_ = kBeam < ratio_ / 2 ? static_cast<int>(std::ceil(ratio_ / 2 + kBeam)) : kBeam;
    width_ = 3 * beam_ + 2;  // row 1 reads this number of columns of row 0
    table_.resize(at(H_ + 1) * at(width_));
    std::iota(row(0), row(1), 0);
    for (auto& candidate : rows_) candidate.resize(at(width_));
  }

  // Fills the table for a hypothesis and returns its distance.
  int compute(const Words& hypothesis) {
    for (int i = 1; i <= H_; ++i) fill(i, hypothesis[at(i - 1)], row(i - 1), row(i));
    return H_ == 0 ? R_ : cost(H_, R_, row(H_));
  }

  // Returns the distance of a candidate. It differs from the hypothesis of the table only at
  // positions [first, last). Does not change the table. REQUIRES: first < H.
  int distance(const Words& candidate, int first, int last) {
    const int* above = row(first);
    for (int i = first + 1; i <= H_; ++i) {
      int* here = rows_[at(i % 2)].data();
      fill(i, candidate[at(i - 1)], above, here);
      if (i >= last && std::equal(here, here + width_, row(i))) return cost(H_, R_, row(H_));
      above = here;
    }
    return cost(H_, R_, above);
  }

  // The path with the lowest cost in the table. If costs are equal, the path prefers substitution
  // to deletion, and deletion to insertion.
  struct Alignment {
    std::vector<int> hypothesis_of;  // per reference word: last word used before or at it, −1: none
    std::vector<int> hypothesis_errors, reference_errors;  // [i]: errors among the first i words
  };

  Alignment align(const Words& hypothesis) {
    Alignment a{std::vector<int>(static_cast<size_t>(R_)),
                std::vector<int>(static_cast<size_t>(H_ + 1)),
                std::vector<int>(static_cast<size_t>(R_ + 1))};
    for (int i = H_, j = R_; i > 0 || j > 0;) {
      int here = i > 0 ? cost(i, j, row(i)) : j;
      bool same = i > 0 && j > 0 && hypothesis[at(i - 1)] == reference_[at(j - 1)];
      if (i > 0 && j > 0 && here == cost(i - 1, j - 1, row(i - 1)) + (same ? 0 : 1)) {
        a.hypothesis_of[at(j - 1)] = i - 1;
        a.hypothesis_errors[at(i)] = a.reference_errors[at(j)] = same ? 0 : 1;
        --i, --j;
      } else if (i > 0 && here == cost(i - 1, j, row(i - 1)) + 1) {
        a.hypothesis_errors[at(i)] = 1;
        --i;
      } else {
        a.hypothesis_of[at(j - 1)] = i - 1;
        a.reference_errors[at(j)] = 1;
        --j;
      }
    }
    for (size_t i = 1; i < a.hypothesis_errors.size(); ++i)
      a.hypothesis_errors[i] += a.hypothesis_errors[i - 1];
    for (size_t j = 1; j < a.reference_errors.size(); ++j)
      a.reference_errors[j] += a.reference_errors[j - 1];
    return a;
  }

 private:
  static size_t at(int i) { return static_cast<size_t>(i); }
  int* row(int i) { return table_.data() + at(i) * at(width_); }

  int first_column(int i) const { return std::max(0, diagonal(i) - beam_); }
  int diagonal(int i) const { return i == 0 ? 0 : static_cast<int>(std::floor(i * ratio_)); }

  // Returns d_ij from row i of the table, where element 0 is column first_column(i). If j is
  // outside the band, the cost is infinite.
  int cost(int i, int j, const int* row) const {
    int column = j - first_column(i);
    return column >= 0 && column < width_ ? row[column] : kInfinity;
  }

  // d_ij = min(d_{i−1,j−1} + [h_i ≠ r_j], d_{i−1,j} + 1, d_{i,j−1} + 1)
  void fill(int i, uint32_t word, const int* above, int* here) const {
    int first = first_column(i), shift = first - first_column(i - 1);
    int last = i == H_ ? R_ + 1 : std::min(R_ + 1, diagonal(i) + beam_);
    auto up = [&](int k) { return k >= 0 && k < width_ ? above[k] : kInfinity; };
    int left = kInfinity, up_left = up(shift - 1);
    for (int j = first, k = 0; j < last; ++j, ++k) {
      int up_here = up(k + shift);
      int best = std::min(up_here, left) + 1;
      if (j > 0) best = std::min(best, up_left + (word == reference_[at(j - 1)] ? 0 : 1));
      here[k] = left = std::min(best, kInfinity);
      up_left = up_here;
    }
    std::fill(here + std::max(0, last - first), here + width_, kInfinity);
  }

  std::span<const uint32_t> reference_;
  int H_, R_, beam_, width_;
  double ratio_;
  std::vector<int> table_;                // [H + 1, width]
  std::array<std::vector<int>, 2> rows_;  // the two latest rows of a candidate
};

struct Shift {
  int start, length, target;

  // In a hypothesis of length `size`, the shift changes the positions [first, last).
  int first() const { return std::min(start, target); }
  int last(int size) const {
    if (target < start) return start + length;
    return target > start + length ? target : std::min(size, length + target);
  }
};

// Moves the run of words before word `target`. If `target` is inside the run, moves the run right
// by target − start words.
void move_run(const Shift& shift, Words& words) {
  auto at = [&](int i) { return words.begin() + i; };
  int end = shift.start + shift.length;
  if (shift.target < shift.start) {
    std::rotate(at(shift.target), at(shift.start), at(end));
  } else {
    std::rotate(at(shift.start), at(end), at(shift.last(static_cast<int>(words.size()))));
  }
}

class ShiftSearch {
 public:
  ShiftSearch(std::span<const uint32_t> hypothesis, std::span<const uint32_t> reference)
      : words_(hypothesis.begin(), hypothesis.end()), reference_(reference),
        table_(reference, static_cast<int>(hypothesis.size())) {}

  int run() {
    int shifts = 0;
    while (std::optional<Shift> shift = best_shift()) {
      move_run(*shift, words_);
      ++shifts;
    }
    return shifts + table_.compute(words_);
  }

 private:
  // The rank of a shift: gain, length of the run, −start, −target. So a larger gain is better, then
  // a longer run, then an earlier start, then an earlier target.
  using Rank = std::tuple<int, int, int, int>;

  // Returns the best shift. If no shift reduces the edits or too many shifts have been tried,
  // returns nothing.
  std::optional<Shift> best_shift() {
    before_ = table_.compute(words_);
    alignment_ = table_.align(words_);
    best_ = {0, 0, 0, 0};
    int H = static_cast<int>(words_.size()), R = static_cast<int>(reference_.size());
    for (int h = 0; h < H; ++h) {
      for (int r = std::max(0, h - kFarthestShift); r < std::min(R, h + kFarthestShift + 1); ++r) {
        int longest = std::min({kLongestShift, H - h, R - r});
        for (int n = 0; n < longest && words_[at(h + n)] == reference_[at(r + n)]; ++n) {
          try_run(h, r, n + 1);
          if (tried_ >= kMostCandidates) return std::nullopt;
        }
      }
    }
    auto [gain, length, start, target] = best_;
    if (gain <= 0) return std::nullopt;
    return Shift{-start, length, -target};
  }

  // Tries to move a run of `length` words from hypothesis position h to reference position r. Skips
  // the run if it is correct where it is, or if the reference words already have matches.
  void try_run(int h, int r, int length) {
    const auto& a = alignment_;
    if (a.hypothesis_errors[at(h + length)] == a.hypothesis_errors[at(h)]) return;
    if (a.reference_errors[at(r + length)] == a.reference_errors[at(r)]) return;
    if (h <= a.hypothesis_of[at(r)] && a.hypothesis_of[at(r)] < h + length) return;
    int previous = -1;
    for (int position = r - 1; position < r + length; ++position) {
      int target = position < 0 ? 0 : a.hypothesis_of[at(position)] + 1;
      if (target == previous) continue;
      previous = target;
      Shift shift{h, length, target};
      shifted_ = words_;
      move_run(shift, shifted_);
      int last = shift.last(static_cast<int>(words_.size()));
      int gain = before_ - table_.distance(shifted_, shift.first(), last);
      best_ = std::max(best_, Rank{gain, length, -h, -target});
      ++tried_;
    }
  }

  static size_t at(int i) { return static_cast<size_t>(i); }

  Words words_, shifted_;
  std::span<const uint32_t> reference_;
  EditTable table_;
  EditTable::Alignment alignment_;
  Rank best_;
  int before_ = 0, tried_ = 0;
};

}  // namespace

int count_edits(std::span<const uint32_t> hypothesis, std::span<const uint32_t> reference) {
  if (reference.empty()) return static_cast<int>(hypothesis.size());
  return ShiftSearch(hypothesis, reference).run();
}

}  // namespace fovea

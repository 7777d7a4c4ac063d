#include "explain/attention_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "decode/attention_alignment.h"

namespace fovea {
namespace {

// Places between pieces, from 0, as places between words. Beyond both ends a piece is a word.
class Places {
 public:
  explicit Places(const std::vector<int>& words) : words_(words) {}

  double operator()(double piece) const {
    const double last = static_cast<double>(words_.size()) - 1;
    if (words_.empty() || piece < -0.5) return piece;
    if (piece > last + 0.5) return words_.back() + (piece - last);
    const auto k = static_cast<size_t>(std::clamp(std::floor(piece + 0.5), 0.0, last));
    const auto [first, end] = std::equal_range(words_.begin(), words_.end(), words_[k]);
    const auto from = static_cast<double>(first - words_.begin());
    const auto size = static_cast<double>(end - first);
    return words_[k] - 0.5 + (piece - (from - 0.5)) / size;
  }

 private:
  const std::vector<int>& words_;
};

// Makes the marks of one map, target word by target word.
class MarkMaker {
 public:
  MarkMaker(const AttentionMap& map, const PictureSide& rows, const PictureSide& cols)
      : map_(map), rows_(rows), cols_(cols), place_(cols.words) {}

  MatrixAnnotations make() {
    marks_.note = note();
    if (map_.mechanism == "static") marks_.rows = MatrixAnnotations::Rows::same;
    for (size_t first = 0; first < rows_.words.size();) {
      size_t end = first;
      while (end < rows_.words.size() && rows_.words[end] == rows_.words[first]) ++end;
      add_word(first, end);
      first = end;
    }
    return std::move(marks_);
  }

 private:
  // The target word that consists of rows first … end − 1.
  void add_word(size_t first, size_t end) {
    if (!map_.position.empty()) add_window(first, end);
    if (!map_.kappa.empty()) add_kappa(first, end);
    if (!map_.soft.empty()) add_choice(first, end);
    if (!map_.frontier.empty()) {
      const int32_t f = *std::min_element(map_.frontier.begin() + static_cast<int64_t>(first),
                                          map_.frontier.begin() + static_cast<int64_t>(end));
      marks_.frontier.push_back(static_cast<float>(place_(f - 0.5)));
    }
  }

  void add_window(size_t first, size_t end) {
    const double D = static_cast<double>(map_.window), pieces = static_cast<double>(map_.cols);
    double mean = 0, low = pieces - 0.5, high = -0.5;
    for (size_t i = first; i < end; ++i) {
      const double p = static_cast<double>(map_.position[i]) - 1;  // counted from 0
      mean += p / static_cast<double>(end - first);
      low = std::min(low, std::max(-0.5, std::floor(p + 0.5) - D - 0.5));  // ⌊p_t + ½⌋ ± D
      high = std::max(high, std::min(pieces - 0.5, std::floor(p + 0.5) + D + 0.5));
    }
    marks_.position.push_back(static_cast<float>(place_(mean)));
    marks_.window.push_back({static_cast<float>(place_(low)), static_cast<float>(place_(high))});
    if (map_.sigma > 0)
      marks_.deviation.push_back(
          static_cast<float>((place_(mean + map_.sigma) - place_(mean - map_.sigma)) / 2));
  }

  void add_kappa(size_t first, size_t end) {
    const size_t K = map_.kappa.size() / static_cast<size_t>(map_.rows);
    std::vector<float> places;
    for (size_t k = 0; k < K; ++k) {
      double mean = 0;
      for (size_t i = first; i < end; ++i)
        mean += static_cast<double>(map_.kappa[i * K + k]) / static_cast<double>(end - first);
      places.push_back(static_cast<float>(place_(mean - 1)));
    }
    marks_.kappa.push_back(std::move(places));
  }

  void add_choice(size_t first, size_t end) {
    std::set<size_t> words;
    for (size_t i = first; i < end; ++i) {
      const auto row = map_.weights.begin() + static_cast<int64_t>(i) * map_.cols;
      const auto piece = static_cast<size_t>(std::max_element(row, row + map_.cols) - row);
      words.insert(static_cast<size_t>(cols_.words[piece]));
    }
    marks_.chosen.emplace_back(words.begin(), words.end());
  }

  std::string note() const {
    const std::string& kind = map_.mechanism;
    if (kind == "local-m")
      return fmt::format(
          "local-m: piece t looks around piece t of the source, at most {} to each side.",
          map_.window);
    if (kind == "local-p")
      return fmt::format(
          "local-p: p_t is predicted; weights are a softmax over {} pieces to each side of it "
          "times a Gaussian of deviation {} pieces, so that a row sums to less than 1.",
          map_.window, map_.sigma);
    if (kind == "window")
      return fmt::format(
          "window: the middles of {} Gaussians, which only move forward; weights are drawn "
          "normalised.",
          map_.kappa.size() / static_cast<size_t>(std::max<int64_t>(map_.rows, 1)));
    if (kind.starts_with("hard"))
      return kind +
             ": each piece reads the one it chose; shades show the distribution behind the choice. "
             "A word of several pieces is their mean; A picture of pieces shows each choice.";
    if (kind == "forward")
      return "forward: words before the frontier have no weight, and what earlier steps took is "
             "missing. The frontier is attention.slack words (default 1) behind the last focus.";
    if (kind == "static")
      return "static: weights are computed once and are the same for every target word.";
    return "";
  }

  const AttentionMap& map_;
  const PictureSide &rows_, &cols_;
  Places place_;
  MatrixAnnotations marks_;
};

}  // namespace

PictureSide picture_side(const Vocabulary& vocabulary, std::span<const int32_t> ids,
                         PictureUnit unit) {
  if (unit == PictureUnit::words) return {vocabulary.words(ids), vocabulary.words_of(ids)};
  PictureSide side{vocabulary.pieces(ids), {}};
  for (size_t i = 0; i < ids.size(); ++i) side.words.push_back(static_cast<int>(i));
  return side;
}

AttentionMatrix attention_picture(std::span<const AttentionMap> maps, const PictureSide& rows,
                                  const PictureSide& cols, const std::string& title) {
  const AttentionMap& only = maps.front();
  const bool hard = maps.size() == 1 && !only.soft.empty();
  const SoftAlignment pieces =
      hard ? SoftAlignment{only.rows, only.cols, only.soft} : mean_attention(maps, only.kind);
  AttentionMatrix matrix{
      cols.labels, rows.labels, by_word(pieces, rows.words, cols.words).weights, title, {}};
  if (maps.size() == 1) matrix.marks = MarkMaker(only, rows, cols).make();
  return matrix;
}

}  // namespace fovea

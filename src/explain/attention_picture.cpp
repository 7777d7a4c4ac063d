#include "explain/attention_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "attention/registry.h"
#include "decode/attention_alignment.h"

namespace fovea {
namespace {

// A converter of positions in pieces to positions in words. Positions count from 0 and need not be
// whole numbers. Beyond both ends of the sentence, one piece counts as one word.
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

// A converter of the series of one attention map from pieces to words. If a target word has several
// pieces, it gets the mean of their values.
class MarkMaker {
 public:
  MarkMaker(const AttentionMap& map, const PictureSide& rows, const PictureSide& cols)
      : map_(map), cols_(cols), place_(cols.words) {
    for (size_t first = 0; first < rows.words.size();) {
      size_t end = first;
      while (end < rows.words.size() && rows.words[end] == rows.words[first]) ++end;
      words_.push_back({first, end});
      first = end;
    }
  }

  MatrixAnnotations make() {
    MatrixAnnotations marks;
    if (const AttentionMechanism* mechanism = find_mechanism(map_.mechanism)) {
      marks.note = fmt::format("{}: {}", map_.mechanism, mechanism->about.note);
      if (mechanism->rows == AttentionMechanism::Rows::same)
        marks.rows = MatrixAnnotations::Rows::same;
    }
    for (const NamedSeries& series : map_.series) {
      if (series.kind == Kind::position) position_ = &series, half_width_ = nullptr;
      if (series.kind == Kind::half_width) half_width_ = &series;
      MatrixSeries mark = empty_mark(series);
      for (const TargetWord& word : words_) mark.places.push_back(places_of(series, word));
      marks.series.push_back(std::move(mark));
    }
    return marks;
  }

 private:
  using Kind = NamedSeries::Kind;
  struct TargetWord {  // the rows first … end − 1 of the map are the pieces of the word
    size_t first, end;
  };

  MatrixSeries empty_mark(const NamedSeries& series) const {
    using Mark = MatrixSeries::Kind;
    switch (series.kind) {
      case Kind::position:
        return {Mark::position, series.name, series.label};
      case Kind::half_width:
        return {Mark::window, series.name, series.label};
      case Kind::deviation:
        return {Mark::gaussian, position_->name, position_->label};
      case Kind::centres:
        return {Mark::centres, series.name, series.label};
      case Kind::distribution:
        return {Mark::chosen, series.name, series.label};
      case Kind::frontier:
        break;
    }
    return {Mark::frontier, series.name, series.label};
  }

  std::vector<float> places_of(const NamedSeries& series, TargetWord word) const {
    switch (series.kind) {
      case Kind::position:
        return {place(mean(series, word, 0) - 1)};
      case Kind::half_width:
        return window(word);
      case Kind::deviation:
        return gaussian(static_cast<double>(series.values.front()), word);
      case Kind::centres:
        return centres(series, word);
      case Kind::distribution:
        return choices(word);
      case Kind::frontier:
        break;
    }
    const auto at = series.values.begin();
    return {place(static_cast<double>(*std::min_element(at + std::ptrdiff_t(word.first),
                                                        at + std::ptrdiff_t(word.end))) -
                  0.5)};
  }

  float place(double piece) const { return static_cast<float>(place_(piece)); }

  // Returns the mean of number k of the series over the rows (pieces) of a target word.
  double mean(const NamedSeries& series, TargetWord word, size_t k) const {
    const size_t each = series.values.size() / static_cast<size_t>(map_.rows);
    double sum = 0;
    for (size_t i = word.first; i < word.end; ++i)
      sum += static_cast<double>(series.values[i * each + k]);
    return sum / static_cast<double>(word.end - word.first);
  }

  // Returns the edges of the window ⌊p_t + ½⌋ ± D in words. If there is no D, returns the edges of
  // the whole sentence.
  std::vector<float> window(TargetWord word) const {
    const double last = static_cast<double>(map_.cols) - 0.5;
    if (!half_width_) return {place(-0.5), place(last)};
    const auto D = static_cast<double>(half_width_->values.front());
    double low = last, high = -0.5;
    for (size_t i = word.first; i < word.end; ++i) {
      const double middle = std::floor(static_cast<double>(position_->values[i]) - 0.5);  // from 0
      low = std::min(low, std::max(-0.5, middle - D - 0.5));
      high = std::max(high, std::min(last, middle + D + 0.5));
    }
    return {place(low), place(high)};
  }

  std::vector<float> gaussian(double sigma, TargetWord word) const {
    const double p = mean(*position_, word, 0) - 1;
    const std::vector<float> edges = window(word);
    return {place(p), static_cast<float>((place_(p + sigma) - place_(p - sigma)) / 2), edges[0],
            edges[1]};
  }

  std::vector<float> centres(const NamedSeries& series, TargetWord word) const {
    const size_t K = series.values.size() / static_cast<size_t>(map_.rows);
    std::vector<float> places;
    for (size_t k = 0; k < K; ++k) places.push_back(place(mean(series, word, k) - 1));
    return places;
  }

  std::vector<float> choices(TargetWord word) const {
    std::set<int> chosen;
    for (size_t i = word.first; i < word.end; ++i) {
      const auto row = map_.weights.begin() + static_cast<int64_t>(i) * map_.cols;
      const auto piece = static_cast<size_t>(std::max_element(row, row + map_.cols) - row);
      chosen.insert(cols_.words[piece]);
    }
    return {chosen.begin(), chosen.end()};
  }

  const AttentionMap& map_;
  const PictureSide& cols_;
  Places place_;
  std::vector<TargetWord> words_;
  const NamedSeries *position_ = nullptr, *half_width_ = nullptr;  // the last of its kind so far
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
  const NamedSeries* choice =
      maps.size() == 1 ? only.find(NamedSeries::Kind::distribution) : nullptr;
  const SoftAlignment pieces = choice ? SoftAlignment{only.rows, only.cols, choice->values}
                                      : mean_attention(maps, only.kind);
  AttentionMatrix matrix{
      cols.labels, rows.labels, by_word(pieces, rows.words, cols.words).weights, title, {}};
  if (maps.size() == 1) matrix.marks = MarkMaker(only, rows, cols).make();
  return matrix;
}

}  // namespace fovea

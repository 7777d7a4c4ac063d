#include "train/pretrained.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/check.h"
#include "base/log.h"
#include "text/pieces.h"

namespace fovea {
namespace {

constexpr size_t kExamples = 5;

// What a piece may be called in a file of vectors, the likeliest first.
std::vector<std::string_view> spellings(const Vocabulary& vocabulary, int32_t id) {
  const std::string_view piece = vocabulary.name(id);
  std::vector<std::string_view> names{piece};
  if (vocabulary.cut() == Cut::sentencepiece && piece.size() > kBlank.size() &&
      piece.starts_with(kBlank))
    names.push_back(piece.substr(kBlank.size()));
  return names;
}

int64_t find_piece(const WordVectors& vectors, const Vocabulary& vocabulary, int32_t id) {
  for (const std::string_view name : spellings(vocabulary, id))
    if (const int64_t at = vectors.find(name); at >= 0) return at;
  return -1;
}

double mean_square(std::span<const double> values) {
  double sum = 0;
  for (const double x : values) sum += x * x;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace

std::string FilledRows::summary() const {
  const int64_t all = found() + missing;
  std::string text =
      fmt::format("found {} of {} pieces ({:.1f} %)", with_commas(found()), with_commas(all),
                  all == 0 ? 0.0 : 100.0 * static_cast<double>(found()) / static_cast<double>(all));
  if (missing > 0)
    text += fmt::format(", missing {}: {}{}", with_commas(missing), fmt::join(examples, ", "),
                        missing > static_cast<int64_t>(examples.size()) ? ", …" : "");
  return text;
}

WordVectors read_vectors_for(const std::string& path, const Vocabulary& vocabulary) {
  std::unordered_set<std::string_view> wanted;
  for (int32_t id = 0; id < vocabulary.size(); ++id)
    for (const std::string_view name : spellings(vocabulary, id)) wanted.insert(name);
  VectorReadOptions options;
  options.bad_utf8 = BadUtf8::skip;  // no piece of a vocabulary could be meant
  options.wanted = [&](std::string_view word) { return wanted.contains(word); };
  return WordVectors::read(path, options);
}

FilledRows fill_embeddings(const WordVectors& vectors, const Vocabulary& vocabulary,
                           const ParameterStore::Parameter& table, RowScale scale) {
  const Shape expected{vocabulary.size(), vectors.size()};
  check(table.tensor.shape() == expected, Exit::data, "parameter '", table.name, "' has shape ",
        table.tensor.shape(), ", the vocabulary and the word vectors have ", expected,
        "; make the embeddings of the model as large as the vectors");
  FilledRows filled;
  std::vector<double> values = table.tensor.values(), taken;
  const double before = mean_square(values);
  std::vector<std::pair<int64_t, int64_t>> copies;  // row, word
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const int64_t word = find_piece(vectors, vocabulary, id);
    if (word >= 0) {
      copies.emplace_back(id, word);
      if (id >= kSpecials) filled.rows.push_back(id);
      taken.insert(taken.end(), vectors.vector(word).begin(), vectors.vector(word).end());
    } else if (id >= kSpecials) {
      ++filled.missing;
      if (filled.examples.size() < kExamples) filled.examples.emplace_back(vocabulary.name(id));
    }
  }
  const double after = mean_square(taken);
  const double factor =
      scale == RowScale::like_table && after > 0 && before > 0 ? std::sqrt(before / after) : 1;
  for (const auto& [row, word] : copies)
    for (int64_t j = 0; j < vectors.size(); ++j)
      values[row * vectors.size() + j] = factor * static_cast<double>(vectors.vector(word)[j]);
  table.tensor.assign(values);
  return filled;
}

void freeze_rows(const ParameterStore& store, const ParameterStore::Parameter& table,
                 std::span<const int32_t> rows) {
  const int64_t size = table.tensor.size(1);
  const auto zero = [&](auto* gradient) {
    for (const int32_t row : rows)
      std::fill_n(gradient + table.offset + row * size, size, decltype(*gradient + 0){0});
  };
  const Tensor gradients = store.gradients();
  gradients.type() == Type::f32 ? zero(gradients.data<float>()) : zero(gradients.data<double>());
}

}  // namespace fovea

#include "train/pretrained.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "base/sip_hash.h"
#include "text/tokenization.h"

namespace fovea {
namespace {

constexpr size_t kExamples = 5;
constexpr std::string_view kSource = "vectors.source", kTarget = "vectors.target";

// Returns the possible names of a piece in a file of vectors, the most likely first.
std::vector<std::string_view> spellings(const Vocabulary& vocabulary, int32_t id) {
  const std::string_view piece = vocabulary.name(id);
  std::vector<std::string_view> names{piece};
  if (vocabulary.cut() == Segmentation::sentencepiece && piece.size() > kBlank.size() &&
      piece.starts_with(kBlank))
    names.push_back(piece.substr(kBlank.size()));
  return names;
}

int64_t find_piece(const WordVectors& vectors, const Vocabulary& vocabulary, int32_t id) {
  for (const std::string_view name : spellings(vocabulary, id))
    if (const int64_t at = vectors.find(name); at >= 0) return at;
  return -1;
}

void check_size(const WordVectors& vectors, const ParameterStore::Parameter& table,
                const std::string& path, const ModelConfig& config) {
  const int64_t found = vectors.size(), wanted = table.tensor.size(1);
  check(found == wanted, ExitCode::data, path, ": the vectors have size ", found,
        ", the embeddings of the model have size ", wanted, "; set ",
        config.as<TransformerConfig>() ? "model.size" : "model.embedding", " to ", found,
        " or use vectors of size ", wanted);
}

std::string fingerprint(const WordVectors& vectors) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < vectors.words(); ++i) {
    sum = crc32c(as_byte_span(std::string(vectors.word(i)) + '\n'), sum);
    sum = crc32c(std::as_bytes(vectors.vector(i)), sum);
  }
  return fmt::format("{}-{:08x}", vectors.words(), sum);
}

std::vector<StoreRange> ranges_of(const std::vector<bool>& chosen) {
  std::vector<StoreRange> ranges;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (!chosen[i]) continue;
    if (i == 0 || !chosen[i - 1]) ranges.push_back({static_cast<int64_t>(i), 0});
    ++ranges.back().size;
  }
  return ranges;
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
  std::unordered_set<std::string_view, TableHash> wanted;
  for (int32_t id = 0; id < vocabulary.size(); ++id)
    for (const std::string_view name : spellings(vocabulary, id)) wanted.insert(name);
  VectorReadOptions options;
  options.bad_utf8 = BadUtf8::skip;  // such a word matches no piece of a vocabulary
  options.wanted = [&](std::string_view word) { return wanted.contains(word); };
  return WordVectors::read(path, options);
}

FilledRows fill_embeddings(const WordVectors& vectors, const Vocabulary& vocabulary,
                           const ParameterStore::Parameter& table, RowScale scale) {
  const Shape expected{vocabulary.size(), vectors.size()};
  check(table.tensor.shape() == expected, ExitCode::data, "parameter '", table.name, "' has shape ",
        table.tensor.shape(), ", the vocabulary and the word vectors need ", expected,
        "; set the size of the embeddings to that of the vectors");
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

namespace {

// Calls each(setting, path, vocabulary) for the files that are set, first for the target file. If
// one table serves both sides, the vectors of the source then overwrite those of the target.
template <class Each>
void for_each_file(const TrainOptions& options, const Vocabulary& source, const Vocabulary& target,
                   Each each) {
  const auto path = [&](const std::string& file) {
    return options.data.under_root({file}).front();
  };
  const VectorOptions& from = options.vectors;
  if (!from.target.empty()) each(std::string(kTarget), path(from.target), target);
  if (!from.source.empty()) each(std::string(kSource), path(from.source), source);
}

std::pair<std::string, std::string> identity_of(const std::string& setting,
                                                const WordVectors& vectors) {
  return {setting + " (contents)", fingerprint(vectors)};
}

}  // namespace

FirstVectors take_vectors(const TrainOptions& options, const Vocabulary& source,
                          const Vocabulary& target, const ParameterStore& store) {
  const VectorOptions& from = options.vectors;
  const auto* const source_table = store.find("source/E");
  const auto* const own_table = store.find("target/E");
  FirstVectors first;
  std::vector<bool> frozen(static_cast<size_t>(store.size()), false);
  for_each_file(
      options, source, target,
      [&](const auto& setting, const auto& path, const Vocabulary& vocabulary) {
        const auto& table = own_table && setting == kTarget ? *own_table : *source_table;
        const WordVectors vectors = read_vectors_for(path, vocabulary);
        check_size(vectors, table, path, options.model);
        const FilledRows filled = fill_embeddings(
            vectors, vocabulary, table, from.rescale ? RowScale::like_table : RowScale::as_given);
        check(filled.found() > 0, ExitCode::data, path, ": ", filled.summary(),
              "; use vectors of the same language, letter case and word splitting as the ",
              "vocabulary");
        log_info("{} {}: {}; training {} them", setting, path, filled.summary(),
                 from.frozen ? "does not change" : "tunes");
        if (!from.frozen) return;
        const int64_t size = vectors.size();
        for (const int32_t row : filled.rows)
          std::fill_n(frozen.begin() + table.offset + row * size, size, true);
        first.identity.push_back(identity_of(setting, vectors));
      });
  first.frozen = ranges_of(frozen);
  return first;
}

RunIdentity identity_of_vectors(const TrainOptions& options, const Vocabulary& source,
                                const Vocabulary& target) {
  RunIdentity identity;
  if (options.vectors.frozen)
    for_each_file(options, source, target,
                  [&](const auto& setting, const auto& path, const Vocabulary& vocabulary) {
                    identity.push_back(identity_of(setting, read_vectors_for(path, vocabulary)));
                  });
  return identity;
}

}  // namespace fovea

#include "train/data.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/log.h"
#include "decode/package.h"

namespace fovea {
namespace {

Vocabulary build(const VocabularyOptions& how, const std::vector<std::string>& files,
                 uint64_t seed) {
  const int32_t size = static_cast<int32_t>(how.size);
  const CountOptions count{.min_count = how.min_count, .max_size = size};
  switch (how.kind) {
    case VocabularyKind::words:
      return build_word_vocabulary(files, count);
    case VocabularyKind::characters:
      return build_character_vocabulary(files, count);
    case VocabularyKind::pieces:
      return build_piece_vocabulary(files, count);
    default:
      break;
  }
  SentencePieceOptions pieces;
  pieces.model = how.kind == VocabularyKind::bpe ? SubwordModel::bpe : SubwordModel::unigram;
  pieces.size = size;
  pieces.character_coverage = how.character_coverage;
  pieces.seed = seed;
  log_info("learning {} pieces", with_commas(size));
  return train_sentencepiece(files, pieces);
}

bool has_vocabulary(const std::string& directory) {
  std::error_code error;
  for (const char* name : {"vocab.spm", "vocab.txt", "source.spm", "source.txt"})
    if (!directory.empty() && std::filesystem::exists(directory + "/" + name, error)) return true;
  return false;
}

Lines read_lines(const std::vector<std::string>& paths) {
  Lines lines;
  for (const std::string& path : paths) {
    LineReader reader(path);
    for (Line line; reader.next(line);) lines.push_back(clean_line(line.text).text);
  }
  return lines;
}

HeldOut read_held_out(const TrainData& data, const std::vector<std::string>& sources,
                      const std::vector<std::string>& targets, int64_t longest) {
  HeldOut text;
  if (sources.empty()) return text;
  const CorpusOptions how{.max_length = longest, .bad_utf8 = BadUtf8::replace};
  text.corpus = Corpus::read(sources, targets, data.source, data.target, how);
  text.sources = read_lines(sources);
  text.references = read_lines(targets);
  if (data.target.cut() == Cut::pieces)  // compared as words, as translations come out
    for (std::string& line : text.references) line = data.target.normalise(line);
  check(!text.empty(), Exit::data, sources.front(),
        ": no line is left to measure with: ", text.corpus.counts().summary());
  return text;
}

std::string hexadecimal(uint64_t number) { return fmt::format("{:016x}", number); }

void fit(int64_t& words, const char* name, const Vocabulary& vocabulary) {
  check(words == 0 || words == vocabulary.size(), Exit::data, name, " is ", words,
        ", the vocabulary has ", vocabulary.size(), " entries; leave it at 0");
  words = vocabulary.size();
}

}  // namespace

void load_vocabularies(TrainData& data, const TrainOptions& options,
                       const std::string& model_directory) {
  const VocabularyOptions& how = options.vocabulary;
  const auto sources = options.data.under_root(options.data.train_source);
  const auto targets = options.data.under_root(options.data.train_target);
  if (!how.source.empty()) {
    const std::string target = how.target.empty() ? how.source : how.target;
    data.source = Vocabulary::load(options.data.under_root({how.source}).front());
    data.target = Vocabulary::load(options.data.under_root({target}).front());
  } else if (has_vocabulary(model_directory)) {
    const Vocabularies both = load_vocabularies(model_directory);
    data.source = both.source;
    data.target = both.target;
  } else if (how.joint) {
    std::vector<std::string> files = sources;
    files.insert(files.end(), targets.begin(), targets.end());
    data.source = data.target = build(how, files, options.train.seed);
  } else {
    data.source = build(how, sources, options.train.seed);
    data.target = build(how, targets, options.train.seed);
  }
}

void load_text(TrainData& data, const TrainOptions& options) {
  const DataOptions& from = options.data;
  const auto sources = from.under_root(from.train_source);
  const auto targets = from.under_root(from.train_target);
  data.train = Corpus::read(sources, targets, data.source, data.target, from.corpus);
  check(data.train.size() > 0, Exit::data, sources.front(),
        ": no line is left to train on: ", data.train.counts().summary());
  const int64_t longest = options.model.max_length - 1;
  data.valid = read_held_out(data, from.under_root(from.valid_source),
                             from.under_root(from.valid_target), longest);
  data.test = read_held_out(data, from.under_root(from.test_source),
                            from.under_root(from.test_target), longest);
}

void fit_model(ModelConfig& model, const TrainData& data) {
  fit(model.source_words, "model.source_words", data.source);
  fit(model.target_words, "model.target_words", data.target);
  model.check(Exit::data);
}

Identity identity_of(const TrainOptions& options, const TrainData& data) {
  Identity identity{
      {"data.train (contents)", hexadecimal(data.train.fingerprint())},
      {"data.valid (contents)", hexadecimal(data.valid.corpus.fingerprint())},
      {"vocabulary.source (contents)", hexadecimal(data.source.fingerprint())},
      {"vocabulary.target (contents)", hexadecimal(data.target.fingerprint())},
  };
  TrainOptions copy = options;
  Settings settings;
  copy.describe(settings);
  for (const auto& [path, value] : settings.values()) {
    const bool shape = path.starts_with("model.") && path.find("dropout") == std::string::npos;
    const bool built = options.vocabulary.source.empty() && path.starts_with("vocabulary.");
    if (shape || built || path.starts_with("batch.") || path == "train.seed" ||
        path == "train.accumulate")
      identity.emplace_back(path, value);
  }
  return identity;
}

}  // namespace fovea

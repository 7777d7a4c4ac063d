#include "train/training_data.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/log.h"
#include "decode/generation_defaults.h"
#include "decode/model_bundle.h"
#include "models/adapter_directory.h"
#include "train/classification_data.h"

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
    case VocabularyKind::tokens:
      return build_token_vocabulary(files, count);
    default:
      break;
  }
  SentencePieceOptions pieces;
  pieces.model = how.kind == VocabularyKind::bpe ? SubwordModel::bpe : SubwordModel::unigram;
  pieces.size = size;
  pieces.character_coverage = how.character_coverage;
  pieces.byte_fallback = how.byte_fallback;
  pieces.seed = seed;
  log_info("learning {} pieces from the training text; this may take minutes", with_commas(size));
  Vocabulary vocabulary = train_sentencepiece(files, pieces);
  if (vocabulary.size() < size)
    log_warning("vocabulary.size: {} pieces requested, the text allows only {}", with_commas(size),
                with_commas(vocabulary.size()));
  return vocabulary;
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
    for (TextLine line; reader.next(line);) lines.push_back(clean_line(line.text).text);
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
  if (data.target.cut() == Segmentation::pieces)  // translations are also joined to words
    for (std::string& line : text.references) line = data.target.normalise(line);
  check(!text.empty(), ExitCode::data, sources.front(),
        ": no line is left for validation or testing: ", text.corpus.counts().summary());
  return text;
}

// Returns the value of a "(contents)" entry of a RunIdentity: fingerprint, blank, count.
std::string contents(uint64_t fingerprint, int64_t count) {
  return fmt::format("{:016x} {}", fingerprint, count);
}

// Returns the part of an error message that names the folders in which a file was looked for.
std::string looked_in(const DataOptions& data, const std::string& path) {
  std::error_code error;
  if (path.starts_with('/') || std::filesystem::exists(data.under_root({path}).front(), error))
    return "";
  const auto name_of = [&](const std::string& folder) {
    if (!folder.empty()) return folder;
    return "the current folder " + std::filesystem::current_path(error).string();
  };
  std::string folders;
  for (const std::string& folder : data.looked_in)
    folders += (folders.empty() ? "" : ", ") + name_of(folder);
  if (folders.empty()) folders = name_of(data.root);
  return "; searched in " + folders + "; set the folder of the text with `data` DIR";
}

// Opens a text file and reads its first line. Throws if the encoding or the compression is wrong.
void check_readable(const DataOptions& data, const char* setting, const std::string& path) {
  if (path == "-") return;
  try {
    LineReader reader(data.under_root({path}).front());
    TextLine line;
    reader.next(line);
  } catch (const Error& error) {
    fail(error.code(), setting, ": ", error.what(), looked_in(data, path));
  }
}

// Throws if the file cannot be read. It need not be text.
void check_exists(const DataOptions& data, const char* setting, const std::string& path) {
  try {
    const MappedFile file(data.under_root({path}).front());
  } catch (const Error& error) {
    fail(error.code(), setting, ": ", error.what(), looked_in(data, path));
  }
}

// Checks that source and target files have the same number of lines. Call it before making a
// vocabulary, which takes minutes.
void check_lines(const DataOptions& data) {
  check_partners(data.under_root(data.train_source), data.under_root(data.train_target),
                 data.under_root(data.alignments));
  const std::pair<const std::vector<std::string>&, const std::vector<std::string>&> texts[] = {
      {data.valid_source, data.valid_target}, {data.test_source, data.test_target}};
  for (const auto& [sources, targets] : texts)
    if (!sources.empty() || !targets.empty())
      check_partners(data.under_root(sources), data.under_root(targets));
}

// Whether the parameters depend on this setting of the model.
bool is_shape(const std::string& path) {
  return path.find("dropout") == std::string::npos && !path.starts_with("model.alignment_") &&
         !path.starts_with("model.generation.") && path != "model.languages";
}

void fit(int64_t& words, const char* name, const Vocabulary& vocabulary) {
  check(words == 0 || words == vocabulary.size(), ExitCode::data, name, " is ", words,
        ", but the vocabulary has ", vocabulary.size(), " entries; set it to 0");
  words = vocabulary.size();
}

}  // namespace

void check_files(const TrainOptions& options) {
  const DataOptions& data = options.data;
  const std::pair<const char*, const std::vector<std::string>&> lists[] = {
      {"data.train_source", data.train_source},
      {"data.train_target", data.train_target},
      {"data.valid_source", data.valid_source},
      {"data.valid_target", data.valid_target},
      {"data.test_source", data.test_source},
      {"data.test_target", data.test_target},
      {"data.alignments", data.alignments},
      {"data.train", data.train},
      {"data.valid", data.valid},
      {"data.test", data.test}};
  for (const auto& [setting, paths] : lists)
    for (const std::string& path : paths) check_readable(data, setting, path);
  const VocabularyOptions& words = options.vocabulary;
  if (!words.source.empty()) check_readable(data, "vocabulary.source", words.source);
  if (!words.target.empty()) check_readable(data, "vocabulary.target", words.target);
  const VectorOptions& vectors = options.vectors;
  if (!vectors.source.empty()) check_exists(data, "vectors.source", vectors.source);
  if (!vectors.target.empty()) check_exists(data, "vectors.target", vectors.target);
}

void check_directory(const std::string& directory, const ModelConfig& model) {
  std::error_code error;
  const auto has = [&](const char* name) {
    return std::filesystem::exists(directory + "/" + name, error);
  };
  const char* const advice =
      "; choose another directory with `output`, or start over with `restart`";
  const bool begun = !FileSeries(directory + "/checkpoints", "checkpoint").numbers().empty();
  check(
      begun || !(has(kWeightsFile) || has(kAdapterFile)), ExitCode::usage, directory,
      ": the directory holds a model, but no checkpoint to resume from; training would overwrite ",
      "the model", advice);
  if (!begun || !has(kConfigFile)) return;
  RunIdentity saved;
  try {
    saved = network_settings(load_config(directory));
  } catch (const Error&) {
    return;  // checkpoints have the shape, too; training writes config.yml again
  }
  const std::string other = difference(saved, network_settings(model));
  check(other.empty(), ExitCode::usage, directory,
        ": the directory holds a model with other settings: ", other, advice);
}

RunIdentity network_settings(ModelConfig model) {
  Settings settings;
  settings.group("model", model);
  RunIdentity shape;
  for (const auto& [path, value] : settings.values())
    if (is_shape(path) && !path.ends_with("_words")) shape.emplace_back(path, value);
  return shape;
}

namespace {

// Logs the shares of the files in an epoch. There must be a pair.
void check_weights(const Corpus& text, const std::vector<std::string>& files) {
  if (text.parts().empty()) return;
  const auto all = static_cast<double>(BatchPlan(text, {}, 0).pairs());
  check(all > 0, ExitCode::data, "data.weights: no pair is left for training; set a weight that ",
        "is more than 0, and so large that an epoch has a pair");
  int64_t begin = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    const auto& [end, weight] = text.parts()[i];
    const double pairs = weight * static_cast<double>(end - begin);
    log_info("data.weights: {}: {} pairs × {:g}, {:.1f} % of the pairs of an epoch", files[i],
             with_commas(end - begin), weight, 100 * pairs / all);
    begin = end;
  }
}

void take_vocabularies(TrainData& data, const std::string& directory) {
  const VocabularyPair both = load_vocabularies(directory);
  for (const std::string& file : both.files) log_info("using the existing vocabulary {}", file);
  data.source = both.source;
  data.target = both.target;
}

void make_vocabularies(TrainData& data, const TrainOptions& options) {
  const VocabularyOptions& how = options.vocabulary;
  const auto sources = options.data.under_root(options.data.train_source);
  const auto targets = options.data.under_root(options.data.train_target);
  check_lines(options.data);
  if (how.joint) {
    std::vector<std::string> files = sources;
    files.insert(files.end(), targets.begin(), targets.end());
    data.source = data.target = build(how, files, options.train.seed);
  } else {
    data.source = build(how, sources, options.train.seed);
    data.target = build(how, targets, options.train.seed);
  }
}

}  // namespace

void load_vocabularies(TrainData& data, const TrainOptions& options,
                       const std::string& model_directory) {
  const VocabularyOptions& how = options.vocabulary;
  const bool labelled = options.data.labelled();
  if (!how.source.empty() && !labelled) {
    const std::string target = how.target.empty() ? how.source : how.target;
    data.source = Vocabulary::load(options.data.under_root({how.source}).front());
    data.target = Vocabulary::load(options.data.under_root({target}).front());
  } else if (has_vocabulary(model_directory)) {
    take_vocabularies(data, model_directory);
  } else if (labelled) {
    build_labelled_vocabularies(data, options);
  } else if (!options.train.from.empty()) {
    take_vocabularies(data, options.train.from);
  } else {
    make_vocabularies(data, options);
  }
  if (how.add.empty()) return;
  data.source = data.source.with_pieces(how.add);
  if (!labelled) data.target = data.target.with_pieces(how.add);
}

void load_text(TrainData& data, const TrainOptions& options) {
  if (options.data.labelled()) return load_examples(data, options);
  const DataOptions& from = options.data;
  const auto sources = from.under_root(from.train_source);
  const auto targets = from.under_root(from.train_target);
  const auto links = from.under_root(from.alignments);
  data.train = Corpus::read(sources, targets, data.source, data.target, from.corpus, links);
  check(data.train.size() > 0, ExitCode::data, sources.front(),
        ": no line is left for training: ", data.train.counts().summary());
  check_weights(data.train, sources);
  if (!links.empty()) {
    check(data.train.links() > 0, ExitCode::data, links.front(),
          ": no pair that is left for training has a link; omit data.alignments");
    log_info("alignments: {} links between pieces", with_commas(data.train.links()));
  }
  const SentenceFrame frame = sentence_frame(options.model.generation, data.source, data.target);
  data.train.set_frame(frame);
  const int64_t longest = options.model.max_length - options.model.generation.added_pieces();
  data.valid = read_held_out(data, from.under_root(from.valid_source),
                             from.under_root(from.valid_target), longest);
  data.test = read_held_out(data, from.under_root(from.test_source),
                            from.under_root(from.test_target), longest);
  data.valid.corpus.set_frame(frame);
  data.test.corpus.set_frame(frame);
}

void fit_model(ModelConfig& model, const TrainData& data) {
  fit(model.source_words, "model.source_words", data.source);
  fit(model.target_words, "model.target_words", data.target);
  model.check(ExitCode::data);
}

RunIdentity identity_of(const TrainOptions& options, const TrainData& data) {
  RunIdentity identity{
      {"data.train (contents)", contents(data.train.fingerprint(), data.train.size())},
      {"data.valid (contents)",
       contents(data.valid.corpus.fingerprint(), data.valid.corpus.size())},
      {"vocabulary.source (contents)", contents(data.source.fingerprint(), data.source.size())},
      {"vocabulary.target (contents)", contents(data.target.fingerprint(), data.target.size())},
  };
  if (!options.train.from.empty()) {
    const SafetensorsFile file = SafetensorsFile::open(weights_file(options.train.from));
    identity.emplace_back("train.from (contents)",
                          contents(fingerprint_of(file), std::ssize(file.tensors())));
  }
  TrainOptions copy = options;
  for (const auto& [path, value] : Settings(copy).values()) {
    if (path == "vocabulary.add") continue;  // its effect is in the contents of the vocabularies
    const bool shape = path.starts_with("model.") && is_shape(path);
    const bool built = options.vocabulary.source.empty() && path.starts_with("vocabulary.");
    const bool first = options.vectors.given() && path.starts_with("vectors.");
    const bool adapter = options.train.lora.rank > 0 && path.starts_with("train.lora.");
    if (shape || built || first || adapter || path.starts_with("batch.") || path == "train.seed" ||
        path == "train.accumulate" || (path == "data.weights" && !options.data.weights.empty()))
      identity.emplace_back(path, value);
  }
  return identity;
}

}  // namespace fovea

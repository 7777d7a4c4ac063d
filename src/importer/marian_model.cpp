#include "importer/marian_model.h"

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "base/files.h"
#include "formats/tensor_archive.h"
#include "importer/folder_files.h"
#include "importer/import_model.h"
#include "importer/language_pieces.h"
#include "importer/marian_weights.h"
#include "importer/option_table.h"
#include "importer/source_licence.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxText = size_t{1} << 28;
constexpr size_t kMaxOptions = size_t{1} << 20;

bool is_model_file(const std::string& name) {
  const bool side_file = name.starts_with("lex.") || name.find(".optimizer.") != name.npos;
  return !side_file && (name.ends_with(".npz") || name.ends_with(".bin"));
}

// The files of a model of Marian, relative to its directory.
struct MarianFiles {
  std::unique_ptr<ModelFolder> folder;
  std::string model;
  OptionTable decoder;  // of decoder.yml or config.yml; empty if there is none
};

// The options of a decoder, if a file of the directory has them for this model.
OptionTable decoder_options(const ModelFolder& folder, const std::string& model) {
  for (const std::string& name : folder.names()) {
    if (name.find('/') != name.npos || !name.ends_with(".yml")) continue;
    if (name.ends_with("vocab.yml")) continue;
    OptionTable options(folder.read_text(name, kMaxOptions), folder.path_of(name));
    const auto models = options.list("models");
    const bool of_model = std::ranges::any_of(models, [&](const std::string& path) {
      return model.empty() || fs::path(path).filename() == model;
    });
    if (of_model) return options;
  }
  return {};
}

MarianFiles open_files(const std::string& path) {
  std::error_code error;
  const bool file = fs::is_regular_file(path, error);
  const std::string name = file ? fs::path(path).filename().string() : "";
  MarianFiles files{ModelFolder::open(file ? parent_directory(path) : path), name, {}};
  files.decoder = decoder_options(*files.folder, name);
  if (file) return files;
  std::vector<std::string> models = files.decoder.list("models");
  if (models.empty())
    std::ranges::copy_if(files.folder->names(), std::back_inserter(models), is_model_file);
  check(models.size() == 1, ExitCode::model, path, ": found ", models.size(),
        " models of Marian, expected one; name the .npz or .bin file to import");
  files.model = fs::path(models.front()).filename().string();
  return files;
}

// The vocabulary files of both sides.
std::pair<std::string, std::string> vocabulary_files(const MarianFiles& files) {
  std::vector<std::string> names;
  for (const std::string& path : files.decoder.list("vocabs"))
    names.push_back(fs::path(path).filename().string());
  if (names.empty())
    for (const std::string& name : files.folder->names())
      if (name.find('/') == name.npos && name.find("vocab") != name.npos &&
          (name.ends_with(".spm") || name.ends_with(".yml")))
        names.push_back(name);
  check(!names.empty() && names.size() <= 2, ExitCode::model, files.folder->path(), ": found ",
        names.size(), " vocabularies, expected one or two: vocab.*.spm or *.vocab.yml, or the ",
        "option vocabs of decoder.yml; copy all files of the model");
  const auto source = std::ranges::find_if(
      names, [](const std::string& name) { return name.starts_with("srcvocab"); });
  if (source == names.begin() + 1) std::swap(names.front(), names.back());
  return {names.front(), names.back()};
}

struct MarianSide {
  ForeignPieces pieces;
  Vocabulary text;
};

// One side: a SentencePiece vocabulary, or one in YAML with the SentencePiece model SIDE.spm.
MarianSide read_side(const ModelFolder& folder, const std::string& vocabulary,
                     const std::string& spm) {
  const std::string path = folder.path_of(vocabulary);
  const std::string bytes = folder.read_text(vocabulary, kMaxText);
  const bool is_spm = vocabulary.ends_with(".spm");
  std::vector<std::string> names =
      is_spm ? sentencepiece_names(bytes, path) : marian_names(bytes, path);
  const SpecialNames specials{if_present(names, "<pad>"), if_present(names, "<s>"),
                              if_present(names, "</s>"), if_present(names, "<unk>")};
  MarianSide side;
  const LanguagePieces languages = languages_between(names, ">>", "<<");
  std::vector<std::string> controls;
  for (const auto& [code, piece] : languages) controls.push_back(piece);
  side.pieces = ForeignPieces(std::move(names), specials, controls, path);
  check(is_spm || folder.contains(spm), ExitCode::model, folder.path(), ": found no ", spm,
        ", expected the SentencePiece model of this side; other tokenizers are not supported");
  side.text = is_spm ? import_sentencepiece(bytes, side.pieces.order(), path)
                     : import_sentencepiece(folder.read_text(spm, kMaxText), side.pieces.order(),
                                            folder.path_of(spm));
  return side;
}

GenerationConfig generation_of(const OptionTable& decoder, const ForeignPieces& target) {
  GenerationConfig g;
  g.start = zero_start(target);
  g.beam = decoder.integer("beam-size", 12);
  g.length_penalty = decoder.number("normalize", 0);
  if (decoder.number("word-penalty", 0) != 0) decoder.reject("word-penalty", "0");
  g.suppress = {"<unk>"};
  return g;
}

}  // namespace

bool is_marian(const std::string& path) {
  std::error_code error;
  const fs::path name = fs::path(path).filename();
  if (fs::is_regular_file(path, error)) return is_model_file(name.string());
  if (!fs::is_directory(path, error)) return false;
  for (const auto& entry : fs::directory_iterator(path, error))
    if (is_model_file(entry.path().filename().string())) return true;
  return false;
}

ImportedModel import_marian(const ImportSource& source) {
  const MarianFiles files = open_files(source.path);
  const auto archive = open_tensor_archive(files.folder->read(files.model));
  const auto found = archive->metadata().find("special:model.yml");
  check(found != archive->metadata().end(), ExitCode::model, archive->path(),
        ": found no special:model.yml, expected the options of the model; only files written by ",
        "Marian are supported");
  const OptionTable options(found->second, archive->path() + ": special:model.yml");
  const auto [source_file, target_file] = vocabulary_files(files);
  const MarianSide from = read_side(*files.folder, source_file, "source.spm");
  const MarianSide to = read_side(*files.folder, target_file, "target.spm");

  ImportedModel model;
  model.config = marian_config(options, from.pieces, to.pieces);
  model.config.generation = generation_of(files.decoder, to.pieces);
  model.config.languages = language_pair(source.from, source.to);
  check_imported(model.config, options.path());
  model.weights = std::make_unique<ImportedWeights>(model.config, archive->path());
  WeightMapping weights(*archive, *model.weights);
  map_marian(weights, model.config, options, *archive, from.pieces, to.pieces);
  model.source = from.text;
  model.target = to.text;
  model.notes = {.program = "Marian",
                 .model = "transformer, " + options.text("version", "unknown version"),
                 .licence = licence_of(files.folder->path()),
                 .weights = stored_types(*archive),
                 .remarks = {}};
  return model;
}

}  // namespace fovea

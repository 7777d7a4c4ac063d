#include "importer/ctranslate2_model.h"

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "base/utf8.h"
#include "formats/ctranslate2_archive.h"
#include "importer/ctranslate2_weights.h"
#include "importer/folder_files.h"
#include "importer/foreign_pieces.h"
#include "importer/foreign_settings.h"
#include "importer/import_model.h"
#include "importer/language_pieces.h"
#include "importer/source_licence.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModelFile = "model.bin";
constexpr size_t kMaxText = size_t{1} << 28;
constexpr int64_t kLongestTranslation = 256;  // CTranslate2's max_decoding_length

// The files of a model or package.
struct PackageFiles {
  std::unique_ptr<ModelFolder> files;
  std::string folder;    // of model.bin: "" or "model/"
  std::string metadata;  // of a package of Argos Translate; "" if there is none

  bool is_argos() const { return !metadata.empty(); }
};

PackageFiles open_package(const std::string& path) {
  PackageFiles package{ModelFolder::open(path), "", ""};
  const std::string model = file_named(*package.files, kModelFile);
  check(!model.empty(), ExitCode::model, path, ": found no ", kModelFile,
        ", expected the directory of a model of CTranslate2, or a package with one");
  package.folder = model.substr(0, model.size() - std::string_view(kModelFile).size());
  package.metadata = file_named(*package.files, "metadata.json");
  return package;
}

// The pieces of one side. `names`: the possible names of its file without the extension.
ForeignPieces pieces_of(const PackageFiles& package, const ForeignSettings& config,
                        const std::vector<std::string>& names) {
  std::string found;
  for (const std::string& name : names)
    for (const char* extension : {".json", ".txt"})
      if (found.empty() && package.files->contains(package.folder + name + extension))
        found = package.folder + name + extension;
  check(!found.empty(), ExitCode::model, package.files->path_of(package.folder),
        ": found no vocabulary, expected ", names.front(), ".json or ", names.front(),
        ".txt; copy all files of the model");
  const std::string text = package.files->read_text(found, kMaxText);
  const std::string path = package.files->path_of(found);
  std::vector<std::string> pieces =
      found.ends_with(".json") ? json_names(text, path) : line_names(text, path);
  std::string pad = if_present(pieces, "<pad>");
  if (pad.empty()) pad = if_present(pieces, "<blank>");
  const SpecialNames specials{pad, if_present(pieces, config.text("bos_token", "<s>")),
                              if_present(pieces, config.text("eos_token", "</s>")),
                              if_present(pieces, config.text("unk_token", "<unk>"))};
  return {std::move(pieces), specials, {}, path};
}

// The text of both sides: SentencePiece models beside the model, or in the package.
void read_tokenizers(const PackageFiles& package, const ForeignPieces& source,
                     const ForeignPieces& target, ImportedModel& model) {
  const ModelFolder& files = *package.files;
  const std::string joint =
      first_file_named(files, {"sentencepiece.model", "spm.model", "sentencepiece.bpe.model"});
  const std::string own_source = joint.empty() ? file_named(files, "source.spm") : joint;
  const std::string own_target = joint.empty() ? file_named(files, "target.spm") : joint;
  check(!own_source.empty() && !own_target.empty(), ExitCode::model, files.path(),
        ": found no tokenizer, expected sentencepiece.model, or source.spm and target.spm; copy ",
        "the SentencePiece model into the directory, other tokenizers are not supported");
  const auto load = [&](const std::string& name, const ForeignPieces& pieces) {
    return import_sentencepiece(files.read_text(name, kMaxText), pieces.order(),
                                files.path_of(name));
  };
  model.source = load(own_source, source);
  model.target = load(own_target, target);
}

// The settings of translation: the defaults of CTranslate2, or of Argos Translate.
GenerationConfig generation_of(const ForeignSettings& config, const ForeignPieces& target,
                               bool starts_from_zero, bool argos) {
  GenerationConfig g;
  g.beam_rule = BeamRule::transformers;
  g.early_stopping = EarlyStopping::yes;
  g.beam = argos ? 4 : 2;
  g.length_penalty = argos ? 0.2 : 1;
  g.min_length = 2;  // a piece and </s>
  g.max_length = kLongestTranslation;
  g.forced_end = false;
  g.source_end = config.flag("add_source_eos", false);
  if (config.flag("add_source_bos", false)) g.source_prefix = {"<s>"};
  if (starts_from_zero) {
    g.start = zero_start(target);
    return g;
  }
  const std::string start = config.text("decoder_start_token", config.text("bos_token", "<s>"));
  g.start = start == config.text("bos_token", "<s>")    ? "<s>"
            : start == config.text("eos_token", "</s>") ? "</s>"
                                                        : start;
  return g;
}

std::vector<std::string> languages_of(const ImportSource& source, const ForeignSettings& package) {
  const std::string from = source.from.empty() ? package.text("from_code", "") : source.from;
  const std::string to = source.to.empty() ? package.text("to_code", "") : source.to;
  return language_pair(from, to);
}

std::string licence_in(const PackageFiles& package) {
  const std::string readme = file_named(*package.files, "README.md");
  return readme.empty() ? "" : licence_in_text(package.files->read_text(readme, size_t{1} << 20));
}

}  // namespace

bool is_ctranslate2(const std::string& path) {
  std::error_code error;
  const fs::path folder(path);
  return path.ends_with(".argosmodel") || fs::is_regular_file(folder / kModelFile, error) ||
         fs::is_regular_file(folder / "model" / kModelFile, error);
}

ImportedModel import_ctranslate2(const ImportSource& source) {
  const PackageFiles package = open_package(source.path);
  const ForeignSettings config = settings_of(*package.files, package.folder + "config.json");
  const ForeignSettings metadata = settings_of(*package.files, package.metadata);
  const CTranslate2Archive archive(package.files->read(package.folder + kModelFile));
  const bool joint = package.files->contains(package.folder + "shared_vocabulary.json") ||
                     package.files->contains(package.folder + "shared_vocabulary.txt");
  const ForeignPieces from =
      pieces_of(package, config, {joint ? "shared_vocabulary" : "source_vocabulary"});
  const ForeignPieces to = joint ? from : pieces_of(package, config, {"target_vocabulary"});

  ImportedModel model;
  model.config = ctranslate2_config(archive, config, from, to);
  model.config.generation =
      generation_of(config, to, ctranslate2_starts_from_zero(archive), package.is_argos());
  model.config.languages = languages_of(source, metadata);
  check_imported(model.config, archive.path());
  model.weights = std::make_unique<ImportedWeights>(model.config, archive.path());
  WeightMapping weights(archive, *model.weights);
  map_ctranslate2(weights, archive, model.config, from, to);
  read_tokenizers(package, from, to, model);
  const bool argos = package.is_argos();
  model.notes = {.program = argos ? "Argos Translate (CTranslate2)" : "CTranslate2",
                 .model = archive.metadata().at("spec") + ", binary version " +
                          archive.metadata().at("version"),
                 .licence = licence_in(package),
                 .weights = stored_types(archive),
                 .remarks = {}};
  return model;
}

}  // namespace fovea

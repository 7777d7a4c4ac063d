#include "importer/fairseq_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "base/files.h"
#include "formats/tensor_archive.h"
#include "importer/fairseq_weights.h"
#include "importer/folder_files.h"
#include "importer/import_model.h"
#include "importer/language_pieces.h"
#include "importer/source_licence.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxText = size_t{1} << 28;

struct FairseqFiles {
  std::unique_ptr<ModelFolder> folder;
  std::string checkpoint;
};

std::vector<std::string> files_like(const ModelFolder& folder, std::string_view beginning,
                                    std::string_view ending) {
  std::vector<std::string> found;
  for (const std::string& name : folder.names()) {
    const std::string_view base = std::string_view(name).substr(name.rfind('/') + 1);
    if (base.starts_with(beginning) && base.ends_with(ending)) found.push_back(name);
  }
  return found;
}

FairseqFiles open_files(const std::string& path) {
  std::error_code error;
  const bool file = fs::is_regular_file(path, error);
  FairseqFiles files{ModelFolder::open(file ? parent_directory(path) : path), ""};
  if (file) {
    files.checkpoint = fs::path(path).filename().string();
    return files;
  }
  files.checkpoint =
      first_file_named(*files.folder, {"checkpoint_best.pt", "model.pt", "checkpoint_last.pt"});
  const auto all = files_like(*files.folder, "", ".pt");
  if (files.checkpoint.empty() && all.size() == 1) files.checkpoint = all.front();
  check(!files.checkpoint.empty(), ExitCode::model, path, ": found ", all.size(),
        " files *.pt, expected one, or checkpoint_best.pt; name the file to import");
  return files;
}

// The dictionaries of the directory by language.
LanguagePieces dictionaries(const ModelFolder& folder) {
  LanguagePieces found;
  for (const std::string& name : files_like(folder, "dict.", ".txt")) {
    const std::string base = name.substr(name.rfind('/') + 1);
    if (base.size() > 9) found[base.substr(5, base.size() - 9)] = name;
  }
  check(!found.empty(), ExitCode::model, folder.path(), ": found no dictionaries, expected ",
        "dict.LANGUAGE.txt of both sides; copy them into the directory of the checkpoint");
  return found;
}

ForeignPieces pieces_of(const ModelFolder& folder, const std::string& name) {
  const std::string path = folder.path_of(name);
  return {fairseq_names(folder.read_text(name, kMaxText), path),
          {"<pad>", "<s>", "</s>", "<unk>"},
          {},
          path};
}

// The segmentation of both sides: merges of subword-nmt, a SentencePiece model, or none.
void read_tokenizers(const ModelFolder& folder, const ForeignPieces& source,
                     const ForeignPieces& target, ImportedModel& model) {
  const std::string codes = first_file_named(
      folder, {"bpe.code", "bpe.codes", "bpecodes", "bpe_codes", "codes", "code", "codes.txt"});
  const std::string spm =
      first_file_named(folder, {"sentencepiece.bpe.model", "sentencepiece.model", "spm.model"});
  const auto load = [&](const ForeignPieces& pieces) {
    if (!codes.empty())
      return import_subword_nmt(folder.read_text(codes, kMaxText), pieces.order(),
                                folder.path_of(codes));
    if (!spm.empty())
      return import_sentencepiece(folder.read_text(spm, kMaxText), pieces.order(),
                                  folder.path_of(spm));
    return import_pieces(pieces.order(), pieces.file());
  };
  model.source = load(source);
  model.target = load(target);
  if (codes.empty() && spm.empty())
    model.notes.remarks.emplace_back(
        "no segmentation was found (bpe.codes, spm.model): texts must already be cut into pieces");
}

// The defaults of fairseq-generate.
GenerationConfig default_generation() {
  GenerationConfig g;
  g.start = "</s>";
  g.beam = 5;
  g.length_penalty = 1;
  g.beam_rule = BeamRule::transformers;
  g.early_stopping = EarlyStopping::yes;
  g.min_length = 2;    // a piece and </s>
  g.max_length = 201;  // max_len_b, and </s>
  g.suppress = {"<pad>"};
  return g;
}

}  // namespace

bool is_fairseq(const std::string& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return path.ends_with(".pt");
  if (!fs::is_directory(path, error)) return false;
  const auto folder = ModelFolder::open(path);
  return !files_like(*folder, "", ".pt").empty() && !files_like(*folder, "dict.", ".txt").empty();
}

ImportedModel import_fairseq(const ImportSource& source) {
  const FairseqFiles files = open_files(source.path);
  const auto archive = open_tensor_archive(files.folder->read(files.checkpoint));
  const OptionTable options = fairseq_options(*archive);
  const LanguagePieces all = dictionaries(*files.folder);
  const auto choose = [&](const std::string& given, const char* key, const char* field) {
    const std::string code = given.empty() ? options.text(key, "") : given;
    return choose_language(all, code, field, source.path);
  };
  const ChosenLanguage from = choose(source.from, "source_lang", "from"),
                       to = choose(source.to, "target_lang", "to");
  const ForeignPieces source_pieces = pieces_of(*files.folder, from.piece),
                      target_pieces = pieces_of(*files.folder, to.piece);
  ImportedModel model;
  model.config = fairseq_config(options, source_pieces, target_pieces);
  model.config.generation = default_generation();
  model.config.languages = language_pair(from.code, to.code);
  check_imported(model.config, options.path());
  model.weights = std::make_unique<ImportedWeights>(model.config, archive->path());
  WeightMapping weights(*archive, *model.weights);
  map_fairseq(weights, model.config, *archive, source_pieces, target_pieces);
  model.notes = {.program = "fairseq",
                 .model = options.text("arch", "transformer"),
                 .licence = licence_of(files.folder->path()),
                 .weights = stored_types(*archive),
                 .remarks = {}};
  read_tokenizers(*files.folder, source_pieces, target_pieces, model);
  return model;
}

}  // namespace fovea

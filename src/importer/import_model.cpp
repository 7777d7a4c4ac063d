#include "importer/import_model.h"

#include <unistd.h>

#include <filesystem>

#include "base/check.h"
#include "base/files.h"
#include "base/settings.h"
#include "decode/model_bundle.h"
#include "importer/ctranslate2_model.h"
#include "importer/fairseq_model.h"
#include "importer/hf_checkpoint.h"
#include "importer/import_readme.h"
#include "importer/marian_model.h"
#include "models/model_directory.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// A directory that appears under its name when it is complete. Its files are written to a
// directory beside it. The destructor removes them if commit() was not called.
class NewDirectory {
 public:
  explicit NewDirectory(const std::string& path)
      : path_(path), temporary_(path + ".import-" + std::to_string(getpid())) {
    std::error_code error;
    fs::create_directories(temporary_, error);
    check(!error, ExitCode::files, temporary_, ": cannot be created: ", error.message());
  }
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;
  ~NewDirectory() {
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
  }
  const std::string& temporary() const { return temporary_; }

  void commit() {
    std::error_code error;
    fs::rename(temporary_, path_, error);  // replaces an empty directory
    check(!error, ExitCode::files, path_, ": cannot be created: ", error.message());
    sync_directory(parent_directory(path_));
  }

  // Moves the files into the existing directory. Vocabularies with other names are removed: the
  // directory would otherwise hold two.
  void commit_into() {
    std::error_code error;
    for (const char* name : {"vocab", "source", "target"})
      for (const char* ending : {".spm", ".txt", ".json"})
        fs::remove(fs::path(path_) / (std::string(name) + ending), error);
    for (const auto& entry : fs::directory_iterator(temporary_)) {
      fs::rename(entry.path(), fs::path(path_) / entry.path().filename(), error);
      check(!error, ExitCode::files, path_, ": cannot be written: ", error.message());
    }
    sync_directory(path_);
  }

 private:
  std::string path_, temporary_;
};

// Returns whether the directory exists and has files.
bool has_files(const std::string& directory) {
  std::error_code error;
  if (!fs::exists(directory, error)) return false;
  check(fs::is_directory(directory, error), ExitCode::usage, directory,
        ": this is a file, expected a directory for the model; choose another `output`");
  return !fs::is_empty(directory, error);
}

}  // namespace

void check_imported(const ModelConfig& config, const std::string& path) {
  ModelConfig copy = config, read;
  Settings written, checked;
  written.group("model", copy);
  checked.group("model", read);
  checked.read_text(written.dump(), path, ExitCode::model);
  try {
    config.check(ExitCode::model);
  } catch (const Error& error) {
    fail(ExitCode::model, path, ": Fovea has no such network: ", error.what());
  }
}

ForeignFormat detect_format(const std::string& path) {
  std::error_code error;
  check(fs::exists(path, error), ExitCode::model, path,
        ": there is no such file or directory; download the model, docs/models.md tells where");
  const fs::path folder(path);
  check(!is_file(folder / kConfigFile) || !is_file(folder / kWeightsFile), ExitCode::usage, path,
        ": this is already a Fovea model; use it as it is");
  if (is_ctranslate2(path)) return ForeignFormat::ctranslate2;
  if (is_file(folder / "config.json")) return ForeignFormat::hugging_face;
  if (is_fairseq(path)) return ForeignFormat::fairseq;
  if (is_marian(path)) return ForeignFormat::marian;
  fail(ExitCode::model, path, ": the format is not known; expected a directory of Hugging Face ",
       "(config.json) or CTranslate2 (model.bin), an .argosmodel file, a model of Marian ",
       "(.npz or .bin) with its vocabulary, or one of fairseq (.pt) with its dictionaries");
}

ImportedModel read_foreign_model(const ImportSource& source) {
  switch (detect_format(source.path)) {
    case ForeignFormat::ctranslate2:
      return import_ctranslate2(source);
    case ForeignFormat::fairseq:
      return import_fairseq(source);
    case ForeignFormat::marian:
      return import_marian(source);
    case ForeignFormat::hugging_face:
      break;
  }
  return import_hf(source);
}

void write_imported(const ImportedModel& model, const std::string& directory, StoredType stored) {
  model.weights->write(directory + "/" + kWeightsFile, stored);
  save_vocabularies(directory, model.source, model.target);
  save_config(directory, model.config);
}

ImportedModel import_model(const ImportRequest& request) {
  const bool existing = has_files(request.output);
  check(!existing || request.replace, ExitCode::usage, request.output,
        ": the directory is not empty; choose another `output`, or use `force` to replace the ",
        "model in it");
  ImportedModel model = read_foreign_model(request.source);
  NewDirectory directory(fs::path(request.output).lexically_normal().string());
  write_imported(model, directory.temporary(), request.stored);
  write_atomically(directory.temporary() + "/README.md", import_readme(request, model));
  if (existing)
    directory.commit_into();
  else
    directory.commit();
  return model;
}

}  // namespace fovea

#include "decode/model_bundle.h"

#include <filesystem>

#include "decode/generation_defaults.h"
#include "models/adapter_directory.h"

namespace fovea {
namespace {

// Returns the path of the vocabulary file NAME.spm or NAME.txt, or "" if there is none.
std::string vocabulary_file(const std::string& directory, const std::string& name) {
  std::string found;
  for (const char* ending : {".spm", ".txt"}) {
    const std::string path = (std::filesystem::path(directory) / (name + ending)).string();
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    check(found.empty(), ExitCode::model, directory, ": found both ", name, ".spm and ", name,
          ".txt, one is expected; keep the one that the model was trained with");
    found = path;
  }
  return found;
}

void check_size(const std::string& file, const Vocabulary& vocabulary, const std::string& directory,
                const char* key, int64_t expected) {
  check(vocabulary.size() == expected, ExitCode::model, file, ": ", vocabulary.size(),
        " pieces, but ", key, " of ", directory, "/", kConfigFile, " is ", expected,
        "; use the vocabulary that the model was trained with");
}

}  // namespace

VocabularyPair load_vocabularies(const std::string& directory) {
  const std::string joint = vocabulary_file(directory, "vocab"),
                    source = vocabulary_file(directory, "source"),
                    target = vocabulary_file(directory, "target");
  const bool two = !source.empty() && !target.empty();
  check(joint.empty() || (source.empty() && target.empty()), ExitCode::model, directory,
        ": found a joint vocabulary (vocab.*) and also source.* or target.*; keep the files that ",
        "the model was trained with");
  check(!joint.empty() || two, ExitCode::model, directory,
        ": found no vocabulary, expected vocab.spm or ",
        "vocab.txt, or source.* and target.*; copy the files that the model was trained with");
  if (two) return {Vocabulary::load(source), Vocabulary::load(target), {source, target}};
  const Vocabulary both = Vocabulary::load(joint);
  return {both, both, {joint}};
}

void save_vocabularies(const std::string& directory, const Vocabulary& source,
                       const Vocabulary& target) {
  const std::filesystem::path folder(directory);
  const auto save = [&](const std::string& name, const Vocabulary& vocabulary) {
    vocabulary.save((folder / (name + vocabulary.extension())).string());
  };
  if (source.fingerprint() == target.fingerprint()) return save("vocab", source);
  save("source", source);
  save("target", target);
}

ModelBundle load_package(const std::string& directory, Device device, const std::string& adapter) {
  const ModelConfig config = load_config(directory);
  VocabularyPair words = load_vocabularies(directory);
  check_size(words.files.front(), words.source, directory, "model.source_words",
             config.source_words);
  check_size(words.files.back(), words.target, directory, "model.target_words",
             config.target_words);
  SentenceFrame frame = sentence_frame(config.generation, words.source, words.target);
  search_defaults(config.generation, words.target);  // names all missing pieces before the weights
  LoadedModel loaded = load_model(directory, ElementType::f32, device);
  if (!adapter.empty()) merge_adapter(adapter, directory, loaded.model->parameters());
  loaded.model->set_frame(std::move(frame));
  return {directory, loaded.config, std::move(loaded.model),
          words.source.with_compatible_characters(), words.target};
}

void check_ensemble(const std::vector<ModelBundle>& bundles) {
  const ModelBundle& first = bundles.front();
  for (const ModelBundle& other : bundles) {
    const bool same = other.source.fingerprint() == first.source.fingerprint() &&
                      other.target.fingerprint() == first.target.fingerprint();
    check(same, ExitCode::model, other.directory, ": the vocabularies differ from those of ",
          first.directory, "; the models of an ensemble must have the same vocabularies");
    check(other.model->frame() == first.model->frame(), ExitCode::model, other.directory,
          ": model.generation names other pieces around a sentence than that of ", first.directory,
          "; the models of an ensemble must have the same");
  }
}

}  // namespace fovea

#include "decode/package.h"

#include <filesystem>

namespace fovea {
namespace {

// The file of this name with an ending of a vocabulary; "" if there is none.
std::string find(const std::string& directory, const std::string& name) {
  std::string found;
  for (const char* ending : {".spm", ".txt"}) {
    const std::string path = (std::filesystem::path(directory) / (name + ending)).string();
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    check(found.empty(), Exit::model, directory, ": there are ", name, ".spm and ", name,
          ".txt; keep the one that the model was trained with");
    found = path;
  }
  return found;
}

void check_size(const std::string& file, const Vocabulary& vocabulary, const std::string& directory,
                const char* key, int64_t expected) {
  check(vocabulary.size() == expected, Exit::model, file, ": ", vocabulary.size(), " pieces, but ",
        key, " of ", directory, "/", kConfigFile, " is ", expected,
        "; this is not the vocabulary the model was trained with");
}

}  // namespace

Vocabularies load_vocabularies(const std::string& directory) {
  const std::string joint = find(directory, "vocab"), source = find(directory, "source"),
                    target = find(directory, "target");
  const bool two = !source.empty() && !target.empty();
  check(joint.empty() || (source.empty() && target.empty()), Exit::model, directory,
        ": there is a joint vocabulary (vocab.*) beside source.* or target.*; keep the one that ",
        "the model was trained with");
  check(!joint.empty() || two, Exit::model, directory, ": no vocabulary: expected vocab.spm or ",
        "vocab.txt, or source.* and target.*; copy what the model was trained with");
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

Package load_package(const std::string& directory, Device device) {
  const ModelConfig config = load_config(directory);
  Vocabularies words = load_vocabularies(directory);
  check_size(words.files.front(), words.source, directory, "model.source_words",
             config.source_words);
  check_size(words.files.back(), words.target, directory, "model.target_words",
             config.target_words);
  LoadedModel loaded = load_model(directory, Type::f32, device);
  return {directory, loaded.config, std::move(loaded.model), words.source, words.target};
}

void check_ensemble(const std::vector<Package>& packages) {
  const Package& first = packages.front();
  for (const Package& other : packages) {
    const bool same = other.source.fingerprint() == first.source.fingerprint() &&
                      other.target.fingerprint() == first.target.fingerprint();
    check(same, Exit::model, other.directory, ": its vocabulary is not that of ", first.directory,
          "; the models of an ensemble must share their vocabularies");
  }
}

}  // namespace fovea

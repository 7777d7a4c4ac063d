#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/embeddings.h"
#include "decode/model_bundle.h"
#include "decode/translator.h"
#include "serve/training_history.h"
#include "vectors/neighbours.h"

namespace fovea {

// The decoding options of a request. Sentences with equal options can share batches.
struct DecodeOptions {
  int64_t beam = 4, n_best = 1;
  double length_penalty = 0.6;
  bool alignment = false;  // ignored if the model has no attention
  bool attention = false;
  std::vector<int32_t> prefix = {};  // forced first pieces of every translation
  WordWhatIf what_if = {};           // only for a sentence with its own batch

  bool operator==(const DecodeOptions&) const = default;
};

// Returns whether a client still waits for a sentence. The search calls it before each step.
using StillWanted = std::function<bool(int64_t number)>;

// Receives words of a translation as soon as they are final. At any time, the concatenated
// arguments are a prefix of the text of the translation.
using PrefixCallback = std::function<void(const std::string& more)>;

// A stream of the final words of one sentence. It passes on complete words only, because further
// pieces of a word may change its spelling.
class PrefixStream {
 public:
  PrefixStream(const Vocabulary& vocabulary, PrefixCallback callback)
      : vocabulary_(vocabulary), callback_(std::move(callback)) {}
  void update(const Beam& beam);

 private:
  const Vocabulary& vocabulary_;
  PrefixCallback callback_;
  size_t seen_ = 0;
  std::string sent_;
};

// A decoding session: sentences with the same options that a model translates step by step.
// Sentences may be added during the session if the model supports it. With an intervention
// (`what_if`) it has a single sentence. Not thread-safe. The bundle must outlive it.
class TranslationSession {
 public:
  TranslationSession(const ModelBundle& package, const DecodeOptions& decoding, StillWanted wanted);

  bool empty() const { return rolling_.empty(); }
  struct Sentence {
    int64_t number;  // the caller's id of the sentence, unique among those under way
    const std::string& text;
    PrefixCallback on_prefix = nullptr;  // may be null
  };
  void add(std::span<const Sentence> sentences);
  // Decodes one more word of each sentence. Returns the sentences that are done. Sentences that are
  // no longer wanted may have no translations.
  std::vector<RollingTranslation::Done> step();

 private:
  TranslateOptions options(const ModelBundle& package, const DecodeOptions& decoding,
                           StillWanted wanted);

  const Vocabulary& vocabulary_;
  std::map<int64_t, PrefixStream> prefix_streams_;  // by number of the sentence
  Translator translator_;
  RollingTranslation rolling_;
};

// The embeddings of one side with an index for nearest-neighbour search.
struct WordIndex {
  explicit WordIndex(WordVectors all) : vectors(std::move(all)), search(vectors) {}
  WordVectors vectors;
  NeighbourSearch search;
};

// The name by which clients select a model.
struct ModelName {
  std::string name, source, target;  // source, target: language codes
  bool gallery = false;              // one of the tiny models of the gallery
};

// A model that is served for one pair of languages. Thread-safe.
class ServedModel {
 public:
  ServedModel(std::string name, std::string source, std::string target, ModelBundle package,
              std::shared_ptr<const TrainingHistory> training = nullptr);
  // A function that loads the weights when they are first needed.
  using Load = std::function<ModelBundle()>;
  ServedModel(ModelName name, const ModelConfig& config, Load load);

  const std::string& name() const { return name_.name; }
  const std::string& source() const { return name_.source; }
  const std::string& target() const { return name_.target; }
  bool of_gallery() const { return name_.gallery; }
  const ModelConfig& config() const { return config_; }
  int64_t parameters() const { return parameters_; }
  const ModelBundle& package() const;  // loads it if needed; throws ExitCode::model if unreadable
  bool loaded() const { return loaded_; }  // does not wait for a thread that loads the model
  // Whether sentences can join a running session. False before loaded().
  bool can_extend() const { return can_extend_; }
  const TrainingHistory* training() const { return training_.get(); }  // null without --run
  // Returns a copy of the embeddings, which the first call makes. Throws ExitCode::model if there
  // are none.
  const WordIndex& words(LanguageSide side) const;

 private:
  ModelName name_;
  ModelConfig config_;
  int64_t parameters_;
  Load load_;
  std::shared_ptr<const TrainingHistory> training_;
  mutable std::mutex loading_;
  mutable std::optional<ModelBundle> package_;  // not replaced once set
  mutable std::atomic<bool> loaded_ = false, can_extend_ = false;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const WordIndex> words_[2];
};

using ServedModels = std::vector<std::shared_ptr<const ServedModel>>;
std::vector<std::string> known_languages(const ServedModels& models);  // sorted codes

// The directory of a model and the languages that it translates.
struct ModelSpec {
  std::string directory, source, target;
};
// Parses "en-de=DIR", or "DIR" if its name begins with the languages. Throws ExitCode::usage if the
// languages are missing.
ModelSpec parse_model_spec(const std::string& text);

}  // namespace fovea

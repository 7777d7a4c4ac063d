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
#include "decode/package.h"
#include "decode/translate.h"
#include "serve/training.h"
#include "text/neighbours.h"

namespace fovea {

// How a client wants its sentences translated. Sentences with the same wishes share batches.
struct Wish {
  int64_t beam = 4, n_best = 1;
  double length_penalty = 0.6;
  bool alignment = false;  // where the model has attention
  bool attention = false;
  std::vector<int32_t> prefix = {};  // of every translation
  WordWhatIf what_if = {};           // of one sentence, which shares its batch with no other

  bool operator==(const Wish&) const = default;
};

// Whether a sentence is still waited for; asked before each step of the search.
using Wanted = std::function<bool(int64_t number)>;

// Takes words of a translation that are certain already, as soon as they are: what it was given one
// after the other is what the text of the translation begins with, and at the end all of it.
using Grown = std::function<void(const std::string& more)>;

// Tells one sentence's words as they become certain, whole ones: pieces of a word that goes on may
// still change how it is written.
class Growing {
 public:
  Growing(const Vocabulary& vocabulary, Grown tell)
      : vocabulary_(vocabulary), tell_(std::move(tell)) {}
  void look(const Beam& beam);

 private:
  const Vocabulary& vocabulary_;
  Grown tell_;
  size_t seen_ = 0;
  std::string told_;
};

// Sentences with one wish on their way through a model, for one thread. A wish that asks what if is
// for one sentence. More may be added while some are under way where the model lets them join.
class Translating {
 public:
  Translating(const Package& package, const Wish& wish, Wanted wanted);  // must outlive it

  bool empty() const { return rolling_.empty(); }
  struct Sentence {
    int64_t number;  // that of no other which is under way
    const std::string& text;
    Grown grown = nullptr;  // where somebody listens
  };
  void add(std::span<const Sentence> sentences);
  // One more word for each. Those that are done with it; such as nobody wants any more may come
  // without translations.
  std::vector<RollingTranslation::Done> step();

 private:
  TranslateOptions options(const Package& package, const Wish& wish, Wanted wanted);

  const Vocabulary& vocabulary_;
  std::map<int64_t, Growing> growing_;  // by number
  Translator translator_;
  RollingTranslation rolling_;
};

// The embeddings of one side, ready to be searched.
struct Words {
  explicit Words(WordVectors all) : vectors(std::move(all)), search(vectors) {}
  WordVectors vectors;
  NeighbourSearch search;
};

// What a client calls a model by.
struct EngineName {
  std::string name, source, target;  // languages by their codes
  bool gallery = false;              // one of those that show a mechanism each
};

// A model that serves one pair of languages.
class Engine {
 public:
  Engine(std::string name, std::string source, std::string target, Package package,
         std::shared_ptr<const Training> training = nullptr);
  // One whose weights are read when they are first needed.
  using Load = std::function<Package()>;
  Engine(EngineName name, const ModelConfig& config, Load load);

  const std::string& name() const { return name_.name; }
  const std::string& source() const { return name_.source; }
  const std::string& target() const { return name_.target; }
  bool of_gallery() const { return name_.gallery; }
  const ModelConfig& config() const { return config_; }
  int64_t parameters() const { return parameters_; }
  const Package& package() const;          // any thread; Exit::model where it cannot be read
  bool loaded() const { return loaded_; }  // does not wait for a thread that loads it
  bool joins() const { return joins_; }    // whether sentences can join others; not before loaded()
  const Training* training() const { return training_.get(); }  // null: nothing is known of it
  // A copy of the embeddings, made when it is first asked for. Exit::model where there are none.
  const Words& words(Side side) const;

 private:
  EngineName name_;
  ModelConfig config_;
  int64_t parameters_;
  Load load_;
  std::shared_ptr<const Training> training_;
  mutable std::mutex loading_;
  mutable std::optional<Package> package_;  // once there, it stays
  mutable std::atomic<bool> loaded_ = false, joins_ = false;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const Words> words_[2];
};

using Engines = std::vector<std::shared_ptr<const Engine>>;

// "en-de=DIR" or "DIR", whose name then begins with the languages: Exit::usage where it does not.
struct EngineSpec {
  std::string directory, source, target;
};
EngineSpec parse_engine(const std::string& text);

}  // namespace fovea

#include "serve/served_model.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/check.h"
#include "decode/generation_defaults.h"
#include "models/decodable.h"
#include "text/language.h"

namespace fovea {
namespace {

bool extends_batches(const ModelBundle& package) { return package.model->as<Extendable>(); }

}  // namespace

void PrefixStream::update(const Beam& beam) {
  const std::vector<int32_t> ids = beam.common_prefix();
  if (ids.size() <= seen_) return;
  seen_ = ids.size();
  const std::vector<int> words = vocabulary_.words_of(ids);
  const auto whole = std::ranges::lower_bound(words, words.back()) - words.begin();
  const std::string text = vocabulary_.decode(std::span(ids).first(static_cast<size_t>(whole)));
  if (text.size() <= sent_.size() || !text.starts_with(sent_)) return;
  callback_(text.substr(sent_.size()));
  sent_ = text;
}

TranslationSession::TranslationSession(const ModelBundle& package, const DecodeOptions& decoding,
                                       StillWanted wanted)
    : vocabulary_(package.target),
      translator_({package.model.get()}, package.source, package.target,
                  options(package, decoding, std::move(wanted))),
      rolling_(translator_) {}

TranslateOptions TranslationSession::options(const ModelBundle& package,
                                             const DecodeOptions& decoding, StillWanted wanted) {
  TranslateOptions options;
  options.search = search_defaults(package.config.generation, package.target);
  options.search.beam = decoding.beam;
  options.search.n_best = decoding.n_best;
  options.search.length_penalty = decoding.length_penalty;
  options.search.prefix = decoding.prefix;
  options.what_if = decoding.what_if;
  options.search.wanted = std::move(wanted);
  options.search.each_step = [this](int64_t number, const Beam& beam) {
    if (const auto found = prefix_streams_.find(number); found != prefix_streams_.end())
      found->second.update(beam);
  };
  // A model without attention cannot align words; its translations come without alignments.
  const bool can_align = heads_of(package.config, "cross").layers > 0;
  options.alignment = decoding.alignment && can_align;
  options.attention = options.tree = decoding.attention;
  options.warn = false;
  return options;
}

void TranslationSession::add(std::span<const Sentence> sentences) {
  std::vector<RollingTranslation::Line> lines;
  for (const Sentence& sentence : sentences) {
    lines.push_back({sentence.number, sentence.text});
    if (sentence.on_prefix)
      prefix_streams_.emplace(sentence.number, PrefixStream(vocabulary_, sentence.on_prefix));
  }
  rolling_.add(lines);
}

std::vector<RollingTranslation::Done> TranslationSession::step() {
  auto done = rolling_.step();
  for (const auto& sentence : done) prefix_streams_.erase(sentence.number);
  return done;
}

ServedModel::ServedModel(std::string name, std::string source, std::string target,
                         ModelBundle package, std::shared_ptr<const TrainingHistory> training)
    : name_{std::move(name), std::move(source), std::move(target)}, config_(package.config),
      parameters_(package.model->parameters().size()), training_(std::move(training)),
      package_(std::move(package)), loaded_(true), can_extend_(extends_batches(*package_)) {}

ServedModel::ServedModel(ModelName name, const ModelConfig& config, Load load)
    : name_(std::move(name)), config_(config),
      parameters_(declare_model(config)->parameters().size()), load_(std::move(load)) {}

const ModelBundle& ServedModel::package() const {
  const std::lock_guard hold(loading_);
  if (!package_) package_ = load_();
  can_extend_ = extends_batches(*package_);
  loaded_ = true;
  return *package_;
}

const WordIndex& ServedModel::words(LanguageSide side) const {
  const std::lock_guard hold(mutex_);
  auto& words = words_[side == LanguageSide::source ? 0 : 1];
  if (!words) words = std::make_unique<WordIndex>(embeddings_of(package(), side));
  return *words;
}

std::vector<std::string> known_languages(const ServedModels& models) {
  std::set<std::string> codes;
  for (const auto& model : models) codes.insert({model->source(), model->target()});
  return {codes.begin(), codes.end()};
}

ModelSpec parse_model_spec(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string directory = text.substr(equals + 1);  // the whole text if there is no '='
  if (equals != std::string::npos && equals <= 15) {
    const auto pair = languages_of_folder(std::string_view(text).substr(0, equals));
    if (pair) return {directory, pair->first, pair->second};
    std::error_code error;
    check(std::filesystem::exists(text, error), ExitCode::usage, text, ": '",
          text.substr(0, equals),
          "' is not a pair of languages; write for example en-de=", directory);
  }
  const auto pair = languages_of_folder(text);
  check(pair.has_value(), ExitCode::usage, text,
        ": the languages of this model are unknown: neither its config.yml nor its folder name ",
        "contains them; write for example en-de=", text);
  return {text, pair->first, pair->second};
}

}  // namespace fovea

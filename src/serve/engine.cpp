#include "serve/engine.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "text/language.h"

namespace fovea {

void Growing::look(const Beam& beam) {
  const std::vector<int32_t> ids = beam.certain();
  if (ids.size() <= seen_) return;
  seen_ = ids.size();
  const std::vector<int> words = vocabulary_.words_of(ids);
  const auto whole = std::ranges::lower_bound(words, words.back()) - words.begin();
  const std::string text = vocabulary_.decode(std::span(ids).first(static_cast<size_t>(whole)));
  if (text.size() <= told_.size() || !text.starts_with(told_)) return;
  tell_(text.substr(told_.size()));
  told_ = text;
}

Translating::Translating(const Package& package, const Wish& wish, Wanted wanted)
    : vocabulary_(package.target),
      translator_({package.model.get()}, package.source, package.target,
                  options(package, wish, std::move(wanted))),
      rolling_(translator_) {}

TranslateOptions Translating::options(const Package& package, const Wish& wish, Wanted wanted) {
  TranslateOptions options;
  options.search.beam = wish.beam;
  options.search.n_best = wish.n_best;
  options.search.length_penalty = wish.length_penalty;
  options.search.prefix = wish.prefix;
  options.what_if = wish.what_if;
  options.search.wanted = std::move(wanted);
  options.search.each_step = [this](int64_t number, const Beam& beam) {
    if (const auto found = growing_.find(number); found != growing_.end()) found->second.look(beam);
  };
  // A model without attention cannot align words; its translations come without alignments.
  const bool can_align = package.config.type != "recurrent" || package.config.attention.attends();
  options.alignment = wish.alignment && can_align;
  options.attention = options.tree = wish.attention;
  options.warn = false;
  return options;
}

void Translating::add(std::span<const Sentence> sentences) {
  std::vector<RollingTranslation::Line> lines;
  for (const Sentence& sentence : sentences) {
    lines.push_back({sentence.number, sentence.text});
    if (sentence.grown) growing_.emplace(sentence.number, Growing(vocabulary_, sentence.grown));
  }
  rolling_.add(lines);
}

std::vector<RollingTranslation::Done> Translating::step() {
  auto done = rolling_.step();
  for (const auto& sentence : done) growing_.erase(sentence.number);
  return done;
}

Engine::Engine(std::string name, std::string source, std::string target, Package package,
               std::shared_ptr<const Training> training)
    : name_{std::move(name), std::move(source), std::move(target)}, config_(package.config),
      parameters_(package.model->parameters().size()), training_(std::move(training)),
      package_(std::move(package)), loaded_(true), joins_(package_->model->joins()) {}

Engine::Engine(EngineName name, const ModelConfig& config, Load load)
    : name_(std::move(name)), config_(config),
      parameters_(declare_model(config)->parameters().size()), load_(std::move(load)) {}

const Package& Engine::package() const {
  const std::lock_guard hold(loading_);
  if (!package_) package_ = load_();
  joins_ = package_->model->joins();
  loaded_ = true;
  return *package_;
}

const Words& Engine::words(Side side) const {
  const std::lock_guard hold(mutex_);
  auto& words = words_[side == Side::source ? 0 : 1];
  if (!words) words = std::make_unique<Words>(embeddings_of(package(), side));
  return *words;
}

EngineSpec parse_engine(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string directory = text.substr(equals + 1);  // all of it where there is no '='
  if (equals != std::string::npos && equals <= 15) {
    const auto pair = languages_of_folder(std::string_view(text).substr(0, equals));
    if (pair) return {directory, pair->first, pair->second};
    std::error_code error;
    check(std::filesystem::exists(text, error), Exit::usage, text, ": '", text.substr(0, equals),
          "' is no pair of languages; write for example en-de=", directory);
  }
  const auto pair = languages_of_folder(text);
  check(pair.has_value(), Exit::usage, text,
        ": which languages does this model translate? Neither its config.yml nor the name of its ",
        "folder says so; write for example en-de=", text);
  return {text, pair->first, pair->second};
}

}  // namespace fovea

#include "serve/engine.h"

#include <filesystem>
#include <utility>

#include "base/check.h"
#include "serve/language.h"

namespace fovea {

Engine::Engine(std::string name, std::string source, std::string target, Package package,
               std::shared_ptr<const Training> training)
    : name_{std::move(name), std::move(source), std::move(target)}, config_(package.config),
      parameters_(package.model->parameters().size()), training_(std::move(training)),
      package_(std::move(package)) {}

Engine::Engine(EngineName name, const ModelConfig& config, Load load)
    : name_(std::move(name)), config_(config),
      parameters_(declare_model(config)->parameters().size()), load_(std::move(load)) {}

const Package& Engine::package() const {
  const std::lock_guard hold(loading_);
  if (!package_) package_ = load_();
  return *package_;
}

bool Engine::loaded() const {
  const std::lock_guard hold(loading_);
  return package_.has_value();
}

const Words& Engine::words(Side side) const {
  const std::lock_guard hold(mutex_);
  auto& words = words_[side == Side::source ? 0 : 1];
  if (!words) words = std::make_unique<Words>(embeddings_of(package(), side));
  return *words;
}

std::vector<Translation> Engine::translate(std::span<const std::string> lines, const Wish& wish,
                                           const Wanted& wanted) const {
  TranslateOptions options;
  options.search.beam = wish.beam;
  options.search.n_best = wish.n_best;
  options.search.length_penalty = wish.length_penalty;
  options.search.prefix = wish.prefix;
  options.what_if = wish.what_if;
  options.search.wanted = [&](int64_t number) { return wanted(static_cast<size_t>(number)); };
  options.alignment = wish.alignment;
  options.attention = options.tree = wish.attention;
  options.warn = false;
  const Package& own = package();
  const Translator translator({own.model.get()}, own.source, own.target, options);
  return translator.translate(lines);
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
        ": which languages does this model translate? Its folder's name does not begin with them; ",
        "write for example en-de=", text);
  return {text, pair->first, pair->second};
}

}  // namespace fovea

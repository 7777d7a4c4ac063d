#include "serve/translate_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "document/markup.h"
#include "http/http_error.h"
#include "serve/intervention_fields.h"
#include "serve/source_language.h"
#include "text/language.h"

namespace fovea {
namespace {

constexpr int64_t kMostBeam = 16;

[[noreturn]] void refuse_language(const std::string& code) {
  throw HttpError(400, fmt::format("{} is not supported", code));
}

// Returns the beginning of the texts, from which their language is detected.
std::string beginning_of(const std::vector<std::string>& texts, bool html) {
  std::string beginning;
  for (const std::string& text : texts) {
    if (beginning.size() >= kDetectedBytes) break;
    beginning += (html ? text_of_markup(text) : text.substr(0, kDetectedBytes)) + "\n";
  }
  return beginning;
}

int64_t characters_of(const std::vector<std::string>& texts) {
  int64_t characters = 0;
  for (const std::string& text : texts) characters += count_code_points(text);
  return characters;
}

// Throws HttpError 400 if the texts are too long for an answer with attention. Its JSON takes
// hundreds of times as many bytes as the text.
void check_size_with_attention(const std::vector<std::string>& texts) {
  constexpr int64_t kMost = 10'000;
  const int64_t characters = characters_of(texts);
  if (characters > kMost)
    throw HttpError(400, fmt::format("Invalid request: attention is available for at most {} "
                                     "characters in total, this request has {}",
                                     kMost, characters));
}

// Throws HttpError 400 if a request with an intervention has more than one sentence.
void check_one_sentence(const TranslateRequest& request) {
  if (request.texts.size() == 1 && !request.html &&
      plain_document(request.texts.front(), request.document_options())->sentences().size() == 1)
    return;
  throw HttpError(
      400,
      "Invalid request: prefix, mask_words, mask_heads and force_attention require q to be one "
      "sentence and format to be text");
}

}  // namespace

DecodeOptions RequestLimits::decoding(const ServedModel& model) const {
  const GenerationConfig& defaults = model.config().generation;
  return {.beam = beam.value_or(std::min(defaults.beam, kMostBeam)),
          .length_penalty = length_penalty.value_or(defaults.length_penalty)};
}

void RequestLimits::check_size(const std::vector<std::string>& texts) const {
  const auto refuse = [](int64_t size, int64_t limit) {
    throw HttpError(
        400, fmt::format("Invalid request: request ({}) exceeds text limit ({})", size, limit));
  };
  if (std::ssize(texts) > text_limit) refuse(std::ssize(texts), text_limit);
  const int64_t characters = characters_of(texts);
  if (char_limit > 0 && characters > char_limit) refuse(characters, char_limit);
}

void TranslateRequest::choose_languages(const ServedModels& models, const std::string& from,
                                        const std::string& to, const std::string& model_name) {
  const std::vector<std::string> known = known_languages(models);
  const auto is_known = [&](const std::string& code) {
    return std::ranges::find(known, code) != known.end();
  };
  source = canonical_code(from);
  target = canonical_code(to);
  if (from == "auto") {
    detected = source_language(beginning_of(texts, html), models, target);
    source = detected->language;
  }
  if (!is_known(source)) refuse_language(from == "auto" ? source : from);
  if (!is_known(target)) refuse_language(to);
  for (const auto& candidate : models) {
    const bool fits = candidate->source() == source && candidate->target() == target;
    if (fits && (model_name.empty() || candidate->name() == model_name)) {
      model = candidate;
      return;
    }
  }
  if (source == target && model_name.empty()) return;
  if (!model_name.empty())
    throw HttpError(400, fmt::format("Invalid request: there is no model {} from {} to {}",
                                     model_name, source, target));
  throw HttpError(400, fmt::format("{} ({}) is not available as a target language from {} ({})",
                                   language_name(target), target, language_name(source), source));
}

// The maximum length of sentences counts pieces if the model is loaded, otherwise only bytes.
PassageOptions TranslateRequest::document_options() const {
  SentenceLimit limit;
  if (model && model->loaded()) {
    const ModelBundle& package = model->package();
    const Model& read = *package.model;
    limit = {&package.source,
             static_cast<size_t>(read.max_length() - read.frame().source_pieces())};
  }
  return {source, target, limit};
}

std::span<const Translation> TranslateRequest::part(const TranslationList& all, size_t text) const {
  size_t first = 0;
  for (size_t i = 0; i < text; ++i) first += documents[i]->sentences().size();
  return std::span(all).subspan(first, documents[text]->sentences().size());
}

std::string TranslateRequest::translated(const TranslationList& all, size_t text) const {
  return model ? documents[text]->render(part(all, text), 0) : texts[text];
}

std::string needed(const RequestParameters& parameters, const char* name) {
  auto text = parameters.text(name);
  if (!text) throw HttpError(400, fmt::format("Invalid request: missing {} parameter", name));
  return *text;
}

void TranslateRequest::use_defaults(const RequestLimits& limits) {
  if (model) decoding = limits.decoding(*model);
}

TranslateRequestPtr new_request(std::vector<std::string> texts, const RequestLimits& limits) {
  limits.check_size(texts);
  auto request = std::make_shared<TranslateRequest>();
  request->texts = std::move(texts);
  return request;
}

TranslateRequestPtr read_translate_request(RequestContext& context, const RequestLimits& limits) {
  const RequestParameters& parameters = context.parameters();
  auto texts = parameters.texts("q");
  if (!texts) throw HttpError(400, "Invalid request: missing q parameter");
  const std::string source = needed(parameters, "source"), target = needed(parameters, "target");
  auto request = new_request(std::move(texts->values), limits);
  request->is_list = texts->is_list;
  const std::string format = parameters.text("format").value_or("text");
  if (format != "text" && format != "html")
    throw HttpError(400, fmt::format("{} format is not supported", format));
  request->html = format == "html";
  request->choose_languages(context.models, source, target, parameters.text("model").value_or(""));
  request->use_defaults(limits);
  DecodeOptions& decoding = request->decoding;
  const double most = static_cast<double>(limits.most_alternatives);
  request->alternatives = parameters.integer("alternatives", {0, most}).value_or(0);
  const auto n_best = parameters.integer("n_best", {1, most + 1});
  decoding.beam =
      parameters.integer("beam_size", {1, static_cast<double>(kMostBeam)}).value_or(decoding.beam);
  decoding.length_penalty =
      parameters.number("length_penalty", {-10, 10}).value_or(decoding.length_penalty);
  request->n_best = n_best.value_or(0);
  decoding.n_best = std::max(n_best.value_or(1), request->html ? 1 : request->alternatives + 1);
  decoding.beam = std::max(decoding.beam, decoding.n_best);
  decoding.attention = parameters.flag("attention");
  if (decoding.attention) check_size_with_attention(request->texts);
  if (request->model && asks_what_if(parameters)) {
    check_one_sentence(*request);
    request->intervention = context.parsed;
  }
  return request;
}

std::shared_ptr<const ServedModel> model_of(RequestContext& context) {
  const RequestParameters& parameters = context.parameters();
  TranslateRequest request;
  request.choose_languages(context.models, needed(parameters, "source"),
                           needed(parameters, "target"), parameters.text("model").value_or(""));
  if (!request.model) throw HttpError(400, "Invalid request: source and target are the same");
  return request.model;
}

}  // namespace fovea

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "document/document.h"
#include "serve/router.h"
#include "text/language_detector.h"

namespace fovea {

// The limits and defaults of requests to translate.
struct RequestLimits {
  int64_t char_limit = 50'000;  // maximum number of characters of a request; 0: no limit
  int64_t text_limit = 1'000;   // maximum number of texts of a request
  int64_t most_alternatives = 15;
  // Of requests that name none; the default is that of the model.
  std::optional<int64_t> beam = {};
  std::optional<double> length_penalty = {};

  DecodeOptions decoding(const ServedModel& model) const;        // of a request without options
  void check_size(const std::vector<std::string>& texts) const;  // throws HttpError 400
};

using TranslationList = std::vector<Translation>;

// A request to translate texts: the model, the options and, once it is queued, the documents.
struct TranslateRequest {
  std::shared_ptr<const ServedModel> model;  // null: source and target are the same language
  std::string source, target;
  std::optional<DetectedLanguage> detected;
  std::vector<std::string> texts;
  bool is_list = false, html = false;
  int64_t alternatives = 0;  // the number of alternatives that the client requested
  int64_t n_best = 0;        // requested length of the n-best list; 0: no list
  DecodeOptions decoding;
  std::vector<std::unique_ptr<TextDocument>> documents;
  std::optional<size_t> only = {};  // index of the only sentence to translate, if set
  // Parameters with an intervention, to be parsed by read_what_if(); null: none.
  std::shared_ptr<const RequestParameters> intervention = {};
  std::vector<std::string> attention = {};  // JSON of each sentence, if requested
  size_t attention_bytes = 0;               // bytes of all strings in `attention`
  std::atomic<bool> too_large = false;      // above kMaxAttentionBytes; the client was answered

  // Sets the decoding options of a request without options. REQUIRES: the model is chosen.
  void use_defaults(const RequestLimits& limits);
  // Sets the languages and the model; the source "auto" is detected. Throws HttpError 400 if there
  // is no model. If source and target are the same and no model is named, sets no model.
  void choose_languages(const ServedModels& models, const std::string& from, const std::string& to,
                        const std::string& model_name);
  PassageOptions document_options() const;
  bool alone() const { return only || intervention; }  // shares no batch with other requests
  // Returns the translations of the sentences of one text.
  std::span<const Translation> part(const TranslationList& all, size_t text) const;
  // Returns the translation of one text, or the text itself if the request has no model.
  std::string translated(const TranslationList& all, size_t text) const;
};
using TranslateRequestPtr = std::shared_ptr<TranslateRequest>;

// Returns a request for these texts with the default options. Throws HttpError 400 if the texts are
// too large.
TranslateRequestPtr new_request(std::vector<std::string> texts, const RequestLimits& limits);
// Reads the parameters of /translate. Throws HttpError 400.
TranslateRequestPtr read_translate_request(RequestContext& context, const RequestLimits& limits);
// Returns the model for the parameters source, target and model. Throws HttpError 400 if there is
// none.
std::shared_ptr<const ServedModel> model_of(RequestContext& context);
// Returns a parameter that the request must have. Throws HttpError 400 if it is missing.
std::string needed(const RequestParameters& parameters, const char* name);

}  // namespace fovea

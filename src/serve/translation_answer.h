#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "serve/translate_request.h"

namespace fovea {

// Returns the answer of /translate as JSON. If source and target are the same language, `all` is
// empty.
std::string answer_of(const TranslateRequest& request, const TranslationList& all);
nlohmann::ordered_json detected_json(const DetectedLanguage& detected);
// Returns the warnings about a text that the model cannot read or write completely. The text is
// given as its sentences and their translations. The result is a list of objects with a code, a
// message and details (docs/serve.md, "Warnings").
nlohmann::ordered_json warnings_of(const ServedModel& model, std::span<const std::string> sentences,
                                   std::span<const Translation> translations);
// Returns the warnings of all texts of a request, each with the index of its text.
nlohmann::ordered_json all_warnings(const TranslateRequest& request, const TranslationList& all);

// Stores the attention of a sentence as JSON in the request. `text` is the sentence. Returns false
// if the answer has just become too large: then the caller must answer the client, and the request
// is abandoned.
bool note_attention(TranslateRequest& request, size_t sentence, const std::string& text,
                    Translation& translation);

}  // namespace fovea

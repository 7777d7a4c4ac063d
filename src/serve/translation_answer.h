#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "serve/translate_request.h"

namespace fovea {

// The answer of /translate as JSON. If source and target are the same, `all` is empty.
std::string answer_of(const TranslateRequest& request, const TranslationList& all);
nlohmann::ordered_json detected_json(const DetectedLanguage& detected);
// Warnings about a text that the model cannot read or write completely, given as its sentences and
// their translations: a list of objects with a code, a message and details (docs/serve.md,
// "Warnings").
nlohmann::ordered_json warnings_of(const ServedModel& model, std::span<const std::string> sentences,
                                   std::span<const Translation> translations);
// The warnings of all texts of a request, each with the index of its text.
nlohmann::ordered_json all_warnings(const TranslateRequest& request, const TranslationList& all);

// Stores the attention of a sentence, given as text, as JSON. False if the answer has just become
// too large: the caller must answer the client, and the request is abandoned.
bool note_attention(TranslateRequest& request, size_t sentence, const std::string& text,
                    Translation& translation);

}  // namespace fovea

#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "serve/translate_request.h"
#include "serve/translation_task.h"

namespace fovea {

// The answer of /translate as JSON. If source and target are the same, `all` is empty.
std::string answer_of(const TranslateRequest& request, const Translations& all);
nlohmann::ordered_json detected_json(const DetectedLanguage& detected);
// The warnings of all texts of a request, each with the index of its text.
nlohmann::ordered_json all_warnings(const TranslateRequest& request, const Translations& all);

// Stores the attention of a translated sentence as JSON. False if the answer has just become too
// large: the caller must answer the client, and the request is abandoned.
bool note_attention(TranslateRequest& request, const TranslationTask& task, size_t sentence,
                    Translation& translation);

}  // namespace fovea

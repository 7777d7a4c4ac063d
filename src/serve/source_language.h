#pragma once

#include <string>
#include <string_view>

#include "serve/served_model.h"
#include "text/language_detector.h"

namespace fovea {

// The source language for source=auto: the most probable of the languages of the models. If there
// is no evidence, the source language of a model for `target`, with confidence 0. Throws HttpError
// 400 if the text is certainly in a language without a model.
DetectedLanguage source_language(std::string_view text, const ServedModels& models,
                                 const std::string& target);

}  // namespace fovea

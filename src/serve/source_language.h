#pragma once

#include <string>
#include <string_view>

#include "serve/served_model.h"
#include "text/language_detector.h"

namespace fovea {

// Returns the source language for source=auto: the most probable of the languages that the models
// read. If the text gives no evidence, returns the source language of the first model for `target`,
// with confidence 0. Throws HttpError 400 if the text is almost certainly in a language that no
// model reads.
DetectedLanguage source_language(std::string_view text, const ServedModels& models,
                                 const std::string& target);

}  // namespace fovea

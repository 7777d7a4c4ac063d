#pragma once

#include <string>

#include "serve/engine.h"
#include "serve/parameters.h"

namespace fovea {

// Whether a request interferes with attention or says how the translation begins: such a request is
// for one sentence.
bool asks_what_if(const Parameters& parameters);

// The fields prefix, mask_words, mask_heads and force_attention for this sentence, as part of the
// wish. Refusal 400, naming the field and what is possible, where one cannot be used. Reads the
// model where that has not been done: for threads that translate.
void read_what_if(const Parameters& parameters, const Engine& engine, const std::string& sentence,
                  Wish& wish);

}  // namespace fovea

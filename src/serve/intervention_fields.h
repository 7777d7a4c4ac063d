#pragma once

#include <string>

#include "serve/request_parameters.h"
#include "serve/served_model.h"

namespace fovea {

// Whether a request contains an intervention on attention or a forced prefix. Such a request must
// have one sentence.
bool asks_what_if(const RequestParameters& parameters);

// Stores the fields prefix, mask_words, mask_heads and force_attention for this sentence in
// `decoding`. Throws HttpError 400 with the field and its valid values if a field is invalid. It
// may load the model, so only worker threads should call it.
void read_what_if(const RequestParameters& parameters, const ServedModel& model,
                  const std::string& sentence, DecodeOptions& decoding);

}  // namespace fovea

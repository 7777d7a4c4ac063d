#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/utf8.h"
#include "importer/bart_family.h"
#include "importer/hf_checkpoint.h"
#include "importer/hf_vocabulary.h"
#include "importer/import_model.h"
#include "importer/source_licence.h"
#include "importer/t5_family.h"

namespace fovea {
namespace {

std::string architecture(const ForeignSettings& config) {
  const std::string type = config.text("model_type", "");
  if (!config.has("architectures")) return type;
  const nlohmann::json& names = config.json()["architectures"];
  const bool named = names.is_array() && !names.empty() && names[0].is_string();
  return named ? type + ", " + printable(names[0].get<std::string>()) : type;
}

}  // namespace

ImportedModel import_hf(const ImportSource& source) {
  const HfCheckpoint checkpoint = HfCheckpoint::open(source.path);
  const std::string type = checkpoint.model_type();
  const bool t5 = type == "t5" || type == "mt5";
  if (!t5 && !is_bart_family(type))
    checkpoint.config.reject("model_type",
                             "expected marian, m2m_100, bart, mbart, t5 or mt5; "
                             "other architectures are not supported");
  const HfVocabulary vocabulary = hf_vocabulary(checkpoint);
  ImportedModel model;
  model.config = t5 ? t5_config(checkpoint.config, vocabulary.source)
                    : bart_family_config(checkpoint.config, vocabulary.source, vocabulary.target);
  model.config.generation = hf_generation(checkpoint, vocabulary.target);
  model.config.languages = bind_languages(checkpoint, vocabulary, source, model.config.generation);
  check_imported(model.config, checkpoint.config.path());

  const auto archive = checkpoint.open_weights();
  model.weights = std::make_unique<ImportedWeights>(model.config, archive->path());
  WeightMapping weights(*archive, *model.weights);
  if (t5)
    map_t5(weights, model.config, vocabulary.source);
  else
    map_bart_family(weights, model.config, checkpoint.config, vocabulary.source, vocabulary.target);
  model.source = vocabulary.source_text;
  model.target = vocabulary.target_text;
  model.notes = {.program = "Hugging Face Transformers",
                 .model = architecture(checkpoint.config),
                 .licence = licence_of(source.path),
                 .weights = stored_types(*archive),
                 .remarks = {}};
  return model;
}

}  // namespace fovea

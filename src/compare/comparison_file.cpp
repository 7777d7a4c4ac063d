#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "compare/comparison.h"

// The measurements of a model, stored in its directory.
namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

std::string path_in(const std::string& directory) { return directory + "/measured.json"; }

}  // namespace

std::optional<ModelResults> read_measured(const std::string& directory, const std::string& key) {
  std::error_code error;
  if (!std::filesystem::exists(path_in(directory), error)) return {};
  try {
    const Json json = Json::parse(read_file(path_in(directory)));
    if (json.at("made_with") != key) return {};
    ModelResults found;
    json.at("ppl").get_to(found.ppl);
    json.at("bleu").get_to(found.bleu);
    json.at("chrf").get_to(found.chrf);
    json.at("decode_words_per_s").get_to(found.decode_words_per_s);
    if (!json.at("aer").is_null()) found.aer = json.at("aer").get<double>();
    json.at("bucket_bleu").get_to(found.bucket_bleu);
    json.at("translation").get_to(found.translation);
    return found;
  } catch (const Json::exception&) {
    return {};  // damaged: the model is measured again
  }
}

std::string stored_key(const std::string& directory) {
  std::error_code error;
  if (!std::filesystem::exists(path_in(directory), error)) return "";
  const Json json = Json::parse(read_file(path_in(directory)), nullptr, false);
  const bool has_key =
      json.is_object() && json.contains("made_with") && json["made_with"].is_string();
  return has_key ? json["made_with"].get<std::string>() : "";
}

void write_measured(const std::string& directory, const std::string& key, const ModelResults& m) {
  const Json json{{"made_with", key},
                  {"ppl", m.ppl},
                  {"bleu", m.bleu},
                  {"chrf", m.chrf},
                  {"aer", m.aer ? Json(*m.aer) : Json()},
                  {"decode_words_per_s", m.decode_words_per_s},
                  {"bucket_bleu", m.bucket_bleu},
                  {"translation", m.translation}};
  write_atomically(path_in(directory),
                   json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace fovea

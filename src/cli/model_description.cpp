#include "cli/model_description.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <vector>

#include "base/log.h"
#include "base/utf8.h"
#include "decode/model_bundle.h"
#include "train/training_metrics.h"

namespace fovea {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

// Returns the part of the model that a parameter belongs to: "encoder/layers/3" for
// "encoder/layers/3/attend/W_Q". If the name has no layer, it is the first component of the name.
std::string part_of(const std::string& name) {
  size_t slashes = 0;
  const bool layered = name.find("layers/") != name.npos;
  for (size_t i = 0; i < name.size(); ++i)
    if (name[i] == '/' && ++slashes == (layered ? 3u : 1u)) return name.substr(0, i);
  return name;
}

// The numbers of parameters of the parts of a model.
struct Parts {
  std::vector<std::pair<std::string, int64_t>> sizes;  // in the order of the model

  explicit Parts(const ParameterStore& store) {
    for (const auto& p : store.all()) {
      const std::string part = part_of(p.name);
      if (sizes.empty() || sizes.back().first != part) sizes.emplace_back(part, 0);
      sizes.back().second += p.tensor.elements();
    }
  }
};

Json vocabulary_json(const VocabularyPair& words) {
  Json files = Json::array();
  for (const std::string& file : words.files) files.push_back(fs::path(file).filename().string());
  return {{"files", files},
          {"joint", words.files.size() == 1},
          {"kind", name_of(words.source.cut())},
          {"source_pieces", words.source.size()},
          {"target_pieces", words.target.size()}};
}

Json metrics_json(const MetricsLine& m) {
  Json object{{"update", m.update}, {"epoch", m.epoch}};
  for (const MetricValue& v : m.values) object[v.name] = v.value;
  return object;
}

// Returns the last training line and all validations of metrics.jsonl, or null if there is no such
// file.
Json history_json(const std::string& directory) {
  const std::string path = (fs::path(directory) / "metrics.jsonl").string();
  std::error_code error;
  if (!fs::exists(path, error)) return nullptr;
  Json history{{"validations", Json::array()}};
  for (const MetricsLine& m : read_metrics(path)) {
    if (m.kind == "valid")
      history["validations"].push_back(metrics_json(m));
    else if (m.kind == "train")
      history["last"] = metrics_json(m);
  }
  return history;
}

}  // namespace

Json describe_model(const std::string& directory) {
  const ModelBundle bundle = load_package(directory);
  const std::string path = (fs::path(directory) / kWeightsFile).string();
  const SafetensorsFile file = SafetensorsFile::open(path);
  file.verify();
  std::map<std::string, int64_t> types;
  for (const TensorInfo& t : file.tensors()) types[std::string(stored_name(t.dtype))] += 1;

  ModelConfig config = bundle.config;
  Json shape = Json::object();
  for (const auto& [key, value] : Settings(config).values()) {
    const Json parsed = Json::parse(value, nullptr, false);
    shape[key] = parsed.is_discarded() ? Json(value) : parsed;
  }
  const ParameterStore& store = bundle.model->parameters();
  Json parts = Json::object();
  for (const auto& [part, size] : Parts(store).sizes) parts[part] = size;
  return {{"directory", directory},
          {"model", shape},
          {"parameters", store.size()},
          {"parts", parts},
          {"weights",
           {{"file", kWeightsFile},
            {"bytes", fs::file_size(path)},
            {"tensors", file.tensors().size()},
            {"types", types},
            {"checksums", file.has_checksums() ? "verified" : "none"}}},
          {"vocabulary", vocabulary_json(load_vocabularies(directory))},
          {"history", history_json(directory)}};
}

namespace {

constexpr int kIndent = 15;  // columns before the text of a row
constexpr int kWidth = 80;

std::string plain(const Json& value) {
  if (value.is_number_float()) return fmt::format("{:.5g}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Returns the items, separated by commas, in lines of at most kWidth columns.
std::string listed(const std::vector<std::string>& items) {
  std::string text;
  int column = kIndent;
  for (size_t i = 0; i < items.size(); ++i) {
    const int length = display_width(items[i]) + 1;
    if (i > 0 && column + length > kWidth) {
      text += "\n" + std::string(kIndent, ' ');
      column = kIndent;
    } else if (i > 0) {
      text += " ";
      ++column;
    }
    text += items[i] + (i + 1 < items.size() ? "," : "");
    column += length;
  }
  return text;
}

std::string history_text(const Json& history) {
  if (history.is_null()) return "no metrics.jsonl";
  std::string text;
  const auto line = [&](const char* event, const Json& m) {
    std::vector<std::string> values;
    for (const auto& [key, value] : m.items())
      values.push_back(fmt::format("{} {}", key, plain(value)));
    values.front() = fmt::format("{} {}", event, values.front());
    text += (text.empty() ? "" : "\n" + std::string(kIndent, ' ')) + listed(values);
  };
  if (history.contains("last")) line("trained to", history["last"]);
  const Json& validations = history["validations"];
  const size_t shown = std::min<size_t>(5, validations.size());
  for (size_t i = validations.size() - shown; i < validations.size(); ++i)
    line("validated at", validations[i]);
  return text.empty() ? "metrics.jsonl is empty" : text;
}

}  // namespace

std::string description_text(const Json& d) {
  std::string text = fmt::format("{}\n", d["directory"].get<std::string>());
  const auto row = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<12} {}\n", name, value);
  };
  std::vector<std::string> shape;
  for (const auto& [key, value] : d["model"].items())
    shape.push_back(fmt::format("{} {}", key, plain(value)));
  row("model", listed(shape));
  row("parameters", with_commas(d["parameters"].get<int64_t>()));
  for (const auto& [part, size] : d["parts"].items())
    text += fmt::format("    {:<28} {:>14}\n", part, with_commas(size.get<int64_t>()));
  const Json& w = d["weights"];
  std::string types;
  for (const auto& [type, count] : w["types"].items())
    types += fmt::format(", {} {}", count.get<int64_t>(), type);
  row("weights", fmt::format("{}, {} bytes{} tensors, checksums {}", plain(w["file"]),
                             with_commas(w["bytes"].get<int64_t>()), types, plain(w["checksums"])));
  const Json& v = d["vocabulary"];
  row("vocabulary", fmt::format("{} ({}), {} source and {} target pieces", plain(v["files"][0]),
                                plain(v["kind"]), with_commas(v["source_pieces"].get<int64_t>()),
                                with_commas(v["target_pieces"].get<int64_t>())));
  row("history", history_text(d["history"]));
  return text;
}

}  // namespace fovea

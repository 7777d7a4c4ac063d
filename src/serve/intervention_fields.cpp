#include "serve/intervention_fields.h"

#include <fmt/format.h>

#include "base/check.h"
#include "http/http_error.h"
#include "text/corpus.h"

namespace fovea {
namespace {

using Json = nlohmann::json;

constexpr const char *kPrefix = "prefix", *kMaskWords = "mask_words", *kMaskHeads = "mask_heads",
                     *kForce = "force_attention";
constexpr size_t kMostHeads = 1024, kMostRows = 64;  // limits of a request

[[noreturn]] void refuse(const char* name, const std::string& why) {
  throw HttpError(400, fmt::format("Invalid request: {}{}", name, why));
}

int64_t whole_number(const char* name, const Json& value, const std::string& what) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > 1 << 20)
    refuse(name, fmt::format(": {} must be a whole number, 0 or more", what));
  return value.get<int64_t>();
}

// Returns a whole number of a JSON object, or −1 if it is absent.
int64_t member(const char* name, const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? -1 : whole_number(name, *found, key);
}

Json list_of(const RequestParameters& parameters, const char* name, size_t most, const char* of) {
  Json list = parameters.list(name);
  if (list.size() > most)
    refuse(name, fmt::format(": {} entries, at most {} are allowed", list.size(), most));
  for (const Json& entry : list)
    if (*of != '\0' && !entry.is_object())
      refuse(name, fmt::format(" parameter is not a list of objects {}", of));
  return list;
}

HeadName as_head(const Json& entry) {
  const auto kind = entry.find("kind");
  if (kind == entry.end() || !kind->is_string())
    refuse(kMaskHeads, ": kind must be encoder, decoder or cross");
  return {kind->get<std::string>(), member(kMaskHeads, entry, "layer"),
          member(kMaskHeads, entry, "head")};
}

WordWhatIf::Row as_row(const Json& entry) {
  WordWhatIf::Row row{.step = member(kForce, entry, "step"),
                      .word = member(kForce, entry, "word"),
                      .layer = member(kForce, entry, "layer"),
                      .head = member(kForce, entry, "head")};
  const auto weights = entry.find("weights");
  if (weights == entry.end()) return row;
  if (!weights->is_array() || weights->empty() || weights->size() > (1 << 20))
    refuse(kForce, ": weights must be a list of numbers");
  for (const Json& weight : *weights) {
    if (!weight.is_number()) refuse(kForce, ": weights must be a list of numbers");
    row.weights.push_back(weight.get<double>());
  }
  return row;
}

// Returns the ids of the forced prefix, which is a text or a list of pieces as in answers.
std::vector<int32_t> prefix_of(const RequestParameters& parameters, const ModelBundle& package) {
  const auto given = parameters.texts(kPrefix);
  if (!given) return {};
  std::vector<int32_t> ids;
  if (!given->is_list) {
    ids = package.target.encode(clean_line(given->values.front()).text);
  } else {
    for (const std::string& piece : given->values) {
      ids.push_back(package.target.id(piece));
      const bool known = ids.back() >= kSpecials || piece == package.target.name(kUnk);
      if (!known) refuse(kPrefix, fmt::format(": the target vocabulary has no piece '{}'", piece));
    }
  }
  const int64_t most = package.model->max_length() - package.model->frame().added_pieces();
  if (std::ssize(ids) > most)
    refuse(kPrefix, fmt::format(": {} pieces, at most {} are allowed", ids.size(), most));
  return ids;
}

}  // namespace

bool asks_what_if(const RequestParameters& parameters) {
  for (const char* name : {kPrefix, kMaskWords, kMaskHeads, kForce})
    if (parameters.has(name)) return true;
  return false;
}

void read_what_if(const RequestParameters& parameters, const ServedModel& model,
                  const std::string& sentence, DecodeOptions& decoding) {
  const ModelBundle& package = model.package();
  decoding.prefix = prefix_of(parameters, package);
  WordWhatIf what;
  const std::vector<int32_t> ids = ids_read(package.source, *package.model, sentence);
  for (const Json& word : list_of(parameters, kMaskWords, ids.size(), ""))
    what.masked.push_back(whole_number(kMaskWords, word, "a word"));
  for (const Json& entry : list_of(parameters, kMaskHeads, kMostHeads, "{kind, layer, head}"))
    what.silent.push_back(as_head(entry));
  for (const Json& entry : list_of(parameters, kForce, kMostRows, "{step, word}"))
    what.forced.push_back(as_row(entry));
  if (what.empty()) return;
  try {
    what.check(package.config, package.source.words_of(ids).back() + 1,
               {kMaskWords, kMaskHeads, kForce});
  } catch (const Error& error) {
    throw HttpError(400, fmt::format("Invalid request: {}", error.what()));
  }
  decoding.what_if = std::move(what);
}

}  // namespace fovea

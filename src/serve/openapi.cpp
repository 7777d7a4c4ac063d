#include <initializer_list>
#include <nlohmann/json.hpp>

#include "base/ascii.h"
#include "serve/embedded_files.h"
#include "serve/router.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kError = "#/components/responses/Error";
constexpr const char* kMessage = "#/components/responses/Message";

// Adds the responses that follow from the properties of a route, for example errors of access
// control.
void add_responses(const Route& route, Json& operation) {
  const auto add = [&](const char* response, std::initializer_list<const char*> statuses) {
    for (const char* status : statuses)
      if (!operation["responses"].contains(status))
        operation["responses"][status] = {{"$ref", response}};
  };
  if (route.access != AccessRule::open) {
    add(route.path.starts_with("/v2/") ? kMessage : kError, {"400", "403", "429"});
    operation["security"] = Json::parse(R"([{"bearer": []}, {"field": []}, {}])");
  }
  if (operation.contains("requestBody")) add(kError, {"413", "415", "503"});
  if (route.answer == AnswerKind::computed) add(kError, {"500", "504"});
}

}  // namespace

std::string Router::openapi() const {
  Json api;
  for (const EmbeddedFile& file : openapi_files()) api.merge_patch(Json::parse(file.bytes));
  api["info"]["version"] = FOVEA_VERSION;
  for (const Route& route : routes_) {
    const std::string path = std::string(route.path) + (route.has_paths_below() ? "{name}" : "");
    if (!api["paths"].contains(path)) continue;  // the page
    add_responses(route, api["paths"][path][lower_ascii(route.method)]);
  }
  return api.dump();
}

}  // namespace fovea

#include "serve/web_page.h"

#include <algorithm>

#include "http/http_error.h"
#include "http/json_reply.h"
#include "serve/attention_json.h"
#include "serve/embedded_files.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

// The page loads files from this server only, and runs no inline scripts. Images that it creates
// itself are data: and blob: URLs.
constexpr const char* kPolicy =
    "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

void send_file(RequestContext& context) {
  constexpr std::string_view kFolder = "/web/";
  const std::string_view path = context.request.path;
  const std::string_view name = path == "/" ? "index.html" : path.substr(kFolder.size());
  const auto file = std::ranges::find(page_files(), name, &EmbeddedFile::name);
  if (file == page_files().end()) throw HttpError(404, "Not Found");
  HttpReply reply{.type = std::string(file->type),
                  .headers = {{"ETag", std::string(file->etag)},
                              {"Cache-Control", "no-cache"},
                              {"Content-Security-Policy", kPolicy},
                              {"X-Content-Type-Options", "nosniff"},
                              {"Referrer-Policy", "no-referrer"}}};
  if (context.request.header("if-none-match").find(file->etag) != std::string_view::npos) {
    reply.status = 304;
    reply.type = "";
  } else {
    reply.body = file->bytes;
  }
  context.exchange->answer(std::move(reply));
}

// Answers with the models among which the page can choose, in the order of the command line.
void list_models(RequestContext& context) {
  Json list = Json::array();
  for (const auto& model : context.models) list.push_back(model_json(*model));
  context.exchange->answer(json_reply(list));
}

}  // namespace

std::vector<Route> page_routes() {
  using enum AccessRule;
  using enum AnswerKind;
  return {{"GET", "/", open, small, send_file},
          {"GET", "/web/", open, small, send_file},
          {"GET", "/v1/models", open, small, list_models}};
}

}  // namespace fovea

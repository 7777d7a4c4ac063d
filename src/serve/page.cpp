#include "serve/page.h"

#include <algorithm>

#include "serve/attention_json.h"
#include "serve/refusal.h"
#include "serve/service.h"

namespace fovea {
namespace {

// Nothing of a page comes from elsewhere, and nothing in it runs that is not a file of ours.
// Pictures made by the page itself are data: and blob:.
constexpr const char* kPolicy =
    "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

}  // namespace

void Service::page(Call call) {
  constexpr std::string_view kFolder = "/web/";
  const std::string_view path = call.request.path;
  const std::string_view name = path == "/" ? "index.html" : path.substr(kFolder.size());
  const auto file = std::ranges::find(page_files(), name, &PageFile::name);
  if (file == page_files().end()) throw Refusal(404, "Not Found");
  Reply reply{.type = std::string(file->type),
              .headers = {{"ETag", std::string(file->etag)},
                          {"Cache-Control", "no-cache"},
                          {"Content-Security-Policy", kPolicy},
                          {"X-Content-Type-Options", "nosniff"},
                          {"Referrer-Policy", "no-referrer"}}};
  if (call.request.header("if-none-match").find(file->etag) != std::string_view::npos) {
    reply.status = 304;
    reply.type = "";
  } else {
    reply.body = file->bytes;
  }
  call.exchange->answer(std::move(reply));
}

// What the page can choose from, in the order of the command line.
void Service::models(Call call) {
  Json list = Json::array();
  for (const auto& engine : call.engines) {
    list.push_back(model_json(*engine));
    list.back()["training"] = engine->training() != nullptr;
  }
  call.exchange->answer(json_reply(list));
}

}  // namespace fovea

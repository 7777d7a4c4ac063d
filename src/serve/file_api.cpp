#include "serve/file_api.h"

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "http/http_error.h"
#include "http/json_reply.h"
#include "serve/translation_answer.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kIdLength = 36;

bool plain(char c) { return is_ascii_alnum(c) || c == '-' || c == '_'; }

// Returns "letter" for "C:\letters\letter.old.txt". Replaces characters that a URL cannot contain.
std::string stem_of(std::string_view name) {
  name = name.substr(name.find_last_of("/\\") + 1);
  std::string stem;
  for (const char c : name.substr(0, std::min<size_t>(name.find('.'), 80)))
    stem += plain(c) ? c : '_';
  return stem.empty() ? "text" : stem;
}

// Returns the extension ".txt", ".html" or ".htm" of a file name, or "" for any other.
std::string ending_of(std::string_view name) {
  const std::string small = lower_ascii(name);
  for (const char* known : {".txt", ".html", ".htm"})
    if (small.ends_with(known)) return known;
  return "";
}

// Returns the origin of the service (scheme and host) according to the headers of the request.
std::string origin_of(const HttpRequest& request) {
  std::string host;
  for (const char c : request.header("host"))
    if (plain(c) || c == '.' || c == ':' || c == '[' || c == ']') host += c;
  const bool https = request.header("x-forwarded-proto") == "https";
  return (https ? "https://" : "http://") + (host.empty() ? "localhost" : host);
}

}  // namespace

std::vector<Route> FileApi::routes() {
  using enum AccessRule;
  using enum AnswerKind;
  return {{"POST", "/translate_file", key, computed, [this](auto& context) { translate(context); }},
          {"GET", "/download_file/", open, large, [this](auto& context) { download(context); }}};
}

void FileApi::translate(RequestContext& context) {
  if (!enabled_) throw HttpError(403, "Files translation are disabled on this server.");
  const RequestParameters& parameters = context.parameters();
  const std::string source = needed(parameters, "source"), target = needed(parameters, "target");
  const FormField* file = parameters.file("file");
  if (!file) throw HttpError(400, "Invalid request: missing file parameter");
  if (file->file_name.empty()) throw HttpError(400, "Invalid request: empty file");
  const std::string ending = ending_of(file->file_name);
  if (ending.empty()) throw HttpError(400, "Invalid request: file format not supported");
  const size_t bad = find_invalid_utf8(file->value);
  if (bad != std::string::npos)
    throw HttpError(400, fmt::format("Invalid request: file is not UTF-8 at byte {}", bad));
  const TranslateRequestPtr request = new_request({file->value}, limits_);
  request->html = ending != ".txt";
  request->choose_languages(context.models, source, target, "");
  request->use_defaults(limits_);
  const std::string name = stem_of(file->file_name) + "_" + request->target + ending;
  queue_.submit(context, request,
                [this, name, origin = origin_of(context.request)](const TranslateRequest& done,
                                                                  const TranslationList& all) {
                  const std::string id = store_.keep(name, done.translated(all, 0));
                  Json reply{{"translatedFileUrl", origin + "/download_file/" + id + "." + name}};
                  if (const Json warnings = all_warnings(done, all); !warnings.empty())
                    reply["warnings"] = warnings;
                  return json_reply(reply);
                });
}

void FileApi::download(RequestContext& context) {
  const std::string id =
      context.request.path.substr(std::string_view("/download_file/").size(), kIdLength);
  auto file = store_.find(id);
  if (!file) throw HttpError(404, "Not Found");
  const bool html = !file->name.ends_with(".txt");
  context.exchange->answer(
      {.body = std::move(file->content),
       .type = html ? "text/html; charset=utf-8" : "text/plain; charset=utf-8",
       .headers = {{"Content-Disposition", "attachment; filename=\"" + file->name + "\""},
                   {"X-Content-Type-Options", "nosniff"}}});
}

}  // namespace fovea

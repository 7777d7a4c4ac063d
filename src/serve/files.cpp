#include <fmt/format.h>

#include "base/utf8.h"
#include "serve/refusal.h"
#include "serve/service.h"

namespace fovea {
namespace {

constexpr size_t kIdLength = 36;

bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

// "letter" of "C:\letters\letter.old.txt", with signs that fit into an address alone.
std::string stem_of(std::string_view name) {
  name = name.substr(name.find_last_of("/\\") + 1);
  std::string stem;
  for (const char c : name.substr(0, std::min<size_t>(name.find('.'), 80)))
    stem += plain(c) ? c : '_';
  return stem.empty() ? "text" : stem;
}

// ".txt", ".html" or ".htm"; "" for any other.
std::string ending_of(std::string_view name) {
  const std::string small = lower(name);
  for (const char* known : {".txt", ".html", ".htm"})
    if (small.ends_with(known)) return known;
  return "";
}

// Where the client reached us, as it says itself.
std::string origin_of(const Request& request) {
  std::string host;
  for (const char c : request.header("host"))
    if (plain(c) || c == '.' || c == ':' || c == '[' || c == ']') host += c;
  const bool https = request.header("x-forwarded-proto") == "https";
  return (https ? "https://" : "http://") + (host.empty() ? "localhost" : host);
}

}  // namespace

void Service::translate_file(Call call) {
  if (!options_.files) throw Refusal(403, "Files translation are disabled on this server.");
  const Parameters& parameters = call.parameters();
  const auto needed = [&](const char* name) {
    const auto text = parameters.text(name);
    if (!text) throw Refusal(400, fmt::format("Invalid request: missing {} parameter", name));
    return *text;
  };
  const std::string source = needed("source"), target = needed("target");
  const FormField* file = parameters.file("file");
  if (!file) throw Refusal(400, "Invalid request: missing file parameter");
  if (file->file_name.empty()) throw Refusal(400, "Invalid request: empty file");
  const std::string ending = ending_of(file->file_name);
  if (ending.empty()) throw Refusal(400, "Invalid request: file format not supported");
  const size_t bad = find_invalid_utf8(file->value);
  if (bad != std::string::npos)
    throw Refusal(400, fmt::format("Invalid request: file is not UTF-8 at byte {}", bad));
  auto order = std::make_shared<Order>();
  order->texts = {file->value};
  order->html = ending != ".txt";
  order->wish = options_.wish;
  order->wish.alignment = order->html;
  check_size(order->texts);
  choose_languages(*order, call.engines, source, target, "");
  const std::string name = stem_of(file->file_name) + "_" + order->target + ending;
  const auto keep = [this, name, origin = origin_of(call.request)](std::string content,
                                                                   const Json& warnings) {
    const std::string id = store_.keep(name, std::move(content));
    Json reply{{"translatedFileUrl", origin + "/download_file/" + id + "." + name}};
    if (!warnings.empty()) reply["warnings"] = warnings;
    return json_reply(reply);
  };
  if (!order->engine) return call.exchange->answer(keep(file->value, Json::array()));
  submit(call, order, [keep](const Order& done, const Translations& all) {
    return keep(done.passages.front()->render(part(done, all, 0), 0), all_warnings(done));
  });
}

void Service::download_file(Call call) {
  const std::string_view name =
      std::string_view(call.request.path).substr(std::string_view("/download_file/").size());
  auto file = store_.find(std::string(name.substr(0, kIdLength)));
  if (!file) throw Refusal(404, "Not Found");
  const bool html = !file->name.ends_with(".txt");
  call.exchange->answer(
      {.body = std::move(file->content),
       .type = html ? "text/html; charset=utf-8" : "text/plain; charset=utf-8",
       .headers = {{"Content-Disposition", "attachment; filename=\"" + file->name + "\""},
                   {"X-Content-Type-Options", "nosniff"}}});
}

}  // namespace fovea

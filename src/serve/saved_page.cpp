#include "serve/saved_page.h"

#include <algorithm>

#include "base/base64.h"
#include "base/check.h"
#include "http/json_reply.h"
#include "serve/attention_json.h"
#include "serve/embedded_files.h"
#include "text/language.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

// The page loads nothing: the file contains all scripts and images.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'";

std::string_view bytes_of(std::string_view name) {
  const auto file = std::ranges::find(page_files(), name, &EmbeddedFile::name);
  check(file != page_files().end(), ExitCode::unexpected, "the web page has no file ", name);
  return file->bytes;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string replaced_once(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  check(at != text.npos, ExitCode::unexpected, "index.html has no ", from);
  return text.replace(at, from.size(), to);
}

// Returns JSON for the inside of <script>. Escapes '<', so that it cannot end the script.
std::string script_json(const Json& value) { return replaced(json_text(value), "<", "\\u003c"); }

std::string data_url(std::string_view type, std::string_view bytes) {
  return "data:" + std::string(type) + ";base64," + base64(bytes);
}

// An import map resolves the modules by name: relative paths such as './dom.js' do not work in URLs
// with the scheme data.
Json import_map() {
  Json imports = Json::object();
  for (const EmbeddedFile& file : page_files()) {
    if (!file.name.ends_with(".js")) continue;
    const std::string text = replaced(std::string(file.bytes), "from './", "from 'fovea/");
    imports["fovea/" + std::string(file.name)] = data_url("text/javascript", text);
  }
  return {{"imports", std::move(imports)}};
}

// Returns the answers that the service would give to the requests of the page.
Json answers(const ServedModel& model, std::span<const SavedSentence> sentences) {
  Json attention = Json::array();
  std::string translation;
  for (const SavedSentence& sentence : sentences) {
    attention.push_back(attention_json(model, sentence.text, sentence.translation));
    translation += (translation.empty() ? "" : "\n") + sentence.translation.text;
  }
  Json languages = Json::array();
  for (const std::string& code : {model.source(), model.target()})
    languages.push_back({{"code", code}, {"name", language_name(code)}});
  return {{"models", Json::array({model_json(model)})},
          {"languages", std::move(languages)},
          {"reply", {{"translatedText", translation}, {"attention", std::move(attention)}}}};
}

}  // namespace

std::string saved_page(const ServedModel& model, std::span<const SavedSentence> sentences) {
  std::string page(bytes_of("index.html"));
  page = replaced_once(std::move(page), "<meta charset=\"utf-8\">",
                       std::string("<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-"
                                   "Policy\" content=\"") +
                           kPolicy + "\">");
  page = replaced_once(std::move(page), "\"/web/icon.svg\"",
                       "\"" + data_url("image/svg+xml", bytes_of("icon.svg")) + "\"");
  page = replaced_once(std::move(page), "<link rel=\"stylesheet\" href=\"/web/style.css\">",
                       "<style>\n" + std::string(bytes_of("style.css")) + "</style>");
  return replaced_once(std::move(page), "<script type=\"module\" src=\"/web/main.js\"></script>",
                       "<script type=\"importmap\">" + script_json(import_map()) +
                           "</script>\n<script type=\"application/json\" id=\"recorded\">" +
                           script_json(answers(model, sentences)) +
                           "</script>\n<script type=\"module\">import 'fovea/main.js';</script>");
}

}  // namespace fovea

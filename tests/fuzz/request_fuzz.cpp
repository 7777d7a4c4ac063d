// The parts of a request, selected by the first byte: a form, JSON, markup, text to split into
// sentences, text for language detection. The parser either refuses the input with 400 or loses no
// byte.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "base/ascii.h"
#include "base/utf8.h"
#include "document/document.h"
#include "document/html_entities.h"
#include "document/markup.h"
#include "http/http_error.h"
#include "serve/request_parameters.h"
#include "text/language.h"
#include "text/language_detector.h"
#include "text/sentences.h"
#include "text/tokenization.h"

namespace {

using namespace fovea;

void require(bool ok) {
  if (!ok) std::abort();
}

// If `action` refuses the input, it does so with status 400 and a message in UTF-8.
template <class Action>
void accept_or_400(Action action) {
  try {
    action();
  } catch (const HttpError& error) {
    require(error.status() == 400 && is_utf8(error.text()) && !error.text().empty());
  }
}

void check_parameters(const HttpRequest& request) {
  accept_or_400([&] {
    const RequestParameters parameters(request);
    for (const char* name : {"q", "source", "beam_size", "attention"}) {
      accept_or_400([&] {
        const auto text = parameters.text(name);
        require(!text || (!text->empty() && is_utf8(*text)));
      });
      accept_or_400([&] {
        const auto texts = parameters.texts(name);
        if (texts) require(!texts->values.empty() && (texts->is_list || texts->values.size() == 1));
        for (const std::string& text : texts.value_or(RequestParameters::Texts{}).values)
          require(is_utf8(text));
      });
      accept_or_400([&] { parameters.flag(name); });
      accept_or_400([&] {
        const auto whole = parameters.integer(name, {1, 16});
        require(!whole || (*whole >= 1 && *whole <= 16));
      });
      accept_or_400([&] {
        const auto number = parameters.number(name, {-10, 10});
        require(!number || (*number >= -10 && *number <= 10));
      });
      if (const FormField* file = parameters.file(name)) require(file->is_file);
    }
  });
}

std::string escaped(std::string_view text) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string all;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    all += {'%', kDigits[byte / 16], kDigits[byte % 16]};
  }
  return all;
}

// Fields whose bytes are all escaped give the same values.
void check_urlencoded(std::string_view text) {
  accept_or_400([&] {
    const auto fields = parse_urlencoded(text);
    std::string again;
    for (const FormField& field : fields)
      again += escaped(field.name) + "=" + escaped(field.value) + "&";
    const auto same = parse_urlencoded(again);
    require(same.size() == fields.size());
    for (size_t i = 0; i < fields.size(); ++i)
      require(same[i].name == fields[i].name && same[i].value == fields[i].value);
  });
  check_parameters({"POST", "/translate", std::string(text), {}, std::string(text)});
}

// The first line is the end of the Content-Type, and the rest is the body.
void check_multipart(std::string_view text) {
  const size_t line = std::min(text.find('\n'), text.size());
  const std::string type = "multipart/form-data;" + std::string(text.substr(0, line));
  const std::string body(text.substr(std::min(line + 1, text.size())));
  accept_or_400([&] {
    size_t bytes = 0;
    for (const FormField& field : parse_multipart(body, type)) bytes += field.value.size();
    require(bytes <= body.size());
  });
  check_parameters({"POST", "/translate", "", {{"content-type", type}}, body});
}

std::set<std::string> tags_of(std::string_view html) {
  std::set<std::string> tags;
  for (const MarkupToken& token : cut_markup(html))
    if (token.bytes.starts_with('<') && token.kind != MarkupToken::Kind::text)
      tags.emplace(token.bytes);
  return tags;
}

// A translation that leaves each word as it is, in the given order.
Translation unchanged(const std::string& sentence, bool reversed, bool aligned) {
  const auto words = split_words(sentence);
  Alternative best;
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t from = reversed ? words.size() - 1 - i : i;
    best.text += (i ? " " : "") + std::string(words[from]);
    if (aligned) best.alignment.emplace_back(static_cast<int>(from), static_cast<int>(i));
  }
  return {.text = best.text, .n_best = {best}, .source_ids = {}, .source_pieces = {}};
}

// The tokens together are the markup, and every tag is in the translation.
void check_markup(std::string_view html, unsigned way) {
  std::string joined;
  for (const MarkupToken& token : cut_markup(html)) joined += token.bytes;
  require(joined == html);
  if (!is_utf8(html)) return;
  require(is_utf8(without_entities(html)));
  require(without_entities(with_entities(html)) == html);
  const auto document = html_document(std::string(html), "de");
  std::vector<Translation> translations;
  for (const std::string& sentence : document->sentences())
    translations.push_back(unchanged(sentence, way & 1, way & 2));
  const std::string result = document->render(translations, 0);
  require(is_utf8(result));
  const auto before = tags_of(html), after = tags_of(result);
  require(std::ranges::includes(after, before));
  document->render(std::vector<Translation>(translations.size()), 1);  // no translation
}

void check_sentences(std::string_view text, const std::string& language) {
  if (!is_utf8(text)) return;
  std::string joined;
  for (const TextSpan& stretch : split_sentences(text, language)) {
    require(!stretch.text.empty() && is_utf8(stretch.text));
    require(!stretch.is_sentence || stretch.text.size() <= SentenceLimit::kBytes);
    require(!stretch.is_sentence || stretch.text.find_first_of("\n\r") == stretch.text.npos);
    joined += stretch.text;
  }
  require(joined == text);
  const auto document = plain_document(std::string(text), language);
  std::vector<Translation> same;
  for (const std::string& sentence : document->sentences())
    same.push_back({.text = sentence,
                    .n_best = {{.text = sentence, .ids = {}, .pieces = {}, .log_probs = {}}},
                    .source_ids = {},
                    .source_pieces = {}});
  require(document->render(same, 0) == text);
}

void check_detector(std::string_view text) {
  static const std::vector<std::string> known = detected_languages();
  const auto found = detect_language(text);
  double total = 0, last = 100;
  for (const DetectedLanguage& d : found) {
    require(d.confidence >= 0 && d.confidence <= last);
    require(std::ranges::binary_search(known, d.language));
    total += last = d.confidence;
  }
  // Letters of other scripts count for no language. Each confidence is rounded to a tenth.
  require(total <= 100 + 0.05 * static_cast<double>(found.size()) + 1e-9);
  const std::string code = canonical_code(text);
  require(code == canonical_code(code));
  if (const auto pair = languages_of_folder(text))
    require(!pair->first.empty() && !pair->second.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  static constexpr const char* kLanguages[] = {"en", "de", "fr", "th", "", "no such"};
  const unsigned kind = data[0] % 6, way = data[0] / 6;
  if (kind == 0) check_urlencoded(text);
  if (kind == 1) check_multipart(text);
  if (kind == 2)
    check_parameters(
        {"POST", "/translate", "", {{"content-type", "application/json"}}, std::string(text)});
  if (kind == 3) check_markup(text, way);
  if (kind == 4) check_sentences(text, kLanguages[way % 6]);
  if (kind == 5) check_detector(text);
  return 0;
}

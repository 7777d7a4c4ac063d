#include "cli/input_warnings.h"

#include "cli/model_options.h"
#include "text/readability.h"

namespace fovea {

InputWarnings::InputWarnings(const ModelBundle& bundle)
    : vocabulary_(bundle.source), lines_("lines with characters unknown to the model"),
      lost_("lines with characters that are not in the translation") {
  if (const auto languages = languages_of_model(bundle.directory)) language_ = languages->first;
}

// Returns a warning about the language of all lines together, or "" if there is nothing to report.
std::string InputWarnings::language_warning(std::span<const std::string> lines) const {
  std::string beginning;
  for (const std::string& line : lines) {
    if (beginning.size() >= kDetectedBytes) break;
    beginning += line + "\n";
  }
  const auto found = language_warnings(beginning, language_);
  return found.empty() ? "" : describe_language(found.front().detected, language_);
}

void InputWarnings::check_lines(std::span<const std::string> lines, const std::string& name,
                                int64_t first) {
  std::string language = warned_ == name ? "" : language_warning(lines);
  if (!language.empty()) warned_ = name;
  for (size_t i = 0; i < lines.size(); ++i)
    for (const ReadingWarning& warning : coverage_warnings(vocabulary_, lines.subspan(i, 1))) {
      std::string more = language.empty() ? "" : "; " + language;
      if (!more.empty() || warning.kind == ReadingWarning::Kind::unreadable)
        more += "; is -m right?";
      lines_.add("{}:{}: {}{}", name, first + static_cast<int64_t>(i),
                 describe(warning, vocabulary_), more);
      language.clear();
    }
  if (!language.empty()) log_warning("{}: {}; is -m right?", name, language);
}

void InputWarnings::check_translations(std::span<const std::string> lines,
                                       std::span<const std::string> translations,
                                       const std::string& name, int64_t first) {
  for (size_t i = 0; i < lines.size(); ++i)
    for (const ReadingWarning& warning :
         copy_warnings(vocabulary_, lines.subspan(i, 1), translations.subspan(i, 1)))
      lost_.add("{}:{}: {}", name, first + static_cast<int64_t>(i),
                describe_lost(warning, vocabulary_));
}

}  // namespace fovea

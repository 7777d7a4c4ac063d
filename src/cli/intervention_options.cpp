#include "cli/intervention_options.h"

#include <charconv>
#include <optional>

#include "base/check.h"
#include "cli/command_line.h"
#include "explain/word_explanation.h"
#include "text/corpus.h"

namespace fovea {
namespace {

constexpr WordWhatIf::Names kNames{"--mask", "--mask-head", "--force"};

std::optional<int64_t> number_of(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Parses KIND.LAYER.HEAD.
HeadName parse_head(const std::string& text) {
  const size_t last = text.rfind('.'), first = text.rfind('.', last - 1);
  if (last != std::string::npos && first != std::string::npos && first < last) {
    const auto layer = number_of(std::string_view(text).substr(first + 1, last - first - 1));
    const auto head = number_of(std::string_view(text).substr(last + 1));
    if (layer && head) return {text.substr(0, first), *layer, *head};
  }
  fail(ExitCode::usage, "--mask-head ", text,
       ": expected KIND.LAYER.HEAD, both numbers from 0, for example cross.0.2");
}

int64_t word_of(const ModelBundle& bundle, const std::vector<int32_t>& ids, const char* option,
                const std::string& word) {
  const FoundWord found = find_word(bundle.source, ids, word);
  check(found.piece.has_value(), ExitCode::usage, option, " ", word,
        ": the sentence has no such word", found.note(word),
        "; give one of its words, the number of a word (from 1), or an occurrence such as dog#2");
  return bundle.source.words_of(ids)[*found.piece];
}

}  // namespace

void InterventionOptions::add_to(Command& command) {
  Command group = command.group("What if");
  // One value each: the sentence may follow.
  const auto add = [&](const char* name, std::vector<std::string>& values, const char* help) {
    return group.option(name, values, help).one_value_each();
  };
  add("--mask", masks, "Mask this word in all attention; can be repeated").takes("WORD");
  add("--mask-head", heads,
      "Set the output of this head to 0, for example cross.0.2; can be repeated")
      .takes("KIND.LAYER.HEAD");
  add("--force", forces,
      "At this step (target piece, from 0) fix the cross-attention on this word; can be repeated")
      .takes("STEP=WORD");
}

WordWhatIf InterventionOptions::read(const ModelBundle& bundle, const std::string& text) const {
  WordWhatIf interventions;
  if (!given()) return interventions;
  const std::vector<int32_t> ids = ids_read(bundle.source, *bundle.model, text);
  for (const std::string& word : masks)
    interventions.masked.push_back(word_of(bundle, ids, "--mask", word));
  for (const std::string& head : heads) interventions.silent.push_back(parse_head(head));
  for (const std::string& force : forces) {
    const size_t equals = force.find('=');
    const auto step = number_of(std::string_view(force).substr(0, equals));
    check(equals != std::string::npos && step, ExitCode::usage, "--force ", force,
          ": expected STEP=WORD, for example 2=dog");
    interventions.forced.push_back(
        {.step = *step, .word = word_of(bundle, ids, "--force", force.substr(equals + 1))});
  }
  interventions.check(bundle.config, bundle.source.words_of(ids).back() + 1, kNames);
  return interventions;
}

}  // namespace fovea

#include "cli/what_if_options.h"

#include <charconv>
#include <optional>

#include "base/check.h"
#include "cli/explanation.h"
#include "cli/options.h"
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

// KIND.LAYER.HEAD
HeadName parse_head(const std::string& text) {
  const size_t last = text.rfind('.'), first = text.rfind('.', last - 1);
  if (last != std::string::npos && first != std::string::npos && first < last) {
    const auto layer = number_of(std::string_view(text).substr(first + 1, last - first - 1));
    const auto head = number_of(std::string_view(text).substr(last + 1));
    if (layer && head) return {text.substr(0, first), *layer, *head};
  }
  fail(Exit::usage, "--mask-head ", text,
       ": expected KIND.LAYER.HEAD, counted from 0, for example cross.0.2");
}

int64_t word_of(const Package& package, const std::vector<int32_t>& ids, const char* option,
                const std::string& word) {
  const FoundWord found = find_word(package.source, ids, word);
  check(
      found.piece.has_value(), Exit::usage, option, " ", word, ": the sentence has no such word",
      found.note(word),
      "; give one of its words, the number of a word from 1, or the n-th occurrence of one: dog#2");
  return package.source.words_of(ids)[*found.piece];
}

}  // namespace

void WhatIfOptions::add_to(Command& command) {
  Command group = command.group("What if");
  // One word each: the sentence may stand behind them.
  const auto add = [&](const char* name, std::vector<std::string>& values, const char* help) {
    return group.option(name, values, help).one_by_one();
  };
  add("--mask", masks, "Mask this word in all attention; can be repeated").takes("WORD");
  add("--mask-head", heads, "Set the output of this head to 0: cross.0.2; can be repeated")
      .takes("KIND.LAYER.HEAD");
  add("--force", forces, "At this step (target piece, from 0) fix the cross-attention on this word")
      .takes("STEP=WORD");
}

WordWhatIf WhatIfOptions::read(const Package& package, const std::string& text) const {
  WordWhatIf what;
  if (!given()) return what;
  const std::vector<int32_t> ids = ids_read(package.source, *package.model, text);
  for (const std::string& word : masks)
    what.masked.push_back(word_of(package, ids, "--mask", word));
  for (const std::string& head : heads) what.silent.push_back(parse_head(head));
  for (const std::string& force : forces) {
    const size_t equals = force.find('=');
    const auto step = number_of(std::string_view(force).substr(0, equals));
    check(equals != std::string::npos && step, Exit::usage, "--force ", force,
          ": expected STEP=WORD, for example 2=dog");
    what.forced.push_back(
        {.step = *step, .word = word_of(package, ids, "--force", force.substr(equals + 1))});
  }
  what.check(package.config, package.source.words_of(ids).back() + 1, kNames);
  return what;
}

}  // namespace fovea

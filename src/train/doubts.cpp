#include "train/doubts.h"

#include <algorithm>
#include <filesystem>

#include "base/lines.h"
#include "base/log.h"

namespace fovea {
namespace {

constexpr int64_t kCompared = 100, kFewest = 10;              // lines
constexpr int64_t kFewPairs = 10'000, kManyParameters = 100;  // for each piece of the target text

// How many lines the two begin with, at most kCompared; 0 where one of them differs, or all are
// empty.
int64_t same_lines(const std::string& a, const std::string& b) {
  LineReader first(a), second(b);
  bool words = false;
  for (Line x, y; first.counts().lines < kCompared;) {
    const bool more = first.next(x);
    if (more != second.next(y)) return 0;
    if (!more) break;
    if (x.text != y.text) return 0;
    words |= !x.text.empty();
  }
  return words && first.counts().lines >= kFewest ? first.counts().lines : 0;
}

std::string doubt_of_pair(const std::string& source, const std::string& target) {
  if (source == "-" || target == "-") return "";
  std::error_code error;
  if (std::filesystem::equivalent(source, target, error)) return source + " is both";
  const int64_t lines = same_lines(source, target);
  if (lines == 0) return "";
  return source + " and " + target + " begin with the same " + std::to_string(lines) + " lines";
}

// A text that is measured with and is also among the training text.
std::string doubt_of_held_out(const DataOptions& data) {
  const std::pair<const char*, const std::vector<std::string>&> texts[] = {
      {"data.valid_source", data.valid_source},
      {"data.test_source", data.test_source},
      {"data.valid", data.valid},
      {"data.test", data.test}};
  const auto& train = data.labelled() ? data.train : data.train_source;
  for (const auto& [name, held_out] : texts)
    for (const std::string& file : data.under_root(held_out))
      for (const std::string& trained : data.under_root(train))
        if (const std::string found = doubt_of_pair(file, trained); !found.empty())
          return fmt::format(
              "{}: {}: results will say nothing about other text; hold out lines that are not in "
              "the training text",
              name, found.ends_with("is both") ? file + " is also training text" : found);
  return "";
}

}  // namespace

std::string doubt_of_files(const DataOptions& data) {
  const struct {
    const char* name;
    const std::vector<std::string>&sources, &targets;
  } texts[] = {{"train", data.train_source, data.train_target},
               {"valid", data.valid_source, data.valid_target},
               {"test", data.test_source, data.test_target}};
  for (const auto& [name, sources, targets] : texts)
    for (size_t i = 0; i < std::min(sources.size(), targets.size()); ++i) {
      const std::vector<std::string> pair = data.under_root({sources[i], targets[i]});
      if (const std::string found = doubt_of_pair(pair[0], pair[1]); !found.empty())
        return fmt::format(
            "data.{}_source and data.{}_target: {}: such a model copies its text; is one of the "
            "names wrong?",
            name, name, found);
    }
  return doubt_of_held_out(data);
}

std::string doubt_of_size(int64_t parameters, const Corpus& text) {
  const int64_t pieces = text.target_tokens();
  if (text.targets() == Targets::labels || text.size() >= kFewPairs ||
      parameters <= kManyParameters * pieces)
    return "";
  return fmt::format(
      "the model has {} parameters, and the training text {} target pieces in {} pairs: it will "
      "memorise these and translate nothing else; use more text (at least ten thousand pairs), or "
      "a smaller model (model.size, model.inner, layers, vocabulary.size)",
      with_commas(parameters), with_commas(pieces), with_commas(text.size()));
}

}  // namespace fovea

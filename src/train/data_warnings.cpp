#include "train/data_warnings.h"

#include <algorithm>
#include <filesystem>

#include "base/lines.h"
#include "base/log.h"

namespace fovea {
namespace {

constexpr int64_t kCompared = 100, kFewest = 10;              // lines: compared; fewest equal
constexpr int64_t kFewPairs = 10'000, kManyParameters = 100;  // pairs; parameters per target piece

// Compares the first lines of two files, at most kCompared. If all of them are equal, returns their
// number. Returns 0 if a line differs, if all lines are empty, or if there are fewer than kFewest.
int64_t same_lines(const std::string& a, const std::string& b) {
  LineReader first(a), second(b);
  bool words = false;
  for (TextLine x, y; first.counts().lines < kCompared;) {
    const bool more = first.next(x);
    if (more != second.next(y)) return 0;
    if (!more) break;
    if (x.text != y.text) return 0;
    words |= !x.text.empty();
  }
  return words && first.counts().lines >= kFewest ? first.counts().lines : 0;
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return a != "-" && b != "-" && std::filesystem::equivalent(a, b, error);
}

// Returns "A and B begin with the same N lines", or "" if same_lines() returns 0.
std::string same_beginning(const std::string& a, const std::string& b) {
  const int64_t lines = a == "-" || b == "-" ? 0 : same_lines(a, b);
  return lines == 0 ? "" : fmt::format("{} and {} begin with the same {} lines", a, b, lines);
}

// Reports validation or test text that is also training text.
std::string warning_about_held_out(const DataOptions& data) {
  const std::pair<const char*, const std::vector<std::string>&> texts[] = {
      {"data.valid_source", data.valid_source},
      {"data.test_source", data.test_source},
      {"data.valid", data.valid},
      {"data.test", data.test}};
  const auto& train = data.labelled() ? data.train : data.train_source;
  for (const auto& [name, held_out] : texts)
    for (const std::string& file : data.under_root(held_out))
      for (const std::string& trained : data.under_root(train)) {
        const std::string found = is_same_file(file, trained) ? file + " is also training text"
                                                              : same_beginning(file, trained);
        if (!found.empty())
          return fmt::format(
              "{}: {}; results on training text say nothing about new text; use lines that are not "
              "in the training text",
              name, found);
      }
  return "";
}

}  // namespace

std::string warning_about_files(const DataOptions& data) {
  const struct {
    const char* name;
    const std::vector<std::string>&sources, &targets;
  } texts[] = {{"train", data.train_source, data.train_target},
               {"valid", data.valid_source, data.valid_target},
               {"test", data.test_source, data.test_target}};
  for (const auto& [name, sources, targets] : texts)
    for (size_t i = 0; i < std::min(sources.size(), targets.size()); ++i) {
      const std::vector<std::string> pair = data.under_root({sources[i], targets[i]});
      const std::string found =
          is_same_file(pair[0], pair[1]) ? "both are " + pair[0] : same_beginning(pair[0], pair[1]);
      if (!found.empty())
        return fmt::format(
            "data.{}_source and data.{}_target: {}; the model would only learn to copy; check the "
            "file names",
            name, name, found);
    }
  return warning_about_held_out(data);
}

std::string warning_about_size(int64_t parameters, const Corpus& text) {
  const int64_t pieces = text.target_tokens();
  if (text.targets() == TargetKind::labels || text.size() >= kFewPairs ||
      parameters <= kManyParameters * pieces)
    return "";
  return fmt::format(
      "the model has {} parameters, but the training text has only {} target pieces in {} pairs; "
      "the model will memorise these pairs and translate nothing else; use more text (at least "
      "10,000 pairs) or a smaller model (model.size, model.inner, layers, vocabulary.size)",
      with_commas(parameters), with_commas(pieces), with_commas(text.size()));
}

}  // namespace fovea

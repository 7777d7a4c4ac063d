#include "cli/shown_file.h"

#include <filesystem>

#include "base/lines.h"
#include "base/log.h"
#include "cli/session.h"
#include "decode/scorer.h"
#include "serve/saved_page.h"
#include "text/corpus.h"

namespace fovea {
namespace {

// What the search would have found, had it found this translation.
Translation as_translation(const Engine& engine, const SavedPair& pair) {
  const Package& package = engine.package();
  Corpus corpus;
  const auto without_end = [](std::span<const int32_t> ids) { return ids.first(ids.size() - 1); };
  corpus.add(without_end(pair.source), without_end(pair.target), 1);
  const Model* const model = package.model.get();
  const PairScore score = score_pairs(std::span(&model, 1), corpus).front();
  Alternative best{.text = pair.translation,
                   .score = score.log_prob,
                   .log_prob = score.log_prob,
                   .ids = pair.target,
                   .pieces = package.target.pieces(pair.target),
                   .log_probs = score.log_probs};
  return {.text = pair.translation,
          .n_best = {std::move(best)},
          .source_ids = pair.source,
          .source_pieces = package.source.pieces(pair.source),
          .attention = pair.maps,
          .tree = pair.tree};
}

}  // namespace

std::vector<GivenPair> read_pairs(const std::string& path) {
  std::vector<GivenPair> pairs;
  LineReader reader = LineReader::once(path);
  for (Line line; reader.next(line);) {
    const size_t tab = line.text.find('\t');
    GivenPair pair{clean_line(line.text.substr(0, tab)).text, "", line.number};
    if (tab != line.text.npos) {
      const std::string_view rest = line.text.substr(tab + 1);
      check(rest.find('\t') == rest.npos, Exit::data, reader.where(),
            ": found more than one tab, expected a sentence, a tab and its translation");
      pair.target = clean_line(rest).text;
    }
    if (pair.source.empty() && pair.target.empty()) continue;
    check(!pair.source.empty(), Exit::data, reader.where(),
          ": the sentence before the tab is empty");
    pairs.push_back(std::move(pair));
  }
  check(!pairs.empty(), Exit::data, path,
        ": no line holds a sentence; each line needs a sentence, or a sentence, a tab and a "
        "translation");
  return pairs;
}

std::string FileNumber::in(const std::string& path) const {
  if (number == 0) return path;
  const std::filesystem::path file(path);
  const std::string name =
      file.stem().string() + "-" + std::to_string(number) + file.extension().string();
  return (file.parent_path() / name).string();
}

void write_shown(const std::string& path, const std::string& bytes) {
  OutputFile file(path);
  file.write(bytes);
  file.close();
  if (path != "-") log_info("wrote {}", path);
}

std::string shown_page(Package package, std::span<const SavedPair> pairs) {
  const std::filesystem::path folder(package.directory);
  const auto languages =
      languages_of_model(package.directory).value_or(std::pair("source", "target"));
  const Engine engine(folder.lexically_normal().filename().string(), languages.first,
                      languages.second, std::move(package));
  std::vector<SavedSentence> sentences;
  for (const SavedPair& pair : pairs)
    sentences.push_back({pair.text, as_translation(engine, pair)});
  return saved_page(engine, sentences);
}

}  // namespace fovea

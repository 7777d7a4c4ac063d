#include "cli/picture_files.h"

#include <filesystem>

#include "base/lines.h"
#include "base/log.h"
#include "cli/model_options.h"
#include "decode/scorer.h"
#include "serve/saved_page.h"
#include "text/corpus.h"

namespace fovea {
namespace {

// Returns the pair in the form of a search result, with scores from forced decoding.
Translation as_translation(const ServedModel& engine, const SavedPair& pair) {
  const ModelBundle& bundle = engine.package();
  Corpus corpus;
  const auto without_end = [](std::span<const int32_t> ids) { return ids.first(ids.size() - 1); };
  corpus.add(without_end(pair.source), without_end(pair.target), 1);
  const Model* const model = bundle.model.get();
  const PairScore score = score_pairs(std::span(&model, 1), corpus).front();
  Alternative best{.text = pair.translation,
                   .score = score.log_prob,
                   .log_prob = score.log_prob,
                   .ids = pair.target,
                   .pieces = bundle.target.pieces(pair.target),
                   .log_probs = score.log_probs};
  return {.text = pair.translation,
          .n_best = {std::move(best)},
          .source_ids = pair.source,
          .source_pieces = bundle.source.pieces(pair.source),
          .attention = pair.maps,
          .tree = pair.tree};
}

}  // namespace

std::vector<InputPair> read_pairs(const std::string& path) {
  std::vector<InputPair> pairs;
  LineReader reader = LineReader::once(path);
  for (TextLine line; reader.next(line);) {
    const size_t tab = line.text.find('\t');
    InputPair pair{clean_line(line.text.substr(0, tab)).text, "", line.number};
    if (tab != line.text.npos) {
      const std::string_view rest = line.text.substr(tab + 1);
      check(rest.find('\t') == rest.npos, ExitCode::data, reader.where(),
            ": found more than one tab, expected a sentence, a tab and its translation");
      pair.target = clean_line(rest).text;
    }
    if (pair.source.empty() && pair.target.empty()) continue;
    check(!pair.source.empty(), ExitCode::data, reader.where(),
          ": the sentence before the tab is empty");
    pairs.push_back(std::move(pair));
  }
  check(!pairs.empty(), ExitCode::data, path,
        ": no sentences found; expected on each line a sentence, or a sentence, a tab and its "
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

void write_result(const std::string& path, const std::string& bytes) {
  OutputFile file(path);
  file.write(bytes);
  file.close();
  if (path != "-") log_info("wrote {}", path);
}

std::string pairs_page(ModelBundle bundle, std::span<const SavedPair> pairs) {
  const std::filesystem::path folder(bundle.directory);
  const auto languages =
      languages_of_model(bundle.directory).value_or(std::pair("source", "target"));
  const ServedModel engine(folder.lexically_normal().filename().string(), languages.first,
                           languages.second, std::move(bundle));
  std::vector<SavedSentence> sentences;
  for (const SavedPair& pair : pairs)
    sentences.push_back({pair.text, as_translation(engine, pair)});
  return saved_page(engine, sentences);
}

}  // namespace fovea

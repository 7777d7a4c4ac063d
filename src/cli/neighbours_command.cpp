#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/files.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "decode/embeddings.h"
#include "vectors/neighbours.h"
#include "view/principal_plane.h"
#include "view/scatter.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  The ten nearest neighbours of two words, by the cosine of their vectors:
    fovea neighbours president germany -v vectors.vec

  Five neighbours of each word, and a map of all of them:
    fovea neighbours president germany three -v vectors.vec -n 5 --svg map.svg

  Neighbours in the target embeddings of a model:
    fovea neighbours Hund -m model --side target

  As JSON, one line per word:
    fovea neighbours president -v vectors.vec --json | jq '.neighbours[0].word'

Make vectors with 'fovea embed', or download them: word2vec (text or binary), GloVe and fastText
.vec files can be read directly. The map shows the first two principal components of the vectors,
each normalised to length 1. Distances in the map are at most the real distances.)";

struct NeighboursCommand {
  std::vector<std::string> words;
  std::string vectors, model, side = "source", svg, bad_utf8 = "fail";
  int64_t count = 10;
  bool json = false;
};

// A requested word and its neighbours.
struct Answer {
  int64_t word;
  std::vector<Neighbour> neighbours;
};

WordVectors load_file(const NeighboursCommand& c) {
  const std::map<std::string, BadUtf8> bad{
      {"fail", BadUtf8::fail}, {"skip", BadUtf8::skip}, {"replace", BadUtf8::replace}};
  WordVectors vectors = WordVectors::read(c.vectors, {.bad_utf8 = bad.at(c.bad_utf8)});
  log_info("{}: {} vectors of size {}; {}", c.vectors, with_commas(vectors.words()), vectors.size(),
           vectors.counts().summary());
  return vectors;
}

WordVectors load_table(const NeighboursCommand& c) {
  return embeddings_of(load_package(model_directory(c.model)),
                       c.side == "source" ? LanguageSide::source : LanguageSide::target);
}

int64_t find_word(const WordVectors& vectors, const std::string& typed) {
  if (const int64_t at = find_typed(vectors, typed); at >= 0) return at;
  const int64_t near = nearest_spelling(vectors, typed);
  fail(ExitCode::data, "there is no vector for '", printable(typed), "'",
       near < 0 ? std::string("; see the file for its words")
                : fmt::format("; did you mean '{}'?", printable(vectors.word(near))));
}

void print_text(OutputFile& out, const WordVectors& vectors, const Answer& answer) {
  out.write_line(printable(vectors.word(answer.word)));
  for (const Neighbour& n : answer.neighbours)
    out.write_line(fmt::format("  {:6.3f}  {}", n.cosine, printable(vectors.word(n.word))));
}

void print_json(OutputFile& out, const WordVectors& vectors, const Answer& answer) {
  nlohmann::ordered_json line{{"word", vectors.word(answer.word)},
                              {"neighbours", nlohmann::ordered_json::array()}};
  for (const Neighbour& n : answer.neighbours)
    line["neighbours"].push_back(
        {{"word", vectors.word(n.word)}, {"cosine", std::round(n.cosine * 1e6) / 1e6}});
  out.write_line(line.dump());
}

// Draws each word once, in the group of the first requested word that it is a neighbour of.
std::string map_of(const NeighboursCommand& c, const WordVectors& vectors,
                   const std::vector<Answer>& answers) {
  std::map<int64_t, size_t> groups;
  for (size_t g = 0; g < answers.size(); ++g) groups.emplace(answers[g].word, g);
  const std::map<int64_t, size_t> centres = groups;
  for (size_t g = 0; g < answers.size(); ++g)
    for (const Neighbour& n : answers[g].neighbours) groups.emplace(n.word, g);

  std::vector<std::vector<double>> directions;
  for (const auto& [word, group] : groups) directions.push_back(direction(vectors.vector(word)));
  const auto plane = principal_plane(directions);
  std::vector<std::string> requested;
  for (const Answer& answer : answers) requested.emplace_back(vectors.word(answer.word));
  const std::string where = c.model.empty() ? c.vectors : c.model + ", " + c.side + " side";
  ScatterPlot scatter{fmt::format("Nearest words of {}", fmt::join(requested, ", ")),
                      "Principal plane of the vectors in " + where,
                      {}};
  size_t i = 0;
  for (const auto& [word, group] : groups) {
    scatter.points.push_back(
        {std::string(vectors.word(word)), plane[i][0], plane[i][1], group, centres.contains(word)});
    ++i;
  }
  return svg_scatter(scatter);
}

void neighbours(const NeighboursCommand& c) {
  check(c.vectors.empty() != c.model.empty(), ExitCode::usage,
        "no vectors; give either -v FILE or -m MODEL");
  check(!c.words.empty(), ExitCode::usage, "no words; give at least one WORD");
  const WordVectors vectors = c.model.empty() ? load_file(c) : load_table(c);
  std::vector<int64_t> found;
  for (const std::string& word : c.words) found.push_back(find_word(vectors, word));
  const NeighbourSearch search(vectors);
  std::vector<Answer> answers;
  OutputFile out("-");
  for (const int64_t word : found) {
    answers.push_back({word, search.nearest(vectors.vector(word), c.count, word)});
    c.json ? print_json(out, vectors, answers.back()) : print_text(out, vectors, answers.back());
  }
  out.close();
  if (c.svg.empty()) return;
  write_atomically(c.svg, map_of(c, vectors, answers));
  log_info("wrote the map to {}", c.svg);
}

}  // namespace

void add_neighbours(Command& program) {
  Command command = program.command("neighbours", "Find the words with the most similar vectors");
  auto shared = std::make_shared<NeighboursCommand>();
  NeighboursCommand& c = *shared;
  command.option("words", c.words, "Words to find neighbours of").takes("WORD");
  command.option("-v,--vectors", c.vectors, "File of word vectors (text files may be .gz)")
      .takes("FILE");
  command
      .option("-m,--model", c.model,
              "Use the embeddings of this model: its directory, or the name of a bundled model")
      .takes("DIR");
  command.option("--side", c.side, "Which embeddings of the model to use")
      .among({"source", "target"})
      .with_default();
  command.option("-n,--count", c.count, "Number of neighbours per word")
      .within(1, 1000)
      .with_default();
  command.option("--svg", c.svg, "Draw a map of the words and their neighbours").takes("FILE");
  command.flag("--json", c.json, "Print one JSON object per word");
  command.option("--bad-utf8", c.bad_utf8, "How to handle words of the file that are not UTF-8")
      .among({"fail", "skip", "replace"})
      .with_default();
  command.footer(kExamples);
  command.runs([shared] { neighbours(*shared); });
}

}  // namespace fovea

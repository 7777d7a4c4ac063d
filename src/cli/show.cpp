#include "cli/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/lines.h"
#include "base/log.h"
#include "cli/attention_picture.h"
#include "cli/explanation.h"
#include "cli/input_warnings.h"
#include "cli/options.h"
#include "cli/session.h"
#include "cli/shown_file.h"
#include "cli/what_if_options.h"
#include "decode/explained.h"
#include "decode/translate.h"
#include "text/batch.h"
#include "text/corpus.h"
#include "view/raster.h"
#include "view/svg.h"
#include "view/terminal.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  Translate a sentence and show the attention of each word:
    fovea show "A small dog runs through the snow."

  One head of one layer, with pieces instead of words, as a vector graphic for a paper:
    fovea show --layer 1 --head 2 --pieces --svg head.svg "A small dog runs through the snow."

  All heads of all layers in one picture:
    fovea show --grid --svg heads.svg "A small dog runs through the snow."

  As a bitmap for slides, and as an interactive page for any browser, without a server:
    fovea show --png map.png "A small dog runs through the snow."
    fovea show --html map.html "A small dog runs through the snow."

    Many sentences, one per line, optionally with a tab and a translation, as map-1.png,
  map-2.png, …, or as one page:
    fovea show --pairs pairs.tsv --png map.png
    fovea show --pairs pairs.tsv --html pairs.html

  Use another attention mechanism ('fovea doctor' lists the bundled models):
    fovea show -m local-p "A small dog runs through the snow."

  Compute the attention of a word step by step, with all numbers:
    fovea show --explain dog --layer 0 --head 2 "A small dog runs through the snow."

  Translate again with a word masked in all attention, or with the attention of step 1 fixed:
    fovea show --mask dog "A small dog runs through the snow."
    fovea show --force 1=snow "A small dog runs through the snow."

  The attention of a given translation:
    fovea show --target "Ein Hund läuft durch den Schnee." "A dog runs through the snow."

Rows are target words, columns the words they attend to. Each row sums to 1, except with local-p,
whose Gaussian reduces the sum. Graves' window weights (window) are normalised for the picture.
Layers and heads are counted from 0 (on the page of fovea serve from 1); by default their mean is
shown. The steps of --force are counted from 0, the words of --explain and --mask from 1. Word
weights are sums over the pieces of a source word and means over those of a target word. Recurrent
models also show the state of their mechanism: p_t with its window and Gaussian (local-m, local-p),
the means of Graves' Gaussians (window), the chosen words (hard-argmax, hard-sample), the frontier
(forward), one bar for all words (static).
--explain takes a word of the sentence (self-attention of the encoder) or of its translation
(cross-attention), a piece of a word, or the number of a word, from 1: --explain 1 is the first
word. dog#2 is the second "dog". The result shows pieces, one layer and one head; for recurrent
models it shows the steps of their score and mechanism.
Chinese, Japanese, Thai, Lao, Khmer and Burmese text is split into words by ICU's dictionaries;
there --explain takes any text, such as 学生 or 他#2.
--mask and --force take words like --explain. A Transformer reads nothing of a masked word. The
encoder of a recurrent model still reads it, so the states of its neighbours depend on it.
Attention shows where the model looks, not why it decides.)";

struct ShowCommand {
  ModelChoice model;
  WhatIfOptions what_if;
  std::string text, target, prefix, pairs, svg, png, html, explain;
  std::string kind;  // empty: cross, or where the word to explain is
  int64_t layer = -1, head = -1, beam = 4;
  bool pieces = false, grid = false, ascii = false, json = false;
};

// A sentence pair with its attention maps and what to write on rows and columns.
struct ShownPair {
  std::string translation;
  std::vector<int32_t> source, target;  // with </s>
  std::vector<AttentionMap> maps;
  std::vector<BeamNode> tree = {};  // of the search, where the translation is the model's own
};

void check_steps(const WordWhatIf& what, size_t pieces) {
  for (const auto& forced : what.forced)
    check(forced.step < static_cast<int64_t>(pieces), Exit::usage, "--force ", forced.step,
          "=…: the translation has steps 0 to ", pieces - 1);
}

ShownPair attend(const ShowCommand& c, const Package& package) {
  TranslateOptions options{
      .search = {.beam = c.beam}, .attention = c.target.empty(), .tree = !c.html.empty()};
  options.what_if = c.what_if.read(package, c.text);
  options.search.prefix = package.target.encode(clean_line(c.prefix).text);
  const Translator translator({package.model.get()}, package.source, package.target, options);
  const Translation found = translator.translate(std::vector{c.text}, {"the sentence"}).front();
  check(!found.n_best.empty(), Exit::usage,
        "the sentence is empty; give a sentence with at least one word");
  if (c.target.empty()) {
    check_steps(options.what_if, found.n_best.front().ids.size());
    return {found.text, found.source_ids, found.n_best.front().ids, found.attention, found.tree};
  }

  ShownPair given{c.target, found.source_ids, package.target.encode(clean_line(c.target).text), {}};
  const int64_t longest = package.model->max_length() - 1;
  check(std::ssize(given.target) <= longest, Exit::usage, "--target: ", given.target.size(),
        " pieces, the model accepts ", longest, "; shorten the text");
  Packed source, target;
  source.add(given.source, Packed::Mark::none);
  target.add(given.target, Packed::Mark::bos_before);
  given.target.push_back(kEos);
  check_steps(options.what_if, given.target.size());
  const Model& model = found.altered ? *found.altered : *package.model;
  given.maps = model.attention({source.ids, source.offsets}, {target.ids, target.offsets}).front();
  return given;
}

class Picture {
 public:
  Picture(const ShowCommand& c, const Package& package, const ShownPair& attended)
      : kind_(c.kind.empty() ? "cross" : c.kind) {
    const AttentionConfig& attention = package.config.attention;
    if (attention.kind == "global") score_ = ", score " + attention.score_name();
    const PictureUnit unit = c.pieces ? PictureUnit::pieces : PictureUnit::words;
    const PictureSide source = picture_side(package.source, attended.source, unit);
    if (kind_ == "encoder") {
      rows_ = cols_ = source;
    } else if (kind_ == "decoder") {
      rows_ = cols_ = picture_side(package.target, read_before(attended.target), unit);
    } else {
      rows_ = picture_side(package.target, attended.target, unit);
      cols_ = source;
    }
    for (const AttentionMap& map : attended.maps)
      if (map.kind == kind_) maps_.push_back(map);
    check(!maps_.empty() || !c.kind.empty(), Exit::usage,
          "the model has no attention from target to source; choose another model with -m");
    check(!maps_.empty(), Exit::usage, "--kind ", kind_, ": this model has no such attention");
    for (const AttentionMap& map : maps_) {
      layers_ = std::max(layers_, map.layer + 1);
      heads_ = std::max(heads_, map.head + 1);
    }
    check(c.layer < layers_, Exit::usage, "--layer ", c.layer, ": the model has layers 0 to ",
          layers_ - 1);
    check(c.head < heads_, Exit::usage, "--head ", c.head, ": the model has heads 0 to ",
          heads_ - 1);
  }

  // The mean over the layers and heads asked for; -1 means all.
  AttentionMatrix matrix(int64_t layer, int64_t head) const {
    std::vector<AttentionMap> chosen;
    for (const AttentionMap& map : maps_)
      if ((layer < 0 || map.layer == layer) && (head < 0 || map.head == head))
        chosen.push_back(map);
    return attention_picture(chosen, rows_, cols_, title(layer, head));
  }

  AttentionGrid grid() const {
    AttentionGrid grid;
    grid.title = kind_ + " attention";
    for (int64_t layer = 0; layer < layers_; ++layer) {
      grid.layers.emplace_back();
      for (int64_t head = 0; head < heads_; ++head)
        grid.layers.back().push_back(matrix(layer, head));
    }
    return grid;
  }

 private:
  std::string title(int64_t layer, int64_t head) const {
    if (!maps_.front().mechanism.empty()) return maps_.front().mechanism + " attention" + score_;
    const std::string which = layer < 0 ? "mean of all layers" : fmt::format("layer {}", layer);
    const std::string part = head < 0 ? "mean of heads" : fmt::format("head {}", head);
    return fmt::format("{} attention, {}, {}", kind_, which, part);
  }

  std::string kind_, score_;  // the score where it tells mechanisms apart
  PictureSide rows_, cols_;
  std::vector<AttentionMap> maps_;
  int64_t layers_ = 0, heads_ = 0;
};

TerminalOptions terminal_of(const ShowCommand& c) {
  TerminalOptions terminal = standard_output_options();
  if (c.ascii) terminal.shades = Shades::ascii;
  return terminal;
}

void explain(const ShowCommand& c, const Package& package, const ShownPair& attended) {
  const ExplainedPair pair{c.text, attended.translation, attended.source, attended.target};
  const Explanation found(package, pair, {c.explain, c.kind, c.layer, c.head});
  OutputFile out("-");
  if (c.json)
    out.write_line(found.json());
  else
    out.write(attended.translation + "\n\n" + found.text(terminal_of(c)));
  out.close();
}

// The picture of one pair, as SVG or PNG.
void draw(const ShowCommand& c, const Picture& picture, const FileNumber& number) {
  const std::string svg =
      c.grid ? svg_grid(picture.grid()) : svg_map(picture.matrix(c.layer, c.head));
  if (!c.svg.empty()) write_shown(number.in(c.svg), svg);
  if (!c.png.empty()) write_shown(number.in(c.png), png_of(svg));
}

void print(const ShowCommand& c, const ShownPair& attended, const Picture& picture,
           const char* before) {
  OutputFile out("-");
  out.write_line(before + attended.translation);
  out.write("\n" + terminal_map(picture.matrix(c.layer, c.head), terminal_of(c)));
  out.close();
}

// One pair after another: pictures, maps in the terminal, or all of them in one page.
void show_all(const ShowCommand& c, Package package, std::span<const GivenPair> pairs) {
  std::vector<SavedPair> saved;
  InputWarnings warnings(package);
  for (size_t i = 0; i < pairs.size(); ++i) {
    warnings.look(std::span(&pairs[i].source, 1), c.pairs.empty() ? "argument" : c.pairs,
                  pairs[i].line);
    ShowCommand one = c;
    one.text = pairs[i].source;
    one.target = pairs[i].target;
    const ShownPair attended = attend(one, package);
    if (!c.html.empty())
      saved.push_back({one.text, attended.translation, attended.source, attended.target,
                       attended.maps, attended.tree});
    if (!c.html.empty() && c.svg.empty() && c.png.empty()) continue;
    const Picture picture(c, package, attended);
    if (!c.svg.empty() || !c.png.empty()) {
      draw(c, picture, c.pairs.empty() ? FileNumber{} : FileNumber{i + 1});
    } else {
      print(c, attended, picture, i > 0 ? "\n" : "");
    }
  }
  if (!c.html.empty()) write_shown(c.html, shown_page(std::move(package), saved));
}

void check_choice(const ShowCommand& c) {
  const bool draws = !c.svg.empty() || !c.png.empty();
  check(!c.grid || draws, Exit::usage, "--grid draws a picture: add --svg FILE or --png FILE");
  check(c.explain.empty() || (!draws && c.html.empty()), Exit::usage,
        "--explain prints numbers; --svg, --png and --html draw pictures: give only one of them");
  check(!c.json || !c.explain.empty(), Exit::usage, "--json needs --explain WORD");
  check(!c.what_if.given() || (c.explain.empty() && c.html.empty()), Exit::usage,
        "--explain and --html show the unchanged attention of the model: omit --mask, ",
        "--mask-head and --force");
  check(c.text.empty() != c.pairs.empty(), Exit::usage,
        "give a sentence, or a file of sentences with --pairs");
  check(c.pairs.empty() || (c.target.empty() && c.explain.empty()), Exit::usage,
        "--pairs: the file holds the translations, after a tab; --target and --explain apply to ",
        "a single sentence");
  check(
      c.prefix.empty() || c.target.empty(), Exit::usage,
      "--prefix sets the beginning of the translation, --target all of it: give only one of them");
  check(c.pairs.empty() || (c.svg != "-" && c.png != "-"), Exit::usage,
        "--pairs writes one numbered file per pair: name a file, not standard output");
}

void show(const ShowCommand& c) {
  check_choice(c);
  check(c.model.directories.size() < 2, Exit::usage, "show uses a single model: give -m once");
  const std::vector<GivenPair> pairs =
      c.pairs.empty() ? std::vector{GivenPair{c.text, c.target}} : read_pairs(c.pairs);
  const auto sample = [&] {
    std::string text;
    for (const GivenPair& pair : pairs) text += pair.source + "\n";
    return text;
  };
  std::vector<Package> packages = load_models(c.model, sample);
  const PrecisionScope precision(c.model.numbers());
  if (!c.explain.empty()) {
    InputWarnings(packages.front()).look(std::span(&c.text, 1), "argument", 1);
    return explain(c, packages.front(), attend(c, packages.front()));
  }
  show_all(c, std::move(packages.front()), pairs);
}

}  // namespace

void add_show(Command& program) {
  Command command = program.command("show", "Draw the attention of a translated sentence");
  auto shared = std::make_shared<ShowCommand>();
  ShowCommand& c = *shared;
  command.option("text", c.text, "The sentence to translate").takes("TEXT");
  command
      .option(
          "--pairs", c.pairs,
          "File of sentences instead, one per line, each optionally with a tab and its translation")
      .takes("FILE");
  command.option("-t,--target", c.target, "Show this translation instead of the model's own")
      .takes("TEXT");
  command.option("--prefix", c.prefix, "Beginning of the translation").takes("TEXT");
  command
      .option("--explain", c.explain,
              "Print how the attention of this word is computed, with numbers")
      .takes("WORD");
  command.option("--kind", c.kind, "Kind of attention; default: cross")
      .among({"cross", "encoder", "decoder"});
  command.option("--layer", c.layer, "Layer, from 0; default: mean of all").not_negative();
  command.option("--head", c.head, "Head, from 0; default: mean of all").not_negative();
  command.flag("--pieces", c.pieces, "Show the pieces of the model, not whole words");
  command.option("--svg", c.svg, "Write an SVG picture to this file (- for stdout)").takes("FILE");
  command.option("--png", c.png, "Write a PNG picture to this file (- for stdout)").takes("FILE");
  command.option("--html", c.html, "Write a self-contained page with all views and numbers")
      .takes("FILE");
  command.flag("--grid", c.grid, "All heads of all layers in one picture");
  command.flag("--json", c.json, "With --explain: print all numbers as JSON");
  command.flag("--ascii", c.ascii, "Use ASCII characters instead of colours or blocks");
  command.option("-b,--beam", c.beam, "Hypotheses kept at each step")
      .within(1, 1024)
      .with_default();
  c.what_if.add_to(command);
  add_model_options(command, c.model, Takes::one, DefaultModel::by_text);
  command.footer(kExamples);
  command.runs([shared] { show(*shared); });
}

}  // namespace fovea

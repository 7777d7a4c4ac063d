#include "cli/show.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/lines.h"
#include "base/log.h"
#include "cli/attention_picture.h"
#include "cli/explanation.h"
#include "cli/session.h"
#include "cli/what_if_options.h"
#include "decode/translate.h"
#include "text/batch.h"
#include "text/corpus.h"
#include "view/svg.h"
#include "view/terminal.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  Translate a sentence and see where each word looked:
    fovea show "A small dog runs through the snow."

  One head of one layer, pieces instead of words, as a picture for a paper:
    fovea show --layer 1 --head 2 --pieces --svg head.svg "A small dog runs through the snow."

  All heads of all layers at a glance:
    fovea show --grid --svg heads.svg "A small dog runs through the snow."

  How the attention of a word comes about, with every number on the way:
    fovea show --explain dog --layer 0 --head 2 "A small dog runs through the snow."

  What becomes of it when no attention may look at a word, or the second piece must look at one:
    fovea show --mask dog "A small dog runs through the snow."
    fovea show --force 1=snow "A small dog runs through the snow."

  The attention of a translation that you give:
    fovea show --target "Ein Hund läuft durch den Schnee." "A dog runs through the snow."

Rows are target words, columns what they attend to; each row sums to 1. Layers and heads count
from 0; without them the mean is shown. Word weights are sums over the pieces of a source word and
means over those of a target word. Recurrent models show what their mechanism has of its own as
well: p_t with its window and Gaussian (local-m, local-p), the middles of Graves' Gaussians
(window), the words chosen (hard-argmax, hard-sample), the frontier (forward), one bar for all
(static).
--explain takes a word of the sentence (self-attention of the encoder) or of its translation (what
was read of the source to write it), a piece of one, or the number of a word. It shows pieces, one
layer and one head; of recurrent models the steps of their score and mechanism.
--mask and --force take words like --explain. A Transformer reads nothing of a masked word at all;
the encoder of a recurrent model has read it, and its neighbours know of it.
Attention shows where the model looks, not why it decides.)";

struct ShowCommand {
  ModelChoice model;
  WhatIfOptions what_if;
  std::string text, target, prefix, svg, explain;
  std::string kind;  // empty: cross, or where the word to explain is
  int64_t layer = -1, head = -1, beam = 4;
  bool pieces = false, grid = false, ascii = false, json = false;
};

// A sentence pair with its attention maps and what to write on rows and columns.
struct ShownPair {
  std::string translation;
  std::vector<int32_t> source, target;  // with </s>
  std::vector<AttentionMap> maps;
};

ShownPair attend(const ShowCommand& c, const Package& package) {
  TranslateOptions options{.search = {.beam = c.beam}, .attention = c.target.empty()};
  options.what_if = c.what_if.read(package, c.text);
  options.search.prefix = package.target.encode(clean_line(c.prefix).text);
  const Translator translator({package.model.get()}, package.source, package.target, options);
  const Translation found = translator.translate(std::vector{c.text}, {"the sentence"}).front();
  check(!found.n_best.empty(), Exit::usage, "there is nothing to show: the sentence is empty");
  if (c.target.empty())
    return {found.text, found.source_ids, found.n_best.front().ids, found.attention};

  ShownPair given{c.target, found.source_ids, package.target.encode(clean_line(c.target).text), {}};
  const int64_t longest = package.model->max_length() - 1;
  check(std::ssize(given.target) <= longest, Exit::usage, "--target: ", given.target.size(),
        " pieces, the model takes ", longest, "; shorten it");
  Packed source, target;
  source.add(given.source, Packed::Mark::none);
  target.add(given.target, Packed::Mark::bos_before);
  given.target.push_back(kEos);
  const Model& model = found.altered ? *found.altered : *package.model;
  given.maps = model.attention({source.ids, source.offsets}, {target.ids, target.offsets}).front();
  return given;
}

class Picture {
 public:
  Picture(const ShowCommand& c, const Package& package, const ShownPair& attended)
      : kind_(c.kind.empty() ? "cross" : c.kind) {
    std::vector<int32_t> read{kBos};  // what the decoder has read when it writes each word
    read.insert(read.end(), attended.target.begin(), attended.target.end() - 1);
    const PictureUnit unit = c.pieces ? PictureUnit::pieces : PictureUnit::words;
    const PictureSide source = picture_side(package.source, attended.source, unit);
    if (kind_ == "encoder") {
      rows_ = cols_ = source;
    } else if (kind_ == "decoder") {
      rows_ = cols_ = picture_side(package.target, read, unit);
    } else {
      rows_ = picture_side(package.target, attended.target, unit);
      cols_ = source;
    }
    for (const AttentionMap& map : attended.maps)
      if (map.kind == kind_) maps_.push_back(map);
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
    if (!maps_.front().mechanism.empty()) return maps_.front().mechanism + " attention";
    const std::string which = layer < 0 ? "mean of all layers" : fmt::format("layer {}", layer);
    const std::string part = head < 0 ? "mean of heads" : fmt::format("head {}", head);
    return fmt::format("{} attention, {}, {}", kind_, which, part);
  }

  std::string kind_;
  PictureSide rows_, cols_;
  std::vector<AttentionMap> maps_;
  int64_t layers_ = 0, heads_ = 0;
};

TerminalOptions terminal_of(const ShowCommand& c) {
  TerminalOptions terminal = terminal_options(
      [](const char* name) -> const char* { return std::getenv(name); }, isatty(STDOUT_FILENO));
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

void show(const ShowCommand& c) {
  check(!c.grid || !c.svg.empty(), Exit::usage, "--grid draws a picture: add --svg FILE");
  check(c.explain.empty() || c.svg.empty(), Exit::usage,
        "--explain prints numbers and --svg draws a picture: give one of them");
  check(!c.json || !c.explain.empty(), Exit::usage, "--json is for the numbers of --explain WORD");
  check(c.explain.empty() || !c.what_if.given(), Exit::usage,
        "--explain tells how the model's own attention comes about: leave out --mask, --mask-head "
        "and --force");
  check(c.model.directories.size() < 2, Exit::usage, "show draws one model: give -m once");
  const std::vector<Package> packages = load_models(c.model);
  const PrecisionScope precision(c.model.numbers());
  const ShownPair attended = attend(c, packages.front());
  if (!c.explain.empty()) return explain(c, packages.front(), attended);
  const Picture picture(c, packages.front(), attended);
  if (!c.svg.empty()) {
    OutputFile file(c.svg);
    file.write(c.grid ? svg_grid(picture.grid()) : svg_map(picture.matrix(c.layer, c.head)));
    file.close();
    if (c.svg != "-") log_info("wrote {}", c.svg);
    return;
  }
  OutputFile out("-");
  out.write_line(attended.translation);
  out.write("\n" + terminal_map(picture.matrix(c.layer, c.head), terminal_of(c)));
  out.close();
}

}  // namespace

void add_show(CLI::App& app) {
  auto* command = app.add_subcommand("show", "Draw the attention of a translated sentence");
  auto shared = std::make_shared<ShowCommand>();
  ShowCommand& c = *shared;
  command->add_option("text", c.text, "The sentence to translate")->required()->type_name("TEXT");
  command->add_option("-t,--target", c.target, "This translation instead of the model's own")
      ->type_name("TEXT");
  command->add_option("--prefix", c.prefix, "The translation begins with this text")
      ->type_name("TEXT");
  command->add_option("--explain", c.explain, "The steps of this word's attention, with numbers")
      ->type_name("WORD");
  command->add_option("--kind", c.kind, "Which attention; default: cross")
      ->check(CLI::IsMember({"cross", "encoder", "decoder"}));
  command->add_option("--layer", c.layer, "One layer, from 0; default: their mean")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--head", c.head, "One head, from 0; default: their mean")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--pieces", c.pieces, "Pieces as the model sees them, not whole words");
  command->add_option("--svg", c.svg, "Write a picture to this file (- for stdout)")
      ->type_name("FILE");
  command->add_flag("--grid", c.grid, "All heads of all layers in one picture");
  command->add_flag("--json", c.json, "With --explain: all numbers, for programs");
  command->add_flag("--ascii", c.ascii, "Plain characters instead of colours or blocks");
  command->add_option("-b,--beam", c.beam, "Hypotheses kept at each step")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  c.what_if.add_to(*command);
  add_model_options(*command, c.model);
  command->footer(kExamples);
  command->callback([shared] { show(*shared); });
}

}  // namespace fovea

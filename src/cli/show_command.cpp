#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/lines.h"
#include "base/log.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/input_warnings.h"
#include "cli/model_options.h"
#include "cli/picture_files.h"
#include "decode/model_capabilities.h"
#include "decode/translator.h"
#include "explain/attention_figure.h"
#include "explain/intervention_words.h"
#include "explain/word_explanation.h"
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

  As a bitmap for slides, and as an interactive page for a browser, without a server:
    fovea show --png map.png "A small dog runs through the snow."
    fovea show --html map.html "A small dog runs through the snow."

  Many sentences, one per line, optionally with a tab and a translation, as map-1.png, map-2.png,
  …, or as one page:
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

Rows are target words, columns the words that they attend to. Each row sums to 1, except with
local-p, whose Gaussian reduces the sum. Graves' window (window) has normalised weights.
Layers and heads are counted from 0 (on the page of fovea serve from 1); by default their mean is
shown. The steps of --force are counted from 0, the words of --explain and --mask from 1. Word
weights are sums over the pieces of a source word and means over those of a target word. Recurrent
models also show the state of their mechanism, such as p_t with its window and Gaussian (local-p).
--explain takes a word of the sentence (self-attention of the encoder) or of its translation
(cross-attention), a piece of a word, or the number of a word, from 1: --explain 1 is the first
word. dog#2 is the second "dog". The result shows pieces, one layer and one head; for recurrent
models it shows the steps of their score and mechanism.
Chinese, Japanese, Thai, Lao, Khmer and Burmese text is split into words by ICU's dictionaries;
for these languages --explain accepts any text, such as 学生 or 他#2.
--mask and --force accept the same words as --explain. A Transformer reads nothing of a masked word.
The encoder of a recurrent model still reads it, so the states of its neighbours depend on it.
Attention shows where the model looks, not why it decides.)";

struct ShowCommand {
  ModelChoice model;
  InterventionWords interventions;
  std::string text, target, prefix, pairs, svg, png, html, explain;
  std::string kind;  // empty: "cross", or with --explain the side of the word
  int64_t layer = -1, head = -1, beam = 4;
  bool pieces = false, grid = false, ascii = false, json = false;
};

// A sentence pair with its attention maps.
struct AttendedPair {
  std::string translation;
  std::vector<int32_t> source, target;  // with </s>
  std::vector<AttentionMap> maps;
  std::vector<BeamNode> tree = {};  // search tree; empty if the translation is given
};

void check_steps(const WordWhatIf& interventions, size_t pieces) {
  for (const auto& forced : interventions.forced)
    check(forced.step < static_cast<int64_t>(pieces), ExitCode::usage, "--force ", forced.step,
          "=…: the translation has steps 0 to ", pieces - 1);
}

// Translates the sentence, unless its translation is given, and returns the pair with its
// attention.
AttendedPair attend(const ShowCommand& c, const ModelBundle& bundle) {
  TranslateOptions options{
      .search = {.beam = c.beam}, .attention = c.target.empty(), .tree = !c.html.empty()};
  options.what_if = c.interventions.read(bundle, c.text);
  options.search.prefix = bundle.target.encode(clean_line(c.prefix).text);
  const Translator translator({bundle.model.get()}, bundle.source, bundle.target, options);
  const Translation found = translator.translate(std::vector{c.text}, {"the sentence"}).front();
  check(!found.n_best.empty(), ExitCode::usage,
        "the sentence is empty; give a sentence with at least one word");
  if (c.target.empty()) {
    check_steps(options.what_if, found.n_best.front().ids.size());
    return {found.text, found.source_ids, found.n_best.front().ids, found.attention, found.tree};
  }

  AttendedPair given{
      c.target, found.source_ids, bundle.target.encode(clean_line(c.target).text), {}};
  const int64_t longest = bundle.model->max_length() - 1;
  check(std::ssize(given.target) <= longest, ExitCode::usage, "--target: ", given.target.size(),
        " pieces, the model accepts ", longest, "; shorten the text");
  PackedSentences source, target;
  source.add(given.source, PackedSentences::Mark::none);
  target.add(given.target, PackedSentences::Mark::bos_before);
  given.target.push_back(kEos);
  check_steps(options.what_if, given.target.size());
  const Model& model = found.altered ? *found.altered : *bundle.model;
  given.maps = attentive(model)
                   .attention({source.ids, source.offsets}, {target.ids, target.offsets})
                   .front();
  return given;
}

TerminalOptions terminal_of(const ShowCommand& c) {
  TerminalOptions terminal = standard_output_options();
  if (c.ascii) terminal.shades = TerminalShades::ascii;
  return terminal;
}

void explain(const ShowCommand& c, const ModelBundle& bundle, const AttendedPair& attended) {
  const ExplainedPair pair{c.text, attended.translation, attended.source, attended.target};
  const WordExplanation found(bundle, pair, {c.explain, c.kind, c.layer, c.head});
  OutputFile out("-");
  if (c.json)
    out.write_line(found.json());
  else
    out.write(attended.translation + "\n\n" + found.text(terminal_of(c)));
  out.close();
}

// Writes the picture of a pair as SVG, PNG or both.
void draw(const ShowCommand& c, const AttentionFigure& figure, const FileNumber& number) {
  const std::string svg = c.grid ? svg_grid(figure.grid()) : svg_map(figure.matrix());
  if (!c.svg.empty()) write_result(number.in(c.svg), svg);
  if (!c.png.empty()) write_result(number.in(c.png), png_of(svg));
}

void print(const ShowCommand& c, const AttendedPair& attended, const AttentionFigure& figure,
           const char* before) {
  OutputFile out("-");
  out.write_line(before + attended.translation);
  out.write("\n" + terminal_map(figure.matrix(), terminal_of(c)));
  out.close();
}

// Writes a picture or a terminal map for each pair, or a page with all pairs.
void show_all(const ShowCommand& c, ModelBundle bundle, std::span<const InputPair> pairs) {
  std::vector<SavedPair> saved;
  InputWarnings warnings(bundle);
  const std::string name = c.pairs.empty() ? "argument" : c.pairs;
  for (size_t i = 0; i < pairs.size(); ++i) {
    warnings.check_lines(std::span(&pairs[i].source, 1), name, pairs[i].line);
    ShowCommand one = c;
    one.text = pairs[i].source;
    one.target = pairs[i].target;
    const AttendedPair attended = attend(one, bundle);
    if (one.target.empty())
      warnings.check_translations(std::span(&one.text, 1), std::span(&attended.translation, 1),
                                  name, pairs[i].line);
    if (!c.html.empty())
      saved.push_back({one.text, attended.translation, attended.source, attended.target,
                       attended.maps, attended.tree});
    if (!c.html.empty() && c.svg.empty() && c.png.empty()) continue;
    const AttentionFigure figure(bundle, attended.source, attended.target, attended.maps,
                                 {.kind = c.kind.empty() ? "cross" : c.kind,
                                  .layer = c.layer,
                                  .head = c.head,
                                  .unit = c.pieces ? PictureUnit::pieces : PictureUnit::words});
    if (!c.svg.empty() || !c.png.empty()) {
      draw(c, figure, c.pairs.empty() ? FileNumber{} : FileNumber{i + 1});
    } else {
      print(c, attended, figure, i > 0 ? "\n" : "");
    }
  }
  if (!c.html.empty()) write_result(c.html, pairs_page(std::move(bundle), saved));
}

void check_choice(const ShowCommand& c) {
  const bool draws = !c.svg.empty() || !c.png.empty();
  check(!c.grid || draws, ExitCode::usage, "--grid draws a picture; add --svg FILE or --png FILE");
  check(
      c.explain.empty() || (!draws && c.html.empty()), ExitCode::usage,
      "--explain prints numbers, but --svg, --png and --html draw pictures; give only one of them");
  check(!c.json || !c.explain.empty(), ExitCode::usage, "--json requires --explain WORD");
  check(!c.interventions.given() || (c.explain.empty() && c.html.empty()), ExitCode::usage,
        "--explain and --html show the unchanged attention of the model; omit --mask, ",
        "--mask-head and --force");
  check(c.text.empty() != c.pairs.empty(), ExitCode::usage,
        "give either a sentence, or a file of sentences with --pairs");
  check(c.pairs.empty() || (c.target.empty() && c.explain.empty()), ExitCode::usage,
        "--pairs: the file has the translations, after a tab; --target and --explain apply only ",
        "to a single sentence");
  check(
      c.prefix.empty() || c.target.empty(), ExitCode::usage,
      "--prefix sets the beginning of the translation, --target all of it; give only one of them");
  check(c.pairs.empty() || (c.svg != "-" && c.png != "-"), ExitCode::usage,
        "--pairs writes one numbered file per pair; give a file name, not standard output");
}

void show(const ShowCommand& c) {
  check_choice(c);
  check(c.model.directories.size() < 2, ExitCode::usage,
        "show uses a single model; give -m only once");
  const std::vector<InputPair> pairs =
      c.pairs.empty() ? std::vector{InputPair{c.text, c.target}} : read_pairs(c.pairs);
  const auto sample = [&] {
    std::string text;
    for (const InputPair& pair : pairs) text += pair.source + "\n";
    return text;
  };
  std::vector<ModelBundle> bundles = load_models(c.model, sample);
  const PrecisionScope precision(c.model.matmul_precision());
  if (!c.explain.empty()) {
    InputWarnings(bundles.front()).check_lines(std::span(&c.text, 1), "argument", 1);
    return explain(c, bundles.front(), attend(c, bundles.front()));
  }
  show_all(c, std::move(bundles.front()), pairs);
}

void add_interventions(Command& command, InterventionWords& words) {
  Command group = command.group("What if");
  // One value each: the sentence may follow.
  group.option("--mask", words.mask, "Mask this word in all attention; can be repeated")
      .one_value_each()
      .takes("WORD");
  group
      .option("--mask-head", words.mask_head,
              "Set the output of this head to 0, for example cross.0.2; can be repeated")
      .one_value_each()
      .takes("KIND.LAYER.HEAD");
  group
      .option("--force", words.force,
              "At this step (target piece, from 0) fix the cross-attention on this word; can be "
              "repeated")
      .one_value_each()
      .takes("STEP=WORD");
}

}  // namespace

void add_show(Command& program) {
  Command command = program.command("show", "Draw the attention of a translated sentence");
  auto shared = std::make_shared<ShowCommand>();
  ShowCommand& c = *shared;
  command.option("text", c.text, "The sentence to translate").takes("TEXT");
  command
      .option("--pairs", c.pairs,
              "File of sentences, one per line, each optionally with a tab and its translation")
      .takes("FILE");
  command.option("-t,--target", c.target, "Show this translation instead of the model's own")
      .takes("TEXT");
  command.option("--prefix", c.prefix, "Beginning of the translation").takes("TEXT");
  command
      .option("--explain", c.explain,
              "Print the computation of this word's attention with all numbers")
      .takes("WORD");
  command.option("--kind", c.kind, "Kind of attention; default: cross")
      .among({"cross", "encoder", "decoder"});
  command.option("--layer", c.layer, "Layer, from 0; default: mean of all").not_negative();
  command.option("--head", c.head, "Head, from 0; default: mean of all").not_negative();
  command.flag("--pieces", c.pieces, "Show the pieces of the model instead of whole words");
  command.option("--svg", c.svg, "Write an SVG picture to this file (- for stdout)").takes("FILE");
  command.option("--png", c.png, "Write a PNG picture to this file (- for stdout)").takes("FILE");
  command.option("--html", c.html, "Write a self-contained page with all views and numbers")
      .takes("FILE");
  command.flag("--grid", c.grid, "Draw all heads of all layers in one picture");
  command.flag("--json", c.json, "With --explain: print all numbers as JSON");
  command.flag("--ascii", c.ascii, "Use ASCII characters instead of colours or blocks");
  command.option("-b,--beam", c.beam, "Beam size: hypotheses kept at each step")
      .within(1, 1024)
      .with_default();
  add_interventions(command, c.interventions);
  add_model_options(command, c.model, ModelCount::one, DefaultModel::by_text);
  command.footer(kExamples);
  command.runs([shared] { show(*shared); });
}

}  // namespace fovea

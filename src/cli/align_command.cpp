#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_output.h"
#include "base/log.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/line_pairs.h"
#include "cli/model_options.h"
#include "cli/translation_format.h"
#include "decode/attention_alignment.h"
#include "eval/alignment_error_rate.h"
#include "text/corpus.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  The source word of each target word (Pharaoh format: source-target, counted from 0):
    fovea align -m model -s test.en -t test.de

  With the head that aligns best on manually aligned pairs (Talp: 1-1 sure, 1p2 possible):
    fovea align -m model -s test.en -t test.fr --best-on dev.en dev.fr dev.talp > test.links

  One head, and all links above 0.2 with their weights:
    fovea align -m model -s test.en -t test.de --layer 4 --head 2 --threshold 0.2 --soft

  By default, a model trained with data.alignments uses the head that learned them:
    fovea align -m guided -s test.en -t test.de

  Join two directions, and measure the alignment error rate of the result:
    fovea align -m en-fr -s test.en -t test.fr > forward
    fovea align -m fr-en -s test.fr -t test.en --reverse > backward
    fovea align --symmetrize grow-diag-final forward backward > joined
    fovea evaluate --aer -r gold.talp -i forward backward joined

SOURCE and TARGET can also be given without -s and -t, in this order.

Each pair of lines gives one line of output, even if both are empty. The model reads the given
translation (forced decoding) and generates none. Words are separated by blanks, so tokenise the
text as the gold links expect. ICU's dictionaries split Chinese, Japanese, Thai, Lao, Khmer and
Burmese text that has no blanks. Word weights are sums over the pieces of a source word and means
over those of a target word. The weight of the end symbol is ignored: each target word is linked to
the source word with the largest weight.

grow-diag starts with the intersection and adds neighbouring links between two words that have no
link yet; final then adds all remaining links of this kind. grow-diag-final-and is that of Moses: to
grow, one word without a link is enough.)";

constexpr size_t kChunk = 1024;

struct AlignCommand {
  ModelChoice model;
  std::string source, target, output = "-", format = "pharaoh";
  AttentionChoice attention;
  std::vector<std::string> best_on, symmetrize;
  std::optional<float> threshold;
  bool mean = false, shift = false, soft = false, reverse = false;
  int gold_from = 1;
  int64_t batch_tokens = 1024;

  // Whether an option chooses layers and heads.
  bool chooses() const {
    return mean || attention.layer >= 0 || attention.head >= 0 || !best_on.empty();
  }
  Links links(const SoftAlignment& words) const {
    return threshold ? links_above(words, *threshold) : hard_alignment(words);
  }
};

// A reader of sentence pairs from two files, line by line.
class PairFiles {
 public:
  PairFiles(const std::string& source, const std::string& target, const ModelBundle& bundle)
      : bundle_(bundle), lines_(source, target) {}

  // Returns the next pairs, at most `most`; none at the end of the files.
  std::vector<PairPieces> next(size_t most) {
    std::vector<PairPieces> pairs;
    while (pairs.size() < most && lines_.next())
      pairs.push_back({pieces_of(bundle_.source, lines_.source, lines_.sources),
                       pieces_of(bundle_.target, lines_.target, lines_.targets)});
    return pairs;
  }

 private:
  WordPieces pieces_of(const Vocabulary& vocabulary, const TextLine& line,
                       const LineReader& reader) {
    const CleanLine clean = clean_line(line.text);
    WordPieces pieces = cut_words(vocabulary, clean.text);
    if (clean.replaced)
      repaired_.add("{}: bytes that are not UTF-8 were replaced by U+FFFD", reader.where());
    const int64_t longest = bundle_.model->max_length() - bundle_.model->frame().added_pieces();
    if (std::ssize(pieces.ids) > longest || clean.cut || line.cut)
      cut_.add("{}: {} pieces, the model accepts {}; later words get no links", reader.where(),
               pieces.ids.size(), longest);
    pieces.shorten(longest);
    return pieces;
  }

  const ModelBundle& bundle_;
  LinePairs lines_;
  LineWarnings repaired_{"lines that are not UTF-8"}, cut_{"truncated lines"};
};

// ---- the best head ----

struct ChoiceTrial {
  AttentionChoice choice;
  AlignmentCounts counts = {};
};

std::string options_of(const AttentionChoice& choice) {
  std::string text;
  if (choice.layer >= 0) text += fmt::format(" --layer {}", choice.layer);
  if (choice.head >= 0) text += fmt::format(" --head {}", choice.head);
  if (choice.step == AlignmentStep::reads) text += " --shift";
  return text.empty() ? " --mean" : text;
}

void check_range(const GoldLinks& gold, const PairPieces& pair, const std::string& where) {
  for (const auto& [source, target] : gold.possible)
    check(source < pair.source.count() && target < pair.target.count(), ExitCode::data, where,
          ": found a link between source word ", source + 1, " and target word ", target + 1,
          ", but the pair has ", pair.source.count(), " and ", pair.target.count(),
          " words; check that the links belong to these sentences");
}

std::vector<GoldLinks> read_gold(const AlignCommand& c, const std::vector<PairPieces>& pairs) {
  const std::string& path = c.best_on[2];
  std::vector<GoldLinks> gold = read_talp(path, static_cast<CountedFrom>(c.gold_from));
  check(gold.size() == pairs.size(), ExitCode::data, path, " has ", gold.size(), " lines, ",
        c.best_on[0], " ", pairs.size(), "; expected one line of links per pair");
  for (size_t i = 0; i < gold.size(); ++i) {
    if (c.reverse) gold[i] = {reversed(gold[i].sure), reversed(gold[i].possible)};
    check_range(gold[i], pairs[i], path + ":" + std::to_string(i + 1));
  }
  return gold;
}

// Returns the choice of heads with the lowest alignment error rate on the development pairs.
AttentionChoice best_attention(const AlignCommand& c, const ModelBundle& bundle) {
  const std::vector<PairPieces> pairs =
      PairFiles(c.best_on[0], c.best_on[1], bundle).next(static_cast<size_t>(-1));
  const std::vector<GoldLinks> gold = read_gold(c, pairs);
  Progress progress("choosing a head", std::ssize(pairs), {"pairs"});
  std::vector<ChoiceTrial> tried;
  AlignmentCounts unread;  // counts of the pairs with an empty side, which get no links
  for (size_t i = 0; i < pairs.size(); ++i)
    if (pairs[i].source.ids.empty() || pairs[i].target.ids.empty())
      unread += count_links({}, gold[i]);
  attend_pairs(*bundle.model, pairs, c.batch_tokens,
               [&](size_t i, std::span<const AttentionMap> maps) {
                 if (tried.empty())
                   for (const AttentionChoice& choice : attention_choices(maps))
                     tried.push_back({choice, unread});
                 for (ChoiceTrial& t : tried) {
                   Links links = c.links(word_attention(maps, t.choice, pairs[i]));
                   std::sort(links.begin(), links.end());
                   t.counts += count_links(links, gold[i]);
                 }
                 progress.advance();
               });
  progress.set(std::ssize(pairs));
  progress.finish();
  check(!tried.empty(), ExitCode::data, c.best_on[0], ": no pair has words on both sides");
  const ChoiceTrial& best =
      *std::min_element(tried.begin(), tried.end(), [](const ChoiceTrial& a, const ChoiceTrial& b) {
        return a.counts.error_rate() < b.counts.error_rate();
      });
  log_info(
      "best of {} choices on {} pairs: {}: AER {:.2f}, precision {:.2f}, recall {:.2f} (mean "
      "of all heads: AER {:.2f})",
      tried.size(), with_commas(std::ssize(pairs)), best.choice.name(),
      100 * best.counts.error_rate(), 100 * best.counts.precision(), 100 * best.counts.recall(),
      100 * tried.front().counts.error_rate());
  log_info("options for the same choice without --best-on:{}", options_of(best.choice));
  return best.choice;
}

// ---- writing ----

std::string soft_text(const Links& links, const SoftAlignment& words, bool reverse) {
  std::string text;
  for (const auto& [source, target] : links) {
    const Link shown = reverse ? Link{target, source} : Link{source, target};
    text += fmt::format("{}{}-{}:{:.4f}", text.empty() ? "" : " ", shown.first, shown.second,
                        words.at(target, source));
  }
  return text;
}

// Rows are target words, columns source words; the end symbols are omitted.
nlohmann::ordered_json weights_json(const SoftAlignment& words) {
  auto rows = nlohmann::ordered_json::array();
  for (int64_t i = 0; i + 1 < words.rows; ++i)
    rows.push_back(rounded_list(std::span(words.weights).subspan(i * words.cols, words.cols - 1)));
  return rows;
}

std::string output_line(const AlignCommand& c, const SoftAlignment& words, int64_t id) {
  Links links = c.links(words);
  std::sort(links.begin(), links.end());
  if (c.format == "pharaoh" && c.soft) return soft_text(links, words, c.reverse);
  if (c.format == "pharaoh") return pharaoh(c.reverse ? reversed(links) : links);
  nlohmann::ordered_json object{{"id", id}, {"alignment", c.reverse ? reversed(links) : links}};
  if (c.soft) object["weights"] = weights_json(words);
  return object.dump();
}

void align_files(const AlignCommand& c, const ModelBundle& bundle, const AttentionChoice& choice) {
  PairFiles files(c.source, c.target, bundle);
  WholeFile out(c.output);
  std::optional<Progress> progress;
  if (c.output != "-") progress.emplace("aligning", 0, ProgressOptions{"pairs"});
  int64_t id = 0;
  for (;;) {
    const std::vector<PairPieces> pairs = files.next(kChunk);
    if (pairs.empty()) break;
    std::vector<SoftAlignment> words(pairs.size());
    attend_pairs(*bundle.model, pairs, c.batch_tokens,
                 [&](size_t i, std::span<const AttentionMap> maps) {
                   words[i] = word_attention(maps, choice, pairs[i]);
                   if (progress) progress->advance();
                 });
    for (const SoftAlignment& pair : words) out.write(output_line(c, pair, id++) + "\n");
    out.flush();
    if (progress) progress->set(id);
  }
  out.close();
}

// ---- joining two directions ----

// Returns the number of links off the diagonal that both sets have. Links on the diagonal are the
// same in both directions.
int64_t shared_links(const Links& a, const Links& b) {
  return std::ranges::count_if(a, [&](const Link& link) {
    return link.first != link.second && std::ranges::count(b, link) > 0;
  });
}

// Warns if the links of B seem to have the opposite direction of those of A. Joining them would
// give wrong links that look valid.
void warn_if_reversed(const AlignCommand& c, const std::vector<Links>& a,
                      const std::vector<Links>& b) {
  int64_t agree = 0, reversed_agree = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    agree += shared_links(a[i], b[i]);
    reversed_agree += shared_links(a[i], reversed(b[i]));
  }
  constexpr int64_t kChance = 4;
  if (reversed_agree > 2 * agree + kChance)
    log_warning(
        "{} seems to be reversed: off the diagonal it shares {} links with {}, but {} if "
        "reversed; {} --reverse",
        c.symmetrize[2], with_commas(agree), c.symmetrize[1], with_commas(reversed_agree),
        c.reverse ? "omit" : "add");
}

void join_files(const AlignCommand& c) {
  const Symmetrization method = symmetry_of(c.symmetrize[0]);
  const std::string &first = c.symmetrize[1], &second = c.symmetrize[2];
  check(first != "-" || second != "-", ExitCode::usage,
        "--symmetrize: only one of the two files can be standard input");
  const std::vector<Links> forward = read_pharaoh(first);
  std::vector<Links> backward = read_pharaoh(second);
  const size_t shorter = std::min(forward.size(), backward.size());
  check(forward.size() == backward.size(), ExitCode::data, first, " has ", forward.size(),
        " lines, ", second, " ", backward.size(),
        "; first unmatched line: ", forward.size() > shorter ? first : second, ":", shorter + 1);
  if (c.reverse)
    for (Links& links : backward) links = reversed(links);
  warn_if_reversed(c, forward, backward);
  WholeFile out(c.output);
  for (size_t i = 0; i < shorter; ++i)
    out.write(pharaoh(symmetrize(method, forward[i], backward[i])) + "\n");
  out.close();
}

void align(AlignCommand& c) {
  if (!c.symmetrize.empty()) {
    check(c.source.empty() && c.target.empty() && c.best_on.empty(), ExitCode::usage,
          "--symmetrize joins two files of links; omit -s, -t and --best-on");
    return join_files(c);
  }
  check(!c.source.empty() && !c.target.empty(), ExitCode::usage,
        "give the sentence pairs with -s SOURCE -t TARGET, or two files of links with "
        "--symmetrize METHOD A B");
  check_pair_files(c.source, c.target, c.output);
  check(c.model.directories.size() < 2, ExitCode::usage,
        "align uses a single model; give -m only once");
  const std::vector<ModelBundle> bundles = load_models(c.model);
  const PrecisionScope precision(c.model.matmul_precision());
  if (c.shift) c.attention.step = AlignmentStep::reads;
  const ModelBundle& bundle = bundles.front();
  const auto* own = bundle.config.as<TransformerConfig>();
  if (!c.chooses() && own && own->alignment_layer >= 0) {
    c.attention.layer = own->alignment_layer;
    c.attention.head = own->alignment_head;
    if (!c.shift) c.attention.step = own->alignment_step;
    log_info("using {}, which was trained on alignments; use --mean for all heads",
             c.attention.name());
  }
  align_files(c, bundle, c.best_on.empty() ? c.attention : best_attention(c, bundle));
}

void add_choice_options(Command& command, AlignCommand& c) {
  Command group = command.group("Attention");
  Option layer =
      group
          .option("--layer", c.attention.layer,
                  "Layer, from 0; default: the guided layer and head, or the mean of all")
          .not_negative();
  Option head = group.option("--head", c.attention.head, "Head, from 0; default: the mean of all")
                    .not_negative();
  Option mean = group
                    .flag("--mean", c.mean,
                          "Use the mean of all layers and heads; default if no head was trained "
                          "on alignments")
                    .excludes(layer)
                    .excludes(head);
  Option shift = group.flag(
      "--shift", c.shift,
      "Use the attention of the step that reads a target word, not of the step that writes it");
  group
      .option("--best-on", c.best_on,
              "Use the head with the lowest alignment error rate on these gold links (Talp)")
      .count(3)
      .takes("SOURCE TARGET GOLD")
      .excludes(layer)
      .excludes(head)
      .excludes(mean)
      .excludes(shift);
  group.option("--gold-from", c.gold_from, "Number of the first word in GOLD")
      .within(0, 1)
      .with_default();
}

}  // namespace

void add_align(Command& program) {
  Command command = program.command("align", "Align the words of sentence pairs by attention");
  auto shared = std::make_shared<AlignCommand>();
  AlignCommand& c = *shared;
  add_pair_options(command, c.source, c.target);
  command.option("-o,--output", c.output, "File to write (.gz, - for stdout)").takes("FILE");
  command.option("-f,--format", c.format, "pharaoh: 0-0 1-2; jsonl: {\"id\":0,\"alignment\":[…]}")
      .among({"pharaoh", "jsonl"})
      .with_default();
  command.flag("--soft", c.soft,
               "Write weights too: 0-0:0.7310; in jsonl the whole matrix, one row per target word");
  command
      .option("--threshold", c.threshold,
              "Write all links above this weight instead of one per target word")
      .within(0.0, 1.0);
  command.flag("--reverse", c.reverse,
               "Write links and read GOLD as target-source; with --symmetrize: reverse B");
  command
      .option("--symmetrize", c.symmetrize,
              "Join the links of two source-target files; METHOD: intersection, union, "
              "grow-diag, grow-diag-final or grow-diag-final-and")
      .count(3)
      .takes("METHOD A B");
  add_batch_option(command, c.batch_tokens);
  add_choice_options(command, c);
  add_model_options(command, c.model, ModelCount::one);
  command.footer(kExamples);
  command.runs([shared] { align(*shared); });
}

}  // namespace fovea

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/process_pool.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "compare/compare_run.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  Compare all attention mechanisms on Multi30k, one model after another; data below /data:
    fovea compare -c recipes/compare/multi30k-en-de.yml -o mechanisms --data /data

  The same, 15 models at a time on one GPU. Start NVIDIA's MPS (nvidia-cuda-mps-control -d) first,
  otherwise the processes take turns on the GPU:
    fovea compare -c recipes/compare/multi30k-en-de.yml --data /data --device cuda --at-once 15

  List the models and their numbers of parameters:
    fovea compare -c compare.yml --dry-run

  Only two of the models, with fewer updates:
    fovea compare -c compare.yml -o small --only none --only global --set train.updates=500

FILE is a recipe, as for fovea train, with a list of variants. Each variant changes some settings:

  base: recipe.yml                 # a recipe or comparison in the same folder; or put its keys here
  model: {type: recurrent, size: 256}
  compare:
    sentence: 5                    # line of the test text whose attention is drawn
  variants:
    global: {model.attention: global}
    local-p: {model.attention: local-p, model.score: general, model.decoder: luong}

`variants: [none, global, forward]` uses mechanisms with their default settings; without variants
all of them are compared. With compare.gold (manual word alignments, Talp), gold_source and
gold_target, the alignment error rate is measured too.

Each model is trained in DIR/NAME, as by fovea train, then measured on data.test_source with
valid.beam. After each model, DIR/compare.md, compare.json and compare.html are updated. The page
works offline: table, BLEU by source length, attention of one sentence under each mechanism.
With --at-once, DIR/NAME/compare.log shows the progress of each model; words/s are lower because
the models share the machine. Without --threads, the cores are divided among them. The same command
resumes a stopped or killed comparison and skips finished models. With --only, the report keeps
earlier results of other variants. Ctrl-C saves and stops.)";

// Returns the arguments of this program with --part=VARIANT added.
std::vector<std::string> part_words(const std::string& variant) {
  std::vector<std::string> words = words_of_this_program();
  words.insert(std::ranges::find(words, "compare") + 1, "--part=" + variant);
  return words;
}

}  // namespace

void add_compare(Command& program) {
  Command command = program.command(
      "compare", "Train several attention mechanisms on the same text and compare them");
  auto c = std::make_shared<CompareSetup>();
  command.option("-c,--config", c->file, "Recipe with variants; see below")
      .required()
      .takes("FILE");
  command
      .option("-o,--output", c->directory,
              "Folder for all results; default: FILE without its ending")
      .takes("DIR");
  command.option("--only", c->only, "Train only this variant; can be repeated")
      .takes("NAME")
      .repeated();
  add_recipe_options(command, c->assignments, c->data, c->device, c->precision);
  command
      .option("--at-once", c->at_once,
              "Number of models trained at the same time, each in its own process")
      .takes("N")
      .within(1, 64)
      .with_default();
  command.option("--part", c->part, "").hidden();
  command.flag("--dry-run", c->dry_run, "Check files, print the models, then exit");
  command.footer(kExamples);
  command.runs([command, c] {
    if (!c->part.empty()) {
      c->only = {c->part};
      stop_with_parent();
    }
    c->part_words = part_words;
    c->threads_given = command.given("--threads");
    run_comparison(*c);
  });
}

}  // namespace fovea

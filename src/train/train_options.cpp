#include "train/train_options.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "base/utf8.h"

namespace fovea {

void DataOptions::describe(Settings& s) {
  s.field(
      "root", root,
      "folder of the files below; if relative, it is below the data folder of the command, or "
      "else below the first of $FOVEA_DATA, the current folder and the recipe's folder that has "
      "the training text");
  s.when([this] { return !labelled(); }, "task: translate",
         [&] {
           s.field("train_source", train_source, "training text, source side");
           s.field("train_target", train_target, "training text, target side");
           s.field("valid_source", valid_source, "validation text, source side");
           s.field("valid_target", valid_target, "validation text, target side");
           s.field("test_source", test_source, "test text for the end of training, source side");
           s.field("test_target", test_target, "test text for the end of training, target side");
           s.field("weights", weights,
                   "for each of data.train_source the number of times that an epoch has its pairs, "
                   "for example [1, 0.25]; a fraction selects other pairs in each epoch; []: all "
                   "once");
           s.field("alignments", alignments,
                   "word links of the training text (Pharaoh format, one file for each of "
                   "data.train_source) that one head of a Transformer learns; see "
                   "train.guided_weight");
           corpus.describe(s);
         });
  s.when(
      [this] { return labelled(); }, "task: classify or read",
      [&] {
        s.field("train", train, "training examples");
        s.field("valid", valid, "validation examples");
        s.field("test", test, "test examples for the end of training");
        s.choice(
            "format", format,
            {{"auto", ExampleFiling::automatic},
             {"label-first", ExampleFiling::label_first},
             {"tabs", ExampleFiling::tabs},
             {"babi", ExampleFiling::babi}},
            "label-first: LABEL words…; tabs: text TAB label, or document TAB question TAB answer; "
            "babi: stories of bAbI; auto: label-first to classify, tabs to read");
        s.field("hold_out", hold_out,
                "if data.valid is not set, use every n-th training example (story) for validation; "
                "0: none")
            .between(0, 1e9);
      });
}

ExampleFiles DataOptions::examples(const std::vector<std::string>& paths,
                                   StorySelection share) const {
  ExampleFormat how = ExampleFormat::tabs;
  if (format == ExampleFiling::babi) how = ExampleFormat::babi;
  if (format == ExampleFiling::label_first ||
      (format == ExampleFiling::automatic && task == TaskKind::classify))
    how = ExampleFormat::label_first;
  return {under_root(paths), how, task == TaskKind::read ? LabelKind::answer : LabelKind::label,
          share};
}

void DataOptions::start_at(const std::string& folder, const std::string& recipe) {
  const auto below = [this](const std::string& base) {
    if (base.empty() || root.empty()) return base + root;
    return base + "/" + root;
  };
  if (!folder.empty()) {
    // A run writes the complete root to its recipe.yml, so it may begin with the folder already.
    if (!(root + "/").starts_with(folder + "/"))
      root = root.starts_with('/') ? folder : below(folder);
    looked_in = {root};
    return;
  }
  if (root.starts_with('/')) return;
  const char* usual = std::getenv("FOVEA_DATA");
  for (const std::string& base : {std::string(usual ? usual : ""), std::string(),
                                  std::filesystem::path(recipe).parent_path().string()})
    if (std::ranges::find(looked_in, below(base)) == looked_in.end())
      looked_in.push_back(below(base));
  const std::vector<std::string>& text = labelled() ? train : train_source;
  const auto has_text = [&](const std::string& place) {
    std::error_code error;
    return !text.empty() && std::filesystem::exists(
                                place.empty() ? text.front() : place + "/" + text.front(), error);
  };
  const auto found = std::ranges::find_if(looked_in, has_text);
  root = found == looked_in.end() ? looked_in.front() : *found;
}

std::vector<std::string> DataOptions::under_root(const std::vector<std::string>& paths) const {
  std::vector<std::string> full;
  for (const std::string& path : paths)
    full.push_back(root.empty() || path.starts_with('/') ? path : root + "/" + path);
  return full;
}

void DataOptions::parse_weights(ExitCode code) {
  constexpr double kMost = 1000;
  check(weights.empty() || weights.size() == train_source.size(), code, "data.weights: found ",
        weights.size(), " weights, but data.train_source has ", train_source.size(),
        " files; set one weight for each file");
  corpus.weights.clear();
  for (const std::string& text : weights) {
    double weight = -1;
    const char* const end = text.data() + text.size();
    const bool number = std::from_chars(text.data(), end, weight).ptr == end;
    check(number && weight >= 0 && weight <= kMost, code, "data.weights: found '", printable(text),
          "', expected a number from 0 to ", kMost);
    corpus.weights.push_back(weight);
  }
}

void VocabularyOptions::describe(Settings& s) {
  s.field("source", source, "vocabulary file of the source side; empty: made from the text");
  s.field("target", target, "vocabulary file of the target side; empty and joint: same as source");
  s.choice("kind", kind,
           {{"unigram", VocabularyKind::unigram},
            {"bpe", VocabularyKind::bpe},
            {"words", VocabularyKind::words},
            {"characters", VocabularyKind::characters},
            {"pieces", VocabularyKind::pieces},
            {"tokens", VocabularyKind::tokens}},
           "unigram, bpe: SentencePiece; words; characters; pieces: text that is already cut with "
           "@@; tokens: words in lower case with punctuation split off");
  s.field("joint", joint, "one vocabulary for both languages");
  s.field("size", size, "entries, including four special ones; 0: all").between(0, 10'000'000);
  s.field("min_count", min_count, "rarer words are treated as unknown").at_least(1);
  s.field("character_coverage", character_coverage,
          "share of the text whose characters get a piece; 0.9995 for Chinese or Japanese")
      .between(0.5, 1);
  s.field("byte_fallback", byte_fallback,
          "256 of the pieces are bytes, which spell characters without a piece");
  s.field(
      "add", add,
      "pieces to add to the vocabularies: symbols that are never cut, or words; with train.from "
      "their first embeddings are the means of the pieces that they had");
}

void VectorOptions::describe(Settings& s) {
  s.field("source", source, "file of word vectors: word2vec, GloVe or fastText .vec; empty: none");
  s.field("target", target, "the same for the target side; with model.tied all for both sides");
  s.field("frozen", frozen, "training does not change the vectors; false: it tunes them");
  s.field("rescale", rescale, "scale the vectors to the size of the values they replace");
}

void LoraOptions::describe(Settings& s) {
  s.field("rank", rank, "rank of the adapter's matrices A and B; 0: train the model itself")
      .between(0, 4096);
  s.field("alpha", alpha, "the scale of B A is alpha / rank").between(1e-6, 1e6);
  s.field("dropout", dropout, "dropout of A, with one mask for a batch").between(0, 0.95);
  s.field("targets", targets,
          "patterns of the names of matrices to adapt, with * for any characters; []: those of "
          "attention and feed-forward layers");
}

void LoopOptions::describe(Settings& s) {
  s.field("updates", updates,
          "maximum number of updates; 0: no limit; 20,000 read a million short pairs about seven "
          "times")
      .between(0, 1e12);
  s.field("epochs", epochs, "maximum number of epochs; 0: no limit").between(0, 1e9);
  s.field("from", from,
          "model directory, or name of a bundled model, to start from (fine-tuning): its weights, "
          "network and vocabulary; empty: random weights");
  s.field("freeze", freeze,
          "patterns of the names of parameters that training does not change, with * for any "
          "characters, for example [encoder/*, source/E]");
  s.group("lora", lora, "an adapter of the model in train.from, which then does not change");
  s.field("accumulate", accumulate, "batches per update, whose gradients are summed")
      .between(1, 65536);
  s.field("label_smoothing", label_smoothing, "share of the probability spread over all words")
      .between(0, 0.99);
  s.field("average", average, "validations whose weights are averaged at the end; 0: none")
      .between(0, 1000);
  s.field("log_every", log_every, "updates between log lines").at_least(1);
  s.field("seed", seed, "seed of the initial weights, the order of batches and dropout");
  s.choice("precision", precision, {{"f32", Precision::f32}, {"bf16", Precision::bf16}},
           "number format of the inputs of matrix products");
  s.field("threads", threads, "number of CPU threads; 0: all").between(0, 4096);
  s.field("guided_weight", guided_weight,
          "weight of the distance from data.alignments in the loss; 0: 0.1 if there are any")
      .between(0, 1000);
  s.field("guided_layer", guided_layer,
          "decoder layer, from 0, whose first head learns data.alignments; -1: the last but one")
      .between(-1, 63);
  s.choice("guided_step", guided_step,
           {{"writes", AlignmentStep::writes}, {"reads", AlignmentStep::reads}},
           "the decoder step whose attention learns the links of a target word: the step that "
           "writes the word, or the next one, which reads it");
}

void ValidOptions::describe(Settings& s) {
  s.field("every", every,
          "updates between validations; 0: at the ends of epochs, at least 100 updates apart")
      .at_least(0);
  s.field("metrics", metrics,
          "any of loss and ppl, and of bleu and chrf (task: translate) or accuracy (other tasks)");
  s.choice("stop_metric", stop_metric, {"loss", "ppl", "bleu", "chrf", "accuracy"},
           "the metric that decides which weights are the best");
  s.field("patience", patience,
          "validations without a new best after which training ends; 0: no limit")
      .at_least(0);
  s.field("beam", beam, "beam size for bleu and chrf; 1: greedy").between(1, 1000);
  s.field("length_penalty", length_penalty, "exponent of the length").between(0, 10);
  s.choice("tokenize", tokenize,
           {{"auto", BleuTokenizer::automatic},
            {"13a", BleuTokenizer::mteval13},
            {"intl", BleuTokenizer::intl},
            {"char", BleuTokenizer::chars},
            {"zh", BleuTokenizer::zh},
            {"none", BleuTokenizer::none}},
           "how BLEU splits words; auto: by the target language of model.languages, or else by the "
           "script of the references; none: for text that is already split");
  s.field("lowercase", lowercase, "BLEU and chrF ignore case");
}

bool ValidOptions::wants(const std::string& metric) const {
  return stop_metric == metric || std::ranges::find(metrics, metric) != metrics.end();
}

void CheckpointOptions::describe(Settings& s) {
  s.field("every", every, "updates between checkpoints; 0: only at validations").at_least(0);
  s.field("keep", keep, "checkpoints to keep").between(1, 1000);
}

void TrainOptions::describe(Settings& s) {
  s.choice("task", data.task,
           {{"translate", TaskKind::translate},
            {"classify", TaskKind::classify},
            {"read", TaskKind::read}},
           "translate sentences, find the label of a text, or answer a question about a text");
  s.group("data", data, "parallel text, or examples");
  s.group("vocabulary", vocabulary, "the pieces that text is split into");
  s.group("vectors", vectors, "word vectors as initial embeddings");
  s.group("model", model, "the network");
  s.group("batch", batch, "how sentences are grouped into batches");
  s.group("optimizer", optimizer, "Adam, AdamW");
  s.group("schedule", schedule, "the learning rate");
  s.group("train", train, "the training loop");
  s.group("valid", valid, "validation during training");
  s.group("checkpoint", checkpoint, "files that an interrupted run resumes from");
}

namespace {

void check_metrics(const ValidOptions& valid, TaskKind task, ExitCode code) {
  const bool translate = task == TaskKind::translate;
  const auto check_one = [&](const char* setting, const std::string& name) {
    const bool known = translate ? name == "bleu" || name == "chrf" : name == "accuracy";
    check(known || name == "loss" || name == "ppl", code, setting, ": unknown metric \"", name,
          "\"; known are loss, ppl, ", translate ? "bleu, chrf" : "accuracy");
  };
  for (const std::string& name : valid.metrics) check_one("valid.metrics", name);
  check_one("valid.stop_metric", valid.stop_metric);
}

}  // namespace

void TrainOptions::check_parallel(ExitCode code) const {
  check(!model.as<ReaderConfig>(), code, "model.type: found reader, which cannot translate; ",
        "set task to classify or read, or model.type to transformer or recurrent");
  const bool none = data.train_source.empty() && data.train_target.empty();
  check(!data.train_source.empty() && !data.train_target.empty(), none ? ExitCode::usage : code,
        "data.train_source and data.train_target name no files; set both in a recipe (`config` "
        "FILE) or "
        "with `set`; 'fovea help train' has an example");
  check(data.valid_source.empty() == data.valid_target.empty(), code,
        "data.valid_source and data.valid_target: only one is set; set both or none");
  check(data.test_source.empty() == data.test_target.empty(), code,
        "data.test_source and data.test_target: only one is set; set both or none");
  check(vocabulary.joint || !vocabulary.source.empty() || model.tied != TiedEmbeddings::all, code,
        "model.tied: all needs one vocabulary for both languages, but vocabulary.joint is false; ",
        "set model.tied to output or none");
}

void TrainOptions::complete_guide(ExitCode code) {
  const bool guided = !data.alignments.empty();
  auto* const own = std::get_if<TransformerConfig>(&model.network);
  if (!guided) {
    const char* const needs = " needs word links; set data.alignments to the files with the links";
    check(train.guided_weight == 0, code, "train.guided_weight", needs);
    check(train.guided_layer < 0, code, "train.guided_layer", needs);
    check(train.guided_step == AlignmentStep::writes, code, "train.guided_step", needs);
  } else {
    check(own != nullptr, code, "data.alignments: only a Transformer can learn them, ",
          "found model.type ", model.type(), "; omit them or set model.type to transformer");
    check(data.alignments.size() == data.train_source.size(), code,
          "data.alignments: ", data.alignments.size(), " files, but data.train_source has ",
          data.train_source.size(), "; set one file of links for each source file");
    check(train.guided_layer < model.decoder_layers, code,
          "train.guided_layer: ", train.guided_layer, ", but the decoder has layers 0 to ",
          model.decoder_layers - 1, "; set one of these");
    if (train.guided_weight == 0) train.guided_weight = 0.1;
    if (train.guided_layer < 0) train.guided_layer = std::max<int64_t>(0, model.decoder_layers - 2);
  }
  if (!own || (!guided && !train.from.empty())) return;  // the earlier model may have a guided head
  const int64_t layer = guided ? train.guided_layer : -1, head = guided ? 0 : -1;
  const bool as_given =
      (own->alignment_layer < 0 || own->alignment_layer == layer) &&
      (own->alignment_head < 0 || own->alignment_head == head) &&
      (own->alignment_step == AlignmentStep::writes || own->alignment_step == train.guided_step);
  check(as_given || !train.from.empty(), code,
        "model.alignment_layer, model.alignment_head, model.alignment_step: ",
        "training sets them from train.guided_layer and train.guided_step; omit them");
  own->alignment_layer = layer;
  own->alignment_head = head;
  own->alignment_step = train.guided_step;
}

void TrainOptions::check_adapter(ExitCode code) const {
  const LoraOptions none;
  const LoraOptions& lora = train.lora;
  if (lora.rank == 0) {
    check(lora.dropout == none.dropout && lora.targets.empty(), code,
          "train.lora: rank is 0, so no adapter is trained; set train.lora.rank, for example to 8");
    return;
  }
  check(!train.from.empty(), code, "train.lora.rank: an adapter belongs to a trained model; set ",
        "train.from to its directory, or train.lora.rank to 0");
  const auto refuse = [&](bool given, const char* setting) {
    check(!given, code, setting, ": an adapter belongs to the model of train.from and does not ",
          "change its other weights; omit ", setting, ", or set train.lora.rank to 0");
  };
  refuse(!train.freeze.empty(), "train.freeze");
  refuse(!vocabulary.source.empty(), "vocabulary.source");
  refuse(!vocabulary.add.empty(), "vocabulary.add");
  refuse(vectors.given(), "vectors");
  refuse(data.labelled(), "task");
}

void TrainOptions::check_labelled(ExitCode code) const {
  const bool read = data.task == TaskKind::read;
  const auto* own = model.as<ReaderConfig>();
  check(own != nullptr, code, "model.type: found ", model.type(),
        ", but the tasks classify and read need a reader; set model.type to reader");
  check(read == (own->query == ReaderQuery::question), code, "model.query: task ",
        read ? "read attends with the question; set model.query to question"
             : "classify has no question; set model.query to summary or learned");
  check(!data.train.empty(), code, "data.train names no files; set it to the training examples");
  check(read || data.format != ExampleFiling::babi, code,
        "data.format: the format babi has questions; set task to read");
  check(!read || data.format != ExampleFiling::label_first, code,
        "data.format: the format label-first has no questions; set it to tabs or babi");
  check(vectors.target.empty(), code,
        "vectors.target: labels have no embeddings; set only vectors.source");
  check(data.hold_out != 1, code,
        "data.hold_out: 1 would leave no training examples; set it to 2 or more, or to 0");
  check(data.hold_out == 0 || data.valid.empty(), code,
        "data.hold_out: data.valid already names validation examples; omit one of the two");
  const VocabularyKind kind = vocabulary.kind;
  check(!vocabulary.source.empty() || kind == VocabularyKind::words ||
            kind == VocabularyKind::tokens || kind == VocabularyKind::characters,
        code, "vocabulary.kind: a vocabulary of examples can have words, tokens or characters; ",
        "set one of these, or make a vocabulary with 'fovea vocab' and set vocabulary.source");
}

void TrainOptions::check_vocabulary(ExitCode code) const {
  const VocabularyOptions& v = vocabulary;
  const bool learnt = v.kind == VocabularyKind::unigram || v.kind == VocabularyKind::bpe;
  check(v.size == 0 || v.size > kSpecials, code, "vocabulary.size: found ", v.size,
        ", but four entries are special; set more than 4");
  check(v.size > 0 || !learnt || !v.source.empty() || data.labelled(), code,
        "vocabulary.size: 0 (all entries) does not work for unigram and bpe; set the number of ",
        "pieces to learn, for example 8000, or set vocabulary.kind to words");
  check(v.target.empty() || !v.source.empty(), code, "vocabulary.target: vocabulary.source is not ",
        "set, so both vocabularies would be made from the text; set both or none");
  check(v.joint || v.source.empty() || !v.target.empty(), code, "vocabulary.joint: found false, ",
        "but vocabulary.source alone serves both languages; set vocabulary.target too, or set ",
        "vocabulary.joint to true");
}

std::vector<std::string> TrainOptions::test_metrics() const {
  if (data.labelled()) return {"accuracy"};
  return {"bleu", "chrf"};
}

bool TrainOptions::validates() const {
  return !data.valid_source.empty() || !data.valid.empty() || data.hold_out > 0;
}

void TrainOptions::complete(ExitCode code) {
  data.labelled() ? check_labelled(code) : check_parallel(code);
  data.parse_weights(code);
  check_metrics(valid, data.task, code);
  check(train.updates > 0 || train.epochs > 0 || (valid.patience > 0 && validates()), code,
        "the training would never end; set train.updates or train.epochs, or valid.patience ",
        "together with data.", data.labelled() ? "valid" : "valid_source and data.valid_target");
  const bool falls = schedule.kind == ScheduleKind::linear || schedule.kind == ScheduleKind::cosine;
  if (schedule.total == 0) schedule.total = train.updates;
  check(!falls || schedule.total > schedule.warmup, code, "schedule.total: ", schedule.total,
        " must be more than schedule.warmup, which is ", schedule.warmup,
        "; set schedule.total or train.updates to the update at which the schedule ends");
  check_vocabulary(code);
  check_adapter(code);
  check(vectors.given() || !vectors.frozen, code,
        "vectors.frozen: there are no vectors; set vectors.source or vectors.target");
  const int64_t longest = model.max_length - model.generation.added_pieces();
  if (data.corpus.max_length == 0 || data.corpus.max_length > longest)
    data.corpus.max_length = longest;
  complete_guide(code);
  model.check(code);
  if (valid.tokenize == BleuTokenizer::automatic && !model.languages.empty())
    valid.tokenize = tokenizer_of_language(model.languages.back());
  batch.seed = train.seed;
}

bool higher_is_better(const std::string& metric) {
  return metric == "bleu" || metric == "chrf" || metric == "accuracy";
}

}  // namespace fovea

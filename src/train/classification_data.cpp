#include "train/classification_data.h"

namespace fovea {
namespace {

Segmentation cut_of(VocabularyKind kind) {
  if (kind == VocabularyKind::tokens) return Segmentation::tokens;
  return kind == VocabularyKind::characters ? Segmentation::characters : Segmentation::words;
}

StorySelection trained_on(const DataOptions& data) {
  if (data.hold_out == 0) return {};
  return {StorySelection::Part::all_but_every_nth, data.hold_out};
}

Corpus corpus_of(const ExampleFiles& files, const TrainData& data, int64_t longest,
                 const char* purpose) {
  Corpus corpus = read_examples(files, data.source, data.target, longest);
  check(corpus.size() > 0, ExitCode::data, files.paths.front(), ": no example is left for ",
        purpose, ": ", corpus.counts().summary());
  return corpus;
}

}  // namespace

void build_labelled_vocabularies(TrainData& data, const TrainOptions& options) {
  const VocabularyOptions& how = options.vocabulary;
  const ExampleFiles files = options.data.examples(options.data.train, trained_on(options.data));
  PieceCounter words(cut_of(how.kind)), labels(Segmentation::words);
  for_examples(files, [&](const LabelledExample& example, const ExampleReader&) {
    words.add(example.text);
    words.add(example.question);
    labels.add(example.label);
  });
  const std::string& name = files.paths.front();
  const CountOptions count{.min_count = how.min_count, .max_size = static_cast<int32_t>(how.size)};
  data.source = how.source.empty()
                    ? words.vocabulary(count, name)
                    : Vocabulary::load(options.data.under_root({how.source}).front());
  data.target = labels.vocabulary({}, name);
}

void load_examples(TrainData& data, const TrainOptions& options) {
  const DataOptions& from = options.data;
  const int64_t longest = options.model.max_length - 1;
  data.train = corpus_of(from.examples(from.train, trained_on(from)), data, longest, "training");
  if (from.hold_out > 0)
    data.valid.corpus =
        corpus_of(from.examples(from.train, {StorySelection::Part::every_nth, from.hold_out}), data,
                  longest, "validation; lower data.hold_out");
  if (!from.valid.empty())
    data.valid.corpus = corpus_of(from.examples(from.valid), data, longest, "validation");
  if (!from.test.empty())
    data.test.corpus = corpus_of(from.examples(from.test), data, longest, "testing");
}

}  // namespace fovea

#include "train/model_card.h"

#include <gtest/gtest.h>

#include "text_samples.h"

namespace fovea {
namespace {

const std::vector<MetricsLine> kLog = {
    {.kind = "valid", .update = 10, .epoch = 1, .values = {{"ppl", 9}, {"bleu", 30}}},
    {.kind = "valid", .update = 20, .epoch = 2, .values = {{"ppl", 7}, {"bleu", 20}}},
    {.kind = "train", .update = 25, .epoch = 2, .values = {{"ppl", 1}}},
    {.kind = "average", .update = 30, .epoch = 3, .values = {{"ppl", 7}, {"bleu", 25}}},
    {.kind = "test",
     .update = 30,
     .epoch = 3,
     .values = {{"ppl", 8}, {"bleu", 12.345}},
     .wall = {{"time", 86400.0 * 365}}},
};

TEST(CardTest, TheBestResultIsThatOfTheModel) {
  const TrainingFigures by_ppl = figures_of(kLog, "ppl"), by_bleu = figures_of(kLog, "bleu");
  EXPECT_EQ(by_ppl.best->update, 20);  // the average is equal to it, not better
  EXPECT_EQ(by_bleu.best->update, 10);
  EXPECT_EQ(by_ppl.update, 30);
  EXPECT_EQ(summary_of(by_ppl, "ppl"), "best ppl 7.0000 at update 20, test bleu 12.35");
  EXPECT_EQ(summary_of(figures_of({}, "ppl"), "ppl"), "");
}

TEST(CardTest, NamesTheTrainingFilesWithoutFolders) {
  TrainOptions options;
  options.data.root = "/places/somebody";
  options.data.train_source = {"secret/a|b.en", "c.en"};
  options.data.train_target = {"/elsewhere/a.de", "c.de"};
  options.model.size = 64;
  TrainData data;
  const std::vector<int32_t> words{4, 5};
  data.train.add(words, words, 1);
  const std::string text =
      card_text({"en-de", options, data, 1234567, figures_of(kLog, "ppl"), "use it\n"});
  for (const char* part :
       {"# en-de", "1971-01-01", "a\\|b.en, c.en → a.de, c.de: 1 sentence pairs, 2 source",
        "4 entries for both sides", "type transformer", "size 64", "1,234,567 parameters",
        "30 updates", "ppl 7.0000", "weights of update 20", "bleu 12.35", "```\nuse it\n```"})
    EXPECT_NE(text.find(part), text.npos) << part << "\n" << text;
  for (const char* hidden : {"somebody", "secret", "elsewhere", "validation text"})
    EXPECT_EQ(text.find(hidden), text.npos) << hidden << "\n" << text;
}

TEST(CardTest, TheExampleIsASafeSentenceOfTheText) {
  TrainData data;
  EXPECT_EQ(example_sentence(data), "A sentence.");
  data.test.sources = {"The cat sleeps on the table."};
  EXPECT_EQ(example_sentence(data), "The cat sleeps on the table.");
  const std::string line = "He lives in a house", no_shell[] = {"\"", "\\", "$", "`", "!", "\n"};
  for (const std::string& sign : no_shell) data.valid.sources.push_back(line + sign);
  data.valid.sources.push_back("Short.");
  data.valid.sources.push_back(std::string(200, 'a'));
  EXPECT_EQ(example_sentence(data), "The cat sleeps on the table.");
  data.valid.sources.push_back(line + ".");
  EXPECT_EQ(example_sentence(data), line + ".");
}

TEST(CardTest, DescribesAClassifier) {
  TrainOptions options;
  options.data.task = TaskKind::classify;
  options.data.train = {"a/train.txt"};
  options.data.hold_out = 10;
  TrainData data;
  data.train = data.valid.corpus = Corpus(TargetKind::labels);
  const std::vector<int32_t> words{4, 5}, label{4};
  data.train.add(words, label, 1);
  const TrainingFigures figures = figures_of(
      {{.kind = "test", .update = 30, .epoch = 3, .values = {{"ppl", 8}, {"accuracy", 90.4}}}},
      "accuracy");
  EXPECT_EQ(summary_of(figures, "accuracy"), "test accuracy 90.40");
  const std::string text = card_text({"trec", options, data, 1, figures, {}});
  for (const char* part : {"| training text | train.txt: 1 examples",
                           "| validation text | train.txt", "accuracy 90.40 |"})
    EXPECT_NE(text.find(part), text.npos) << part << "\n" << text;
  EXPECT_EQ(text.find("beam"), text.npos) << text;
}

TEST(CardTest, KeepsTextOfTheUser) {
  const samples::Folder folder;
  const TrainOptions options;
  const TrainData data;
  const std::string one = card_text({"one", options, data, 1, figures_of(kLog, "ppl"), {}});
  const std::string two = card_text({"two", options, data, 2, figures_of(kLog, "ppl"), {}});
  write_card(folder.path(), one);
  EXPECT_EQ(samples::slurp(folder / "README.md"), one);
  write_card(folder.path(), two);
  EXPECT_EQ(samples::slurp(folder / "README.md"), two);
  folder.write("README.md", "mine\n");
  write_card(folder.path(), one);
  EXPECT_EQ(samples::slurp(folder / "README.md"), "mine\n");
  write_card(folder / "none", one);  // only logs a warning
}

}  // namespace
}  // namespace fovea

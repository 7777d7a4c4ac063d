#include "text/labelled_text.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "temporary.h"
#include "text/batch.h"
#include "text/tokenization.h"
#include "text/vocabulary_build.h"

namespace fovea {
namespace {

class ExamplesTest : public testing::Test {
 protected:
  std::string file(const std::string& text) {
    const std::string path = folder_ / "examples.txt";
    write_atomically(path, text);
    return path;
  }
  std::vector<LabelledExample> all(const std::string& text, ExampleFormat format, LabelKind kind) {
    std::vector<LabelledExample> examples;
    for_examples(
        {{file(text)}, format, kind},
        [&](const LabelledExample& example, const ExampleReader&) { examples.push_back(example); });
    return examples;
  }
  std::string error_of(const std::string& text, ExampleFormat format, LabelKind kind) {
    return message_of(ExitCode::data, [&] { all(text, format, kind); });
  }
  TemporaryFolder folder_;
};

TEST_F(ExamplesTest, LabelFirst) {
  const auto found =
      all("4 Who was  Galileo ?\n\nLOC\tWhere\n", ExampleFormat::label_first, LabelKind::label);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].label, "4");
  EXPECT_EQ(found[0].text, "Who was  Galileo ?");
  EXPECT_EQ(found[0].question, "");
  EXPECT_EQ(found[1].label, "LOC");
  EXPECT_EQ(found[1].text, "Where");
  EXPECT_EQ(found[1].line, 3);
}

TEST_F(ExamplesTest, Tabs) {
  const auto labels = all("a text\tgood\n", ExampleFormat::tabs, LabelKind::label);
  ASSERT_EQ(labels.size(), 1u);
  EXPECT_EQ(labels[0].text, "a text");
  EXPECT_EQ(labels[0].label, "good");
  const auto answers = all("Mary left.\tWho left?\tMary\n", ExampleFormat::tabs, LabelKind::answer);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].text, "Mary left.");
  EXPECT_EQ(answers[0].question, "Who left?");
  EXPECT_EQ(answers[0].label, "Mary");
}

TEST_F(ExamplesTest, ReadsStoriesOfBabi) {
  const auto found =
      all("1 Mary moved.\n2 Where is Mary? \thome\t1\n3 John went.\n4 Where is John?\tout\t3\n"
          "1 Bill came.\n2 Who? \tBill\t1\n",
          ExampleFormat::babi, LabelKind::answer);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].text, "Mary moved.");
  EXPECT_EQ(found[1].text, "Mary moved. John went.");
  EXPECT_EQ(found[1].question, "Where is John?");
  EXPECT_EQ(found[1].label, "out");
  EXPECT_EQ(found[1].story, 1);
  EXPECT_EQ(found[2].text, "Bill came.");
  EXPECT_EQ(found[2].story, 2);
}

TEST_F(ExamplesTest, ErrorsHaveFileAndLine) {
  using F = ExampleFormat;
  EXPECT_NE(
      error_of("1 a\nalone\n", F::label_first, LabelKind::label).find("examples.txt:2: expected"),
      std::string::npos);
  EXPECT_NE(
      error_of("a\tb\tc\n", F::tabs, LabelKind::label).find("examples.txt:1: expected 2 columns"),
      std::string::npos);
  EXPECT_NE(error_of("a\tb\n", F::tabs, LabelKind::answer).find("expected 3 columns"),
            std::string::npos);
  EXPECT_NE(error_of("text\t \n", F::tabs, LabelKind::label).find("the label is missing"),
            std::string::npos);
  EXPECT_NE(error_of("text\ttwo words\n", F::tabs, LabelKind::label).find("of one word"),
            std::string::npos);
  EXPECT_NE(error_of("1 a\n3 b\n", F::babi, LabelKind::answer).find("begins with 2 or 1"),
            std::string::npos);
  EXPECT_NE(error_of("Mary\n", F::babi, LabelKind::answer).find("examples.txt:1:"),
            std::string::npos);
  EXPECT_NE(error_of("1 q?\tanswer\n", F::babi, LabelKind::answer).find("3 columns"),
            std::string::npos);
  EXPECT_NE(error_of("1 \xff\n", F::label_first, LabelKind::label).find("not UTF-8"),
            std::string::npos);
}

TEST_F(ExamplesTest, ReadsPairsOfTextAndLabel) {
  const Vocabulary words = Vocabulary::from_entries(Segmentation::tokens,
                                                    {{"mary", 2}, {"?", 1}, {"who", 1}}),
                   labels = Vocabulary::from_entries(Segmentation::words, {{"yes", 2}, {"no", 1}});
  const ExampleFiles files{{file("yes Mary\nno who who who who\nyes Mary?\n")}};
  const Corpus corpus = read_examples(files, words, labels, 3);
  ASSERT_EQ(corpus.size(), 2);
  EXPECT_EQ(corpus.counts().too_long, 1);
  EXPECT_NE(corpus.counts().first_too_long.find("examples.txt:2"), std::string::npos);
  EXPECT_EQ(corpus.counts().read, 3);
  EXPECT_EQ(std::vector(corpus[1].source.begin(), corpus[1].source.end()),
            (std::vector<int32_t>{4, 5}));
  EXPECT_EQ(corpus[1].target.front(), 4);
  EXPECT_EQ(corpus[1].line, 3);

  const std::vector<int64_t> both{0, 1};
  const PairBatch batch = gather(corpus, both);
  EXPECT_EQ(batch.source.ids, (std::vector<int32_t>{4, kEos, 4, 5, kEos}));
  EXPECT_EQ(batch.target_in.ids, (std::vector<int32_t>{kBos, kBos}));
  EXPECT_EQ(batch.target_out.ids, (std::vector<int32_t>{4, 4}));
  EXPECT_EQ(batch.target_tokens, 2) << "a loss is averaged over labels";

  const std::string unseen = message_of(
      ExitCode::data, [&] { read_examples({{file("yes mary\nmaybe mary\n")}}, words, labels, 3); });
  EXPECT_NE(unseen.find("examples.txt:2: the label 'maybe'"), std::string::npos) << unseen;
  EXPECT_NE(unseen.find("yes, no"), std::string::npos) << unseen;
}

TEST_F(ExamplesTest, QuestionsFollowTheEndOfTheDocument) {
  const Vocabulary words = Vocabulary::from_entries(Segmentation::tokens, {{"a", 1}, {"b", 1}});
  EXPECT_EQ(encode_example(words, "a a", "b", LabelKind::answer),
            (std::vector<int32_t>{4, 4, kEos, 5}));
  EXPECT_EQ(encode_example(words, "a. b", "b", LabelKind::answer),
            (std::vector<int32_t>{4, kUnk, kEos, 5, kEos, 5}));
  EXPECT_EQ(encode_example(words, "", "b", LabelKind::answer), (std::vector<int32_t>{kEos, 5}));
  EXPECT_EQ(encode_example(words, "a a", "b", LabelKind::label), (std::vector<int32_t>{4, 4}));
}

TEST(Sentences, EndWithTheirLastWord) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(sentences_of("Mary left. Why?  I  know"),
            (Strings{"Mary left.", " Why?", "  I  know"}));
  EXPECT_EQ(sentences_of("It was 3.5 m . "), (Strings{"It was 3.5 m ."}));
  EXPECT_EQ(sentences_of(""), Strings{""});
}

TEST_F(ExamplesTest, HoldsOutEveryNthStory) {
  std::vector<int64_t> kept, held;
  ExampleFiles files{{file("x 1\nx 2\nx 3\nx 4\nx 5\nx 6\n")}};
  files.share = {StorySelection::Part::all_but_every_nth, 3};
  for_examples(files,
               [&](const LabelledExample& e, const ExampleReader&) { kept.push_back(e.line); });
  files.share.part = StorySelection::Part::every_nth;
  for_examples(files,
               [&](const LabelledExample& e, const ExampleReader&) { held.push_back(e.line); });
  EXPECT_EQ(kept, (std::vector<int64_t>{1, 2, 4, 5}));
  EXPECT_EQ(held, (std::vector<int64_t>{3, 6}));
}

TEST(Tokens, PunctuationIsSplitOff) {
  using Views = std::vector<std::string_view>;
  EXPECT_EQ(split_tokens("(Mary's dog.)"), (Views{"(", "Mary's", "dog", ".", ")"}));
  EXPECT_EQ(split_tokens("Where is Mary? "), (Views{"Where", "is", "Mary", "?"}));
  EXPECT_EQ(split_tokens("the .com 's ... ?"), (Views{"the", ".com", "'s", ".", ".", ".", "?"}));
  EXPECT_TRUE(split_tokens(" \t").empty());
}

TEST(Tokens, VocabularyFoldsCaseAndKeepsSpelling) {
  PieceCounter counter(Segmentation::tokens);
  counter.add("The dog. the DOG?");
  const Vocabulary v = counter.vocabulary({}, "test");
  EXPECT_EQ(v.size(), kSpecials + 4);
  EXPECT_EQ(v.count(v.id("the")), 2);
  EXPECT_EQ(v.encode("THE Cat."), (std::vector<int32_t>{v.id("the"), kUnk, v.id(".")}));
  EXPECT_EQ(v.spelt("THE Cat."), (std::vector<std::string>{"THE", "Cat", "."}));
  EXPECT_EQ(v.decode(v.encode("The dog.")), "the dog .");
  EXPECT_EQ(v.normalise("Ärger, The."), "ärger , the .");
  const Vocabulary again = Vocabulary::parse_text("fovea-vocabulary\t1\ttokens\nthe\t2\n", "test");
  EXPECT_EQ(again.cut(), Segmentation::tokens);
}

}  // namespace
}  // namespace fovea

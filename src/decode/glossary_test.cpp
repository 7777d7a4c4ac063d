#include "decode/glossary.h"

#include <gtest/gtest.h>

#include "temporary.h"

namespace fovea {
namespace {

using Texts = std::vector<std::string>;

Glossary glossary(std::initializer_list<std::pair<const char*, const char*>> entries) {
  Glossary made;
  for (const auto& [source, target] : entries) made.add(source, target, "test");
  return made;
}

Texts targets(const Glossary& glossary, const std::string& line) {
  Texts found;
  for (const GlossaryMatch& match : glossary.matches(line)) found.emplace_back(match.target);
  return found;
}

TEST(Glossary, FindsWholeWordsOnly) {
  const Glossary g = glossary({{"dog", "Hund"}, {"e-mail", "E-Mail"}, {"ten", "zehn"}});
  EXPECT_EQ(targets(g, "A dog, (dog) and a hot-dog."), (Texts{"Hund", "Hund", "Hund"}));
  EXPECT_EQ(targets(g, "Dogs, hotdog, dogma, often, Dog"), Texts{});
  EXPECT_EQ(targets(g, "an e-mail"), Texts{"E-Mail"});
  EXPECT_EQ(targets(g, ""), Texts{});
}

TEST(Glossary, PrefersTheLongestTerm) {
  const Glossary g =
      glossary({{"New York", "a"}, {"New York Times", "b"}, {"York", "c"}, {"Times Square", "d"}});
  EXPECT_EQ(targets(g, "The New York Times Square"), Texts{"b"});
  EXPECT_EQ(targets(g, "New York and York"), (Texts{"a", "c"}));
  EXPECT_EQ(targets(g, "New  York"), Texts{"a"}) << "the number of blanks does not matter";
}

TEST(Glossary, LettersOfUnspacedScriptsAreWords) {
  const Glossary g = glossary({{"学生", "pupil"}, {"学", "study"}});
  EXPECT_EQ(targets(g, "我是一个学生。学"), (Texts{"pupil", "study"}));
  const auto match = g.matches("我学生").front();
  EXPECT_EQ(match.begin, 3u);
  EXPECT_EQ(match.end, 9u);
}

TEST(Glossary, TheLastTranslationOfATermCounts) {
  const Glossary g = glossary({{"dog", "Hund"}, {"dog", "Rüde"}});
  EXPECT_EQ(g.size(), 1);
  EXPECT_EQ(targets(g, "dog"), Texts{"Rüde"});
}

TEST(Glossary, ReadsAFileAndNamesMalformedLines) {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& text) {
    std::ofstream(folder / "terms.tsv") << text;
    return Glossary::read(folder / "terms.tsv");
  };
  EXPECT_EQ(read("dog\tHund\n\nNew York\tNew York\r\n").size(), 2);
  for (const auto& [text, part] : std::initializer_list<std::pair<const char*, const char*>>{
           {"a\tb\ndog\n", ":2: there is no tab"},
           {"dog\tHund\tnoun\n", ":1: there are several tabs"},
           {" \tHund\n", ":1: the term is empty"},
           {"dog\t \n", ":1: the translation is empty"},
           {"dog\tH\xff\n", ":1: the line is not UTF-8"}})
    EXPECT_NE(message_of(ExitCode::data, [&, &text = text] { read(text); }).find(part),
              std::string::npos)
        << part;
}

TEST(Glossary, TenThousandEntries) {
  Glossary g;
  for (int i = 0; i < 10'000; ++i)
    g.add("word" + std::to_string(i) + " two", std::to_string(i), "test");
  std::string line;
  for (int i = 0; i < 10'000; ++i) line += "word" + std::to_string(i) + " two word ";
  EXPECT_EQ(g.matches(line).size(), 10'000u);
}

TEST(Glossary, TermPiecesOfAWordVocabulary) {
  const Vocabulary words = Vocabulary::from_entries(Segmentation::words, {{"der", 1}, {"Hund", 1}});
  EXPECT_EQ(term_pieces(words, "der Hund"), (TermPieces{{4, 5}}));
  EXPECT_EQ(term_pieces(words, "der Wolf"), TermPieces{}) << "Wolf has no piece";
  const Glossary g = glossary({{"a", "der Hund"}, {"b", "der Wolf"}, {"c", "der Hund"}});
  EXPECT_EQ(required_terms(g.matches("a b c"), words).size(), 1u);
}

}  // namespace
}  // namespace fovea

#include "text/vocabulary.h"

#include <gtest/gtest.h>
#include <unicode/normalizer2.h>
#include <unicode/unistr.h>

#include "effort.h"
#include "support/colliding_words.h"
#include "support/growth.h"
#include "text/tokenization.h"
#include "text/word_breaks.h"
#include "text_samples.h"

namespace fovea {
namespace {

using Ids = std::vector<int32_t>;
using Words = std::vector<std::string>;

const std::string kWords = "fovea-vocabulary\t1\twords\n";

Vocabulary words() {
  return Vocabulary::from_entries(Segmentation::words, {{"the", 9}, {"dog", 5}, {"caf\u00E9", 2}});
}

// A vocabulary of every segmentation, with as much of the alphabet as possible.
std::vector<Vocabulary> all_segmentations() {
  std::vector<Vocabulary::Entry> letters{{std::string(kBlank), 1}};
  for (char32_t c = 'a'; c <= 'z'; ++c) letters.push_back({std::string(1, char(c)), 1});
  return {words(),
          Vocabulary::from_entries(Segmentation::characters, letters),
          Vocabulary::from_entries(Segmentation::pieces, {{"hou@@", 3}, {"se", 2}, {"the", 1}}),
          samples::small_model(SubwordModel::unigram),
          samples::small_model(SubwordModel::bpe),
          samples::small_model(SubwordModel::unigram, false)};
}

std::string in_form(const char* form, const std::string& text) {
  UErrorCode status = U_ZERO_ERROR;
  const bool compatible = form[2] == 'K';
  const auto mode = form[compatible ? 3 : 2] == 'C' ? UNORM2_COMPOSE : UNORM2_DECOMPOSE;
  const auto* normaliser =
      icu::Normalizer2::getInstance(nullptr, compatible ? "nfkc" : "nfc", mode, status);
  std::string result;
  normaliser->normalize(icu::UnicodeString::fromUTF8(text), status).toUTF8String(result);
  return result;
}

TEST(Vocabulary, KnowsItsSpecials) {
  const Vocabulary v;
  EXPECT_EQ(v.size(), 4);
  EXPECT_EQ(v.pieces(Ids{0, 1, 2, 3, 4, -1}),
            (std::vector<std::string>{"<pad>", "<s>", "</s>", "<unk>", "<unk>", "<unk>"}));
  EXPECT_EQ(v.id("</s>"), kEos);
}

TEST(Vocabulary, NumbersWordsInOrder) {
  const Vocabulary v = words();
  EXPECT_EQ(v.encode(" the  dog\tthe cat "), (Ids{4, 5, 4, kUnk}));
  EXPECT_EQ(v.decode(Ids{kBos, 4, 5, kUnk, kEos, kPad}), "the dog ⁇");
  EXPECT_EQ(v.words(Ids{4, kUnk, 5, kEos}), (Words{"the", "⁇", "dog", "</s>"}));
  EXPECT_EQ(v.words(Ids{4, kUnk, 5, kEos}, " the  قال dog"), (Words{"the", "قال", "dog", "</s>"}));
  EXPECT_EQ(v.words(Ids{4, kUnk, kEos}, "the قال dog"), (Words{"the", "⁇", "</s>"})) << "truncated";
  EXPECT_EQ(v.words(Ids{kBos, kUnk, 5}, "قال dog"), (Words{"<s>", "قال", "dog"}));
  EXPECT_EQ(v.count(5), 5);
  EXPECT_EQ(v.id("cat"), kUnk);
  EXPECT_TRUE(v.encode("").empty());
  EXPECT_TRUE(v.encode(" \t ").empty());
}

TEST(Vocabulary, JoinsReadyMadePieces) {
  const Vocabulary v = Vocabulary::from_entries(Segmentation::pieces,
                                                {{"hou@@", 3}, {"se", 2}, {"the", 1}, {"@@", 1}});
  EXPECT_EQ(v.decode(v.encode("the hou@@ se the hou@@")), "the house the hou");
  EXPECT_EQ(v.words_of(v.encode("the hou@@ se the")), (std::vector<int>{0, 1, 1, 2}));
  EXPECT_EQ(v.words(v.encode("the hou@@ se the")),
            (std::vector<std::string>{"the", "house", "the"}));
  EXPECT_EQ(v.decode(v.encode("the @@ se")), "the se");
}

TEST(Vocabulary, FindsTheWordsOfALine) {
  const auto pieces =
      Vocabulary::from_entries(Segmentation::pieces, {{"hou@@", 3}, {"se", 2}, {"the", 1}});
  // "@@" joins unknown pieces, too.
  EXPECT_EQ(pieces.words_in("the hou@@ se x@@ y@@ se the@@"),
            (std::vector<int>{0, 1, 1, 2, 2, 2, 3, 4}));
  const auto tokens = Vocabulary::from_entries(Segmentation::tokens, {{"mary", 1}, {"(", 1}});
  EXPECT_EQ(tokens.words_in(" (Mary) is\there. "), (std::vector<int>{0, 0, 0, 1, 2, 2, 3}));
  EXPECT_EQ(words().words_in("the  caf\u00E9 x"), (std::vector<int>{0, 1, 2, 3}));
  const auto letters =
      Vocabulary::from_entries(Segmentation::characters, {{"a", 1}});  // has no blank
  EXPECT_EQ(letters.words_in("ab a"), (std::vector<int>{0, 0, 1, 1, 2}));
  for (const Vocabulary& v : all_segmentations()) EXPECT_EQ(v.words_in(" "), std::vector<int>{0});
}

TEST(Vocabulary, PiecesHaveWordNumbersForAnyText) {
  Random random(11);
  for (const Vocabulary& v : all_segmentations())
    for (int i = 0; i < 500; ++i) {
      const std::string line = i % 2 ? samples::wild(random) : samples::sentence(random, 1 + i % 9);
      const std::vector<int> found = v.words_in(line);
      const Ids ids = v.encode(line);
      ASSERT_EQ(found.size(), ids.size() + 1) << line;
      ASSERT_TRUE(std::is_sorted(found.begin(), found.end())) << line;
      const std::string text = canonical(line);
      if (v.cut() == Segmentation::pieces) continue;
      ASSERT_EQ(found.back(), std::ssize(text_words(text))) << line;
      if (i % 2) continue;
      for (size_t n = 0; n < ids.size(); ++n) {  // if all blanks are ASCII, words_of agrees
        const int expected =
            v.cut() == Segmentation::words ? static_cast<int>(n) : v.words_of(ids)[n];
        ASSERT_EQ(found[n], expected) << line;
      }
    }
}

// Word numbers do not depend on the model's normalisation: U+00A0 becomes a blank inside a word,
// and U+200B is removed and is a word without pieces.
TEST(Vocabulary, WordsAreThoseOfTheTextAsWritten) {
  const Vocabulary v = samples::small_model(SubwordModel::unigram);
  const std::vector<int> joined = v.words_in("ba\u00A0ko li");
  EXPECT_EQ(joined.back(), 2);
  EXPECT_EQ(std::count(joined.begin(), joined.end(), 0), std::ssize(v.encode("ba ko")));
  const std::vector<int> gone = v.words_in("ba \u200B li");
  EXPECT_EQ(gone.back(), 3);
  EXPECT_EQ(gone[gone.size() - 2], 2);
}

TEST(Vocabulary, GroupsPiecesByWord) {
  const Vocabulary v = samples::small_model(SubwordModel::unigram);
  Ids ids = v.encode("verliko stamu \U0001F600");
  ids.push_back(kEos);
  const std::vector<std::string> expected{"verliko", "stamu", "\U0001F600", "</s>"};
  EXPECT_EQ(v.words(ids), expected);
  EXPECT_EQ(v.words_of(ids).back(), 3);

  const Vocabulary c =
      Vocabulary::from_entries(Segmentation::characters, {{"a", 1}, {"\u2581", 1}});
  EXPECT_EQ(c.words_of(c.encode("aa ab")), (std::vector<int>{0, 0, 1, 1, 1}));
}

Vocabulary letters_vocabulary(std::string_view text) {
  std::vector<Vocabulary::Entry> entries;
  const CodePoints points = code_points(text);
  for (auto c = points.begin(); c != points.end(); ++c)
    entries.push_back({std::string(text.substr(c.offset(), static_cast<size_t>(c.length()))), 1});
  return Vocabulary::from_entries(Segmentation::characters, entries);
}

TEST(Vocabulary, FindsWordsInScriptsWithoutBlanks) {
  const Vocabulary v = letters_vocabulary("我是一个学生。爱Pyt");
  Ids ids = v.encode("我爱学生。Py学");
  ids.push_back(kEos);
  EXPECT_EQ(v.words(ids), (Words{"我", "爱", "学生", "。", "Py", "学", "</s>"}));
  EXPECT_EQ(v.words_of(ids), (std::vector<int>{0, 1, 2, 2, 3, 4, 4, 5, 6}));
  EXPECT_EQ(v.text_words_of(ids), v.words_of(ids));
  EXPECT_EQ(v.words_in("我爱学生。Py学"), (std::vector<int>{0, 1, 2, 2, 3, 4, 4, 5, 6}));
  // words() with the line returns unknown characters as written.
  ids = v.encode("他爱学生。");
  EXPECT_EQ(v.words(ids), (Words{"⁇", "爱", "学生", "。"}));
  EXPECT_EQ(v.words(ids, "他爱学生。"), (Words{"他", "爱", "学生", "。"}));
}

TEST(Vocabulary, BlanksAlsoSeparateWordsInScriptsWithoutBlanks) {
  const Vocabulary v = letters_vocabulary("\u2581我爱学生Py");
  EXPECT_EQ(v.words_in("我 Py 爱学生"), (std::vector<int>{0, 1, 1, 1, 2, 2, 3, 3, 4}));
  EXPECT_EQ(v.words(v.encode("我 Py 爱学生")), (Words{"我", "Py", "爱", "学生"}));
  EXPECT_EQ(v.words(v.encode("我爱 学 生")), (Words{"我爱", "学", "生"})) << "segmented";
}

TEST(Vocabulary, AWordBoundaryInsideAPieceDoesNotCount) {
  const samples::Folder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "我爱学生\n我爱学\n我爱\n";  // 我爱 is one piece
  const std::string path = folder.write("zh", text);
  const Vocabulary v =
      train_sentencepiece({path}, {.model = SubwordModel::bpe, .size = 11, .byte_fallback = false});
  Ids ids = v.encode("我爱学生");
  const auto pieces = v.pieces(ids);
  ASSERT_EQ(pieces.front(), "\u2581我爱") << "this test needs a piece of two words";
  EXPECT_EQ(v.words(ids).front(), "我爱");
  EXPECT_EQ(v.words(ids).back(), "学生");
  EXPECT_EQ(v.words_of(ids).back(), 1);
  ids.push_back(kEos);
  EXPECT_EQ(v.text_words_of(ids).front(), 0);
  EXPECT_EQ(v.text_words_of(ids)[1], 2) << "no piece starts in 爱";
  EXPECT_EQ(v.text_words_of(ids).back(), 3);
  EXPECT_EQ(v.words_in("我爱学生"), v.text_words_of(ids));
}

TEST(Vocabulary, JoinsWordsOfScriptsWithoutBlanks) {
  const Vocabulary v = Vocabulary::from_entries(
      Segmentation::words,
      {{"我", 1}, {"爱", 1}, {"学生", 1}, {"。", 1}, {"Python", 1}, {"ok", 1}});
  EXPECT_EQ(v.encode("我爱学生。"), (Ids{4, 5, 6, 7}));
  EXPECT_EQ(v.decode(v.encode("我爱学生。")), "我爱学生。");
  EXPECT_EQ(v.decode(v.encode("我爱Python ok。")), "我爱 Python ok。");
  EXPECT_EQ(v.normalise("我爱学生。"), "我爱学生。");
}

TEST(Vocabulary, TextNeverBecomesAControlPiece) {
  Random random(5);
  for (const Vocabulary& v : all_segmentations()) {
    for (int64_t i = 0; i < repeats(20'000); ++i)
      for (const int32_t id : v.encode(i % 2 ? samples::wild(random) : samples::noise(random)))
        ASSERT_TRUE(id >= kUnk && id < v.size()) << name_of(v.cut());
    for (const char* name : {"<s>", "</s>", "<pad>", "<unk>"})
      EXPECT_EQ(v.normalise(name), name) << name_of(v.cut());
  }
  EXPECT_EQ(words().encode("<s> the </s>"), (Ids{kUnk, 4, kUnk}));
}

TEST(Vocabulary, ComposedAndDecomposedTextIsTheSame) {
  EXPECT_EQ(words().encode("cafe\u0301"), words().encode("caf\u00E9"));
  Random random(6);
  for (const Vocabulary& v : all_segmentations())
    for (int64_t i = 0; i < repeats(5'000); ++i) {
      const std::string text = samples::wild(random);
      ASSERT_EQ(v.encode(in_form("NFC", text)), v.encode(in_form("NFD", text))) << text;
    }
}

// Without unknown pieces, decoding returns the encoded text. The vocabularies of words and
// characters are built from the same strings.
TEST(Vocabulary, DecodeRestoresEncodedText) {
  Random random(7);
  for (const auto model : {SubwordModel::unigram, SubwordModel::bpe}) {
    const Vocabulary v = samples::small_model(model);
    for (int64_t i = 0; i < repeats(60'000); ++i) {
      const std::string text = i % 3 ? samples::wild(random) : samples::noise(random);
      ASSERT_EQ(v.decode(v.encode(text)), v.normalise(text)) << text;
    }
  }
  std::string file;
  for (int64_t i = 0; i < repeats(200'000); ++i) file += samples::wild(random) + "\n";
  const samples::Folder folder;
  const std::string path = folder.write("wild", file);
  for (const auto build :
       {build_word_vocabulary, build_character_vocabulary, build_piece_vocabulary}) {
    const Vocabulary v = build({path}, {});
    for (const std::string& line : samples::lines_of(file)) {
      const Ids ids = v.encode(line);
      if (std::find(ids.begin(), ids.end(), kUnk) == ids.end()) {
        ASSERT_EQ(v.decode(ids), v.normalise(line)) << line;
      }
    }
  }
}

// The text, without blanks if it has letters of scripts without blanks: decoding joins words of
// such scripts without the blanks that the text may have had.
std::string comparable(std::string text) {
  if (std::ranges::any_of(code_points(text), is_unspaced)) std::erase(text, ' ');
  return text;
}

// Python's unicodedata wrote nasty.nfc.txt: an independent reference for NFC and for bytes that are
// not UTF-8.
TEST(Vocabulary, NastyStrings) {
  const std::string golden = FOVEA_SOURCE "/tests/golden/";
  const auto nasty = samples::lines_of(samples::slurp(golden + "nasty.txt"));
  const auto expected = samples::lines_of(samples::slurp(golden + "nasty.nfc.txt"));
  ASSERT_GE(nasty.size(), 500u);
  ASSERT_EQ(nasty.size(), expected.size());
  const std::vector<Vocabulary> vocabularies = all_segmentations();
  for (size_t i = 0; i < nasty.size(); ++i) {
    EXPECT_EQ(comparable(vocabularies[0].normalise(nasty[i])), comparable(expected[i]))
        << "line " << i + 1;
    EXPECT_EQ(vocabularies[1].normalise(nasty[i]), expected[i]) << "line " << i + 1;
    for (const Vocabulary& v : vocabularies) {
      const std::string text = v.decode(v.encode(nasty[i]));
      EXPECT_EQ(text.find_first_of("\n\r"), text.npos) << "line " << i + 1;
      EXPECT_TRUE(is_utf8(text)) << "line " << i + 1;
    }
    for (const Vocabulary& v : {vocabularies[3], vocabularies[4]})
      EXPECT_EQ(v.decode(v.encode(nasty[i])), v.normalise(nasty[i])) << "line " << i + 1;
  }
}

TEST(Vocabulary, SentencePieceNormalisesAsNfc) {
  const Vocabulary v = samples::small_model(SubwordModel::unigram);
  Random random(8);
  for (int i = 0; i < 5'000; ++i) {
    std::string text;
    for (int n = 0; n < 10; ++n) {
      const char32_t first[] = {0xC0, 0x391, 0x410, 0xFF21, 0x3041, 0xAC00};
      append_utf8(text, first[random.below(6)] + static_cast<char32_t>(random.below(16)));
    }
    ASSERT_EQ(v.normalise(text), in_form("NFC", text));
  }
  EXPECT_EQ(v.normalise("  \uFF41\u3000b\u00A0 c  "), "\uFF41 b c");
}

TEST(Vocabulary, OutputHasNoLineEnds) {
  const Vocabulary v = samples::small_model(SubwordModel::unigram);
  const Ids ids{v.id("<0x0A>"), v.id("<0x41>"), v.id("<0x0D>"), v.id("<0xE2>"), v.id("<0x42>")};
  EXPECT_EQ(v.decode(ids), "A B");
}

TEST(Vocabulary, BytesThatFormNoCharacterAreOmitted) {
  const Vocabulary v = samples::small_model(SubwordModel::unigram);
  const auto bytes = [&](std::initializer_list<const char*> names) {
    Ids ids;
    for (const char* name : names) ids.push_back(v.id(std::string("<0x") + name + ">"));
    return ids;
  };
  EXPECT_EQ(v.decode(bytes({"E2", "82", "AC"})), "\u20AC");
  EXPECT_EQ(v.decode(bytes({"41", "E2", "82"})), "A");
  EXPECT_EQ(v.decode(bytes({"E2", "82", "E2", "82", "AC", "80", "42"})), "\u20ACB");
  EXPECT_EQ(v.decode(bytes({"EF", "BF", "BD"})), "\uFFFD");
  Random random(3);
  for (int i = 0; i < 2'000; ++i) {
    Ids ids;
    for (uint64_t n = random.below(8); n > 0; --n)
      ids.push_back(v.id("<0x" + std::string(1, "0123456789ABCDEF"[random.below(16)]) +
                         std::string(1, "0123456789ABCDEF"[random.below(16)]) + ">"));
    ASSERT_TRUE(is_utf8(v.decode(ids)));
    ASSERT_EQ(v.text_words_of(ids).size(), ids.size());
  }
}

// As SentencePiece models do, this one has the characters but not their compatibility forms.
TEST(Vocabulary, CompatibleCharactersReplaceUnknownOnes) {
  std::vector<Vocabulary::Entry> letters{{std::string(kBlank), 1}, {"\u00B0", 1}, {"\u00BC", 1}};
  for (char c = '!'; c <= '~'; ++c) letters.push_back({std::string(1, c), 1});
  const Vocabulary exact = Vocabulary::from_entries(Segmentation::characters, letters);
  const Vocabulary v = exact.with_compatible_characters();
  const auto read = [&](std::string_view line) { return v.decode(v.encode(line)); };
  EXPECT_EQ(read("The \uFB01rst o\uFB03ce"), "The first office");
  EXPECT_EQ(read("25 \u2103 at 3 \u338F"), "25 \u00B0C at 3 kg");
  EXPECT_EQ(read("\uFF21\uFF42 \u2026"), "Ab ...");
  EXPECT_EQ(exact.decode(exact.encode("o\uFB03ce")), "o\u2047ce");  // training uses NFC only
  // Forms that would change the meaning, or that have no pieces themselves.
  EXPECT_EQ(read("4\u00B2 H\u2082O \u2464"), "4\u2047 H\u2047O \u2047");
  EXPECT_EQ(read("1\u00BD 1\u00BC"), "1\u2047 1\u00BC");
  EXPECT_EQ(read("5 \u00B5m"), "5 \u2047m");
  EXPECT_EQ(v.coverage("o\uFB03ce \u20AC").missing, Words{"\u20AC"});
  EXPECT_EQ(v.words_in("The \uFB01rst"), (std::vector<int>{0, 0, 0, 1, 1, 1, 1, 1, 1, 2}));
  const Vocabulary whole = words().with_compatible_characters();
  EXPECT_EQ(whole.encode("the \uFF44og, \uFF44og"), (Ids{4, kUnk, 5}));
}

TEST(Vocabulary, IsSavedAndLoaded) {
  const samples::Folder folder;
  for (const Vocabulary& v : all_segmentations()) {
    const std::string path = folder / (std::string("vocab") + v.extension());
    v.save(path);
    const Vocabulary loaded = Vocabulary::load(path);
    EXPECT_EQ(loaded.fingerprint(), v.fingerprint());
    EXPECT_EQ(loaded.cut(), v.cut());
    EXPECT_EQ(loaded.size(), v.size());
    EXPECT_EQ(loaded.encode("the dog häuing"), v.encode("the dog häuing"));
    for (int32_t id = 0; id < v.size(); ++id) ASSERT_EQ(loaded.id(v.name(id)), id);
  }
  EXPECT_NE(words().fingerprint(), Vocabulary().fingerprint());
}

struct BadFile {
  std::string bytes, message;
};

TEST(Vocabulary, RefusesDamagedTextFiles) {
  const std::vector<BadFile> files = {
      {"", "v.txt:1: the file is empty"},
      {"\n", "v.txt:1: expected 'fovea-vocabulary'"},
      {"the\t5\n", "v.txt:1: expected 'fovea-vocabulary'"},
      {"fovea-vocabulary\t2\twords\nthe\t5\n", "v.txt:1:"},
      {"fovea-vocabulary\t1\tverbs\nthe\t5\n", "v.txt:1:"},
      {"\xEF\xBB\xBF" + kWords + "the\t5\n", "v.txt:1:"},
      {"\xFF\xFE"
       "f\0o\0",
       "v.txt:1:"},
      {kWords, "v.txt:1: the file has no pieces"},
      {kWords + "the\t5\na\t4\nthe\t3\n", "v.txt:4: the piece occurs twice"},
      {kWords + "the\n", "v.txt:2: expected a piece, a tab and a count"},
      {kWords + "the\tmany\n", "v.txt:2: the count is not a whole number"},
      {kWords + "the\t\n", "v.txt:2: the count is not a whole number"},
      {kWords + "the\t-1\n", "v.txt:2: the count is not a whole number"},
      {kWords + "the\t5 \n", "v.txt:2: the count is not a whole number"},
      {kWords + "the\t99999999999999999999\n", "v.txt:2: the count is not a whole number"},
      {kWords + "\t5\n", "v.txt:2: the piece is empty"},
      {kWords + "\n\n", "v.txt:2: expected a piece, a tab and a count"},
      {kWords + "a b\t5\n", "v.txt:2: the piece contains a blank"},
      {kWords + "a\xC3\t5\n", "v.txt:2: the piece is not UTF-8"},
      {kWords + "<s>\t5\n", "v.txt:2: the piece has the name of a special piece"},
      {kWords + "a\t1\n<unk>\t5\n", "v.txt:3: the piece has the name of a special piece"},
      {kWords + std::string(100'000, 'a') + "\t5\n", "v.txt:2: the piece is longer than"},
      {kWords + std::string(100'000, 'a'), "v.txt:2: expected a piece"},
      {"fovea-vocabulary\t1\tcharacters\nab\t5\n", "v.txt:2: the piece is more than one"},
  };
  const samples::Folder folder;
  for (const BadFile& file : files) {
    const std::string path = folder.write("v.txt", file.bytes);
    const double begin = thread_seconds();
    const std::string error = message_of(ExitCode::model, [&] { Vocabulary::load(path); });
    EXPECT_LT(thread_seconds() - begin, time_limit(0.1));
    EXPECT_NE(error.find(file.message), error.npos) << error;
  }
  message_of(ExitCode::files, [&] { Vocabulary::load(folder / "none.txt"); });
  message_of(ExitCode::files, [&] { Vocabulary::load(folder / ""); });
}

TEST(Vocabulary, TruncatedTextFilesAreErrorsOrShorter) {
  const samples::Folder folder;
  words().save(folder / "v.txt");
  const std::string bytes = samples::slurp(folder / "v.txt");
  for (size_t size = 0; size < bytes.size(); ++size) {
    try {
      EXPECT_LE(Vocabulary::parse_text(bytes.substr(0, size), "v.txt").size(), words().size());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::model);
    }
  }
}

TEST(Vocabulary, EncodingTimeGrowsLinearly) {
  for (const Vocabulary& v : all_segmentations())
    for (const char* unit : {"a", "ba", "the ", "\u4E2D", "\u0301"})
      testing::expect_linear([&](const std::string& text) { v.encode(text); }, {"", unit});
}

TEST(Vocabulary, ReadingTimeOfCollidingWordsGrowsLinearly) {
  const std::vector<std::string> colliding = testing::colliding_words(12'000);
  if (colliding.empty()) GTEST_SKIP() << "no words with the same std::hash are known";
  const auto file = [&](size_t bytes) {
    std::string text = kWords;
    for (size_t i = 0; i < colliding.size() && text.size() < bytes; ++i)
      text += colliding[i] + "\t1\n";
    return text;
  };
  const auto read = [](const std::string& text) { Vocabulary::parse_text(text, "vocab.txt"); };
  testing::expect_linear(read, file, "words with the same std::hash");
}

}  // namespace
}  // namespace fovea

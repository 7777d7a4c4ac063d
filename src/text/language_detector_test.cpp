#include "text/language_detector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "base/lines.h"
#include "base/random.h"
#include "text/language.h"

namespace fovea {
namespace {

std::string language_of(std::string_view text) {
  return sure_language(detect_language(text)).language;
}

TEST(Detector, HasAtLeastSixtyLanguagesWithNames) {
  const std::vector<std::string> codes = detected_languages();
  EXPECT_GE(codes.size(), 60u);
  EXPECT_EQ(std::ranges::adjacent_find(codes), codes.end());
  for (const std::string& code : codes) {
    EXPECT_NE(language_name(code), code);
    EXPECT_EQ(canonical_code(code), code);
  }
}

TEST(Detector, ScriptDecidesFirst) {
  EXPECT_EQ(language_of("我是一个学生。"), "zh-Hans");
  EXPECT_EQ(language_of("這是我們的書"), "zh-Hant");
  EXPECT_EQ(language_of("私は学生です"), "ja");
  EXPECT_EQ(language_of("東京タワー"), "ja");
  EXPECT_EQ(language_of("안녕하세요"), "ko");
  EXPECT_EQ(language_of("Καλημέρα"), "el");
  EXPECT_EQ(language_of("שלום"), "he");
  EXPECT_EQ(language_of("สวัสดี"), "th");
  EXPECT_EQ(language_of("გამარჯობა"), "ka");
  EXPECT_EQ(language_of("வணக்கம்"), "ta");
  EXPECT_EQ(language_of("Привет, как дела?"), "ru");
}

TEST(Detector, MostLettersDecideBetweenScripts) {
  EXPECT_EQ(language_of("He said that the Chinese word 狗 means dog."), "en");
  EXPECT_EQ(language_of("他说这个字的英文是 dog。"), "zh-Hans");
  EXPECT_EQ(language_of("鲜の每日生活用品都在这里"), "zh-Hans");  // one kana makes no Japanese
  const auto mixed = detect_language("Das ist gut. Это хорошо и очень важно.");
  ASSERT_FALSE(mixed.empty());
  EXPECT_EQ(mixed.front().language, "ru");
  EXPECT_LT(mixed.front().confidence, kCertain);
}

TEST(Detector, ReturnsUndWithoutEvidence) {
  for (const char* text :
       {"", " ", "ok", "OK", "123", "12.5 %", "😀", "😀 !", "...", "a", "I", "Tom", "\xFF\xFE\x80"}) {
    const DetectedLanguage found = sure_language(detect_language(text));
    EXPECT_EQ(found.language, "und") << text;
    EXPECT_EQ(found.confidence, 0) << text;
  }
}

TEST(Detector, CountsRepeatedWordsOnce) {
  for (const char* text : {"A. A. A. A.", "a a a a a a", "Tom! Tom! Tom! Tom!"})
    EXPECT_EQ(language_of(text), "und") << text;
  const auto confidence = [](std::string_view text) {
    return detect_language(text).front().confidence;
  };
  EXPECT_EQ(confidence("Hund. Hund, Hund."), confidence("hund!"));
}

TEST(Detector, FindsNoLanguageInRandomLetters) {
  for (const char* text : {"asdf qwer zxcv", "asdf", "qwerty uiop asdfg", "xkcd", "hjkl",
                           "dkfjg sldkfj", "wxqz vbnm jklh"})
    EXPECT_EQ(language_of(text), "und") << text;
  Random random(1);
  int und = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string text;
    for (uint64_t words = 1 + random.below(6); words > 0; --words) {
      for (uint64_t letters = 2 + random.below(7); letters > 0; --letters)
        text += static_cast<char>('a' + random.below(26));
      text += ' ';
    }
    und += language_of(text) == "und";
  }
  EXPECT_GE(und, 970);
}

TEST(Detector, ConfidencesAreOrderedProbabilities) {
  for (const char* text : {"Hello there, old friend", "Bom dia", "да нет", "中", "हिन्दी"}) {
    double sum = 0, before = 100;
    for (const DetectedLanguage& d : detect_language(text)) {
      EXPECT_LE(d.confidence, before) << text;
      EXPECT_GE(d.confidence, 0) << text;
      before = d.confidence;
      sum += d.confidence;
    }
    EXPECT_NEAR(sum, 100, 2.5) << text;  // each is rounded to a tenth
  }
}

TEST(Detector, MoreEvidenceMakesMoreCertain) {
  const auto confidence = [](std::string_view text) {
    return sure_language(detect_language(text)).confidence;
  };
  EXPECT_LT(confidence("Das"), confidence("Das ist ein Hund."));
  EXPECT_GE(confidence("Das ist ein Hund, und er läuft durch den Schnee."), kCertain);
}

TEST(Detector, SpellingDoesNotMatter) {
  EXPECT_EQ(language_of("WIE GEHT ES DIR HEUTE?"), "de");
  EXPECT_EQ(language_of("Ou\xCC\x80 est la bibliothe\xCC\x80que ?"), "fr");  // NFD
  EXPECT_EQ(language_of("\xFF\xFE broken bytes are here"), "en");
}

double thread_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The detector reads only the beginning: a text of a hundred times the size takes the same time.
TEST(Detector, ReadsOnlyTheBeginning) {
  std::string text;
  while (text.size() < kDetectedBytes) text += "Le chat dort dans la maison. ";
  std::string longer = text;
  while (longer.size() < 100 * text.size()) longer += "The cat sleeps in the house. ";
  EXPECT_EQ(language_of(longer), "fr");
  const auto fastest = [](const std::string& whole) {
    double best = 1e9;
    for (int i = 0; i < 10; ++i) {
      const double begin = thread_seconds();
      detect_language(whole);
      best = std::min(best, thread_seconds() - begin);
    }
    return best;
  };
  EXPECT_LT(fastest(longer), 2.5 * fastest(text));
}

// ---- on corpora, which are not part of the repository ----

struct Accuracy {
  int64_t lines = 0, right = 0;
  double percent() const { return 100 * static_cast<double>(right) / static_cast<double>(lines); }
};

Accuracy accuracy_on(const std::filesystem::path& file, const std::string& language) {
  Accuracy accuracy;
  LineReader reader = LineReader::once(file.string());
  for (TextLine line; reader.next(line); ++accuracy.lines)
    accuracy.right += language_of(line.text) == language;
  return accuracy;
}

TEST(Detector, HasTheDocumentedAccuracyOnCorpora) {
  const char* data = std::getenv("FOVEA_DATA");
  const auto has = [&](const char* file) {
    return data && std::filesystem::exists(std::filesystem::path(data) / file);
  };
  struct ExpectedAccuracy {
    const char *file, *language;
    double percent;
  };
  bool any = false;
  for (const ExpectedAccuracy& expected : {ExpectedAccuracy{"tatoeba-de-en/test.en", "en", 99.4},
                                           {"tatoeba-de-en/test.de", "de", 99.1},
                                           {"tatoeba-fr-en/test.fr", "fr", 99.0},
                                           {"europarl-de-en/test.en", "en", 99.8},
                                           {"europarl-de-en/test.de", "de", 99.9},
                                           {"zh-en/test.zh", "zh-Hans", 98}}) {
    if (!has(expected.file)) continue;
    any = true;
    const Accuracy accuracy =
        accuracy_on(std::filesystem::path(data) / expected.file, expected.language);
    EXPECT_GE(accuracy.percent(), expected.percent) << expected.file;
    std::cout << expected.file << ": " << accuracy.percent() << " %\n";
  }
  if (!any) GTEST_SKIP() << "set FOVEA_DATA to a folder with tatoeba-de-en/ to run this";
}

}  // namespace
}  // namespace fovea

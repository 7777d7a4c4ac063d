#include "text/corpus.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <zlib.h>

#include "effort.h"
#include "text_samples.h"

namespace fovea {
namespace {

using samples::Folder;

const Vocabulary& letters() {
  static const Vocabulary v =
      Vocabulary::from_entries(Segmentation::words, {{"a", 1}, {"b", 1}, {"c", 1}, {"\uFFFD", 1}});
  return v;
}

Corpus read(const std::string& source, const std::string& target,
            const CorpusOptions& options = {}) {
  LineReader s = LineReader::over(source, "train.en", options.max_bytes);
  LineReader t = LineReader::over(target, "train.de", options.max_bytes);
  Corpus corpus;
  corpus.read(s, t, letters(), letters(), options);
  return corpus;
}

std::vector<int64_t> kept_lines(const Corpus& corpus) {
  std::vector<int64_t> lines;
  for (int64_t i = 0; i < corpus.size(); ++i) lines.push_back(corpus[i].line);
  return lines;
}

std::string repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::vector<int32_t> ids(std::span<const int32_t> span) { return {span.begin(), span.end()}; }

TEST(Corpus, E1NamesTheFirstLineWithoutPartner) {
  EXPECT_EQ(message_of(ExitCode::data, [] { read(repeat("a\n", 1000), repeat("b\n", 1001)); }),
            "train.de has 1,001 lines and train.en has 1,000, expected equal numbers; first line "
            "without partner: train.de:1001");
  for (const int more : {1, 2})
    for (const int lines : {0, 1, 5, 4096, 5000}) {
      const std::string shorter = repeat("a\n", lines), longer = repeat("a\n", lines + more);
      const std::string first = ":" + std::to_string(lines + 1);
      const auto ends_with = [&](const std::string& error, const std::string& file) {
        EXPECT_TRUE(error.ends_with("first line without partner: " + file + first)) << error;
      };
      ends_with(message_of(ExitCode::data, [&] { read(longer, shorter); }), "train.en");
      ends_with(message_of(ExitCode::data, [&] { read(shorter, longer); }), "train.de");
    }
  EXPECT_EQ(read("", "").size(), 0);
}

TEST(Corpus, E2LastLineNeedsNoNewline) {
  const Corpus whole = read("a\nb\n", "a\nb\n");
  EXPECT_EQ(whole.size(), 2);
  for (const char* source : {"a\nb\n", "a\nb"})
    for (const char* target : {"a\nb\n", "a\nb"})
      EXPECT_EQ(read(source, target).fingerprint(), whole.fingerprint());
}

TEST(Corpus, E3OnlyLineFeedsEndLines) {
  const Corpus corpus = read("a\r\nb\u2028c\na\rb\n\va\u0085\n", "a\nb\r\na\na\n");
  EXPECT_EQ(corpus.counts().read, 4);
  EXPECT_EQ(corpus.counts().kept, 4);
  EXPECT_EQ(corpus.counts().carriage_returns, 2);
  EXPECT_EQ(ids(corpus[0].source), letters().encode("a"));
  EXPECT_EQ(corpus[1].source.size(), 1u);  // U+2028 is a character like others
  EXPECT_EQ(ids(corpus[2].source), letters().encode("a b"));
  EXPECT_EQ(corpus.counts().removed(), "removed 2 carriage returns");
}

TEST(Corpus, E4ByteOrderMarks) {
  const Corpus corpus = read(
      "\xEF\xBB\xBF"
      "a\n",
      "a\n");
  EXPECT_EQ(corpus.fingerprint(), read("a\n", "a\n").fingerprint());
  EXPECT_EQ(corpus.counts().removed(), "removed 1 byte order mark");
  const std::string utf16(
      "\xFF\xFE"
      "a\0\n\0",
      6),
      utf32("\xFF\xFE\0\0a\0\0\0", 8);
  EXPECT_NE(message_of(ExitCode::data, [&] { read(utf16, "a\n"); }).find("UTF-16"),
            std::string::npos);
  EXPECT_NE(message_of(ExitCode::data, [&] { read("a\n", utf32); }).find("UTF-32"),
            std::string::npos);
}

TEST(Corpus, E5BadUtf8IsSkippedReplacedOrRefused) {
  const std::string source = "a\n\xC3\nb\n", target = "a\nb\n\xED\xA0\x80\n";
  const Corpus skipped = read(source, target);
  EXPECT_EQ(kept_lines(skipped), (std::vector<int64_t>{1}));
  EXPECT_EQ(skipped.counts().bad_utf8, 2);
  const Corpus replaced = read(source, target, {.bad_utf8 = BadUtf8::replace});
  EXPECT_EQ(replaced.size(), 3);
  EXPECT_EQ(ids(replaced[1].source), letters().encode("\uFFFD"));
  const std::string error =
      message_of(ExitCode::data, [&] { read(source, target, {.bad_utf8 = BadUtf8::fail}); });
  EXPECT_EQ(error.find("train.en:2: byte 1 of the line is not UTF-8"), 0u) << error;
}

TEST(Corpus, E7EmptyLinesAreSkippedWithTheirPartners) {
  const Corpus corpus = read("a\n\nb\n  \na b\nc\n", "a\nb\n\n\t\nb\nc c\n");
  EXPECT_EQ(kept_lines(corpus), (std::vector<int64_t>{1, 5, 6}));
  EXPECT_EQ(corpus.counts().empty, 3);
  EXPECT_EQ(ids(corpus[1].source), letters().encode("a b"));
  EXPECT_EQ(ids(corpus[1].target), letters().encode("b"));
  EXPECT_EQ(ids(corpus[2].target), letters().encode("c c"));
}

TEST(Corpus, E8LongLinesAreSkipped) {
  const std::string long_line = repeat("a ", 50'000), word(100'000, 'a');
  const Corpus corpus = read("a\n" + long_line + "\n" + word + "\nb b b\nb\n",
                             "a\na\na\nb\nb b b b\n", {.max_length = 3});
  EXPECT_EQ(kept_lines(corpus), (std::vector<int64_t>{1, 4}));
  EXPECT_EQ(corpus.counts().too_long, 3);
  EXPECT_EQ(corpus.counts().first_too_long, "train.en:2");
  EXPECT_EQ(read("a\nb\n", "a\nb b b b\n", {.max_length = 3}).counts().first_too_long,
            "train.de:2");
}

TEST(Corpus, RatioOfLengths) {
  const Corpus corpus = read("a a a\na a a a\na\n", "b\nb\nb b b\n", {.max_ratio = 3});
  EXPECT_EQ(kept_lines(corpus), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(corpus.counts().summary(), "kept 2 of 3: 1 above the length ratio");
}

TEST(Corpus, E10UnreadableFiles) {
  const Folder folder;
  const std::string good = folder.write("good", "a\n");
  const auto attempt = [&](const std::string& path) {
    return [&, path] { Corpus::read({path}, {good}, letters(), letters()); };
  };
  message_of(ExitCode::files, attempt(folder / "missing"));
  message_of(ExitCode::files, attempt(folder / ""));
  gzFile file = gzopen((folder / "t.gz").c_str(), "wb");
  for (int i = 0; i < 5000; ++i) gzprintf(file, "a b %d\n", i * 7919);
  gzclose(file);
  const std::string bytes = samples::slurp(folder / "t.gz");
  const std::string truncated = folder.write("half.gz", bytes.substr(0, bytes.size() / 2));
  EXPECT_NE(message_of(ExitCode::data, attempt(truncated)).find("half.gz"), std::string::npos);
  message_of(ExitCode::usage, [&] { Corpus::read({good, good}, {good}, letters(), letters()); });
}

TEST(Corpus, E11Summary) {
  CorpusCounts counts;
  counts.read = 1'000'000;
  counts.kept = 998'120;
  counts.empty = 1'200;
  counts.too_long = 512;
  counts.bad_utf8 = 168;
  counts.first_too_long = "train.en:4711";
  EXPECT_EQ(counts.summary(),
            "kept 998,120 of 1,000,000: 1,200 empty, 512 too long (first train.en:4711), "
            "168 bad UTF-8");
  EXPECT_EQ(read("a\n", "a\n").counts().summary(), "kept 1 of 1");
}

// Random lines, checked by a second implementation: the counts add up, and each kept pair belongs
// to its line number.
TEST(Corpus, E11EveryLineIsCountedOnce) {
  Random random(3);
  const char* const kinds[] = {"", " ", "a", "a b", "a b c", "\xFF", "a\xC3", "b\r", "c\t", "zz"};
  std::vector<std::string> sources, targets;
  std::string source, target;
  const int64_t lines = repeats(1'000'000);
  for (int64_t i = 0; i < lines; ++i) {
    sources.push_back(kinds[random.below(10)]);
    targets.push_back(kinds[random.below(10)]);
    source += sources.back() + "\n";
    target += targets.back() + "\n";
  }
  const Corpus corpus = read(source, target, {.max_length = 2});
  const CorpusCounts& c = corpus.counts();
  EXPECT_EQ(c.read, lines);
  EXPECT_EQ(c.read, c.kept + c.empty + c.too_long + c.bad_utf8 + c.ratio);
  EXPECT_EQ(c.kept, corpus.size());
  std::vector<bool> kept(sources.size(), false);
  for (int64_t i = 0; i < corpus.size(); ++i) {
    const SentencePair pair = corpus[i];
    kept[pair.line - 1] = true;
    ASSERT_EQ(ids(pair.source), letters().encode(sources[pair.line - 1]));
    ASSERT_EQ(ids(pair.target), letters().encode(targets[pair.line - 1]));
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto fit = [](const std::string& s) {
      return is_utf8(s) && s != "" && s != " " && s != "a b c";
    };
    ASSERT_EQ(kept[i], fit(sources[i]) && fit(targets[i])) << i;
  }
}

TEST(Corpus, ReadsSeveralFilesAndIsTheSameOnAnyNumberOfThreads) {
  const Folder folder;
  const std::string one = folder.write("1", samples::corpus(3000, 1));
  const std::string two = folder.write("2", samples::corpus(3000, 2));
  const Vocabulary v = samples::small_model(SubwordModel::bpe);
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const Corpus a = Corpus::read({one, two}, {two, one}, v, v);
  omp_set_num_threads(4);
  const Corpus b = Corpus::read({one, two}, {two, one}, v, v);
  omp_set_num_threads(before);
  EXPECT_EQ(a.size(), 6000);
  EXPECT_EQ(a[3000].line, 3001);
  EXPECT_EQ(a.fingerprint(), b.fingerprint());
  EXPECT_EQ(a.counts(), b.counts());
  EXPECT_NE(a.fingerprint(), Corpus::read({two, one}, {one, two}, v, v).fingerprint());
}

TEST(Corpus, FingerprintDependsOnSentenceEnds) {
  EXPECT_NE(read("a b\nc\n", "a\na\n").fingerprint(), read("a\nb c\n", "a\na\n").fingerprint());
  EXPECT_NE(read("a\n", "b\n").fingerprint(), read("b\n", "a\n").fingerprint());
}

TEST(CleanLine, GivesOneLineForEachLine) {
  EXPECT_EQ(clean_line("a b").text, "a b");
  EXPECT_EQ(clean_line("a\nb\r").text, "a b ");
  EXPECT_TRUE(clean_line("\xC3").replaced);
  EXPECT_EQ(clean_line("\xC3").text, "\uFFFD");
  EXPECT_EQ(clean_line("").text, "");
  const CleanLine cut = clean_line("ab\u00E9\u00E9", 5);
  EXPECT_TRUE(cut.cut);
  EXPECT_EQ(cut.text, "ab\u00E9");
  Random random(4);
  for (int i = 0; i < 100'000; ++i) {
    const std::string noise = samples::noise(random);
    const CleanLine clean = clean_line(noise, 6);
    ASSERT_TRUE(is_utf8(clean.text));
    ASSERT_EQ(clean.text.find_first_of("\n\r"), std::string::npos);
    ASSERT_EQ(clean.cut, noise.size() > 6);
    ASSERT_TRUE(is_utf8(noise) ? !clean.replaced : clean.replaced || clean.cut);
  }
}

Corpus read_linked(const std::string& source, const std::string& target, const std::string& links,
                   const Vocabulary& vocabulary = letters(), const CorpusOptions& options = {}) {
  LineReader s = LineReader::over(source, "train.en"), t = LineReader::over(target, "train.de");
  LineReader l = LineReader::over(links, "train.links", kLongestLinks);
  Corpus corpus;
  corpus.read({s, t, &l}, vocabulary, vocabulary, options);
  return corpus;
}

Links links_of(const Corpus& corpus, int64_t i) {
  return {corpus[i].links.begin(), corpus[i].links.end()};
}

TEST(Corpus, LinksAreReadWithTheirPairs) {
  EXPECT_FALSE(read("a\n", "a\n").linked());
  // Line 2 is too long and line 4 is empty: their links are skipped, even links out of range.
  const Corpus corpus =
      read_linked("a b\na b c\nc\n\nb a\n", "b a\na\nc\na\na b\n",
                  "1-0 0-1 0-0\n2-0 9-9\n\n7-7\n0-1\n", letters(), {.max_length = 2});
  EXPECT_TRUE(corpus.linked());
  EXPECT_EQ(kept_lines(corpus), (std::vector<int64_t>{1, 3, 5}));
  EXPECT_EQ(links_of(corpus, 0), (Links{{0, 0}, {1, 0}, {0, 1}}));  // by target, then source
  EXPECT_EQ(links_of(corpus, 1), Links{});
  EXPECT_EQ(links_of(corpus, 2), (Links{{0, 1}}));
  const auto fingerprint = [](const char* links) {
    return read_linked("a b\n", "a b\n", links).fingerprint();
  };
  EXPECT_NE(fingerprint("0-0 1-1\n"), fingerprint("0-0 1-0\n"));
  EXPECT_NE(fingerprint("\n"), read("a b\n", "a b\n").fingerprint());
}

TEST(Corpus, ConvertsLinksOfWordsToLinksOfPieces) {
  const auto cut = Vocabulary::from_entries(Segmentation::pieces, {{"a@@", 1}, {"b", 1}});
  EXPECT_EQ(links_of(read_linked("a@@ x@@ b b\n", "b a@@ b\n", "0-1 1-0\n", cut), 0),
            (Links{{3, 0}, {0, 1}, {1, 1}, {2, 1}, {0, 2}, {1, 2}, {2, 2}}));
  const auto letter = Vocabulary::from_entries(Segmentation::characters, {{"a", 1}, {"b", 1}});
  EXPECT_EQ(links_of(read_linked("ab a\n", "b a\n", "0-1\n", letter), 0),  // the blank counts
            (Links{{0, 1}, {1, 1}, {0, 2}, {1, 2}}));
  const Vocabulary model = samples::small_model(SubwordModel::unigram);
  const std::string source = "verliko stamu", target = "tühäuing lone ba";
  const Corpus corpus = read_linked(source + "\n", target + "\n", "1-0\n", model);
  const std::vector<int> from = model.words_in(source), to = model.words_in(target);
  Links expected;
  for (int t = 0; t < std::ssize(corpus[0].target); ++t)
    for (int s = 0; s < std::ssize(corpus[0].source); ++s)
      if (from[s] == 1 && to[t] == 0) expected.emplace_back(s, t);
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(links_of(corpus, 0), expected);
}

TEST(Corpus, BadLinksAreErrors) {
  const auto error_of = [](const char* source, const char* target, const char* links) {
    return message_of(ExitCode::data, [&] { read_linked(source, target, links); });
  };
  EXPECT_EQ(error_of("a\nb\n", "a\nb\n", "0-0\n"),
            "train.en has 2 lines and train.links has 1, expected equal numbers; first line "
            "without partner: train.en:2");
  EXPECT_EQ(error_of("a\n", "a\n", "0-0\n\n"),
            "train.links has 2 lines and train.en has 1, expected equal numbers; first line "
            "without partner: train.links:2");
  EXPECT_EQ(error_of("a\na\n", "a\na\n", "0-0\n0:0\n").find("train.links:2: '0:0' is not a link"),
            0u);
  EXPECT_EQ(error_of("\n", "a\n", "x\n").find("train.links:1: 'x' is not a link"), 0u);
  const std::string beyond = error_of("a\na b\n", "a\na\n", "0-0\n1-0 0-1\n");
  EXPECT_EQ(beyond.find("train.links:2: link 0-1 is out of range: source words are 0 to 1, target "
                        "words are 0 to 0; "),
            0u)
      << beyond;
}

TEST(Corpus, ReadsOneAlignmentFilePerTextFile) {
  const Folder folder;
  const std::string text = folder.write("text", "a b\nb\n"),
                    links = folder.write("l", "0-1\n0-0\n"), bad = folder.write("bad", "0-1\n"),
                    odd = folder.write("odd", "0-1\n0_0\n");
  const std::vector<std::string> texts{text, text};
  const auto read_all = [&](const std::vector<std::string>& alignments) {
    return Corpus::read(texts, texts, letters(), letters(), {}, alignments);
  };
  const Corpus corpus = read_all({links, links});
  EXPECT_EQ(links_of(corpus, 2), (Links{{0, 1}}));
  EXPECT_EQ(links_of(corpus, 3), (Links{{0, 0}}));
  message_of(ExitCode::usage, [&] { read_all({links}); });
  const std::string shorter = message_of(ExitCode::data, [&] { read_all({links, bad}); });
  EXPECT_NE(shorter.find("first line without partner: " + text + ":2"), shorter.npos) << shorter;
  EXPECT_EQ(shorter, message_of(ExitCode::data, [&] {
              check_partners(texts, texts, {links, bad});
            }));
  message_of(ExitCode::data, [&] { check_partners(texts, texts, {links, odd}); });
  EXPECT_NO_THROW(check_partners(texts, texts, {links, links}));
}

TEST(CorpusOptions, AreSettings) {
  CorpusOptions options;
  Settings settings;
  settings.group("data", options);
  settings.set("data.bad_utf8=fail");
  settings.set("data.max_length=128");
  EXPECT_EQ(options.bad_utf8, BadUtf8::fail);
  EXPECT_EQ(options.max_length, 128);
}

}  // namespace
}  // namespace fovea

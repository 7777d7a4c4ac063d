#include "base/lines.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/random.h"
#include "base/utf8.h"
#include "temporary.h"

namespace fovea {
namespace {

std::vector<std::string> all_lines(LineReader reader, LineCounts* counts = nullptr) {
  std::vector<std::string> lines;
  for (TextLine line; reader.next(line);) {
    lines.emplace_back(line.text);
    EXPECT_EQ(line.number, static_cast<int64_t>(lines.size()));
  }
  if (counts != nullptr) *counts = reader.counts();
  return lines;
}

std::vector<std::string> lines_of(std::string_view text, LineCounts* counts = nullptr) {
  return all_lines(LineReader::over(text, "t.txt"), counts);
}

using Lines = std::vector<std::string>;

std::string gzip(const TemporaryFolder& folder, const std::string& text) {
  OutputFile out(folder / "packed.gz");
  out.write(text);
  out.close();
  return read_file(folder / "packed.gz");
}

TEST(Lines, LastLineCountsWithOrWithoutNewline) {
  EXPECT_EQ(lines_of("a\nb"), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of("a\nb\n"), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of(""), Lines{});
  EXPECT_EQ(lines_of("\n"), Lines{""});
  EXPECT_EQ(lines_of("\n\n"), (Lines{"", ""}));
}

TEST(Lines, OnlyLineFeedEndsALine) {
  LineCounts counts;
  const std::string odd = "a\u2028b\u2029c\u0085d\ve\ff\rg";
  EXPECT_EQ(lines_of("x\r\n" + odd + "\ny\r\r\nz\r", &counts), (Lines{"x", odd, "y\r", "z"}));
  EXPECT_EQ(counts.carriage_returns, 3);
  EXPECT_EQ(lines_of("a\rb\rc"), Lines{"a\rb\rc"});
  EXPECT_EQ(lines_of(std::string_view("a\0b\n", 4)), Lines{std::string("a\0b", 3)});
}

TEST(Lines, ByteOrderMarks) {
  LineCounts counts;
  EXPECT_EQ(lines_of("\xEF\xBB\xBFhi\n\xEF\xBB\xBFho\n", &counts), (Lines{"hi", "\uFEFFho"}));
  EXPECT_EQ(counts.byte_order_marks, 1);
  const auto refusal = [](std::string_view text) {
    return message_of(ExitCode::data, [&] { lines_of(text); });
  };
  EXPECT_NE(refusal("\xFF\xFEh\0i\0").find("t.txt:1: the file is UTF-16LE"), std::string::npos);
  EXPECT_NE(refusal("\xFE\xFF\0h").find("UTF-16BE"), std::string::npos);
  EXPECT_NE(refusal(std::string_view("\xFF\xFE\0\0h\0\0\0", 8)).find("UTF-32LE"),
            std::string::npos);
  EXPECT_NE(refusal(std::string_view("\0\0\xFE\xFF\0\0\0h", 8)).find("UTF-32BE"),
            std::string::npos);
}

// ASCII as UTF-16, the high byte of each unit first or second, with a quotation mark around it.
std::string utf16(std::string_view text, bool high_first) {
  std::string bytes = high_first ? "\x20\x1C" : "\x1C\x20";
  for (const char c : text) bytes += high_first ? std::string{'\0', c} : std::string{c, '\0'};
  return bytes;
}

TEST(Lines, ReportsUtf16WithoutAMark) {
  const auto refusal = [](const std::string& text) {
    return message_of(ExitCode::data, [&] { lines_of(text); });
  };
  EXPECT_EQ(refusal(utf16("A dog.\nA cat.\n", false)),
            "t.txt:1: the file is UTF-16LE, UTF-8 is expected; "
            "convert it first: iconv -f UTF-16LE -t utf8");
  EXPECT_NE(refusal(utf16("\n\nA dog.", true)).find("iconv -f UTF-16BE"), std::string::npos);
  EXPECT_NE(refusal(utf16(std::string(5000, 'a'), true)).find("UTF-16BE"), std::string::npos);
  // Some NULs, or only NULs, are not UTF-16.
  for (const std::string& text : {std::string("a\0b\0c", 5), std::string(64, '\0'),
                                  std::string("a dog\0 b\0 cd ef gh ij", 22)})
    EXPECT_EQ(lines_of(text), Lines{text});
}

TEST(Lines, CompressedFilesAreRefusedByTheirFirstBytes) {
  const TemporaryFolder folder;
  const auto refusal = [](const std::string& bytes) {
    return message_of(ExitCode::data, [&] { lines_of(bytes); });
  };
  EXPECT_NE(refusal(gzip(folder, "a\n")).find("t.txt:1: the file is compressed with gzip"),
            std::string::npos);
  EXPECT_NE(refusal("\xFD"
                    "7zXZ\n")
                .find("xzcat"),
            std::string::npos);
  EXPECT_NE(refusal("\x28\xB5\x2F\xFD\x04").find("zstdcat"), std::string::npos);
  EXPECT_EQ(lines_of("a\x1F\x8B\x08\nPK\x03\x04"), (Lines{"a\x1F\x8B\x08", "PK\x03\x04"}));
}

// A file with `bad` lines in Latin-1 and then `good` lines in ASCII.
std::string latin_lines(int bad, int good) {
  std::string text;
  for (int i = 0; i < bad; ++i) text += "gr\xFC\xDF\n";
  for (int i = 0; i < good; ++i) text += "hello\n";
  return text;
}

TEST(Lines, ReportsAnotherEncodingOnceIfMostLinesAreBad) {
  const auto refusal = [](int bad, int good) {
    return message_of(ExitCode::data, [&] { lines_of(latin_lines(bad, good)); });
  };
  EXPECT_EQ(refusal(11, 10),
            "t.txt: 11 of the first 21 lines are not UTF-8; if it is Latin-1, "
            "convert it first: iconv -f latin1 -t utf8");
  EXPECT_TRUE(refusal(51, 1000).starts_with("t.txt: 51 of the first 100 lines"));
  EXPECT_EQ(lines_of(latin_lines(9, 0)).size(), 9u);
  EXPECT_EQ(lines_of(latin_lines(10, 10)).size(), 20u);
  EXPECT_EQ(lines_of(latin_lines(50, 1000)).size(), 1050u);
  EXPECT_EQ(lines_of(latin_lines(0, 100) + latin_lines(500, 0)).size(), 600u);
}

TEST(Lines, LongLinesAreCutAtACharacter) {
  LineReader reader = LineReader::over("abcdefgh\r\nabcdefghi\nabcdefgé\nx\n", "t.txt", 8);
  TextLine line;
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line.text, "abcdefgh");
  EXPECT_FALSE(line.cut);
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line.text, "abcdefgh");
  EXPECT_TRUE(line.cut);
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line.text, "abcdefg");
  EXPECT_TRUE(line.cut);
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line.text, "x");
  EXPECT_FALSE(line.cut);
  EXPECT_EQ(reader.counts().cut, 2);
  EXPECT_EQ(reader.where(), "t.txt:4");
}

TEST(Lines, EqualToSplittingByHand) {
  Random random(3);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    // Bad bytes are rare, so that the text is still valid.
    for (uint64_t n = random.below(400); n > 0; --n)
      text += "abababababab\n\n\n\r\r\xC3"[random.below(18)];
    const size_t limit = 4 + random.below(12);
    LineReader reader = LineReader::over(text, "t", limit);
    size_t at = 0, count = 0;
    for (TextLine line; reader.next(line); ++count) {
      const size_t lf = std::min(text.find('\n', at), text.size());
      std::string_view whole(text.data() + at, lf - at);
      if (whole.ends_with('\r')) whole.remove_suffix(1);
      ASSERT_EQ(line.cut, whole.size() > limit);
      ASSERT_TRUE(whole.starts_with(line.text));
      ASSERT_GE(line.text.size() + 3, std::min(whole.size(), limit));
      ASSERT_TRUE(line.cut || line.text == whole);
      at = lf + 1;
    }
    const auto lfs = static_cast<size_t>(std::ranges::count(text, '\n'));
    ASSERT_EQ(count, lfs + (!text.empty() && text.back() != '\n'));
  }
}

TEST(Lines, MemoryStaysBoundedOnAHugeLine) {
  const TemporaryFolder folder;
  OutputFile out(folder / "huge.gz");
  const std::string block(1 << 16, 'x');
  for (int i = 0; i < 1600; ++i) out.write(block);  // 100 MiB in one line
  out.write("\nnext\n");
  out.close();
  LineReader reader(folder / "huge.gz", 1000);
  TextLine line;
  ASSERT_TRUE(reader.next(line));
  EXPECT_TRUE(line.cut);
  EXPECT_EQ(line.text.size(), 1000u);
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line.text, "next");
  EXPECT_FALSE(reader.next(line));
}

TEST(Lines, ReadsAndWritesGzip) {
  const TemporaryFolder folder;
  std::string text;
  Random random(4);
  for (int i = 0; i < 20'000; ++i) text += std::to_string(random.bits64()) + "\n";
  const std::string packed = gzip(folder, text);
  EXPECT_LT(packed.size(), text.size());
  EXPECT_EQ(all_lines(LineReader(folder / "packed.gz")), lines_of(text));
  // Consecutive members are one file.
  const std::string twice = gzip(folder, "a\nb") + gzip(folder, "c\n");
  EXPECT_EQ(all_lines(LineReader::over(twice, "x.gz")), (Lines{"a", "bc"}));
  EXPECT_EQ(all_lines(LineReader::over(gzip(folder, ""), "x.gz")), Lines{});
}

// Tapes and some archives fill the last block with zeros; another member may follow them.
TEST(Lines, ZerosAfterGzipDataAreIgnored) {
  const TemporaryFolder folder;
  const std::string packed = gzip(folder, "a\nb\n"), none = gzip(folder, "");
  for (const size_t zeros : {1, 511, 200'000}) {
    const std::string padding(zeros, '\0');
    EXPECT_EQ(all_lines(LineReader::over(packed + padding, "x.gz")), (Lines{"a", "b"})) << zeros;
    EXPECT_EQ(all_lines(LineReader::over(none + packed + none + padding, "x.gz")),
              (Lines{"a", "b"}));
    EXPECT_EQ(all_lines(LineReader::over(packed + padding + packed, "x.gz")),
              (Lines{"a", "b", "a", "b"}));
    message_of(ExitCode::data,
               [&] { all_lines(LineReader::over(packed + padding + "x", "x.gz")); });
  }
  message_of(ExitCode::data, [] { all_lines(LineReader::over(std::string(9, '\0'), "x.gz")); });
}

TEST(Lines, DamagedGzipIsAnErrorAtEveryByte) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 100; ++i) text += "line " + std::to_string(i * i) + "\n";
  const std::string packed = gzip(folder, text);
  const auto read_all = [](const std::string& bytes) {
    return all_lines(LineReader::over(bytes, "train.en.gz"));
  };
  for (size_t n = 0; n < packed.size(); ++n) {
    const std::string message = message_of(ExitCode::data, [&] { read_all(packed.substr(0, n)); });
    ASSERT_NE(message.find("train.en.gz: the gzip data ends early, at byte "), std::string::npos);
  }
  int unseen = 0;
  for (size_t bit = 80; bit < packed.size() * 8;
       ++bit) {  // after the fields for time and operating system
    std::string bad = packed;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    try {
      ASSERT_EQ(read_all(bad), lines_of(text));  // the padding of the last block has no meaning
      ++unseen;
    } catch (const Error& error) {
      ASSERT_EQ(static_cast<int>(error.code()), static_cast<int>(ExitCode::data));
    }
  }
  EXPECT_LT(unseen, 8);
  message_of(ExitCode::data, [&] { read_all("not gzip at all"); });
  message_of(ExitCode::data, [&] { read_all(packed + "junk"); });
}

TEST(Lines, OnceReadsAFifo) {
  const TemporaryFolder folder;
  const std::string path = folder / "fifo";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path) << "one\ntwo\n"; });
  EXPECT_EQ(all_lines(LineReader::once(path)), (Lines{"one", "two"}));
  writer.join();
  message_of(ExitCode::files, [&] { LineReader twice(path); });
  message_of(ExitCode::files, [&] { LineReader::once(folder / "absent"); });
  message_of(ExitCode::files, [&] { LineReader::once(folder.path()); });
}

TEST(Lines, RefusesAllButFiles) {
  const TemporaryFolder folder;
  message_of(ExitCode::files, [&] { LineReader(folder.path()); });
  message_of(ExitCode::files, [&] { LineReader(folder / "absent"); });
  message_of(ExitCode::files, [&] { LineReader("/dev/zero"); });
}

TEST(Output, ReportsAFullDisk) {
  OutputFile out("/dev/full");
  out.write("x");
  const std::string message = message_of(ExitCode::files, [&] { out.close(); });
  EXPECT_EQ(message, "/dev/full: cannot write: No space left on device");
  message_of(ExitCode::files, [] { OutputFile("/nonexistent/x"); });
}

TEST(Output, WritesLinesAndFlushes) {
  const TemporaryFolder folder;
  OutputFile out(folder / "o");
  out.write_line("one");
  out.flush();
  EXPECT_EQ(read_file(folder / "o"), "one\n");
  out.write(std::string(200'000, 'y'));
  out.close();
  EXPECT_EQ(read_file(folder / "o").size(), 200'004u);
}

TEST(Lines, ReportThatTheWriterPauses) {
  const TemporaryFolder folder;
  const std::string path = folder / "fifo";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const FileDescriptor both(open(path.c_str(), O_RDWR | O_CLOEXEC));  // so that no open() waits
  LineReader reader = LineReader::once(path);
  EXPECT_TRUE(reader.pauses(0));
  ASSERT_EQ(write(both.get(), "one\ntwo\nthr", 11), 11);
  EXPECT_FALSE(reader.pauses(0));
  TextLine line;
  ASSERT_TRUE(reader.next(line));
  EXPECT_FALSE(reader.pauses(0)) << "a whole line has been read ahead";
  ASSERT_TRUE(reader.next(line));
  EXPECT_TRUE(reader.pauses(0)) << "the next line is not complete";
}

}  // namespace
}  // namespace fovea

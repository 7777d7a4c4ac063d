// Six systems of WMT 2017 English-German: compares with the scores that sacreBLEU printed for them.
// The corpus is not part of the repository. FOVEA_DATA names the folder that contains
// wmt17-metrics/.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "eval/bleu.h"
#include "eval/chrf.h"
#include "eval/ter.h"

namespace fovea {
namespace {

Lines read_lines(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

class Wmt17 : public testing::Test {
 protected:
  void SetUp() override {
    const char* data = std::getenv("FOVEA_DATA");
    folder_ = std::string(data ? data : "") + "/wmt17-metrics/";
    if (!data || !std::filesystem::exists(folder_))
      GTEST_SKIP() << "set FOVEA_DATA to a folder with wmt17-metrics/ to run this";
    reference_ = read_lines(folder_ + "newstest2017.ref.de");
  }

  Lines system(const std::string& name) { return read_lines(folder_ + "systems/" + name); }

  std::string folder_;
  Lines reference_;
};

TEST_F(Wmt17, BleuAndChrfToThePrintedDigits) {
  Lines rows = read_lines(folder_ + "expected_by_sacrebleu.tsv");
  ASSERT_EQ(rows.size(), 7u);
  for (size_t r = 1; r < rows.size(); ++r) {
    std::istringstream row(rows[r]);
    std::string name;
    row >> name;
    Lines hypotheses = system(name);
    for (double score :
         {bleu(hypotheses, reference_), bleu(hypotheses, reference_, {.lowercase = true}),
          bleu(hypotheses, reference_, {.tokenize = BleuTokenizer::none}),
          bleu(hypotheses, reference_, {.tokenize = BleuTokenizer::intl}),
          bleu(hypotheses, reference_, {.tokenize = BleuTokenizer::chars}),
          chrf(hypotheses, reference_), chrf(hypotheses, reference_, {.word_order = 2})}) {
      double expected = 0;
      ASSERT_TRUE(row >> expected) << name;
      EXPECT_NEAR(score, expected, 0.5001e-4) << name;
    }
  }
}

// "NAME TER=66.8824 500-line prefix=63.5771 …"
TEST_F(Wmt17, TerToThePrintedDigits) {
  auto number_after = [](const std::string& line, const std::string& key) {
    return std::stod(line.substr(line.find(key) + key.size()));
  };
  Lines rows = read_lines(folder_ + "expected_ter.txt");
  ASSERT_EQ(rows.size(), 3u);
  for (const std::string& row : rows) {
    Lines hypotheses = system(row.substr(0, row.find(' '))), reference = reference_;
    EXPECT_NEAR(ter(hypotheses, reference), number_after(row, "TER="), 0.5001e-4) << row;
    hypotheses.resize(500);
    reference.resize(500);
    EXPECT_NEAR(ter(hypotheses, reference), number_after(row, "prefix="), 0.5001e-4) << row;
  }
}

}  // namespace
}  // namespace fovea

#include "train/data_warnings.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "temporary.h"

namespace fovea {
namespace {

// Returns `count` lines; the last one ends with `other`.
std::string lines(int count, const std::string& other = "") {
  std::string text;
  for (int i = 1; i <= count; ++i) text += i == count ? "last" + other + "\n" : "a dog\n";
  return text;
}

class FileWarnings : public testing::Test {
 protected:
  // Returns the warning about two training texts.
  std::string warning_of(const std::string& source, const std::string& target) {
    write_atomically(folder_ / "a", source);
    write_atomically(folder_ / "b", target);
    data_.root = folder_.path();
    data_.train_source = {"a"};
    data_.train_target = {"b"};
    return warning_about_files(data_);
  }
  TemporaryFolder folder_;
  DataOptions data_;
};

TEST_F(FileWarnings, OneFileOnBothSides) {
  EXPECT_EQ(warning_of(lines(3), lines(4)), "");
  const std::string rest = "/a; the model would only learn to copy; check the file names";
  data_.test_source = data_.test_target = {"a"};
  EXPECT_EQ(warning_about_files(data_),
            "data.test_source and data.test_target: both are " + folder_.path() + rest);
  std::filesystem::create_hard_link(folder_ / "a", folder_ / "linked");
  data_.train_target = {"linked"};
  EXPECT_EQ(warning_about_files(data_),
            "data.train_source and data.train_target: both are " + folder_.path() + rest);
}

TEST_F(FileWarnings, HeldOutTextThatIsTrainingText) {
  warning_of(lines(30, "a"), lines(30, "b"));
  write_atomically(folder_ / "copy", lines(30, "a"));
  write_atomically(folder_ / "other", lines(30, "c"));
  data_.valid_source = {"other"};
  data_.valid_target = {"b"};
  EXPECT_EQ(warning_about_files(data_), "");
  data_.valid_source = {"a"};
  EXPECT_EQ(warning_about_files(data_).find("data.valid_source: " + (folder_ / "a") +
                                            " is also training text; results on training text"),
            0u)
      << warning_about_files(data_);
  data_.valid_source = {};
  data_.test_source = {"copy"};
  EXPECT_NE(warning_about_files(data_).find("begin with the same 30 lines"), std::string::npos);
}

TEST_F(FileWarnings, TwoFilesThatBeginWithTheSameLines) {
  EXPECT_NE(warning_of(lines(10), lines(10)).find("begin with the same 10 lines"),
            std::string::npos);
  EXPECT_EQ(warning_of(lines(9), lines(9)), "") << "too few lines to tell";
  EXPECT_NE(warning_of(lines(101, "x"), lines(101, "y")).find("the same 100 lines"),
            std::string::npos);
  EXPECT_EQ(warning_of(lines(100, "x"), lines(100, "y")), "");
  EXPECT_EQ(warning_of(lines(10), lines(10) + "more\n"), "")
      << "another check reports different line counts";
  EXPECT_EQ(warning_of(std::string(20, '\n'), std::string(20, '\n')), "")
      << "another check reports empty files";
}

TEST(SizeWarnings, AModelThatIsMuchLargerThanItsText) {
  Corpus text;
  const std::vector<int32_t> sentence{4, 5, 6, 7};
  for (int i = 0; i < 20; ++i) text.add(sentence, sentence, i + 1);
  EXPECT_EQ(warning_about_size(8'000, text), "");
  const std::string warning = warning_about_size(44'000'000, text);
  EXPECT_TRUE(
      warning.starts_with("the model has 44,000,000 parameters, but the training text has only 80 "
                          "target pieces in 20 pairs; "))
      << warning;
  for (int i = 20; i < 10'000; ++i) text.add(sentence, sentence, i + 1);
  EXPECT_EQ(warning_about_size(44'000'000, text), "");
}

TEST(SizeWarnings, LabelsAreNotCounted) {
  Corpus text(TargetKind::labels);
  text.add(std::vector<int32_t>{4, 5}, std::vector<int32_t>{1}, 1);
  EXPECT_EQ(warning_about_size(44'000'000, text), "");
}

}  // namespace
}  // namespace fovea

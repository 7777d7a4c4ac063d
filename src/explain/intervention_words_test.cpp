#include "explain/intervention_words.h"

#include <gtest/gtest.h>

#include "temporary.h"

namespace fovea {
namespace {

const ModelBundle& bundle() {
  static const ModelBundle bundle = load_package(FOVEA_SOURCE "/models/gallery/transformer");
  return bundle;
}

const std::string kSentence = "A dog and a dog sleep.";

std::string error_of(const InterventionWords& words) {
  return message_of(ExitCode::usage, [&] { words.read(bundle(), kSentence); });
}

TEST(InterventionWordsTest, NothingIsAsked) {
  const InterventionWords none;
  EXPECT_FALSE(none.given());
  EXPECT_TRUE(none.read(bundle(), kSentence).empty());
}

TEST(InterventionWordsTest, WordsHaveNumbersOrOccurrences) {
  const InterventionWords words{.mask = {"dog", "dog#2", "1"}};
  EXPECT_TRUE(words.given());
  EXPECT_EQ(words.read(bundle(), kSentence).masked, (std::vector<int64_t>{1, 4, 0}));
}

TEST(InterventionWordsTest, HeadsAndSteps) {
  const InterventionWords words{.mask_head = {"cross.0.2", "encoder.2.3"}, .force = {"1=sleep."}};
  const WordWhatIf found = words.read(bundle(), kSentence);
  ASSERT_EQ(found.silent.size(), 2u);
  EXPECT_EQ(found.silent[0], (HeadName{"cross", 0, 2}));
  EXPECT_EQ(found.silent[1], (HeadName{"encoder", 2, 3}));
  ASSERT_EQ(found.forced.size(), 1u);
  EXPECT_EQ(found.forced[0].step, 1);
  EXPECT_EQ(found.forced[0].word, 5);
  EXPECT_TRUE(found.masked.empty());
}

TEST(InterventionWordsTest, ErrorsNameTheField) {
  EXPECT_TRUE(error_of({.mask = {"cat"}}).starts_with("`mask` cat: the sentence has no such word"));
  EXPECT_TRUE(error_of({.force = {"0=cat"}}).starts_with("`force` cat: the sentence has no such"));
  for (const char* bad : {"", "cross", "cross.1", "cross.a.1", "cross.1.", "cross.1.2x"})
    EXPECT_EQ(error_of({.mask_head = {bad}}),
              std::string("`mask_head` ") + bad +
                  ": expected KIND.LAYER.HEAD, both numbers from 0, for example cross.0.2");
  for (const char* bad : {"dog", "=dog", "x=dog", "1 =dog"})
    EXPECT_EQ(error_of({.force = {bad}}),
              std::string("`force` ") + bad + ": expected STEP=WORD, for example 2=dog");
  EXPECT_TRUE(error_of({.mask_head = {"cross.9.0"}}).starts_with("`mask_head`"));
  EXPECT_TRUE(error_of({.mask = {"1", "2", "3", "4", "5", "6"}}).starts_with("`mask`"));
}

}  // namespace
}  // namespace fovea

#include "train/parameter_selection.h"

#include <gtest/gtest.h>

#include "temporary.h"

namespace fovea {
namespace {

TEST(ParameterSelection, FitsPatterns) {
  for (const auto& [name, pattern, fits] :
       {std::tuple{"encoder/layers/3/attend/W_Q", "encoder/*", true},
        {"encoder/layers/3/attend/W_Q", "*/W_Q", true},
        {"encoder/layers/3/attend/W_Q", "*/layers/?/*W_?", true},
        {"encoder/layers/13/attend/W_Q", "*/layers/?/*", false},
        {"source/E", "source/E", true},
        {"source/E", "source/E*", true},
        {"source/E", "source", false},
        {"source/E", "*E?", false},
        {"abab", "*ab", true},
        {"abac", "*ab", false},
        {"", "*", true},
        {"", "", true},
        {"a", "", false}})
    EXPECT_EQ(fits_pattern(name, pattern), fits) << name << " " << pattern;
}

class SelectionOf : public testing::Test {
 protected:
  SelectionOf() {
    for (const char* name : {"source/E", "encoder/0/W", "encoder/0/b", "encoder/1/W", "decoder/W"})
      store_.declare(name, {2, 3}, ParameterInit::constant(0));
  }
  ParameterStore store_;
};

TEST_F(SelectionOf, ParametersIsFewRanges) {
  const auto chosen = select_parameters(store_, {"encoder/*", "decoder/W"}, "train.freeze");
  EXPECT_EQ(chosen, (std::vector<bool>{false, true, true, true, true}));
  const std::vector<StoreRange> one = ranges_of(store_, chosen);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].begin, 6);
  EXPECT_EQ(one[0].size, 24);
  EXPECT_EQ(ranges_of(store_, select_parameters(store_, {"*/W"}, "x")).size(), 2u);
  EXPECT_TRUE(ranges_of(store_, select_parameters(store_, {}, "x")).empty());
}

TEST_F(SelectionOf, UnknownNamesIsAnErrorWithSimilarNames) {
  const std::string said = message_of(ExitCode::data, [&] {
    select_parameters(store_, {"*/b", "encoder/O/*"}, "train.freeze");
  });
  for (const char* part : {"train.freeze", "'encoder/O/*'", "encoder/0/*", "encoder/1/*"})
    EXPECT_NE(said.find(part), said.npos) << said;
}

}  // namespace
}  // namespace fovea

#include "base/edit_distance.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace fovea {
namespace {

TEST(EditDistance, CountsEachEditOnce) {
  const std::string_view word = "layers";
  EXPECT_EQ(edit_distance<std::string_view>(word, word), 0u);
  EXPECT_EQ(edit_distance<std::string_view>(word, "leyers"), 1u);   // another letter
  EXPECT_EQ(edit_distance<std::string_view>(word, "layes"), 1u);    // one omitted
  EXPECT_EQ(edit_distance<std::string_view>(word, "llayers"), 1u);  // one too many
  EXPECT_EQ(edit_distance<std::string_view>(word, "alyers"), 1u);   // two swapped
  EXPECT_EQ(edit_distance<std::string_view>(word, "alyres"), 2u);
  EXPECT_EQ(edit_distance<std::string_view>(word, ""), 6u);
  EXPECT_EQ(edit_distance<std::string_view>("", word), 6u);
}

TEST(EditDistance, CountsLettersNotBytes) {
  const std::u32string a = U"Mädchen", b = U"Madchen";
  EXPECT_EQ(edit_distance(a, b), 1u);
}

TEST(EditDistance, StopsAtTheLimitAndNotBefore) {
  const std::string a = "abcdefgh";
  for (const std::string b : {"abcdefgh", "bacdefgh", "badcfehg", "xbcdxfgh", "hgfedcba", "abc"}) {
    const size_t whole = edit_distance(a, b);
    for (size_t limit = 1; limit < 10; ++limit)
      EXPECT_EQ(edit_distance(a, b, limit), std::min(whole, limit)) << b << " " << limit;
  }
}

TEST(NearestName, FindsASimilarNameOrNone) {
  const std::vector<std::string> names{"translate", "train", "show", "local-p"};
  EXPECT_EQ(nearest_name("trnslate", names), "translate");
  EXPECT_EQ(nearest_name("tran", names), "train");
  EXPECT_EQ(nearest_name("SHOW", names), "show");
  EXPECT_EQ(nearest_name("LOCAL_P", names), "local-p");
  EXPECT_EQ(nearest_name("evaluate", names), "");
  EXPECT_EQ(nearest_name("tran", names, 2), "train");
  EXPECT_EQ(nearest_name("trn", names, 2), "");
  EXPECT_EQ(nearest_name(std::string(1000, 't'), names), "");
  EXPECT_EQ(nearest_name("show", {}), "");
}

}  // namespace
}  // namespace fovea

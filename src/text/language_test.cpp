#include "text/language.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(Language, CodesAndFolders) {
  EXPECT_EQ(canonical_code("EN"), "en");
  EXPECT_EQ(canonical_code("pb"), "pt-BR");
  EXPECT_EQ(canonical_code("ZH-hant"), "zh-Hant");
  EXPECT_EQ(canonical_code("EN-US"), "en");
  EXPECT_EQ(language_name("de"), "German");
  EXPECT_EQ(language_name("qq"), "qq");
  const auto pair = languages_of_folder("/models/en-de-small/");
  ASSERT_TRUE(pair);
  EXPECT_EQ(*pair, std::pair(std::string("en"), std::string("de")));
  for (const char* name : {"model", "a-b", "english-german", "en_de", "", "/", "EN-DE", "en-"})
    EXPECT_FALSE(languages_of_folder(name)) << name;
}

TEST(Language, RegionsAndScriptsAreIgnored) {
  EXPECT_TRUE(same_language("zh-Hans", "zh-Hant"));
  EXPECT_TRUE(same_language("pt-BR", "pt"));
  EXPECT_TRUE(same_language("en", "en"));
  EXPECT_FALSE(same_language("en", "eo"));
  EXPECT_FALSE(same_language("", "en"));
}

}  // namespace
}  // namespace fovea

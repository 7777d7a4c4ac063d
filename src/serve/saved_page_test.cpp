#include "serve/saved_page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "serve/embedded_files.h"
#include "support/echo_engine.h"

namespace fovea {
namespace {

using Json = nlohmann::json;

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const size_t begin = text.find(from) + from.size();
  return text.substr(begin, text.find(to, begin) - begin);
}

TEST(SavedPage, HoldsAllModulesAndNoAddress) {
  const auto model = echo_model("en", "de");
  const std::string page = saved_page(*model, {});
  const Json map = Json::parse(between(page, "<script type=\"importmap\">", "</script>"));
  size_t modules = 0;
  for (const EmbeddedFile& file : page_files()) {
    if (!file.name.ends_with(".js")) continue;
    ++modules;
    EXPECT_TRUE(map["imports"].contains("fovea/" + std::string(file.name))) << file.name;
    EXPECT_EQ(file.bytes.find("import('"), file.bytes.npos) << file.name << ": not by a map";
  }
  EXPECT_GT(modules, 10u);
  EXPECT_EQ(map["imports"].size(), modules);
  EXPECT_EQ(count(page, "=\"/web/"), 0u);
  EXPECT_EQ(count(page, "default-src 'none'"), 1u);
}

TEST(SavedPage, SentencesStayData) {
  const auto model = echo_model("en", "de");
  const std::string hostile = "</script><!--<script>\xff\"";
  Translation translation;
  translation.text = hostile;
  const std::vector<SavedSentence> sentences{{hostile, translation}, {"b", {}}};
  const std::string page = saved_page(*model, sentences);
  EXPECT_EQ(count(page, "<script"), 3u);
  EXPECT_EQ(count(page, "</script>"), 3u);
  EXPECT_EQ(count(page, "<!--<script>"), 0u);
  const std::string data = "<script type=\"application/json\" id=\"recorded\">";
  const Json recorded = Json::parse(between(page, data, "</script>"));
  const Json& attention = recorded["reply"]["attention"];
  ASSERT_EQ(attention.size(), 2u);
  EXPECT_EQ(attention[0]["target"]["text"], "</script><!--<script>\xef\xbf\xbd\"");
  EXPECT_EQ(recorded["models"][0]["source"], "en");
}

TEST(ServedModel, ReadsItsWeightsWhenTheyAreNeeded) {
  ModelConfig config;
  config.source_words = config.target_words = 10;
  int loads = 0;
  const ServedModel model({"late", "en", "de", true}, config, [&] {
    if (++loads == 1) fail(ExitCode::model, "gone for a moment");
    return echo_package();
  });
  EXPECT_EQ(model.parameters(), declare_model(config)->parameters().size());
  EXPECT_FALSE(model.loaded());
  EXPECT_THROW(model.package(), Error);
  EXPECT_FALSE(model.loaded());
  EXPECT_EQ(&model.package(), &model.package());
  EXPECT_TRUE(model.loaded());
  EXPECT_EQ(loads, 2);
}

}  // namespace
}  // namespace fovea

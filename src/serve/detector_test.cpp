#include "serve/detector.h"

#include <gtest/gtest.h>

#include "serve/language.h"
#include "serve/metrics.h"

namespace fovea {
namespace {

TEST(Detector, TellsLanguagesApart) {
  EXPECT_EQ(detect_language("The weather is nice today.").front().language, "en");
  EXPECT_EQ(detect_language("Das Wetter ist heute schön.").front().language, "de");
  EXPECT_EQ(detect_language("Il fait beau aujourd'hui.").front().language, "fr");
  EXPECT_EQ(detect_language("HOW ARE YOU?").front().language, "en");
}

TEST(Detector, KnowsWhatItDoesNotKnow) {
  EXPECT_TRUE(detect_language("").empty());
  EXPECT_TRUE(detect_language("123 😀 !").empty());
  double sum = 0;
  for (const Detected& d : detect_language("Hello there, old friend")) sum += d.confidence;
  EXPECT_NEAR(sum, 100, 0.2);
  EXPECT_EQ(detect_language("\xFF\xFE broken bytes are here").front().language, "en");
}

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

TEST(Metrics, AreWrittenAsPrometheusReadsThem) {
  ServiceMetrics metrics;
  metrics.answered("/translate", 200, 0.02);
  metrics.answered("/translate", 200, 99);
  metrics.answered("other", 404, 0.001);
  metrics.add_tokens(3, 4);
  const std::string text = metrics.text({.queue = 2, .models = {{"a\"b\\c\nd", "en", "de", 7}}});
  const auto has = [&](const std::string& line) {
    EXPECT_NE(("\n" + text).find("\n" + line + "\n"), std::string::npos) << line;
  };
  has(R"(fovea_http_requests_total{endpoint="/translate",code="200"} 2)");
  has(R"(fovea_http_requests_total{endpoint="other",code="404"} 1)");
  has(R"(fovea_http_request_duration_seconds_bucket{le="0.005"} 1)");
  has(R"(fovea_http_request_duration_seconds_bucket{le="0.025"} 2)");
  has(R"(fovea_http_request_duration_seconds_bucket{le="10"} 2)");
  has(R"(fovea_http_request_duration_seconds_bucket{le="+Inf"} 3)");
  has("fovea_http_request_duration_seconds_count 3");
  has("fovea_queue_depth 2");
  has("fovea_source_tokens_total 3");
  has(R"(fovea_model_info{model="a\"b\\c\nd",source="en",target="de",params="7"} 1)");
  EXPECT_TRUE(text.ends_with("\n"));
}

}  // namespace
}  // namespace fovea

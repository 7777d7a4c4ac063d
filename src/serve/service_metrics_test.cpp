#include "serve/service_metrics.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(Metrics, AreWrittenAsPrometheusReadsThem) {
  ServiceMetrics metrics;
  metrics.answered("/translate", "en-de", 200, 0.02);
  metrics.answered("/translate", "en-de", 200, 99);
  metrics.answered("other", "", 404, 0.001);
  metrics.answered("/translate", "a\"b", 200, 0.02);
  metrics.add_tokens(3, 4);
  const std::string text = metrics.text({.queue = 2, .models = {{"a\"b\\c\nd", "en", "de", 7}}});
  const auto has = [&](const std::string& line) {
    EXPECT_NE(("\n" + text).find("\n" + line + "\n"), std::string::npos) << line;
  };
  has(R"(fovea_http_requests_total{endpoint="/translate",code="200"} 3)");
  has(R"(fovea_http_requests_total{endpoint="other",code="404"} 1)");
  const std::string name = "fovea_http_request_duration_seconds";
  const std::string en_de = R"({endpoint="/translate",model="en-de")";
  has(name + "_bucket" + en_de + R"(,le="0.005"} 0)");
  has(name + "_bucket" + en_de + R"(,le="0.025"} 1)");
  has(name + "_bucket" + en_de + R"(,le="10"} 1)");
  has(name + "_bucket" + en_de + R"(,le="+Inf"} 2)");
  has(name + "_count" + en_de + "} 2");
  has(name + R"(_bucket{endpoint="other",le="0.005"} 1)");
  has(name + R"(_count{endpoint="/translate",model="a\"b"} 1)");
  EXPECT_EQ(text.find("# TYPE " + name), text.rfind("# TYPE " + name)) << "one family";
  has("fovea_queue_depth 2");
  has("fovea_source_tokens_total 3");
  has(R"(fovea_model_info{model="a\"b\\c\nd",source="en",target="de",params="7"} 1)");
  EXPECT_TRUE(text.ends_with("\n"));
}

}  // namespace
}  // namespace fovea

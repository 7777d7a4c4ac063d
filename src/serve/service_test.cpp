#include "serve/service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "support/service_under_test.h"

namespace fovea {
namespace {

using std::chrono::milliseconds;
using testing::HeldExchange;
using testing::Json;
using testing::options;
using testing::ServiceUnderTest;

TEST(Service, TranslatesAllFormsOfRequests) {
  ServiceUnderTest s;
  EXPECT_EQ(s.post("/translate", {{"q", "One. Two!"}, {"source", "en"}, {"target", "de"}}),
            Json({{"translatedText", "One. Two!"}}));
  EXPECT_EQ(s.post("/translate", {{"q", {"a b", "", "c"}}, {"source", "en"}, {"target", "de"}}),
            Json({{"translatedText", {"a b", "", "c"}}}));
  const auto form = "application/x-www-form-urlencoded";
  EXPECT_EQ(s.ask("POST", "/translate", "q=a%0D%0Ab&source=en&target=de", form).body,
            R"({"translatedText":"a\nb"})");
  EXPECT_EQ(s.ask("POST", "/translate?q=x&source=EN&target=DE", "", "").body,
            R"({"translatedText":"x"})");
  const std::string parts =
      "--B\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\nhi\r\n"
      "--B\r\nContent-Disposition: form-data; name=\"source\"\r\n\r\nen\r\n"
      "--B\r\nContent-Disposition: form-data; name=\"target\"\r\n\r\nde\r\n--B--\r\n";
  EXPECT_EQ(s.ask("POST", "/translate", parts, "multipart/form-data; boundary=B").body,
            R"({"translatedText":"hi"})");
}

TEST(Service, AnswersLikeLibreTranslate) {
  ServiceUnderTest s;
  Json reply = s.post(
      "/translate",
      {{"q", "the weather is nice"}, {"source", "auto"}, {"target", "de"}, {"alternatives", 2}});
  EXPECT_EQ(reply["detectedLanguage"]["language"], "en");
  EXPECT_GT(reply["detectedLanguage"]["confidence"], 50);
  ASSERT_GE(reply["alternatives"].size(), 1u) << reply;
  EXPECT_LE(reply["alternatives"].size(), 2u) << reply;
  EXPECT_NE(reply["alternatives"][0], reply["translatedText"]);
  reply = s.post(
      "/translate",
      {{"q", {"the dog", "and you"}}, {"source", "auto"}, {"target", "de"}, {"alternatives", 1}});
  EXPECT_EQ(reply["detectedLanguage"].size(), 2u);
  EXPECT_EQ(reply["alternatives"].size(), 2u);
  reply = s.post("/translate", {{"q", "a <b>b</b> &amp; c"},
                                {"source", "en"},
                                {"target", "de"},
                                {"format", "html"},
                                {"alternatives", 1}});
  EXPECT_EQ(reply["translatedText"], "a <b>b</b> &amp; c");
  EXPECT_EQ(reply["alternatives"], Json::array());
  for (const char* same : {"\U0001F600 !", "  \n "})
    EXPECT_EQ(
        s.post("/translate", {{"q", same}, {"source", "en"}, {"target", "de"}})["translatedText"],
        same);
  EXPECT_EQ(
      s.post("/translate", {{"q", "same"}, {"source", "en"}, {"target", "en"}})["translatedText"],
      "same");
  EXPECT_EQ(Json::parse(s.ask("GET", "/languages", "ignored").body),
            Json::parse(R"([{"code":"de","name":"German","targets":["de","en"]},
                            {"code":"en","name":"English","targets":["de","en"]}])"));
  EXPECT_EQ(s.post("/detect", {{"q", "das ist ja gut"}})[0]["language"], "de");
  const char* const french = "il fait beau dans la rue";
  EXPECT_EQ(s.post("/detect", {{"q", french}})[0]["language"], "fr") << "though no model reads it";
  for (const char* unsure : {"123", "ok", "\U0001F600"})
    EXPECT_EQ(s.post("/detect", {{"q", unsure}}),
              Json::parse(R"([{"confidence":0.0,"language":"und"}])"))
        << unsure;
  const Json settings = Json::parse(s.ask("GET", "/frontend/settings").body);
  EXPECT_EQ(settings["charLimit"], 100);
  EXPECT_EQ(settings["keyRequired"], false);
}

TEST(Service, HasTheErrorsOfLibreTranslate) {
  ServiceUnderTest s;
  const Json good = {{"q", "x"}, {"source", "en"}, {"target", "de"}};
  const auto with = [&](const char* name, const Json& value) {
    Json changed = good;
    changed[name] = value;
    return s.error(changed);
  };
  for (const char* name : {"q", "source", "target"}) {
    Json less = good;
    less.erase(name);
    EXPECT_EQ(s.error(less), std::string("Invalid request: missing ") + name + " parameter");
  }
  EXPECT_EQ(with("source", "zz"), "zz is not supported");
  EXPECT_EQ(with("target", "zz"), "zz is not supported");
  EXPECT_EQ(with("format", "xml"), "xml format is not supported");
  EXPECT_EQ(with("alternatives", "many"),
            "Invalid request: alternatives parameter is not a number");
  EXPECT_EQ(with("alternatives", 99), "Invalid request: alternatives parameter must be <= 15");
  EXPECT_EQ(with("q", std::string(101, 'x')),
            "Invalid request: request (101) exceeds text limit (100)");
  EXPECT_EQ(with("q", Json(std::vector<std::string>(11, "x"))),
            "Invalid request: request (11) exceeds text limit (10)");
  EXPECT_EQ(with("model", "other"), "Invalid request: there is no model other from en to de");
  EXPECT_EQ(s.ask("POST", "/translate", "{").body, R"({"error":"Invalid JSON format"})");
  EXPECT_EQ(s.ask("GET", "/translate").status, 405);
  EXPECT_EQ(s.ask("GET", "/nothing").status, 404);
  EXPECT_EQ(s.ask("GET", "/download_file/../../etc/passwd").status, 404);
  EXPECT_EQ(s.ask("POST", "/suggest", "{}").status, 403);
  ServiceUnderTest one(options());
  one.service.replace({echo_model("en", "de")});
  EXPECT_EQ(one.error({{"q", "x"}, {"source", "de"}, {"target", "en"}}),
            "English (en) is not available as a target language from German (de)");
}

TEST(Service, TranslatesFilesInMemory) {
  ServiceUnderTest s;
  const auto upload = [&](const std::string& name, const std::string& content) {
    return s.ask("POST", "/translate_file",
                 "--B\r\nContent-Disposition: form-data; name=\"source\"\r\n\r\nen\r\n"
                 "--B\r\nContent-Disposition: form-data; name=\"target\"\r\n\r\nde\r\n"
                 "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" +
                     name + "\"\r\n\r\n" + content + "\r\n--B--\r\n",
                 "multipart/form-data; boundary=B");
  };
  const std::string url =
      Json::parse(upload("../../etc/my letter.txt", "One.\nTwo.\n").body)["translatedFileUrl"];
  ASSERT_TRUE(url.starts_with("http://h:5000/download_file/")) << url;
  EXPECT_TRUE(url.ends_with(".my_letter_de.txt")) << url;
  const HttpReply file = s.ask("GET", url.substr(13));
  EXPECT_EQ(file.body, "One.\nTwo.\n");
  EXPECT_EQ(upload("a.pdf", "x").body, R"({"error":"Invalid request: file format not supported"})");
  EXPECT_EQ(upload("a.txt", "\xFF").status, 400);
  EXPECT_EQ(s.ask("POST", "/translate_file", R"({"source":"en","target":"de"})").body,
            R"({"error":"Invalid request: missing file parameter"})");
  ServiceOptions without = options();
  without.files = false;
  EXPECT_EQ(ServiceUnderTest(without).ask("POST", "/translate_file").status, 403);
}

TEST(Service, SpeaksDeepL) {
  ServiceUnderTest s;
  EXPECT_EQ(s.post("/v2/translate",
                   {{"text", {"one", "two"}}, {"target_lang", "DE"}, {"source_lang", "EN"}}),
            Json::parse(R"({"translations":[{"detected_source_language":"EN","text":"one"},
                                            {"detected_source_language":"EN","text":"two"}]})"));
  const auto form = "application/x-www-form-urlencoded";
  EXPECT_EQ(s.ask("POST", "/v2/translate", "text=the+one&text=and+you&target_lang=DE", form).status,
            200);
  EXPECT_EQ(s.ask("POST", "/v2/translate", "{}").body,
            R"({"message":"Parameter 'text' not specified."})");
  EXPECT_EQ(Json::parse(s.ask("GET", "/v2/languages?type=target").body).size(), 2u);
  const Json billed = s.post("/v2/translate", {{"text", {"größer", "x"}},
                                               {"target_lang", "DE"},
                                               {"source_lang", "EN"},
                                               {"show_billed_characters", true}});
  EXPECT_EQ(billed["translations"][0]["billed_characters"], 6) << billed;
  EXPECT_EQ(billed["translations"][1]["billed_characters"], 1) << billed;
}

TEST(Service, UntranslatedTextsHaveAllRequestedFields) {
  ServiceUnderTest s;
  const Json asked = {{"source", "de"}, {"target", "de"},  {"alternatives", 2},
                      {"n_best", 3},    {"q", "ein Hund"}, {"attention", true}};
  EXPECT_EQ(s.post("/translate", asked),
            Json::parse(R"({"translatedText":"ein Hund","alternatives":[],
                            "n_best":[{"text":"ein Hund","log_prob":0.0}],"attention":[]})"));
  Json list = asked;
  list["q"] = {"a", "b"};
  EXPECT_EQ(s.post("/translate", list)["attention"], Json::parse("[[],[]]"));
  EXPECT_EQ(s.post("/translate", list)["alternatives"], Json::parse("[[],[]]"));
  // Each of both lists has the requested number.
  const Json both = s.post("/translate", {{"q", "one two three"},
                                          {"source", "en"},
                                          {"target", "de"},
                                          {"alternatives", 3},
                                          {"n_best", 2}});
  EXPECT_EQ(both["n_best"].size(), 2u) << both;
  EXPECT_GT(both["alternatives"].size(), 1u) << both;
}

TEST(Service, StreamsSentences) {
  ServiceUnderTest s;
  const HttpReply reply =
      s.ask("POST", "/v1/translate/stream", R"({"q":"One. Two.","source":"en","target":"de"})");
  EXPECT_EQ(reply.type, "text/event-stream; charset=utf-8");
  EXPECT_NE(
      reply.body.find(
          R"(data: {"text":0,"sentence":1,"before":" ","source":"Two.","translatedText":"Two.")"),
      std::string::npos)
      << reply.body;
  EXPECT_TRUE(reply.body.ends_with("event: done\ndata: {\"translatedText\":\"One. Two.\"}\n\n"))
      << reply.body;
  EXPECT_EQ(s.ask("POST", "/v1/translate/stream", R"({"q":"x"})").status, 400);
}

using Event = std::pair<std::string, Json>;
std::vector<Event> events_of(const std::string& body) {
  std::vector<Event> events;
  std::istringstream lines(body);
  for (std::string name, data, empty;
       std::getline(lines, name) && std::getline(lines, data) && std::getline(lines, empty);)
    events.emplace_back(name.substr(7), Json::parse(data.substr(6)));
  return events;
}

// Words arrive one by one during the search. All words together are the sentence. The last event is
// the answer of /translate.
TEST(Service, StreamsWords) {
  for (const int beam : {1, 3}) {
    ServiceUnderTest s;
    const Json question = {{"q", {"one two three. Four five", "six"}},
                           {"source", "en"},
                           {"target", "de"},
                           {"beam_size", beam},
                           {"alternatives", beam - 1},
                           {"n_best", beam}};
    const auto events = events_of(s.ask("POST", "/v1/translate/stream", question.dump()).body);
    std::map<std::string, std::string> prefixes;
    std::set<std::string> done;
    int words = 0;
    for (const auto& [name, data] : events) {
      if (name == "done") continue;
      const std::string which = data["text"].dump() + "." + data["sentence"].dump();
      std::string& text = prefixes[which];
      EXPECT_FALSE(done.contains(which)) << "there are no words after the end of a sentence";
      if (name == "words") {
        text += data["added"];
        ++words;
      } else {
        EXPECT_EQ(name, "sentence");
        EXPECT_EQ(data["translatedText"], text);
        done.insert(which);
      }
    }
    EXPECT_EQ(done.size(), 3u);
    EXPECT_EQ(events.front().first, "words");
    if (beam == 1) {
      EXPECT_EQ(words, 6) << "one event per word";
    }
    EXPECT_EQ(prefixes["0.1"], "Four five");
    EXPECT_EQ(events.back(), Event("done", s.post("/translate", question)));
  }
}

TEST(Service, ShowsAttention) {
  ServiceUnderTest s;
  const Json reply = s.post(
      "/translate",
      {{"q", "ab c. d"}, {"source", "en"}, {"target", "de"}, {"attention", true}, {"n_best", 2}});
  ASSERT_EQ(reply["attention"].size(), 1u) << reply;
  const Json& a = reply["attention"][0];
  EXPECT_EQ(a["source"]["text"], "ab c. d");
  EXPECT_EQ(a["source"]["tokens"].size(), a["attention"][0]["cols"]);
  EXPECT_EQ(a["target"]["tokens"].size(), a["attention"][0]["rows"]);
  EXPECT_EQ(a["steps"].size(), a["target"]["tokens"].size());
  EXPECT_EQ(a["steps"][0]["topk"][0][0], "a");
  EXPECT_GT(a["steps"][0]["topk"][0][1], 0.9);
  EXPECT_EQ(reply["n_best"].size(), 2u);
  // The path from the best leaf of the search to the root is the translation.
  std::vector<std::string> way;
  const auto& nodes = a["beam"];
  for (const Json& node : nodes)
    if (node.value("rank", -1) == 0)
      for (size_t id = node["id"]; id > 0; id = nodes[id - 1]["parent"])
        way.insert(way.begin(), nodes[id - 1]["token"]);
  EXPECT_EQ(Json(way), a["target"]["tokens"]);
  EXPECT_GE(reply["n_best"][0]["log_prob"], reply["n_best"][1]["log_prob"]);
}

TEST(Service, DescribesItsEndpointsAndMetrics) {
  ServiceUnderTest s;
  s.post("/translate", {{"q", "x"}, {"source", "en"}, {"target", "de"}});
  const Json api = Json::parse(s.ask("GET", "/openapi.json").body);
  EXPECT_TRUE(api["paths"].contains("/translate"));
  const HttpReply metrics = s.ask("GET", "/metrics");
  EXPECT_EQ(head_of(metrics).find("Access-Control"), std::string::npos) << "not for web pages";
  EXPECT_EQ(metrics.type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_NE(metrics.body.find(R"(requests_total{endpoint="/translate",code="200"} 1)"),
            std::string::npos);
  EXPECT_NE(metrics.body.find("fovea_http_requests_in_flight 1"), std::string::npos);
  s.service.drain();
  EXPECT_EQ(s.ask("GET", "/readyz").status, 503);
  EXPECT_EQ(s.ask("GET", "/livez").status, 200);
  const HttpReply options = s.ask("OPTIONS", "/translate");
  EXPECT_EQ(options.status, 204);
}

TEST(Service, CountsUnreadableRequests) {
  ServiceUnderTest open;
  open.service.count_refused(415);
  EXPECT_NE(open.ask("GET", "/metrics").body.find(R"(_total{endpoint="other",code="415"} 1)"),
            std::string::npos);
}

std::string header_of(const HttpReply& reply, const std::string& name) {
  for (const auto& [known, value] : reply.headers)
    if (known == name) return value;
  return "";
}

TEST(Service, ThePageIsPartOfTheProgram) {
  ServiceUnderTest s;
  const HttpReply index = s.ask("GET", "/");
  EXPECT_EQ(index.type, "text/html; charset=utf-8");
  EXPECT_EQ(header_of(index, "Content-Security-Policy").find("default-src 'self';"), 0u);
  std::ifstream file(std::string(FOVEA_SOURCE) + "/web/index.html");
  EXPECT_EQ(index.body, std::string(std::istreambuf_iterator<char>(file), {}));
  const HttpReply script = s.ask("GET", "/web/main.js");
  EXPECT_EQ(script.type, "text/javascript; charset=utf-8");
  EXPECT_NE(script.body.find("import"), std::string::npos);
  EXPECT_EQ(s.ask("GET", "/web/style.css").type, "text/css; charset=utf-8");
  EXPECT_EQ(s.ask("POST", "/", "{}").status, 405);
  for (const char* path : {"/web/", "/web/../README.md", "/web/none.js", "/web/%2e%2e/test"})
    EXPECT_EQ(s.ask("GET", path).status, 404) << path;

  const std::string etag = header_of(script, "ETag");
  EXPECT_NE(etag, header_of(index, "ETag"));
  const auto again = [&](const std::string& known) {
    return s.ask("GET", "/web/main.js", "", "", {{"if-none-match", known}});
  };
  EXPECT_EQ(again(etag).status, 304);
  EXPECT_EQ(again(etag).body, "");
  EXPECT_EQ(again("\"another\"").body, script.body);
}

TEST(Service, NamesItsModels) {
  ServiceUnderTest s;
  const Json models = Json::parse(s.ask("GET", "/v1/models").body);
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[1]["source"], "de");
  EXPECT_EQ(models[1]["target"], "en");
  EXPECT_TRUE(models[1]["name"].is_string() && models[1]["attention"].is_string());
}

}  // namespace
}  // namespace fovea

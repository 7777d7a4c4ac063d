#include "serve/request_parameters.h"

#include <gtest/gtest.h>

#include "http/form.h"
#include "http/http_error.h"

namespace fovea {
namespace {

int status_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const HttpError& error) {
    return error.status();
  }
  return 200;
}

std::string text_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const HttpError& error) {
    return error.text();
  }
  return "";
}

HttpRequest json(const std::string& body) {
  return {"POST", "/translate", "", {{"content-type", "application/json"}}, body};
}

TEST(Form, DecodesPercentAndPlus) {
  EXPECT_EQ(percent_decoded("a%20b+c"), "a b c");
  EXPECT_EQ(percent_decoded("%C3%A4%zz%4"), "ä%zz%4");
  const auto fields = parse_urlencoded("q=Hello+w%C3%B6rld&&source=en&empty=&bare");
  ASSERT_EQ(fields.size(), 4u);
  EXPECT_EQ(fields[0].value, "Hello wörld");
  EXPECT_EQ(fields[2].value, "");
  EXPECT_EQ(fields[3].name, "bare");
}

TEST(Form, ReadsMultipart) {
  const std::string body =
      "--X\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\nline\r\n--not\r\n"
      "--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\";c.txt\"\r\n"
      "Content-Type: text/plain\r\n\r\nHello\r\n\r\n--X--\r\n";
  const auto fields = parse_multipart(body, "multipart/form-data; boundary=X");
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_EQ(fields[0].value, "line\r\n--not");
  EXPECT_FALSE(fields[0].is_file);
  EXPECT_EQ(fields[1].file_name, "a \"b\";c.txt");
  EXPECT_EQ(fields[1].value, "Hello\r\n");
}

TEST(Form, RefusesDamagedMultipart) {
  const std::string whole =
      "--X\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\nHello\r\n--X--";
  EXPECT_EQ(parse_multipart(whole, "multipart/form-data; boundary=\"X\"").size(), 1u);
  for (size_t end = 0; end + 2 < whole.size(); ++end)
    EXPECT_EQ(status_of([&] { parse_multipart(whole.substr(0, end), "x; boundary=X"); }), 400)
        << end;
  EXPECT_EQ(status_of([&] { parse_multipart(whole, "multipart/form-data"); }), 400);
  EXPECT_EQ(status_of([&] { parse_multipart("--X\r\n\r\nv\r\n--X--", "x; boundary=X"); }), 400);
}

TEST(RequestParameters, TakeJsonFormAndQuery) {
  const RequestParameters a(json(R"({"q": ["a", "b"], "beam_size": 3, "attention": true})"));
  EXPECT_TRUE(a.texts("q")->is_list);
  EXPECT_EQ(a.texts("q")->values[1], "b");
  EXPECT_EQ(a.integer("beam_size", {1, 16}), 3);
  EXPECT_TRUE(a.flag("attention"));
  const HttpRequest form{"POST",
                         "/translate",
                         "target=de",
                         {{"content-type", "application/x-www-form-urlencoded"}},
                         "q=one%0D%0Atwo&alternatives=2"};
  const RequestParameters b(form);
  EXPECT_EQ(b.text("q"), "one\ntwo");
  EXPECT_EQ(b.text("target"), "de");
  EXPECT_EQ(b.integer("alternatives", {0, 5}), 2);
  EXPECT_FALSE(b.text("source").has_value());
}

TEST(RequestParameters, NameTheFieldThatIsWrong) {
  const auto error = [](const std::string& body, auto ask) {
    return text_of([&] { ask(RequestParameters(json(body))); });
  };
  const auto whole = [](const RequestParameters& p) { p.integer("alternatives", {0, 5}); };
  EXPECT_EQ(error(R"({"alternatives": "x"})", whole),
            "Invalid request: alternatives parameter is not a number");
  EXPECT_EQ(error(R"({"alternatives": 6})", whole),
            "Invalid request: alternatives parameter must be <= 5");
  EXPECT_EQ(error(R"({"alternatives": -1})", whole),
            "Invalid request: alternatives parameter must be >= 0");
  for (const char* value : {"1.5", "1e999", "\"nan\"", "\"inf\"", "[]", "{}", "true", "\"\""})
    EXPECT_NE(error(std::string("{\"alternatives\": ") + value + "}", whole), "") << value;
  const auto text = [](const RequestParameters& p) { p.text("q"); };
  EXPECT_EQ(error(R"({"q": 5})", text), "Invalid request: q parameter is not a string");
  EXPECT_EQ(error("{", text), "Invalid JSON format");
  EXPECT_EQ(error("[]", text), "Invalid JSON format");
  EXPECT_EQ(error("{\"q\": \"\xFF\"}", text), "Invalid JSON format");
  EXPECT_EQ(error("{\"q\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}", text),
            "Invalid JSON format");
  const HttpRequest bad{"POST", "/", "q=%41%FF", {}, ""};
  EXPECT_EQ(text_of([&] { RequestParameters p(bad); }),
            "Invalid request: q is not UTF-8 at byte 1");
}

}  // namespace
}  // namespace fovea

#include "serve/router.h"

#include <gtest/gtest.h>

#include "http/http_error.h"

namespace fovea {
namespace {

std::vector<Route> routes_of(const char* method, std::vector<std::string_view> paths) {
  std::vector<Route> routes;
  for (const std::string_view path : paths)
    routes.push_back({method, path, AccessRule::open, AnswerKind::small, [](RequestContext&) {}});
  return routes;
}

int status_of(const Router::Match& match) {
  try {
    match.required();
    return 200;
  } catch (const HttpError& error) {
    const Headers allow{{"Allow", match.path ? match.path->method : ""}};
    EXPECT_EQ(error.headers(), error.status() == 405 ? allow : Headers{});
    return error.status();
  }
}

TEST(Router, FindsARouteByMethodAndPath) {
  const Router router({routes_of("GET", {"/", "/files/"}), routes_of("POST", {"/translate"})});
  const auto status = [&](const char* method, const char* path) {
    return status_of(router.find({method, path, ""}));
  };
  EXPECT_EQ(status("GET", "/"), 200);
  EXPECT_EQ(status("HEAD", "/"), 200);
  EXPECT_EQ(status("POST", "/"), 405);
  EXPECT_EQ(status("GET", "/files/a/b"), 200);
  EXPECT_EQ(status("GET", "/files"), 404);
  EXPECT_EQ(status("GET", "/translate"), 405);
  EXPECT_EQ(status("POST", "/translate/"), 404) << "only paths that end with / have paths below";
  EXPECT_EQ(router.find({"GET", "/files/a", ""}).endpoint(), "/files/");
  EXPECT_EQ(router.find({"GET", "/translate", ""}).endpoint(), "other") << "metrics stay bounded";
}

}  // namespace
}  // namespace fovea

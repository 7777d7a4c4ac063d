#include "serve/router.h"

#include "http/http_error.h"

namespace fovea {

const RequestParameters& RequestContext::parameters() {
  if (!parsed) parsed = std::make_shared<const RequestParameters>(request);
  return *parsed;
}

const Route& Router::Match::required() const {
  if (!path) throw HttpError(404, "Not Found");
  if (!route)
    throw HttpError(405, "The method is not allowed for the requested URL.",
                    {{"Allow", path->method}});
  return *route;
}

Router::Router(std::initializer_list<std::vector<Route>> apis) {
  for (const std::vector<Route>& routes : apis)
    routes_.insert(routes_.end(), routes.begin(), routes.end());
}

Router::Match Router::find(const HttpRequest& request) const {
  Match found;
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  for (const Route& route : routes_) {
    if (route.has_paths_below() ? !request.path.starts_with(route.path)
                                : request.path != route.path)
      continue;
    found.path = &route;
    if (method == route.method) found.route = &route;
  }
  return found;
}

}  // namespace fovea

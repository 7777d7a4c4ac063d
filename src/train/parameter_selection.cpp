#include "train/parameter_selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/edit_distance.h"
#include "base/utf8.h"

namespace fovea {
namespace {

constexpr size_t kSuggestions = 3;

// Names of parameters, and patterns for the parameters of a part and for those of the same kind.
std::set<std::string> candidates(const ParameterStore& store) {
  std::set<std::string> all;
  for (const ParameterStore::Parameter& p : store.all()) {
    all.insert(p.name);
    for (size_t at = p.name.find('/'); at != p.name.npos; at = p.name.find('/', at + 1)) {
      all.insert(p.name.substr(0, at) + "/*");
      all.insert("*" + p.name.substr(at));
    }
  }
  return all;
}

std::string most_similar(const ParameterStore& store, const std::string& pattern) {
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const std::string& name : candidates(store))
    ranked.emplace_back(edit_distance(pattern, name), name);
  std::ranges::sort(ranked);
  std::vector<std::string> best;
  for (size_t i = 0; i < std::min(kSuggestions, ranked.size()); ++i)
    best.push_back(ranked[i].second);
  return fmt::format("{}", fmt::join(best, ", "));
}

}  // namespace

bool fits_pattern(std::string_view name, std::string_view pattern) {
  size_t n = 0, p = 0, star = pattern.npos, resumed = 0;  // where to go on after the last `*`
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      resumed = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != pattern.npos) {
      p = star;
      n = ++resumed;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

std::vector<bool> select_parameters(const ParameterStore& store,
                                    const std::vector<std::string>& patterns, const char* setting) {
  std::vector<bool> selected(store.all().size(), false);
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (size_t i = 0; i < selected.size(); ++i) {
      if (!fits_pattern(store.all()[i].name, pattern)) continue;
      selected[i] = any = true;
    }
    const std::string shown = printable(pattern.substr(0, 200));
    check(any, ExitCode::data, setting, ": no parameter of the model fits '", shown,
          "'; similar are ", most_similar(store, shown),
          "; the names are those of the tensors in model.safetensors");
  }
  return selected;
}

std::vector<StoreRange> ranges_of(const ParameterStore& store, const std::vector<bool>& selected) {
  std::vector<StoreRange> ranges;
  for (size_t i = 0; i < selected.size(); ++i) {
    if (!selected[i]) continue;
    const ParameterStore::Parameter& p = store.all()[i];
    if (i == 0 || !selected[i - 1]) ranges.push_back({p.offset, 0});
    ranges.back().size += p.tensor.elements();
  }
  return ranges;
}

}  // namespace fovea

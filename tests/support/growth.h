#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "effort.h"
#include "thread_seconds.h"

namespace fovea::testing {

// A text of any size: a head, many copies of one part, and the same number of copies of another.
struct Pattern {
  std::string_view head, part, tail = {};

  std::string of_size(size_t bytes) const {
    const size_t times = bytes / std::max<size_t>(part.size() + tail.size(), 1) + 1;
    std::string text(head);
    for (size_t i = 0; i < times; ++i) text += part;
    for (size_t i = 0; i < times; ++i) text += tail;
    return text;
  }
};

using Reader = std::function<void(const std::string&)>;

// The minimum CPU time of this thread over several calls, because other programs only add time.
inline double least_seconds(const Reader& read, const std::string& text, int calls) {
  double least = std::numeric_limits<double>::max(), total = 0;
  for (int i = 0; (i < calls && total < 1) || (i < 500 && total < 0.002); ++i) {
    const double begin = thread_seconds();
    read(text);
    const double seconds = thread_seconds() - begin;
    least = std::min(least, seconds);
    total += seconds;
  }
  return least;
}

using TextOfSize = std::function<std::string(size_t bytes)>;

// Checks that a text of twice the size takes less than 2.5 times the CPU time, in one of three
// attempts. With noise, a later attempt passes, because it has more calls or a larger size.
// Quadratic cost always fails. `name` describes the text.
inline void expect_linear(const Reader& read, const TextOfSize& text, const std::string& name) {
  constexpr double kMost = 2.5;
  const size_t size = only_runs() ? 6'000 : 48'000;
  double ratio = 0;
  for (const auto& [bytes, calls] :
       {std::pair{size, 2}, std::pair{size, 6}, std::pair{2 * size, 10}}) {
    const double one = least_seconds(read, text(bytes), calls);
    const double two = least_seconds(read, text(2 * bytes), calls);
    ratio = two / std::max(one, 1e-9);
    if (ratio < kMost) return;
  }
  ADD_FAILURE() << name << ": twice the text takes " << ratio << " times as long";
}

inline void expect_linear(const Reader& read, const Pattern& pattern) {
  const auto printed = [](std::string_view text) {
    return ::testing::PrintToString(std::string(text));
  };
  expect_linear(
      read, [&](size_t bytes) { return pattern.of_size(bytes); },
      printed(pattern.head) + " + n × " + printed(pattern.part) + " + n × " +
          printed(pattern.tail));
}

}  // namespace fovea::testing

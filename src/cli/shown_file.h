#pragma once

#include <span>
#include <string>
#include <vector>

#include "decode/package.h"
#include "decode/search.h"

namespace fovea {

// A line of a file of pairs: a sentence, and its translation where it was given behind a tab.
struct GivenPair {
  std::string source, target;
  int64_t line = 1;  // of the file
};

// Exit::data where a line has more than one tab, or nothing before it; empty lines are left out.
std::vector<GivenPair> read_pairs(const std::string& path);

// The n-th of several files: "map.svg" becomes "map-7.svg". 0: the only one, whose name stays.
struct FileNumber {
  size_t number = 0;
  std::string in(const std::string& path) const;
};

// Writes a file whose bytes are there ("-": standard output) and says so.
void write_shown(const std::string& path, const std::string& bytes);

// A pair with its attention, as a page shows it.
struct SavedPair {
  std::string text, translation;
  std::vector<int32_t> source, target;  // with </s>
  std::vector<AttentionMap> maps;
  std::vector<BeamNode> tree;  // of the search; empty where the translation was given
};

// The page of the service in one file, about these pairs.
std::string shown_page(Package package, std::span<const SavedPair> pairs);

}  // namespace fovea

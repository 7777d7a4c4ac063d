#pragma once

#include <span>
#include <string>
#include <vector>

#include "decode/model_bundle.h"
#include "decode/search.h"

namespace fovea {

// A line of a file of sentence pairs. The translation is empty if the line has no tab.
struct InputPair {
  std::string source, target;
  int64_t line = 1;  // line number in the file
};

// Reads a file of pairs; skips empty lines. Throws ExitCode::data if a line has more than one tab
// or no text before the tab.
std::vector<InputPair> read_pairs(const std::string& path);

// The number of a file in a series: 7 turns "map.svg" into "map-7.svg". 0 is a single file, which
// keeps its name.
struct FileNumber {
  size_t number = 0;
  std::string in(const std::string& path) const;
};

// Writes a file ("-": standard output) and logs its path.
void write_result(const std::string& path, const std::string& bytes);

// A sentence pair of a page, with its attention.
struct SavedPair {
  std::string text, translation;
  std::vector<int32_t> source, target;  // with </s>
  std::vector<AttentionMap> maps;
  std::vector<BeamNode> tree;  // search tree; empty if the user gave the translation
};

// Returns the web page of `fovea serve` as one file that shows these pairs.
std::string pairs_page(ModelBundle bundle, std::span<const SavedPair> pairs);

}  // namespace fovea

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/served_model.h"
#include "support/table_model.h"

namespace fovea {

// A model that copies its input, letter by letter of a small alphabet, and aligns each word with
// itself. Each thread that scores a row calls `step`, which may throw.
template <class Table = TableModel>
ModelBundle echo_package(std::function<void()> step = nullptr) {
  std::vector<Vocabulary::Entry> letters;
  const std::string alphabet =
      "\u2581abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,!?'-()<>&;:/";
  for (size_t i = 0; i < alphabet.size(); i += i == 0 ? 3 : 1)
    letters.push_back({alphabet.substr(i, i == 0 ? 3 : 1), 1});
  const Vocabulary vocabulary = Vocabulary::from_entries(Segmentation::characters, letters);
  const int32_t words = vocabulary.size();
  auto model = std::make_unique<Table>(
      words, 400,
      [words, step](const TableModel::Words& read, const TableModel::Words& prefix) {
        if (step) step();
        TableModel::Row row(static_cast<size_t>(words), 0);
        const size_t next = std::min(prefix.size() - 1, read.size() - 1);
        row[static_cast<size_t>(read[next])] = 20;
        return row;
      },
      ElementType::f32);
  ModelConfig config;
  config.source_words = config.target_words = words;
  return {"echo", config, std::move(model), vocabulary, vocabulary};
}

// An echo model with closed batches: no sentence can join a running batch.
inline std::shared_ptr<const ServedModel> closed_echo_model(const std::string& source,
                                                            const std::string& target) {
  return std::make_shared<ServedModel>("echo", source, target, echo_package<ClosedTableModel>());
}

inline std::shared_ptr<const ServedModel> echo_model(const std::string& source,
                                                     const std::string& target,
                                                     std::function<void()> step = nullptr) {
  return std::make_shared<ServedModel>("echo", source, target, echo_package(std::move(step)));
}

}  // namespace fovea

#include "decode/embeddings.h"

#include "base/check.h"
#include "base/utf8.h"
#include "text/pieces.h"

namespace fovea {

WordVectors embeddings_of(const Package& package, Side side) {
  const bool source = side == Side::source;
  const Vocabulary& vocabulary = source ? package.source : package.target;
  const ParameterStore::Parameter* table = nullptr;
  for (const char* name : {source ? "source/E" : "target/E", source ? "target/E" : "source/E"})
    if (!table) table = package.model->parameters().find(name);
  check(table && table->tensor.rank() == 2 && table->tensor.size(0) == vocabulary.size(),
        Exit::model, package.directory, ": no table of embeddings for the ",
        source ? "source" : "target", " side");
  WordVectors vectors(table->tensor.size(1));
  const std::vector<double> values = table->tensor.values();
  std::vector<float> row(static_cast<size_t>(vectors.size()));
  for (int32_t id = kSpecials; id < vocabulary.size(); ++id) {
    for (size_t j = 0; j < row.size(); ++j)
      row[j] = static_cast<float>(values[static_cast<size_t>(id) * row.size() + j]);
    vectors.add(vocabulary.name(id), row);
  }
  return vectors;
}

int64_t find_typed(const WordVectors& vectors, const std::string& typed) {
  for (const std::string& name : {typed, nfc(typed), std::string(kBlank) + typed})
    if (const int64_t at = vectors.find(name); at >= 0) return at;
  return -1;
}

}  // namespace fovea

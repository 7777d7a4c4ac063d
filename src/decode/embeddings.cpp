#include "decode/embeddings.h"

#include "base/check.h"
#include "base/utf8.h"
#include "text/tokenization.h"

namespace fovea {

WordVectors embeddings_of(const ModelBundle& bundle, LanguageSide side) {
  const bool source = side == LanguageSide::source;
  const Vocabulary& vocabulary = source ? bundle.source : bundle.target;
  const ParameterStore::Parameter* table = nullptr;
  for (const char* name : {source ? "source/E" : "target/E", source ? "target/E" : "source/E"})
    if (!table) table = bundle.model->parameters().find(name);
  check(table && table->tensor.rank() == 2 && table->tensor.size(0) == vocabulary.size(),
        ExitCode::model, bundle.directory, ": the model has no embedding table for the ",
        source ? "source" : "target", " side; choose another model");
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

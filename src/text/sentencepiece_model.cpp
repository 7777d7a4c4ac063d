#include "text/sentencepiece_model.h"

#include <sentencepiece_processor.h>

#include <exception>

#include "base/check.h"

// The library exports the function below, but no installed header declares it.
namespace sentencepiece::logging {
void SetMinLogLevel(int level);
}

namespace fovea {

struct SentencePieceModel::Library {
  sentencepiece::SentencePieceProcessor processor;
};

SentencePieceModel::SentencePieceModel(std::string_view bytes, const std::string& name)
    : library_(std::make_unique<Library>()) {
  constexpr int kFatal = 3;
  sentencepiece::logging::SetMinLogLevel(kFatal);
  try {
    const auto status = library_->processor.LoadFromSerializedProto(bytes);
    check(status.ok(), ExitCode::model, name,
          ": cannot load the SentencePiece model: ", status.message(),
          "; train the vocabulary again");
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    fail(ExitCode::model, name, ": cannot load the SentencePiece model: ", e.what(),
         "; train the vocabulary again");
  }
}

SentencePieceModel::~SentencePieceModel() = default;

std::vector<int32_t> SentencePieceModel::encode(std::string_view line) const {
  std::vector<int> ids;
  library_->processor.Encode(line, &ids).IgnoreError();
  return ids;
}

std::vector<SentencePieceModel::Token> SentencePieceModel::tokens(std::string_view line) const {
  const auto text = library_->processor.EncodeAsImmutableProto(line);
  std::vector<Token> tokens;
  for (const auto& piece : text.pieces())
    tokens.push_back({piece.piece(), static_cast<int32_t>(piece.id()), piece.end()});
  return tokens;
}

}  // namespace fovea

// Any vocabulary file is refused as a bad model or is usable. No text gives an id out of range or a
// control piece. Decoding gives one line of UTF-8, which is the encoded text if no piece is
// unknown. The first byte selects the kind of file.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/check.h"
#include "base/utf8.h"
#include "text/foreign_vocabulary.h"
#include "text/vocabulary.h"

namespace {

using namespace fovea;

void require(bool ok) {
  if (!ok) std::abort();
}

void use(const Vocabulary& vocabulary, std::string_view text) {
  const std::vector<int32_t> ids = vocabulary.encode(text);
  for (const int32_t id : ids) require(id >= kUnk && id < vocabulary.size());
  const std::string decoded = vocabulary.decode(ids);
  require(is_utf8(decoded) && decoded.find_first_of("\n\r") == decoded.npos);
  if (std::find(ids.begin(), ids.end(), kUnk) == ids.end())
    require(decoded == vocabulary.normalise(text));
  require(vocabulary.words_of(ids).size() == ids.size());
  vocabulary.words(ids);
}

// Uses the files of other programs: tokenizer.json, codes, dict.txt, vocab.json and vocab.yml.
void use_foreign(int kind, std::string_view bytes) {
  const std::string_view text = bytes.substr(0, 200);
  if (kind == 0) {
    const TokenizerPieces pieces = tokenizer_pieces(bytes, "f");
    const PieceOrder order = order_pieces(pieces.names, {}, pieces.controls, "f");
    use(import_tokenizer_json(bytes, order, "f"), text);
  } else if (kind == 1) {
    const std::vector<std::string> names{"a", "b@@", "ab", "the"};
    use(import_subword_nmt(bytes, order_pieces(names, {}, {}, "f"), "f"), text);
  } else if (kind == 2) {
    const PieceOrder order = order_pieces(fairseq_names(bytes, "f"), {}, {}, "f");
    use(import_pieces(order, "f"), text);
  } else if (kind == 3) {
    json_names(bytes, "f");
  } else {
    marian_names(bytes, "f");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    if (data[0] % 8 > 2) {
      use_foreign(data[0] % 8 - 3, bytes);
      return 0;
    }
    const Vocabulary vocabulary = data[0] % 8 == 1
                                      ? Vocabulary::parse_text(bytes, "vocab.txt")
                                      : Vocabulary::parse_sentencepiece(bytes, "vocab.spm");
    use(vocabulary, bytes.substr(0, 200));
    use(vocabulary, "the <s> e\u0301 \u2581 \uFB01\u00BD @@ b@@ b");
  } catch (const Error& error) {
    require(error.code() == ExitCode::model);
  }
  return 0;
}

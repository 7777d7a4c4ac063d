#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "base/sip_hash.h"
#include "base/utf8.h"
#include "text/foreign_text.h"
#include "text/nested_json.h"
#include "text/sentencepiece_write.h"
#include "text/vocabulary_table.h"

namespace fovea {
namespace {

using nlohmann::json;

constexpr int64_t kMaxPieces = 1 << 20;
constexpr size_t kMaxGap = 1024;  // ids without a piece, beyond the number of pieces

// A tokenizer.json and access to its values with errors that name the file.
class TokenizerFile {
 public:
  TokenizerFile(std::string_view text, const std::string& name)
      : name_(name), root_(read_nested_json(text, name)) {
    if (!root_.is_object()) refuse("the file has no object");
  }

  [[noreturn]] void refuse(const std::string& problem) const {
    fail(ExitCode::model, name_, ": ", problem,
         "; import the SentencePiece model of this tokenizer if it has one");
  }

  const json& root() const { return root_; }

  // A member, or null if it is absent.
  const json& member(const json& object, const char* key) const {
    static const json null;
    if (!object.is_object()) refuse(std::string("expected an object with '") + key + "'");
    const auto found = object.find(key);
    return found == object.end() ? null : *found;
  }

  const json& list(const json& object, const char* key) const {
    const json& value = member(object, key);
    if (!value.is_array()) refuse(std::string("'") + key + "' is not a list");
    return value;
  }

  std::string text(const json& object, const char* key) const {
    const json& value = member(object, key);
    if (!value.is_string() && !value.is_null())
      refuse(std::string("'") + key + "' is not a string");
    return value.is_null() ? "" : value.get<std::string>();
  }

  bool flag(const json& object, const char* key, bool absent) const {
    const json& value = member(object, key);
    return value.is_boolean() ? value.get<bool>() : absent;
  }

  int64_t id(const json& value) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() >= kMaxPieces)
      refuse("an id is not a number from 0 to 1,048,575");
    return value.get<int64_t>();
  }

  // The components of a Sequence, or the one component; none for null.
  std::vector<const json*> components(const char* key, const char* members) const {
    const json& component = member(root_, key);
    if (component.is_null()) return {};
    if (text(component, "type") != "Sequence") return {&component};
    std::vector<const json*> all;
    for (const json& part : list(component, members)) all.push_back(&part);
    return all;
  }

 private:
  const std::string& name_;
  json root_;
};

std::string decode_base64(std::string_view text, const TokenizerFile& file) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  uint32_t group = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t digit = kDigits.find(text[i]);
    if (digit == kDigits.npos) file.refuse("'precompiled_charsmap' is not in base 64");
    group = group << 6 | static_cast<uint32_t>(digit);
    const int bits = static_cast<int>(6 * (i % 4 + 1)) % 8;
    if (i % 4 > 0) bytes += static_cast<char>(group >> bits);
  }
  return bytes;
}

// How a tokenizer.json prepares text, in the terms of SentencePiece.
struct Preparation {
  bool byte_level = false, prefix_blank = false;  // ByteLevel and its prefix
  bool metaspace = false, split = false;          // Metaspace, and no piece across words
  bool add_dummy_prefix = false, remove_extra_whitespaces = false;
  std::string character_map;
};

void read_normalizer(const TokenizerFile& file, Preparation& preparation) {
  for (const json* part : file.components("normalizer", "normalizers")) {
    const std::string type = file.text(*part, "type");
    if (type == "Precompiled") {
      preparation.character_map = decode_base64(file.text(*part, "precompiled_charsmap"), file);
    } else if (type == "Replace" && file.text(file.member(*part, "pattern"), "Regex") == " {2,}") {
      preparation.remove_extra_whitespaces = true;  // its content is " " or "▁"
    } else if (type != "Strip") {
      file.refuse("the normalizer '" + printable(type) +
                  "' is not supported, expected Precompiled, Replace of blanks, or Strip");
    }
  }
}

void read_metaspace(const TokenizerFile& file, const json& part, Preparation& preparation) {
  if (file.text(part, "replacement") != kBlank)
    file.refuse("the replacement of Metaspace is not \u2581");
  const std::string scheme = file.text(part, "prepend_scheme");
  preparation.add_dummy_prefix =
      scheme.empty() ? file.flag(part, "add_prefix_space", true) : scheme != "never";
  preparation.split = file.flag(part, "split", true);
  preparation.metaspace = true;
}

Preparation read_preparation(const TokenizerFile& file) {
  Preparation preparation;
  read_normalizer(file, preparation);
  bool words = false;
  for (const json* part : file.components("pre_tokenizer", "pretokenizers")) {
    const std::string type = file.text(*part, "type");
    if (type == "Metaspace") {
      read_metaspace(file, *part, preparation);
    } else if (type == "WhitespaceSplit") {
      words = preparation.remove_extra_whitespaces = true;
    } else if (type == "ByteLevel" && file.flag(*part, "use_regex", true)) {
      preparation.byte_level = true;
      preparation.prefix_blank = file.flag(*part, "add_prefix_space", true);
    } else {
      file.refuse("the pre_tokenizer '" + printable(type) +
                  "' is not supported, expected Metaspace or ByteLevel");
    }
  }
  if (preparation.byte_level == preparation.metaspace || (words && !preparation.add_dummy_prefix))
    file.refuse("the pre_tokenizer is neither Metaspace with a prefix nor ByteLevel");
  if (preparation.byte_level && !file.member(file.root(), "normalizer").is_null())
    file.refuse("ByteLevel with a normalizer is not supported");
  return preparation;
}

bool is_special(const TokenizerFile& file, const json& token) {
  return file.flag(token, "special", false);
}

}  // namespace

TokenizerPieces tokenizer_pieces(std::string_view text, const std::string& name) {
  const TokenizerFile file(text, name);
  const json& vocab = file.member(file.member(file.root(), "model"), "vocab");
  TokenizerPieces pieces;
  size_t count = 0;
  const auto put = [&](const std::string& piece, int64_t id) {
    if (piece.size() > Vocabulary::kMaxPieceBytes)
      file.refuse("piece " + std::to_string(id) + " is longer than 1,024 bytes");
    const auto at = static_cast<size_t>(id);
    if (at >= pieces.names.size()) pieces.names.resize(at + 1);
    if (!pieces.names[at].empty() && pieces.names[at] != piece)
      file.refuse("two pieces have the id " + std::to_string(id));
    pieces.names[at] = piece;
    ++count;
  };
  if (vocab.is_object()) {
    for (const auto& [piece, id] : vocab.items()) put(piece, file.id(id));
  } else if (vocab.is_array() && vocab.size() <= kMaxPieces) {
    for (const json& entry : vocab) {
      if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string())
        file.refuse("an entry of 'vocab' is not a piece and its score");
      put(entry[0].get<std::string>(), static_cast<int64_t>(pieces.names.size()));
    }
  } else {
    file.refuse("the model has no 'vocab' of at most 1,048,576 pieces");
  }
  const json& added = file.member(file.root(), "added_tokens");
  if (!added.is_null() && !added.is_array()) file.refuse("'added_tokens' is not a list");
  for (const json& token : added) {
    const std::string piece = file.text(token, "content");
    put(piece, file.id(file.member(token, "id")));
    if (is_special(file, token)) pieces.controls.push_back(piece);
  }
  if (pieces.names.size() > 2 * count + kMaxGap) file.refuse("most ids have no piece");
  return pieces;
}

namespace {

std::vector<PairMerges::Merge> read_merges(const TokenizerFile& file, const json& model) {
  const json& vocab = file.member(model, "vocab");
  if (!vocab.is_object()) file.refuse("the 'vocab' of BPE is not an object");
  std::vector<PairMerges::Merge> merges;
  for (const json& entry : file.list(model, "merges")) {
    PairMerges::Merge merge;
    if (entry.is_string()) {
      const auto& text = entry.get_ref<const std::string&>();
      const size_t blank = text.find(' ');
      merge.left = text.substr(0, blank);
      merge.right = blank == text.npos ? "" : text.substr(blank + 1);
    } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
               entry[1].is_string()) {
      merge = {entry[0].get<std::string>(), entry[1].get<std::string>()};
    }
    if (merge.left.empty() || merge.right.empty() || !vocab.contains(merge.left + merge.right))
      file.refuse("merge " + std::to_string(merges.size()) +
                  " is not two pieces that form a piece of 'vocab'");
    merges.push_back(std::move(merge));
  }
  return merges;
}

void check_bpe(const TokenizerFile& file, const json& model) {
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!file.text(model, key).empty())
      file.refuse(std::string("BPE with '") + key + "' is not supported");
  if (file.flag(model, "ignore_merges", false))
    file.refuse("BPE with 'ignore_merges' is not supported");
  const json& dropout = file.member(model, "dropout");
  if (!dropout.is_null() && dropout != 0) file.refuse("BPE with 'dropout' is not supported");
}

Vocabulary import_byte_level(const TokenizerFile& file, const Preparation& preparation,
                             const PieceOrder& order, const std::string& name) {
  const json& model = file.member(file.root(), "model");
  ForeignSegmentation segmentation{ForeignCut::byte_bpe, false, preparation.prefix_blank};
  segmentation.merges =
      std::make_shared<const PairMerges>(read_merges(file, model), MergeOrder::queue);
  for (int byte = 0; byte < 256; ++byte) {
    const std::string character = byte_characters(std::string(1, static_cast<char>(byte)));
    if (!file.member(model, "vocab").contains(character))
      file.refuse("'vocab' has no piece '" + character + "' for byte " + std::to_string(byte));
  }
  return Vocabulary::parse_text(foreign_text(order, segmentation), name);
}

using Ranks = std::unordered_map<std::string, size_t, TableHash>;

// The ranks of the pieces that merges form. Refuses merges that SentencePiece would not do in the
// same order: those of a piece are together in the list, and are all its divisions into two pieces.
Ranks piece_ranks(const TokenizerFile& file, const json& model) {
  const std::vector<PairMerges::Merge> merges = read_merges(file, model);
  const json& vocab = file.member(model, "vocab");
  Ranks ranks;
  std::string last;
  std::unordered_map<std::string, size_t, TableHash> divisions;
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string piece = merges[i].left + merges[i].right;
    if (piece != last && !ranks.emplace(piece, i).second)
      file.refuse("the merges of '" + piece + "' are not together: SentencePiece cannot do them");
    ++divisions[piece];
    last = piece;
  }
  for (const auto& [piece, count] : divisions) {
    size_t expected = 0;
    for (size_t n = 1; n < piece.size(); ++n)
      expected += vocab.contains(piece.substr(0, n)) && vocab.contains(piece.substr(n));
    if (count != expected)
      file.refuse("the merges of '" + piece +
                  "' are not all its divisions into two pieces: " + "SentencePiece cannot do them");
  }
  return ranks;
}

// The parts of a SentencePiece model for pieces with scores. `texts` outlive the parts.
SentencePieceParts parts_of(const TokenizerFile& file, const Preparation& preparation,
                            const std::vector<std::string>& texts, int64_t unk) {
  const json& model = file.member(file.root(), "model");
  std::unordered_set<std::string, TableHash> special;
  for (const json& token : file.member(file.root(), "added_tokens"))
    if (is_special(file, token)) special.insert(file.text(token, "content"));
  SentencePieceParts parts;
  parts.character_map = preparation.character_map;
  parts.byte_fallback = file.flag(model, "byte_fallback", false);
  parts.add_dummy_prefix = preparation.add_dummy_prefix;
  parts.remove_extra_whitespaces = preparation.remove_extra_whitespaces;
  for (size_t id = 0; id < texts.size(); ++id) {
    PieceType type = PieceType::normal;
    if (static_cast<int64_t>(id) == unk) {
      type = PieceType::unknown;
    } else if (special.contains(texts[id])) {
      type = PieceType::control;
    } else if (parts.byte_fallback && byte_of(texts[id]) >= 0) {
      type = PieceType::byte;
    } else if (preparation.split && texts[id].find(kBlank, 1) != std::string::npos) {
      type = PieceType::unused;  // text is split before each ▁
    }
    parts.pieces.push_back({texts[id], 0, type});
  }
  return parts;
}

Vocabulary import_unigram(const TokenizerFile& file, const Preparation& preparation,
                          const PieceOrder& order, const std::string& name) {
  const json& model = file.member(file.root(), "model");
  const json& unk = file.member(model, "unk_id");
  if (unk.is_null()) file.refuse("Unigram without 'unk_id' is not supported");
  std::vector<std::string> texts;
  for (const json& entry : file.list(model, "vocab")) texts.push_back(entry[0].get<std::string>());
  SentencePieceParts parts = parts_of(file, preparation, texts, file.id(unk));
  for (size_t id = 0; id < texts.size(); ++id) {
    const json& score = file.list(model, "vocab")[id][1];
    if (!score.is_number()) file.refuse("the score of '" + texts[id] + "' is not a number");
    parts.pieces[id].score = score.get<float>();
  }
  return import_sentencepiece(write_sentencepiece(parts), order, name);
}

Vocabulary import_bpe(const TokenizerFile& file, const Preparation& preparation,
                      const PieceOrder& order, const std::string& name) {
  const json& model = file.member(file.root(), "model");
  if (!file.flag(model, "fuse_unk", false) && !file.flag(model, "byte_fallback", false))
    file.refuse("BPE with Metaspace needs 'fuse_unk' or 'byte_fallback'");
  const Ranks ranks = piece_ranks(file, model);
  const std::string unk = file.text(model, "unk_token");
  std::vector<std::string> texts;
  for (const auto& [piece, id] : file.member(model, "vocab").items()) texts.push_back(piece);
  const auto unk_at = std::ranges::find(texts, unk) - texts.begin();
  SentencePieceParts parts = parts_of(file, preparation, texts, unk_at);
  parts.model = SentencePieceParts::Model::bpe;
  for (StoredPiece& piece : parts.pieces) {
    const auto rank = ranks.find(std::string(piece.text));
    if (rank != ranks.end()) {
      piece.score = -static_cast<float>(rank->second + 1);
    } else if (piece.type == PieceType::normal && count_code_points(piece.text) > 1) {
      piece.type = PieceType::control;  // no merge forms it
    }
  }
  return import_sentencepiece(write_sentencepiece(parts), order, name);
}

}  // namespace

Vocabulary import_tokenizer_json(std::string_view text, const PieceOrder& order,
                                 const std::string& name) {
  const TokenizerFile file(text, name);
  tokenizer_pieces(text, name);  // checks the vocabulary
  const json& model = file.member(file.root(), "model");
  const std::string type = file.text(model, "type");
  if (type != "Unigram" && type != "BPE")
    file.refuse("the model '" + printable(type) + "' is not supported, expected Unigram or BPE");
  const Preparation preparation = read_preparation(file);
  if (type == "BPE") check_bpe(file, model);
  if (preparation.byte_level && type == "BPE")
    return import_byte_level(file, preparation, order, name);
  if (preparation.byte_level) file.refuse("Unigram with ByteLevel is not supported");
  return type == "BPE" ? import_bpe(file, preparation, order, name)
                       : import_unigram(file, preparation, order, name);
}

}  // namespace fovea

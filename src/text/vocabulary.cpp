#include "text/vocabulary.h"

#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "base/check.h"
#include "base/files.h"
#include "base/utf8.h"
#include "text/tokenization.h"
#include "text/vocabulary_table.h"
#include "text/word_breaks.h"

namespace fovea {
namespace {

constexpr std::string_view kMagic = "fovea-vocabulary\t1\t";
constexpr size_t kMaxFile = size_t{1} << 30;
constexpr int32_t kMaxSize = 1 << 24;
constexpr Segmentation kTextSegmentations[] = {Segmentation::words, Segmentation::characters,
                                               Segmentation::pieces, Segmentation::tokens};

uint64_t hash_bytes(uint64_t hash, std::string_view bytes) {  // FNV-1a
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

}  // namespace

const char* name_of(Segmentation segmentation) {
  switch (segmentation) {
    case Segmentation::sentencepiece:
      return "sentencepiece";
    case Segmentation::words:
      return "words";
    case Segmentation::characters:
      return "characters";
    case Segmentation::pieces:
      return "pieces";
    case Segmentation::tokens:
      return "tokens";
    case Segmentation::subwords:
      return "subword-nmt";
    case Segmentation::bytes:
      return "byte-bpe";
  }
  return "";
}

namespace {

// The error in a piece of a text vocabulary; nullptr if it is valid.
const char* piece_error(Segmentation segmentation, std::string_view piece) {
  if (piece.empty()) return "the piece is empty";
  if (piece.size() > Vocabulary::kMaxPieceBytes) return "the piece is longer than 1,024 bytes";
  if (!is_utf8(piece)) return "the piece is not UTF-8";
  if (split_words(piece) != std::vector{piece}) return "the piece contains a blank";
  for (const std::string_view special : kSpecialNames)
    if (piece == special) return "the piece has the name of a special piece";
  if (segmentation == Segmentation::characters && count_code_points(piece) != 1)
    return "the piece is more than one character";
  return nullptr;
}

Segmentation read_header(std::string_view line, const std::string& name) {
  for (const Segmentation segmentation : kTextSegmentations)
    if (line.starts_with(kMagic) && line.substr(kMagic.size()) == name_of(segmentation))
      return segmentation;
  fail(ExitCode::model, name, ":1: expected 'fovea-vocabulary', 1 and one of words, characters, ",
       "pieces, tokens, separated by tabs; create the file with 'fovea vocab'");
}

}  // namespace

Vocabulary::Vocabulary() {
  static const auto specials = std::make_shared<const Table>(Segmentation::words);
  table_ = specials;
}

Vocabulary::Vocabulary(std::shared_ptr<const Table> table) : table_(std::move(table)) {}

Vocabulary Vocabulary::load(const std::string& path) {
  const std::string bytes = read_file(path, kMaxFile, ExitCode::model);
  const bool sentencepiece = path.ends_with(".spm") || path.ends_with(".model");
  return sentencepiece ? parse_sentencepiece(bytes, path) : parse_text(bytes, path);
}

Vocabulary Vocabulary::parse_text(std::string_view bytes, const std::string& name) {
  check(!bytes.empty(), ExitCode::model, name,
        ":1: the file is empty; create it with 'fovea vocab'");
  if (bytes.starts_with(kForeignMagic)) return parse_foreign_text(bytes, name);
  std::shared_ptr<Table> table;
  for (int64_t line_number = 1; !bytes.empty(); ++line_number) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!table) {
      table = std::make_shared<Table>(read_header(line, name));
      continue;
    }
    const auto fail_line = [&](const char* found) {
      fail(ExitCode::model, name, ":", line_number, ": ", found,
           "; create the file again with 'fovea vocab'");
    };
    const size_t tab = line.find('\t');
    if (tab == line.npos) fail_line("expected a piece, a tab and a count");
    int64_t count = -1;
    const char* last = line.data() + line.size();
    const auto parsed = std::from_chars(line.data() + tab + 1, last, count);
    if (parsed.ec != std::errc() || parsed.ptr != last || count < 0)
      fail_line("the count is not a whole number");
    const std::string_view piece = line.substr(0, tab);
    if (const char* error = piece_error(table->segmentation, piece)) fail_line(error);
    if (!table->append(piece, count)) fail_line("the piece occurs twice");
    if (table->size() > kMaxSize) fail_line("more than 16,777,216 pieces");
  }
  check(table->size() > kSpecials, ExitCode::model, name,
        ":1: the file has no pieces; create it again with 'fovea vocab'");
  return Vocabulary(std::move(table));
}

Vocabulary Vocabulary::parse_sentencepiece(std::string_view bytes, const std::string& name) {
  const SentencePieceFile file = check_sentencepiece(bytes, name);
  const std::vector<StoredPiece>& pieces = file.pieces;
  auto table = std::make_shared<Table>(Segmentation::sentencepiece);
  if (file.order.empty()) {
    table->roles.assign(pieces.size(), PieceRole::text);
    for (size_t id = kSpecials; id < pieces.size(); ++id) {
      table->append(pieces[id].text, 0);
      if (pieces[id].type == PieceType::byte) table->roles[id] = PieceRole::byte;
    }
  } else {
    for (size_t id = 0; id < file.order.size(); ++id) {
      if (id >= kSpecials) table->append(file.order[id].text, 0);
      table->roles.push_back(file.order[id].role);
    }
    for (const StoredPiece& piece : pieces) {
      const bool control = piece.type == PieceType::control;
      const int32_t id = control ? kUnk : table->text_id(piece.text);
      table->library_ids.push_back(piece.type == PieceType::unknown ? -1 : id);
    }
  }
  table->imported = !file.order.empty();
  table->model = std::make_unique<SentencePieceModel>(bytes, name);
  table->file = bytes;
  return Vocabulary(std::move(table));
}

Vocabulary Vocabulary::from_entries(Segmentation segmentation, const std::vector<Entry>& entries) {
  check(segmentation != Segmentation::sentencepiece, ExitCode::usage,
        "a SentencePiece model cannot be created from a list of pieces");
  auto table = std::make_shared<Table>(segmentation);
  for (const Entry& entry : entries) {
    const char* error = piece_error(segmentation, entry.piece);
    if (!error && !table->append(entry.piece, entry.count)) error = "the piece occurs twice";
    check(!error, ExitCode::data, "piece '", entry.piece.substr(0, 80), "': ", error ? error : "");
  }
  return Vocabulary(std::move(table));
}

void Vocabulary::save(const std::string& path) const {
  if (table_->has_tokens()) return write_atomically(path, table_->file);
  write_atomically(path, [&](AtomicFile& file) {
    file.write(std::string(kMagic) + name_of(cut()) + "\n");
    for (int32_t id = kSpecials; id < size(); ++id)
      file.write(std::string(name(id)) + "\t" + std::to_string(count(id)) + "\n");
  });
}

const char* Vocabulary::extension() const {
  return cut() == Segmentation::sentencepiece ? ".spm" : ".txt";
}

Segmentation Vocabulary::cut() const { return table_->segmentation; }
int32_t Vocabulary::size() const { return table_->size(); }

std::string_view Vocabulary::name(int32_t id) const {
  return table_->name(id >= 0 && id < size() ? id : kUnk);
}

int64_t Vocabulary::count(int32_t id) const {
  return id >= 0 && id < size() ? table_->counts[id] : 0;
}

int32_t Vocabulary::id(std::string_view piece) const {
  const int32_t id = table_->slots[table_->slot_of(piece)];
  return id < 0 ? kUnk : id;
}

std::vector<int32_t> Vocabulary::encode(std::string_view line) const {
  const std::string text = prepare(line);
  std::vector<int32_t> ids;
  if (table_->has_tokens()) return table_->encode(table_->blanks(break_runs(text)));
  const auto pieces = split(cut(), text);
  ids.reserve(pieces.size());
  for (const std::string_view piece : pieces) ids.push_back(table_->find(piece));
  return ids;
}

namespace {

std::vector<std::string> texts_of(const std::vector<SentencePieceModel::Token>& tokens) {
  std::vector<std::string> texts;
  for (const auto& token : tokens) texts.push_back(token.text);
  return texts;
}

}  // namespace

std::vector<std::string> Vocabulary::spelt(std::string_view line) const {
  if (cut() == Segmentation::sentencepiece) return pieces(encode(line));
  if (table_->has_tokens()) return texts_of(table_->tokens(prepare(line)));
  const std::string text = canonical(line);
  std::vector<std::string> result;
  for (const std::string_view piece : split(cut(), text)) result.emplace_back(piece);
  return result;
}

namespace {

constexpr size_t kMostExamples = 5;

void add_example(VocabularyCoverage& coverage, std::string_view unit) {
  if (coverage.examples.size() < kMostExamples && std::ranges::count(coverage.examples, unit) == 0)
    coverage.examples.emplace_back(unit);
}

void add_missing(VocabularyCoverage& coverage, std::string_view unit) {
  coverage.missing.emplace_back(unit);
  add_example(coverage, unit);
}

// Counts the characters that the bytes of consecutive byte pieces form, and clears `bytes`.
void add_spelt(VocabularyCoverage& coverage, std::string& bytes) {
  for (auto at = code_points(bytes).begin(); at != code_points(bytes).end(); ++at) {
    ++coverage.units;
    ++coverage.spelt;
    add_missing(coverage, std::string_view(bytes).substr(at.offset(), at.length()));
  }
  bytes.clear();
}

void add_characters(VocabularyCoverage& coverage, std::string_view text, PieceRole role) {
  for (auto at = code_points(text).begin(); at != code_points(text).end(); ++at) {
    const std::string_view character = text.substr(at.offset(), at.length());
    if (character == kBlank) continue;
    ++coverage.units;
    if (role != PieceRole::unknown) continue;
    ++coverage.unknown;
    add_missing(coverage, character);
  }
}

}  // namespace

void VocabularyCoverage::add(const VocabularyCoverage& other) {
  units += other.units;
  unknown += other.unknown;
  spelt += other.spelt;
  for (const std::string& example : other.examples) add_example(*this, example);
}

bool Vocabulary::has_whole_words() const {
  return cut() != Segmentation::sentencepiece && cut() != Segmentation::characters &&
         cut() != Segmentation::subwords && cut() != Segmentation::bytes;
}

VocabularyCoverage Vocabulary::coverage(std::string_view line) const {
  VocabularyCoverage result;
  const std::string text = prepare(line);
  if (table_->has_tokens() && !has_whole_words()) {
    std::string bytes;
    for (const auto& token : table_->tokens(break_runs(text))) {
      const PieceText piece_text = table_->piece_text(token.id);
      if (piece_text.role == PieceRole::byte) {
        bytes += static_cast<char>(piece_text.byte);
        continue;
      }
      add_spelt(result, bytes);
      add_characters(result, token.text, piece_text.role);
    }
    add_spelt(result, bytes);
    return result;
  }
  for (const std::string_view piece : split(cut(), text)) {
    if (piece == kBlank) continue;
    ++result.units;
    if (table_->find(piece) != kUnk) continue;
    ++result.unknown;
    add_missing(result, piece);
  }
  return result;
}

std::string Vocabulary::normalise(std::string_view line) const {
  const std::string text = prepare(line);
  std::vector<PieceText> pieces;
  if (table_->has_tokens()) {
    const auto tokens = table_->tokens(table_->blanks(break_runs(text)));
    for (const auto& token : tokens) {
      PieceText piece_text = table_->piece_text(token.id);
      if (piece_text.role == PieceRole::unknown) piece_text = {token.text, PieceRole::text};
      pieces.push_back(piece_text);
    }
    return join(cut(), pieces);
  }
  for (const std::string_view piece : split(cut(), text))
    pieces.push_back({piece, PieceRole::text});
  return join(cut(), pieces);
}

std::vector<std::string> Vocabulary::pieces(std::span<const int32_t> ids) const {
  std::vector<std::string> result;
  result.reserve(ids.size());
  for (const int32_t id : ids) result.emplace_back(name(id));
  return result;
}

std::string Vocabulary::decode(std::span<const int32_t> ids) const {
  return join(cut(), table_->piece_text(ids));
}

uint64_t Vocabulary::fingerprint() const {
  uint64_t hash = hash_bytes(0xCBF29CE484222325u, name_of(cut()));
  for (int32_t id = 0; id < size(); ++id) {
    hash = hash_bytes(hash, name(id));
    hash = hash_bytes(hash, std::string_view("\0", 1));
  }
  return hash_bytes(hash, table_->file);
}

}  // namespace fovea

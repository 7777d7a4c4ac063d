#include "text/vocabulary.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "base/check.h"
#include "base/files.h"
#include "base/utf8.h"
#include "text/pieces.h"
#include "text/vocabulary_table.h"
#include "text/word_breaks.h"

namespace fovea {
namespace {

constexpr std::string_view kMagic = "fovea-vocabulary\t1\t";
constexpr size_t kMaxFile = size_t{1} << 30;
constexpr int32_t kMaxSize = 1 << 24;
constexpr Cut kTextCuts[] = {Cut::words, Cut::characters, Cut::pieces, Cut::tokens};

uint64_t hash_bytes(uint64_t hash, std::string_view bytes) {  // FNV-1a
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

}  // namespace

const char* name_of(Cut cut) {
  switch (cut) {
    case Cut::sentencepiece:
      return "sentencepiece";
    case Cut::words:
      return "words";
    case Cut::characters:
      return "characters";
    case Cut::pieces:
      return "pieces";
    case Cut::tokens:
      return "tokens";
  }
  return "";
}

namespace {

// What is wrong with a piece of a word, character or ready-cut vocabulary; nullptr if nothing.
const char* fault_of(Cut cut, std::string_view piece) {
  if (piece.empty()) return "the piece is empty";
  if (piece.size() > Vocabulary::kMaxPieceBytes) return "the piece is longer than 1,024 bytes";
  if (!is_utf8(piece)) return "the piece is not UTF-8";
  if (split_words(piece) != std::vector{piece}) return "the piece contains a blank";
  for (const std::string_view special : kSpecialNames)
    if (piece == special) return "the piece has the name of a special one";
  if (cut == Cut::characters && count_code_points(piece) != 1)
    return "the piece is more than one character";
  return nullptr;
}

Cut read_header(std::string_view line, const std::string& name) {
  for (const Cut cut : kTextCuts)
    if (line.starts_with(kMagic) && line.substr(kMagic.size()) == name_of(cut)) return cut;
  fail(Exit::model, name, ":1: expected 'fovea-vocabulary', 1 and one of words, characters, ",
       "pieces, tokens, separated by tabs; make the file with 'fovea vocab'");
}

}  // namespace

Vocabulary::Vocabulary() {
  static const auto specials = std::make_shared<const Table>(Cut::words);
  table_ = specials;
}

Vocabulary::Vocabulary(std::shared_ptr<const Table> table) : table_(std::move(table)) {}

Vocabulary Vocabulary::load(const std::string& path) {
  const std::string bytes = read_file(path, kMaxFile, Exit::model);
  const bool sentencepiece = path.ends_with(".spm") || path.ends_with(".model");
  return sentencepiece ? parse_sentencepiece(bytes, path) : parse_text(bytes, path);
}

Vocabulary Vocabulary::parse_text(std::string_view bytes, const std::string& name) {
  check(!bytes.empty(), Exit::model, name, ":1: the file is empty; make it with 'fovea vocab'");
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
    const auto refuse = [&](const char* found) {
      fail(Exit::model, name, ":", line_number, ": ", found, "; make the file again");
    };
    const size_t tab = line.find('\t');
    if (tab == line.npos) refuse("expected a piece, a tab and a count");
    int64_t count = -1;
    const char* last = line.data() + line.size();
    const auto parsed = std::from_chars(line.data() + tab + 1, last, count);
    if (parsed.ec != std::errc() || parsed.ptr != last || count < 0)
      refuse("the count is no whole number");
    const std::string_view piece = line.substr(0, tab);
    if (const char* fault = fault_of(table->cut, piece)) refuse(fault);
    if (!table->append(piece, count)) refuse("the piece is there twice");
    if (table->size() > kMaxSize) refuse("more than 16,777,216 pieces");
  }
  check(table->size() > kSpecials, Exit::model, name,
        ":1: there are no pieces; make the file again");
  return Vocabulary(std::move(table));
}

Vocabulary Vocabulary::parse_sentencepiece(std::string_view bytes, const std::string& name) {
  const std::vector<StoredPiece> pieces = check_sentencepiece(bytes, name);
  auto table = std::make_shared<Table>(Cut::sentencepiece);
  table->roles.assign(pieces.size(), Role::text);
  for (size_t id = kSpecials; id < pieces.size(); ++id) {
    table->append(pieces[id].text, 0);
    if (pieces[id].type != PieceType::byte) continue;
    check(byte_of(pieces[id].text) >= 0, Exit::model, name, ": piece ", id, " '", pieces[id].text,
          "' should be a byte as <0xE2>; train the vocabulary again");
    table->roles[id] = Role::byte;
  }
  table->model = std::make_unique<SentencePieceModel>(bytes, name);
  table->file = bytes;
  return Vocabulary(std::move(table));
}

Vocabulary Vocabulary::from_entries(Cut cut, const std::vector<Entry>& entries) {
  check(cut != Cut::sentencepiece, Exit::usage, "a SentencePiece model cannot be made of a list");
  auto table = std::make_shared<Table>(cut);
  for (const Entry& entry : entries) {
    const char* fault = fault_of(cut, entry.piece);
    if (!fault && !table->append(entry.piece, entry.count)) fault = "the piece is there twice";
    check(!fault, Exit::data, "piece '", entry.piece.substr(0, 80), "': ", fault ? fault : "");
  }
  return Vocabulary(std::move(table));
}

void Vocabulary::save(const std::string& path) const {
  if (cut() == Cut::sentencepiece) return write_atomically(path, table_->file);
  write_atomically(path, [&](AtomicFile& file) {
    file.write(std::string(kMagic) + name_of(cut()) + "\n");
    for (int32_t id = kSpecials; id < size(); ++id)
      file.write(std::string(name(id)) + "\t" + std::to_string(count(id)) + "\n");
  });
}

const char* Vocabulary::extension() const { return cut() == Cut::sentencepiece ? ".spm" : ".txt"; }

Cut Vocabulary::cut() const { return table_->cut; }
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
  const std::string text = prepared(cut(), line);
  std::vector<int32_t> ids;
  if (cut() == Cut::sentencepiece) {
    ids = table_->model->encode(plain_blanks(break_runs(text)));
    for (int32_t& id : ids)
      if (id < kSpecials || id >= size()) id = kUnk;
    return ids;
  }
  const auto pieces = split(cut(), text);
  ids.reserve(pieces.size());
  for (const std::string_view piece : pieces) ids.push_back(table_->find(piece));
  return ids;
}

std::vector<std::string> Vocabulary::spelt(std::string_view line) const {
  if (cut() == Cut::sentencepiece) return pieces(encode(line));
  const std::string text = canonical(line);
  std::vector<std::string> result;
  for (const std::string_view piece : split(cut(), text)) result.emplace_back(piece);
  return result;
}

namespace {

constexpr size_t kMostExamples = 5;

void add_example(Coverage& coverage, std::string_view unit) {
  if (coverage.examples.size() < kMostExamples && std::ranges::count(coverage.examples, unit) == 0)
    coverage.examples.emplace_back(unit);
}

// Counts the characters of the bytes that byte pieces stood for, and forgets them.
void add_spelt(Coverage& coverage, std::string& bytes) {
  for (auto at = code_points(bytes).begin(); at != code_points(bytes).end(); ++at) {
    ++coverage.units;
    ++coverage.spelt;
    add_example(coverage, std::string_view(bytes).substr(at.offset(), at.length()));
  }
  bytes.clear();
}

void add_characters(Coverage& coverage, std::string_view text, Role role) {
  for (auto at = code_points(text).begin(); at != code_points(text).end(); ++at) {
    const std::string_view character = text.substr(at.offset(), at.length());
    if (character == kBlank) continue;
    ++coverage.units;
    if (role != Role::unknown) continue;
    ++coverage.unknown;
    add_example(coverage, character);
  }
}

}  // namespace

void Coverage::add(const Coverage& other) {
  units += other.units;
  unknown += other.unknown;
  spelt += other.spelt;
  for (const std::string& example : other.examples) add_example(*this, example);
}

bool Vocabulary::has_whole_words() const {
  return cut() != Cut::sentencepiece && cut() != Cut::characters;
}

Coverage Vocabulary::coverage(std::string_view line) const {
  Coverage found;
  const std::string text = prepared(cut(), line);
  if (cut() == Cut::sentencepiece) {
    std::string bytes;
    for (const auto& token : table_->model->tokens(break_runs(text))) {
      const Shown shown = table_->shown(token.id);
      if (shown.role == Role::byte) {
        bytes += static_cast<char>(shown.byte);
        continue;
      }
      add_spelt(found, bytes);
      add_characters(found, token.text, shown.role);
    }
    add_spelt(found, bytes);
    return found;
  }
  for (const std::string_view piece : split(cut(), text)) {
    if (piece == kBlank) continue;
    ++found.units;
    if (table_->find(piece) != kUnk) continue;
    ++found.unknown;
    add_example(found, piece);
  }
  return found;
}

std::string Vocabulary::normalise(std::string_view line) const {
  const std::string text = prepared(cut(), line);
  std::vector<Shown> pieces;
  if (cut() == Cut::sentencepiece) {
    const auto tokens = table_->model->tokens(plain_blanks(break_runs(text)));
    for (const auto& token : tokens) {
      Shown shown = table_->shown(token.id);
      if (shown.role == Role::unknown) shown = {token.text, Role::text};
      pieces.push_back(shown);
    }
    return join(cut(), pieces);
  }
  for (const std::string_view piece : split(cut(), text)) pieces.push_back({piece, Role::text});
  return join(cut(), pieces);
}

std::vector<std::string> Vocabulary::pieces(std::span<const int32_t> ids) const {
  std::vector<std::string> result;
  result.reserve(ids.size());
  for (const int32_t id : ids) result.emplace_back(name(id));
  return result;
}

std::string Vocabulary::decode(std::span<const int32_t> ids) const {
  return join(cut(), table_->shown(ids));
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

#include "text/vocabulary.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "base/check.h"
#include "base/files.h"
#include "base/utf8.h"
#include "text/pieces.h"
#include "text/sentencepiece_model.h"

namespace fovea {
namespace {

constexpr std::string_view kMagic = "fovea-vocabulary\t1\t";
constexpr size_t kMaxFile = size_t{1} << 30;
constexpr int32_t kMaxSize = 1 << 24;
constexpr std::string_view kSpecialNames[kSpecials] = {"<pad>", "<s>", "</s>", "<unk>"};
constexpr Cut kTextCuts[] = {Cut::words, Cut::characters, Cut::pieces, Cut::tokens};

uint64_t hash_bytes(uint64_t hash, std::string_view bytes) {  // FNV-1a
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

// "<0xE2>" is 0xE2; -1 for anything else.
int byte_of(std::string_view piece) {
  unsigned value = 0;
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
  const auto end = std::from_chars(piece.data() + 3, piece.data() + 5, value, 16).ptr;
  return end == piece.data() + 5 ? static_cast<int>(value) : -1;
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

// All pieces in one string, and an open-addressing table of ids over it: a vocabulary of ten
// million words takes little more than its text.
struct Vocabulary::Table {
  Cut cut = Cut::words;
  std::string text, file;  // `file`: a SentencePiece model as it was read
  std::vector<size_t> ends;
  std::vector<int64_t> counts;
  std::vector<int32_t> slots;
  std::vector<Role> roles;  // of SentencePiece only
  std::unique_ptr<SentencePieceModel> model;

  explicit Table(Cut c) : cut(c), slots(16, -1) {
    for (const std::string_view name : kSpecialNames) append(name, 0);
  }

  int32_t size() const { return static_cast<int32_t>(ends.size()); }

  std::string_view name(int32_t id) const {
    const size_t begin = id == 0 ? 0 : ends[id - 1];
    return std::string_view(text).substr(begin, ends[id] - begin);
  }

  size_t slot_of(std::string_view piece) const {
    const size_t mask = slots.size() - 1;
    size_t slot = std::hash<std::string_view>()(piece) & mask;
    while (slots[slot] >= 0 && name(slots[slot]) != piece) slot = (slot + 1) & mask;
    return slot;
  }

  // The id of text: never a special one.
  int32_t find(std::string_view piece) const {
    const int32_t id = slots[slot_of(piece)];
    return id < kSpecials ? kUnk : id;
  }

  // False where the piece is there already.
  bool append(std::string_view piece, int64_t count) {
    const size_t slot = slot_of(piece);
    if (slots[slot] >= 0) return false;
    slots[slot] = size();
    text += piece;
    ends.push_back(text.size());
    counts.push_back(count);
    if (2 * ends.size() > slots.size()) grow();
    return true;
  }

  void grow() {
    slots.assign(2 * slots.size(), -1);
    for (int32_t id = 0; id < size(); ++id) slots[slot_of(name(id))] = id;
  }

  Shown shown(int32_t id) const {
    if (id < 0 || id >= size() || id == kUnk) return {"<unk>", Role::unknown};
    if (id < kSpecials) return {name(id), Role::control};
    const Role role = roles.empty() ? Role::text : roles[id];
    const int byte = role == Role::byte ? byte_of(name(id)) : 0;
    return {name(id), role, static_cast<unsigned char>(byte)};
  }

  std::vector<Shown> shown(std::span<const int32_t> ids) const {
    std::vector<Shown> result;
    result.reserve(ids.size());
    for (const int32_t id : ids) result.push_back(shown(id));
    return result;
  }
};

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
    ids = table_->model->encode(break_runs(text));
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

std::string Vocabulary::normalise(std::string_view line) const {
  const std::string text = prepared(cut(), line);
  std::vector<Shown> pieces;
  if (cut() == Cut::sentencepiece) {
    const auto tokens = table_->model->tokens(break_runs(text));
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

std::vector<int> Vocabulary::words_of(std::span<const int32_t> ids) const {
  const std::vector<Shown> shown = table_->shown(ids);
  std::vector<int> words(ids.size(), 0);
  for (size_t i = 1; i < ids.size(); ++i)
    words[i] = words[i - 1] + begins_word(cut(), shown[i - 1], shown[i]);
  return words;
}

namespace {

// A piece may begin with the blank before its word, but ends inside it.
std::vector<int> words_at(const std::vector<SentencePieceModel::Token>& tokens,
                          std::string_view text) {
  const std::vector<std::string_view> words = split_words(text);
  const auto end_of = [&](size_t w) {
    return static_cast<size_t>(words[w].data() - text.data()) + words[w].size();
  };
  std::vector<int> numbers;
  size_t w = 0;
  for (const auto& token : tokens) {
    while (w + 1 < words.size() && end_of(w) < token.end) ++w;
    numbers.push_back(static_cast<int>(w));
  }
  numbers.push_back(static_cast<int>(words.size()));
  return numbers;
}

std::vector<int> glued_words(const std::vector<std::string_view>& pieces) {
  std::vector<int> numbers;
  int word = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    numbers.push_back(word);
    if (!pieces[i].ends_with(kGlue) || i + 1 == pieces.size()) ++word;
  }
  numbers.push_back(word);
  return numbers;
}

}  // namespace

std::vector<int> Vocabulary::words_in(std::string_view line) const {
  const std::string text = prepared(cut(), line);
  if (cut() == Cut::sentencepiece) {
    const std::string seen = break_runs(text);
    return words_at(table_->model->tokens(seen), seen);
  }
  const std::vector<std::string_view> words = split_words(text);
  if (cut() == Cut::pieces) return glued_words(words);
  std::vector<int> numbers;
  for (size_t w = 0; w < words.size(); ++w) {
    const bool blank_before = cut() == Cut::characters && w > 0;
    numbers.insert(numbers.end(), split(cut(), words[w]).size() + blank_before,
                   static_cast<int>(w));
  }
  numbers.push_back(static_cast<int>(words.size()));
  return numbers;
}

std::vector<std::string> Vocabulary::words(std::span<const int32_t> ids) const {
  const std::vector<int> word = words_of(ids);
  std::vector<std::string> result;
  for (size_t i = 0, end = 0; i < ids.size(); i = end) {
    while (end < ids.size() && word[end] == word[i]) ++end;
    const bool control = table_->shown(ids[i]).role == Role::control;
    result.push_back(control ? std::string(name(ids[i])) : decode(ids.subspan(i, end - i)));
  }
  return result;
}

std::vector<std::string> Vocabulary::words(std::span<const int32_t> ids,
                                           std::string_view line) const {
  std::vector<std::string> result = words(ids);
  const std::vector<std::string_view> written = split_words(line);
  const std::vector<int> word = words_of(ids);
  std::vector<bool> unknown(result.size()), control(result.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    unknown[word[i]] = unknown[word[i]] || ids[i] == kUnk;
    control[word[i]] = table_->shown(ids[i]).role == Role::control;
  }
  const auto controls = static_cast<size_t>(std::ranges::count(control, true));
  if (written.size() + controls != result.size()) return result;  // cut off, or other words
  for (size_t at = 0, next = 0; at < result.size(); ++at) {
    if (control[at]) continue;
    if (unknown[at]) result[at] = written[next];
    ++next;
  }
  return result;
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

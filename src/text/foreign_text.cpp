#include "text/foreign_text.h"

#include <charconv>

#include "base/ascii.h"
#include "base/check.h"
#include "base/utf8.h"
#include "text/vocabulary_table.h"

namespace fovea {
namespace {

constexpr size_t kMaxPieces = 1 << 20;
constexpr size_t kMaxMerges = 1 << 22;

// A kind of file: its name, the option of its first line, and what they mean.
struct ForeignKind {
  std::string_view name, option;
  ForeignSegmentation segmentation;
};

const std::vector<ForeignKind>& kinds() {
  static const std::vector<ForeignKind> all{
      {"pieces", "-", {ForeignCut::pieces}},
      {"subword-nmt", "0.1", {ForeignCut::subword_nmt, true}},
      {"subword-nmt", "0.2", {ForeignCut::subword_nmt, false}},
      {"byte-bpe", "-", {ForeignCut::byte_bpe, false, false}},
      {"byte-bpe", "prefix", {ForeignCut::byte_bpe, false, true}}};
  return all;
}

Segmentation segmentation_of(ForeignCut cut) {
  if (cut == ForeignCut::subword_nmt) return Segmentation::subwords;
  return cut == ForeignCut::byte_bpe ? Segmentation::bytes : Segmentation::pieces;
}

// A reader of lines of fields, which tabs separate.
class FieldReader {
 public:
  FieldReader(std::string_view bytes, const std::string& name) : rest_(bytes), name_(name) {}

  bool done() const { return rest_.empty(); }

  // The fields of the next line. Throws if their number is not `count`.
  std::vector<std::string_view> next(size_t count) {
    ++line_;
    if (rest_.empty()) fail_line("the file ends before the number of lines of its first line");
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (!is_utf8(line)) fail_line("the line is not UTF-8");
    std::vector<std::string_view> fields;
    for (size_t tab = 0; tab != line.npos && fields.size() <= count;) {
      tab = line.find('\t');
      fields.push_back(line.substr(0, tab));
      if (tab != line.npos) line.remove_prefix(tab + 1);
    }
    if (fields.size() != count) fail_line("the line has another number of tabs than expected");
    return fields;
  }

  size_t number(std::string_view text, size_t limit) const {
    size_t value = 0;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    if (parsed.ec != std::errc() || parsed.ptr != end || value > limit)
      fail_line("the first line has no valid number of pieces and merges");
    return value;
  }

  [[noreturn]] void fail_line(const char* found) const {
    fail(ExitCode::model, name_, ":", line_, ": ", found, "; import the model again");
  }

 private:
  std::string_view rest_;
  int64_t line_ = 0;
  const std::string& name_;
};

const ForeignKind& read_kind(const std::vector<std::string_view>& header,
                             const FieldReader& reader) {
  for (const ForeignKind& kind : kinds())
    if (header[2] == kind.name && header[3] == kind.option) return kind;
  reader.fail_line("expected 'pieces', 'subword-nmt' or 'byte-bpe', and an option");
}

}  // namespace

Vocabulary Vocabulary::parse_foreign_text(std::string_view bytes, const std::string& name) {
  FieldReader reader(bytes, name);
  const auto header = reader.next(6);
  const ForeignKind& kind = read_kind(header, reader);
  const size_t pieces = reader.number(header[4], kMaxPieces);
  const size_t merges = reader.number(header[5], kMaxMerges);
  auto table = std::make_shared<Table>(segmentation_of(kind.segmentation.cut));
  table->roles.assign(kSpecials, PieceRole::control);
  for (size_t i = 0; i < pieces; ++i) {
    const auto fields = reader.next(2);
    const bool control = fields[1] == "control";
    if (!control && fields[1] != "text") reader.fail_line("expected a piece, a tab and its role");
    if (fields[0].empty()) reader.fail_line("the piece is empty");
    if (fields[0].size() > kMaxPieceBytes) reader.fail_line("the piece is longer than 1,024 bytes");
    if (!table->append(fields[0], 0)) reader.fail_line("the piece occurs twice");
    table->roles.push_back(control ? PieceRole::control : PieceRole::text);
  }
  std::vector<PairMerges::Merge> list;
  for (size_t i = 0; i < merges; ++i) {
    const auto fields = reader.next(2);
    if (fields[0].empty() || fields[1].empty()) reader.fail_line("a side of the merge is empty");
    list.push_back({std::string(fields[0]), std::string(fields[1])});
  }
  if (!reader.done()) reader.fail_line("more lines follow than the first line announces");
  check(pieces > 0, ExitCode::model, name, ":1: the file has no pieces; import the model again");
  table->imported = true;
  table->file = bytes;
  table->foreign = std::make_unique<ForeignSegmentation>(kind.segmentation);
  const bool queue = kind.segmentation.cut == ForeignCut::byte_bpe;
  table->foreign->merges = std::make_shared<const PairMerges>(
      std::move(list), queue ? MergeOrder::queue : MergeOrder::rounds);
  return Vocabulary(std::move(table));
}

std::string foreign_text(const PieceOrder& order, const ForeignSegmentation& segmentation) {
  std::string text(kForeignMagic);
  for (const ForeignKind& kind : kinds()) {
    const ForeignSegmentation& s = kind.segmentation;
    if (s.cut == segmentation.cut && s.split_end == segmentation.split_end &&
        s.prefix_blank == segmentation.prefix_blank)
      text.append(kind.name).append("\t").append(kind.option);
  }
  const size_t merges = segmentation.merges ? segmentation.merges->merges().size() : 0;
  text += "\t" + std::to_string(order.pieces.size() - kSpecials) + "\t" + std::to_string(merges);
  for (size_t id = kSpecials; id < order.pieces.size(); ++id) {
    const auto& [name, control] = order.pieces[id];
    const bool writable = name.find_first_of("\t\n") == name.npos;
    text += "\n" + (writable ? name : "<row-" + std::to_string(order.rows[id]) + ">");
    text += control || !writable ? "\tcontrol" : "\ttext";
  }
  for (size_t i = 0; i < merges; ++i) {
    const PairMerges::Merge& merge = segmentation.merges->merges()[i];
    text += "\n" + merge.left + "\t" + merge.right;
  }
  return text + "\n";
}

namespace {

std::string_view stripped(std::string_view text, std::string_view blanks) {
  const size_t begin = std::min(text.find_first_not_of(blanks), text.size());
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

// Returns whether the first line of a codes file is a version. Sets `split_end` for version 0.1.
bool read_version(std::string_view line, bool& split_end, const std::string& name) {
  split_end = true;
  if (!line.starts_with("#version:")) return false;
  const auto words = python_words(line.substr(std::string_view("#version:").size()));
  std::string_view version = words.empty() ? "" : words.back();
  while (version.ends_with(".0")) version.remove_suffix(2);
  check(version == "0.1" || version == "0.2", ExitCode::model, name, ":1: version '",
        printable(version), "', expected 0.1 or 0.2; learn the codes with subword-nmt");
  split_end = version == "0.1";
  return true;
}

}  // namespace

ForeignSegmentation read_codes(std::string_view codes, const std::string& name) {
  ForeignSegmentation result{ForeignCut::subword_nmt};
  const size_t first = std::min(codes.find('\n'), codes.size());
  int64_t line_number = 0;
  if (read_version(codes.substr(0, first), result.split_end, name)) {
    codes.remove_prefix(std::min(first + 1, codes.size()));
    ++line_number;
  }
  codes = codes.substr(0, codes.find_last_not_of('\n') + 1);
  std::vector<PairMerges::Merge> merges;
  while (!codes.empty()) {
    const size_t end = std::min(codes.find('\n'), codes.size());
    const std::string_view line = stripped(codes.substr(0, end), "\r\n ");
    codes.remove_prefix(std::min(end + 1, codes.size()));
    ++line_number;
    const size_t blank = line.find(' ');
    check(is_utf8(line) && blank != line.npos && line.find(' ', blank + 1) == line.npos &&
              line.find_first_of("\t\r") == line.npos && merges.size() < kMaxMerges,
          ExitCode::model, name, ":", line_number, ": '", printable(line),
          "', expected two symbols and a blank between them; learn the codes with subword-nmt");
    merges.push_back({std::string(line.substr(0, blank)), std::string(line.substr(blank + 1))});
  }
  check(!merges.empty(), ExitCode::model, name,
        ": the file has no merges; learn the codes with subword-nmt");
  result.merges = std::make_shared<const PairMerges>(std::move(merges), MergeOrder::rounds);
  return result;
}

Vocabulary import_pieces(const PieceOrder& order, const std::string& name) {
  return Vocabulary::parse_text(foreign_text(order, {}), name);
}

Vocabulary import_subword_nmt(std::string_view codes, const PieceOrder& order,
                              const std::string& name) {
  return Vocabulary::parse_text(foreign_text(order, read_codes(codes, name)), name);
}

}  // namespace fovea

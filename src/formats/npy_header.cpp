#include "formats/npy_header.h"

#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "base/utf8.h"

namespace fovea {
namespace {

struct TypeName {
  std::string_view name;
  StoredType type;
};

// Without the first character, which is the order of bytes.
constexpr std::array kTypes = {
    TypeName{"b1", StoredType::BOOL}, TypeName{"i1", StoredType::I8},
    TypeName{"u1", StoredType::U8},   TypeName{"i2", StoredType::I16},
    TypeName{"u2", StoredType::U16},  TypeName{"i4", StoredType::I32},
    TypeName{"u4", StoredType::U32},  TypeName{"i8", StoredType::I64},
    TypeName{"u8", StoredType::U64},  TypeName{"f2", StoredType::F16},
    TypeName{"f4", StoredType::F32},  TypeName{"f8", StoredType::F64},
};

// Parser of the dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class NpyDictionary {
 public:
  NpyDictionary(std::string_view text, const ByteReader& reader) : text_(text), reader_(reader) {}

  void read() {
    expect("{");
    while (!accept("}")) {
      const std::string_view key = string();
      expect(":");
      if (key == "descr")
        read_type();
      else if (key == "fortran_order")
        read_order();
      else if (key == "shape")
        read_shape();
      else
        reader_.fault("unknown key '", printable(key), "' in the header");
      if (!accept(",")) {
        expect("}");
        break;
      }
    }
    if (text_.find_first_not_of(" \n") != text_.npos)
      reader_.fault("'", printable(text_, 20), "' after the dictionary of the header");
    if (!type_ || !shape_ || !order_)
      reader_.fault("the header has no 'descr', 'fortran_order' or 'shape'");
  }

  StoredType type() const { return *type_; }
  std::vector<int64_t> shape() const { return *shape_; }

 private:
  void skip() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }
  bool accept(std::string_view token) {
    skip();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token))
      reader_.fault("found '", printable(text_, 20), "' in the header, '", token, "' is expected");
  }
  void only_once(bool first) const {
    if (!first) reader_.fault("a key occurs twice in the header");
  }

  std::string_view string() {
    const char quote = accept("'") ? '\'' : '"';
    if (quote == '"') expect("\"");
    const size_t end = text_.find(quote);
    if (end == text_.npos) reader_.fault("a text without its end in the header");
    const std::string_view value = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return value;
  }

  void read_type() {
    only_once(!type_);
    skip();
    if (text_.starts_with("[")) reader_.fault("structured arrays cannot be read");
    const std::string_view name = string();
    for (const TypeName& row : kTypes) {
      if (name.empty() || name.substr(1) != row.name) continue;
      const bool one_byte = stored_bits(row.type) == 8;
      if (name[0] == '<' || (one_byte && (name[0] == '|' || name[0] == '='))) type_ = row.type;
    }
    if (!type_)
      reader_.fault("type '", printable(name), "' cannot be read; little-endian numbers can");
  }

  void read_order() {
    only_once(!order_);
    order_ = accept("False");
    if (!*order_)
      reader_.fault("found '", printable(text_, 20),
                    "' as fortran_order; only arrays in rows (False) can be read");
  }

  void read_shape() {
    only_once(!shape_);
    shape_.emplace();
    expect("(");
    while (!accept(")")) {
      skip();
      int64_t size = 0;
      const auto result = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      if (result.ec != std::errc() || size < 0)
        reader_.fault("'", printable(text_, 24), "' in the shape is no size");
      text_.remove_prefix(static_cast<size_t>(result.ptr - text_.data()));
      shape_->push_back(size);
      if (!accept(",")) {
        expect(")");
        break;
      }
    }
  }

  std::string_view text_;
  const ByteReader& reader_;
  std::optional<StoredType> type_;
  std::optional<bool> order_;
  std::optional<std::vector<int64_t>> shape_;
};

}  // namespace

ArchivedTensor read_npy_header(ByteReader& reader, std::string name) {
  if (reader.text(6, "the signature") != "\x93NUMPY")
    fail(ExitCode::model, reader.path(), ": byte 0: not an array of NumPy (.npy)");
  const auto version = reader.number<uint16_t>("the version");  // minor version in the high byte
  if (version < 1 || version > 3) reader.fault("version ", version, "; versions 1 to 3 are known");
  const uint64_t size = version == 1 ? reader.number<uint16_t>("the length of the header")
                                     : reader.number<uint32_t>("the length of the header");
  if (size > kMaxNpyHeader - 12) reader.fault("a header of ", size, " bytes");
  NpyDictionary dictionary(reader.text(size, "the header"), reader);
  dictionary.read();
  return {std::move(name), dictionary.type(), dictionary.shape()};
}

}  // namespace fovea

#include "formats/pickle_reader.h"

#include <fmt/format.h>

#include <bit>

#include "base/utf8.h"

namespace fovea {

// Opcodes of Python's pickletools. Those that only protocol 0 uses are unknown.
namespace {

enum Code : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kAppends = 'e',
  kDict = 'd',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kEmptyTuple = ')',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kMemoize = 0x94,
  kFrame = 0x95,
};

}  // namespace

uint32_t PickleReader::read() {
  for (;;) {
    const auto code = reader_.number<uint8_t>("the next instruction of the pickle");
    if (code == kStop) break;
    if (read_literal(code) || read_text(code) || read_container(code) || read_stack(code) ||
        read_object(code))
      continue;
    reader_.fault("unknown instruction ", fmt::format("{:#04x}", code), " in the pickle");
  }
  if (stack_.size() != 1 || !marks_.empty())
    reader_.fault("the pickle ends with ", stack_.size(), " values, 1 is expected");
  return pop();
}

bool PickleReader::read_literal(uint8_t code) {
  switch (code) {
    case kProto: {
      const auto version = reader_.number<uint8_t>("the protocol");
      if (version < 2 || version > 5)
        reader_.fault("protocol ", version + 0, ", protocols 2 to 5 can be read");
      break;
    }
    case kFrame:
      reader_.number<uint64_t>("the size of a frame");
      break;
    case kNone:
      push(add(PickleKind::none));
      break;
    case kNewTrue:
      push(add(PickleKind::boolean, 1));
      break;
    case kNewFalse:
      push(add(PickleKind::boolean, 0));
      break;
    case kBinInt:
      push(add(PickleKind::integer, reader_.number<int32_t>("an integer")));
      break;
    case kBinInt1:
      push(add(PickleKind::integer, reader_.number<uint8_t>("an integer")));
      break;
    case kBinInt2:
      push(add(PickleKind::integer, reader_.number<uint16_t>("an integer")));
      break;
    case kLong1: {
      const auto size = reader_.number<uint8_t>("the size of an integer");
      const auto bytes = reader_.take(size, "an integer");
      if (size > 8) {  // the magic number of PyTorch's old format, and seeds
        push(add(PickleKind::ignored));
        break;
      }
      uint64_t value = 0;
      for (size_t i = 0; i < size; ++i) value |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
      const int unused = 64 - 8 * size;  // sign extension
      push(add(PickleKind::integer,
               size == 0 ? 0 : static_cast<int64_t>(value << unused) >> unused));
      break;
    }
    case kBinFloat: {
      uint64_t bits = 0;  // big-endian
      for (const std::byte b : reader_.take(8, "a number"))
        bits = bits << 8 | std::to_integer<uint64_t>(b);
      const uint32_t node = add(PickleKind::number);
      content_.nodes[node].number = std::bit_cast<double>(bits);
      push(node);
      break;
    }
    default:
      return false;
  }
  return true;
}

bool PickleReader::read_text(uint8_t code) {
  constexpr std::string_view what = "the length of a text";
  switch (code) {
    case kShortBinUnicode:
      push_text(reader_.number<uint8_t>(what), PickleKind::text);
      break;
    case kBinUnicode:
      push_text(reader_.number<uint32_t>(what), PickleKind::text);
      break;
    case kBinUnicode8:
      push_text(reader_.number<uint64_t>(what), PickleKind::text);
      break;
    case kShortBinString:
      push_text(reader_.number<uint8_t>(what), PickleKind::text);
      break;
    case kBinString:
      push_text(reader_.number<uint32_t>(what), PickleKind::text);
      break;
    case kShortBinBytes:
      push_text(reader_.number<uint8_t>(what), PickleKind::bytes);
      break;
    case kBinBytes:
      push_text(reader_.number<uint32_t>(what), PickleKind::bytes);
      break;
    default:
      return false;
  }
  return true;
}

void PickleReader::push_text(uint64_t size, PickleKind kind) {
  if (size > kMaxText) reader_.fault("a text of ", size, " bytes, at most ", kMaxText, " expected");
  const std::string_view text = reader_.text(size, "a text");
  if (kind == PickleKind::text && !is_utf8(text))
    reader_.fault("text '", printable(text), "' is not UTF-8");
  text_size_ += size;
  if (text_size_ > kMaxTexts) reader_.fault("texts of more than ", kMaxTexts, " bytes");
  content_.texts.emplace_back(text);
  push(add(kind, static_cast<int64_t>(content_.texts.size()) - 1));
}

bool PickleReader::read_container(uint8_t code) {
  switch (code) {
    case kEmptyTuple:
      push_items(PickleKind::tuple, {});
      break;
    case kTuple1:
      push_items(PickleKind::tuple, pop_many(1));
      break;
    case kTuple2:
      push_items(PickleKind::tuple, pop_many(2));
      break;
    case kTuple3:
      push_items(PickleKind::tuple, pop_many(3));
      break;
    case kTuple:
      push_items(PickleKind::tuple, pop_to_mark());
      break;
    case kEmptyList:
      push_items(PickleKind::list, {});
      break;
    case kList:
      push_items(PickleKind::list, pop_to_mark());
      break;
    case kAppend:
      append_items(PickleKind::list, pop_many(1));
      break;
    case kAppends:
      append_items(PickleKind::list, pop_to_mark());
      break;
    case kEmptyDict:
      push_items(PickleKind::dictionary, {});
      break;
    case kDict:
      push_items(PickleKind::dictionary, pop_to_mark());
      break;
    case kSetItem:
      append_items(PickleKind::dictionary, pop_many(2));
      break;
    case kSetItems:
      append_items(PickleKind::dictionary, pop_to_mark());
      break;
    default:
      return false;
  }
  return true;
}

bool PickleReader::read_stack(uint8_t code) {
  constexpr std::string_view what = "a number of the memo";
  switch (code) {
    case kMark:
      if (marks_.size() >= kMaxMarks) reader_.fault("more than ", kMaxMarks, " marks");
      marks_.push_back(stack_.size());
      break;
    case kPop:
      if (!marks_.empty() && marks_.back() == stack_.size())
        marks_.pop_back();
      else
        pop();
      break;
    case kPopMark:
      pop_to_mark();
      break;
    case kDup: {
      const uint32_t top = pop();
      push(top);
      push(top);
      break;
    }
    case kBinPut:
      put(reader_.number<uint8_t>(what));
      break;
    case kLongBinPut:
      put(reader_.number<uint32_t>(what));
      break;
    case kMemoize:
      put(static_cast<uint32_t>(memo_.size()));
      break;
    case kBinGet:
      get(reader_.number<uint8_t>(what));
      break;
    case kLongBinGet:
      get(reader_.number<uint32_t>(what));
      break;
    default:
      return false;
  }
  return true;
}

uint32_t PickleReader::add(PickleKind kind, int64_t integer) {
  if (content_.nodes.size() >= kMaxNodes) reader_.fault("more than ", kMaxNodes, " values");
  content_.nodes.push_back({kind, integer, 0, {}});
  return static_cast<uint32_t>(content_.nodes.size() - 1);
}

void PickleReader::push(uint32_t node) {
  if (stack_.size() >= kMaxStack) reader_.fault("more than ", kMaxStack, " values on the stack");
  stack_.push_back(node);
}

uint32_t PickleReader::pop() { return pop_many(1)[0]; }

std::vector<uint32_t> PickleReader::pop_many(size_t count) {
  const size_t bottom = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() - bottom < count)
    reader_.fault("the instruction needs ", count, " values, the stack has ",
                  stack_.size() - bottom);
  std::vector<uint32_t> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
  stack_.resize(stack_.size() - count);
  return items;
}

std::vector<uint32_t> PickleReader::pop_to_mark() {
  if (marks_.empty()) reader_.fault("the instruction needs a mark");
  std::vector<uint32_t> items = pop_many(stack_.size() - marks_.back());
  marks_.pop_back();
  return items;
}

void PickleReader::count_items(size_t count) {
  items_ += count;
  if (items_ > kMaxItems) reader_.fault("containers with more than ", kMaxItems, " values");
}

void PickleReader::push_items(PickleKind kind, std::vector<uint32_t> items) {
  if (kind == PickleKind::dictionary && items.size() % 2 != 0)
    reader_.fault("a dictionary with a key without value");
  count_items(items.size());
  const uint32_t node = add(kind);
  content_.nodes[node].items = std::move(items);
  push(node);
}

// Adds items to the list or dictionary on top of the stack.
void PickleReader::append_items(PickleKind kind, const std::vector<uint32_t>& items) {
  if (kind == PickleKind::dictionary && items.size() % 2 != 0)
    reader_.fault("a dictionary with a key without value");
  count_items(items.size());
  const uint32_t top = pop();
  PickleNode& node = content_.nodes[top];
  if (node.kind != kind && node.kind != PickleKind::ignored)
    reader_.fault("items are added to a value that is no ",
                  kind == PickleKind::list ? "list" : "dictionary");
  if (node.kind == kind) node.items.insert(node.items.end(), items.begin(), items.end());
  push(top);
}

void PickleReader::put(uint32_t key) {
  if (memo_.size() >= kMaxNodes) reader_.fault("more than ", kMaxNodes, " values in the memo");
  const uint32_t top = pop();
  memo_[key] = top;
  push(top);
}

void PickleReader::get(uint32_t key) {
  const auto found = memo_.find(key);
  if (found == memo_.end()) reader_.fault("the memo has no value ", key);
  push(found->second);
}

}  // namespace fovea

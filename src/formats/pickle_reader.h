#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/byte_reader.h"
#include "formats/pickle_content.h"

namespace fovea {

// An interpreter of Python's pickles that can only build tensors of PyTorch, plain containers,
// numbers and texts. It never calls a function or creates an object of a class: a table gives the
// meaning of the few names that checkpoints need, and any other name is an error that shows it.
// Memory is bounded by the limits below, time by the size of the file.
class PickleReader {
 public:
  static constexpr size_t kMaxNodes = 500'000, kMaxStack = 500'000, kMaxMarks = 1000;
  static constexpr size_t kMaxItems = 4'000'000;  // of all containers
  static constexpr size_t kMaxText = size_t{1} << 20, kMaxTexts = size_t{64} << 20;

  // Adds values to `content`. Both must outlive the reader.
  PickleReader(ByteReader& reader, PickleContent& content) : reader_(reader), content_(content) {}

  // Reads one pickle up to its end and returns the number of its value.
  uint32_t read();

 private:
  bool read_literal(uint8_t code);
  bool read_text(uint8_t code);
  bool read_container(uint8_t code);
  bool read_stack(uint8_t code);
  bool read_object(uint8_t code);

  uint32_t add(PickleKind kind, int64_t integer = 0);
  void push(uint32_t node);
  void push_text(uint64_t size, PickleKind kind);
  uint32_t pop();
  std::vector<uint32_t> pop_to_mark();
  std::vector<uint32_t> pop_many(size_t count);
  void push_items(PickleKind kind, std::vector<uint32_t> items);
  void append_items(PickleKind kind, const std::vector<uint32_t>& items);
  void count_items(size_t count);
  void put(uint32_t key);
  void get(uint32_t key);

  std::string line();
  void push_global(const std::string& module, const std::string& name);
  void call();
  void build();
  void push_storage();
  void push_tensor(const std::vector<uint32_t>& arguments);
  void push_dictionary(const std::vector<uint32_t>& arguments);
  std::vector<int64_t> sizes(uint32_t tuple, const char* what) const;
  int64_t integer(uint32_t node, const char* what) const;
  const std::string& text(uint32_t node, const char* what) const;
  const PickleNode& at(uint32_t node) const { return content_.nodes[node]; }

  ByteReader& reader_;
  PickleContent& content_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;  // sizes of the stack
  std::unordered_map<uint32_t, uint32_t> memo_;
  size_t text_size_ = 0, items_ = 0;
};

}  // namespace fovea

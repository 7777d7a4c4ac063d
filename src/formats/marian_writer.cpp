#include "formats/marian_writer.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/files.h"
#include "base/safetensors_header.h"
#include "formats/marian_archive.h"

namespace fovea {
namespace {

constexpr uint64_t kAlignment = 256, kInt8 = 0x101;
constexpr const char* kOptions = "special:model.yml";

uint64_t padded(uint64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

}  // namespace

void MarianWriter::check_new(const std::string& name) {
  check_tensor_name(name, ExitCode::unexpected, "writer of Marian");
  check(names_.insert(name).second, ExitCode::unexpected, "tensor '", name, "' is added twice");
}

void MarianWriter::add(std::string name, StoredType type, std::vector<int64_t> shape,
                       std::span<const std::byte> bytes) {
  check_new(name);
  const bool fits = marian_type_id(type).has_value() && stored_bytes(type, shape) == bytes.size() &&
                    shape.size() <= SafetensorsFile::kMaxRank &&
                    std::ranges::all_of(shape, [](int64_t size) {
                      return size <= std::numeric_limits<int32_t>::max();
                    });
  check(fits, ExitCode::unexpected, "tensor '", name, "': ", bytes.size(),
        " bytes do not fit its shape, or its type ", stored_name(type), " is unknown");
  items_.push_back({{std::move(name), type, std::move(shape)}, bytes});
}

void MarianWriter::add_options(std::string yaml) {
  check_new(kOptions);
  options_ = std::move(yaml) + '\0';
}

// Everything before the data.
std::string MarianWriter::header() const {
  std::string head, names, shapes;
  const auto describe = [&](const std::string& name, uint64_t type,
                            const std::vector<int64_t>& shape, uint64_t size) {
    for (const uint64_t value :
         {uint64_t{name.size() + 1}, type, uint64_t{shape.size()}, padded(size)})
      append(head, value);
    names += name + '\0';
    for (const int64_t axis : shape) append(shapes, static_cast<int32_t>(axis));
  };
  append(head, uint64_t{1});
  append(head, uint64_t{items_.size() + (options_.empty() ? 0 : 1)});
  for (const Item& item : items_)
    describe(item.tensor.name, *marian_type_id(item.tensor.type), item.tensor.shape,
             item.bytes.size());
  if (!options_.empty())
    describe(kOptions, kInt8, {static_cast<int64_t>(options_.size())}, options_.size());
  head += names + shapes;
  // As Marian: at least one zero.
  const uint64_t zeros = kAlignment - (head.size() + sizeof(uint64_t)) % kAlignment;
  append(head, zeros);
  return head + std::string(zeros, '\0');
}

// Passes the bytes of the file to `sink` in order.
template <class Sink>
void MarianWriter::put(Sink sink) const {
  const std::vector<std::byte> zeros(kAlignment);
  const auto put_padded = [&](std::span<const std::byte> bytes) {
    sink(bytes);
    sink(std::span(zeros).first(padded(bytes.size()) - bytes.size()));
  };
  const std::string head = header();
  sink(as_byte_span(head));
  for (const Item& item : items_) put_padded(item.bytes);
  if (!options_.empty()) put_padded(as_byte_span(options_));
}

void MarianWriter::write(const std::string& path) const {
  write_atomically(path, [&](AtomicFile& file) {
    put([&](std::span<const std::byte> bytes) { file.write(bytes); });
  });
}

std::string MarianWriter::to_string() const {
  std::string out;
  put([&](std::span<const std::byte> bytes) {
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return out;
}

}  // namespace fovea

#include "formats/ctranslate2_writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/files.h"
#include "base/safetensors_header.h"
#include "base/utf8.h"
#include "formats/ctranslate2_archive.h"

namespace fovea {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();

template <class T>
std::string as_bytes(T value) {
  std::string out(sizeof(T), '\0');
  std::memcpy(out.data(), &value, sizeof(T));
  return out;
}

std::string with_length(const std::string& text) {
  return as_bytes(static_cast<uint16_t>(text.size() + 1)) + text + '\0';
}

}  // namespace

void CTranslate2Writer::check_new(const std::string& name) const {
  check_tensor_name(name, ExitCode::unexpected, "writer of CTranslate2");
  check(!variables_.contains(name) && !aliases_.contains(name), ExitCode::unexpected, "variable '",
        name, "' is added twice");
}

void CTranslate2Writer::add(std::string name, StoredType type, std::vector<int64_t> shape,
                            std::span<const std::byte> bytes) {
  check_new(name);
  const auto needed = stored_bytes(type, shape);
  check(ctranslate2_type_id(type).has_value() && needed == bytes.size() && shape.size() <= 8,
        ExitCode::unexpected, "variable '", name, "': ", bytes.size(),
        " bytes do not fit its shape, or its type ", stored_name(type), " is unknown");
  const bool fits = *needed <= kMost && std::ranges::all_of(shape, [](int64_t size) {
    return static_cast<uint64_t>(size) <= kMost;
  });
  check(fits, ExitCode::model, "variable '", name, "' has ", *needed,
        " bytes; CTranslate2's format has at most ", kMost, " for each tensor");
  variables_.emplace(std::move(name), Variable{type, std::move(shape), bytes, {}});
}

template <class T>
void CTranslate2Writer::add_value(std::string name, StoredType type, T value) {
  check_new(name);
  variables_.emplace(std::move(name), Variable{type, {}, {}, as_bytes(value)});
}

void CTranslate2Writer::add_scalar(std::string name, float value) {
  add_value(std::move(name), StoredType::F32, value);
}
void CTranslate2Writer::add_scalar(std::string name, int8_t value) {
  add_value(std::move(name), StoredType::I8, value);
}
void CTranslate2Writer::add_scalar(std::string name, int16_t value) {
  add_value(std::move(name), StoredType::I16, value);
}
void CTranslate2Writer::add_scalar(std::string name, int32_t value) {
  add_value(std::move(name), StoredType::I32, value);
}

void CTranslate2Writer::add_alias(std::string alias, std::string name) {
  check_new(alias);
  aliases_.emplace(std::move(alias), std::move(name));
}

// Passes the bytes of the file to `sink` in order.
template <class Sink>
void CTranslate2Writer::put(Sink sink) const {
  const auto put_text = [&](const std::string& text) { sink(as_byte_span(text)); };
  put_text(as_bytes(CTranslate2Archive::kNewestVersion) + with_length(spec_) + as_bytes(revision_) +
           as_bytes(static_cast<uint32_t>(variables_.size())));
  for (const auto& [name, variable] : variables_) {
    const auto bytes = variable.scalar.empty() ? variable.bytes : as_byte_span(variable.scalar);
    std::string head = with_length(name) + as_bytes(static_cast<uint8_t>(variable.shape.size()));
    for (const int64_t size : variable.shape) head += as_bytes(static_cast<uint32_t>(size));
    put_text(head + as_bytes(*ctranslate2_type_id(variable.type)) +
             as_bytes(static_cast<uint32_t>(bytes.size())));
    sink(bytes);
  }
  put_text(as_bytes(static_cast<uint32_t>(aliases_.size())));
  for (const auto& [alias, name] : aliases_) {
    check(variables_.contains(name), ExitCode::unexpected, "alias '", alias, "' of '", name,
          "', which was not added");
    put_text(with_length(alias) + with_length(name));
  }
}

void CTranslate2Writer::write(const std::string& path) const {
  write_atomically(path, [&](AtomicFile& file) {
    put([&](std::span<const std::byte> bytes) { file.write(bytes); });
  });
}

std::string CTranslate2Writer::to_string() const {
  std::string out;
  put([&](std::span<const std::byte> bytes) {
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return out;
}

}  // namespace fovea

#include "formats/torch_archive.h"

#include <fmt/format.h>

#include <cstring>

#include "base/utf8.h"
#include "formats/pickle_reader.h"

namespace fovea {
namespace {

// pickle.dumps(0x1950a86a20f9469cfc6c, protocol=2)
constexpr std::string_view kMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);

uint64_t width_of(StoredType type) { return static_cast<uint64_t>(stored_bits(type)) / 8; }

bool is_contiguous(const PickleTensor& tensor) {
  uint64_t expected = 1;
  for (size_t axis = tensor.shape.size(); axis-- > 0;) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != expected) return false;
    expected *= static_cast<uint64_t>(tensor.shape[axis]);
  }
  return true;
}

// One more than the last element that the tensor needs. nullopt if it exceeds 64 bits.
std::optional<uint64_t> end_of(const PickleTensor& tensor) {
  uint64_t last = tensor.offset;
  for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    if (tensor.shape[axis] == 0) return tensor.offset;
    uint64_t step = 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(tensor.shape[axis] - 1), tensor.strides[axis],
                               &step) ||
        __builtin_add_overflow(last, step, &last))
      return std::nullopt;
  }
  if (__builtin_add_overflow(last, 1, &last)) return std::nullopt;
  return last;
}

// Copies the values of a tensor in the order of its shape.
std::vector<std::byte> gather(const PickleTensor& tensor, std::span<const std::byte> storage,
                              uint64_t width, size_t elements) {
  std::vector<std::byte> out(elements * width);
  std::vector<int64_t> index(tensor.shape.size(), 0);
  uint64_t from = tensor.offset;
  for (size_t i = 0; i < elements; ++i) {
    std::memcpy(&out[i * width], &storage[from * width], width);
    for (size_t axis = index.size(); axis-- > 0;) {  // the next element, the last axis first
      from += tensor.strides[axis];
      if (++index[axis] < tensor.shape[axis]) break;
      from -= tensor.strides[axis] * static_cast<uint64_t>(tensor.shape[axis]);
      index[axis] = 0;
    }
  }
  return out;
}

}  // namespace

bool TorchArchive::is_legacy(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

bool TorchArchive::is_checkpoint(const ZipFolder& zip) { return zip.contains("data.pkl"); }

TorchArchive::TorchArchive(FileBytes file) : TensorArchive(file.path), file_(std::move(file)) {
  if (is_legacy(file_.bytes))
    read_legacy();
  else
    read_zip();
}

void TorchArchive::read_zip() {
  zip_ = std::make_unique<ZipFolder>(file_, ZipNames::without_root);
  check(is_checkpoint(*zip_), ExitCode::model, path(),
        ": there is no entry 'data.pkl', which every checkpoint of PyTorch has");
  if (zip_->contains("byteorder")) {
    const std::string order = zip_->read_text("byteorder", 64);
    check(order == "little", ExitCode::model, path(), ": entry 'byteorder': found '",
          printable(order), "', 'little' is expected");
  }
  const FileBytes pickle = zip_->read("data.pkl", kMaxPickle);
  ByteReader reader(pickle.bytes, pickle.path);
  const uint32_t root = PickleReader(reader, content_).read();
  reader.expect_end();
  check_storages();
  collect(root, "", 0);
}

// Five pickles: a magic number, the version, notes about the machine, the content, the keys of the
// storages. Then for each key the number of elements and the values.
void TorchArchive::read_legacy() {
  ByteReader reader(file_.bytes, file_.path);
  reader.take(kMagic.size(), "the magic number");
  const uint32_t version = PickleReader(reader, content_).read();
  if (content_.nodes[version].integer != 1001)
    reader.fault("version ", content_.nodes[version].integer, " of PyTorch's old format");
  const uint32_t machine = PickleReader(reader, content_).read();
  const uint32_t root = PickleReader(reader, content_).read();
  const uint32_t keys = PickleReader(reader, content_).read();
  const std::vector<uint32_t>& machine_items = content_.nodes[machine].items;
  for (size_t i = 0; i + 1 < machine_items.size(); i += 2) {
    const PickleNode &key = content_.nodes[machine_items[i]],
                     &value = content_.nodes[machine_items[i + 1]];
    if (key.kind == PickleKind::text && content_.text(key) == "little_endian" && value.integer != 1)
      reader.fault("the values are big-endian");
  }
  data_.resize(content_.storages.size());
  std::vector<bool> read(content_.storages.size());
  for (const uint32_t item : content_.nodes[keys].items) {
    const PickleNode& key = content_.nodes[item];
    if (key.kind != PickleKind::text) reader.fault("a key of a storage that is no text");
    const auto found = content_.storage_of_key.find(content_.text(key));
    if (found == content_.storage_of_key.end())
      reader.fault("storage '", printable(content_.text(key)), "' belongs to no tensor");
    const PickleStorage& storage = content_.storages[found->second];
    const auto count = reader.number<uint64_t>("the size of a storage");
    if (count != storage.elements || read[found->second])
      reader.fault("storage '", printable(storage.key), "' has ", count, " elements, ",
                   storage.elements, " are expected once");
    reader.expect_items(count, width_of(storage.type), "elements");
    read[found->second] = true;
    data_[found->second] = {file_.path, reader.take(count * width_of(storage.type), "a storage"),
                            file_.owner};
  }
  reader.expect_end();
  for (size_t i = 0; i < read.size(); ++i)
    check(read[i], ExitCode::model, path(), ": storage '", printable(content_.storages[i].key),
          "' has no values");
  check_storages();
  collect(root, "", 0);
}

void TorchArchive::check_storages() {
  for (const PickleStorage& storage : content_.storages) {
    check(storage.elements <= uint64_t{1} << 56, ExitCode::model, path(), ": storage '",
          printable(storage.key), "' has ", storage.elements, " elements");
    const uint64_t size = storage.elements * width_of(storage.type);
    total_ += size;
    if (zip_ == nullptr) continue;
    const std::string entry = "data/" + storage.key;
    check(zip_->contains(entry), ExitCode::model, path(), ": there is no entry '", printable(entry),
          "'");
    check(zip_->size_of(entry) == size, ExitCode::model, path(), ": entry '", printable(entry),
          "': ", zip_->size_of(entry), " bytes, its tensors expect ", size);
  }
  total_ *= kMaxSharing;
}

// Adds the tensors and values of a node. The number of visits is limited, because shared
// dictionaries can have an exponential number of paths.
void TorchArchive::collect(uint32_t number, const std::string& name, size_t depth) {
  check(++visits_ <= kMaxVisits, ExitCode::model, path(), ": more than ", kMaxVisits,
        " values in nested dictionaries");
  check(depth <= kMaxDepth, ExitCode::model, path(), ": '", printable(name),
        "': values are nested more than ", kMaxDepth, " times");
  const PickleNode& node = content_.nodes[number];
  switch (node.kind) {
    case PickleKind::dictionary:
    case PickleKind::list:
    case PickleKind::tuple:
      collect_items(node, name, depth);
      return;
    case PickleKind::tensor:
      add_tensor(content_.tensors[static_cast<size_t>(node.integer)], name);
      tensor_of_.push_back(static_cast<size_t>(node.integer));
      return;
    default:
      collect_value(node, name);
  }
}

void TorchArchive::collect_items(const PickleNode& node, const std::string& name, size_t depth) {
  const std::string prefix = name.empty() ? "" : name + "/";
  const bool keyed = node.kind == PickleKind::dictionary;
  for (size_t i = 0; i < node.items.size(); i += keyed ? 2 : 1) {
    const std::string key =
        keyed ? key_name(content_.nodes[node.items[i]], name) : fmt::format("{}", i);
    check(prefix.size() + key.size() <= kMaxPath, ExitCode::model, path(), ": '", printable(prefix),
          "…': keys of more than ", kMaxPath, " bytes");
    collect(node.items[keyed ? i + 1 : i], prefix + key, depth + 1);
  }
}

std::string TorchArchive::key_name(const PickleNode& key, const std::string& name) const {
  if (key.kind == PickleKind::text) return content_.text(key).substr(0, kMaxPath + 1);
  check(key.kind == PickleKind::integer, ExitCode::model, path(), ": '", printable(name),
        "': a key that is no text or integer");
  return fmt::format("{}", key.integer);
}

void TorchArchive::collect_value(const PickleNode& node, const std::string& name) {
  std::string value;
  switch (node.kind) {
    case PickleKind::boolean:
      value = node.integer != 0 ? "true" : "false";
      break;
    case PickleKind::integer:
      value = fmt::format("{}", node.integer);
      break;
    case PickleKind::number:
      value = fmt::format("{}", node.number);
      break;
    case PickleKind::text:
      value = content_.text(node);
      break;
    default:
      return;
  }
  value_size_ += name.size() + value.size();
  check(value_size_ <= kMaxValues, ExitCode::model, path(), ": '", printable(name),
        "': the texts and numbers have more than ", kMaxValues, " bytes");
  check(!metadata().contains(name), ExitCode::model, path(), ": '", printable(name),
        "' is given twice");
  set_metadata(name, std::move(value));
}

void TorchArchive::add_tensor(const PickleTensor& tensor, const std::string& name) {
  const PickleStorage& storage = content_.storages[tensor.storage];
  const std::optional<uint64_t> end = end_of(tensor);
  const std::string where = path() + ": tensor '" + printable(name) + "': ";
  check(end && *end <= storage.elements, ExitCode::model, where, "it reaches beyond its storage '",
        printable(storage.key), "' of ", storage.elements, " elements");
  add({name, storage.type, tensor.shape});
  const uint64_t size = checked_size(tensors().back(), path());
  check(size / width_of(storage.type) <= storage.elements, ExitCode::model, where,
        "it has more elements than its storage '", printable(storage.key), "'");
  check(size <= total_, ExitCode::model, where, "the tensors have more than ", kMaxSharing,
        " times as many bytes as their storages");
  total_ -= size;
}

FileBytes TorchArchive::storage_bytes(size_t storage) const {
  if (zip_ == nullptr) return data_[storage];
  return zip_->read("data/" + content_.storages[storage].key);
}

TensorBytes TorchArchive::bytes_at(size_t index) const {
  const PickleTensor& tensor = content_.tensors[tensor_of_[index]];
  const uint64_t width = width_of(tensors()[index].type);
  const auto elements = static_cast<size_t>(tensors()[index].elements());
  const FileBytes storage = storage_bytes(tensor.storage);
  if (elements == 0) return {};
  if (is_contiguous(tensor))
    return {storage.bytes.subspan(tensor.offset * width, elements * width), storage.owner};
  auto copy = std::make_shared<const std::vector<std::byte>>(
      gather(tensor, storage.bytes, width, elements));
  return {*copy, copy};
}

}  // namespace fovea

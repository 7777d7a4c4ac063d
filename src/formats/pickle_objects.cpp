// The instructions of a pickle that create objects, of PickleReader.
#include "base/utf8.h"
#include "formats/pickle_globals.h"
#include "formats/pickle_reader.h"

namespace fovea {
namespace {

enum Code : uint8_t {
  kGlobal = 'c',
  kBinPersistentId = 'Q',
  kReduce = 'R',
  kBuild = 'b',
  kNewObject = 0x81,
  kStackGlobal = 0x93,
};

constexpr size_t kMaxLine = 256;
constexpr int64_t kNamespace = 1;  // of a dictionary: its values are attributes

}  // namespace

bool PickleReader::read_object(uint8_t code) {
  switch (code) {
    case kGlobal: {
      const std::string module = line(), name = line();
      push_global(module, name);
      break;
    }
    case kStackGlobal: {
      const std::vector<uint32_t> names = pop_many(2);
      push_global(text(names[0], "the name of a module"), text(names[1], "the name of a class"));
      break;
    }
    case kReduce:
    case kNewObject:
      call();
      break;
    case kBuild:
      build();
      break;
    case kBinPersistentId:
      push_storage();
      break;
    default:
      return false;
  }
  return true;
}

std::string PickleReader::line() {
  std::string out;
  for (;;) {
    const char c = reader_.text(1, "the name of a class")[0];
    if (c == '\n') return out;
    out += c;
    if (out.size() > kMaxLine) reader_.fault("a name of more than ", kMaxLine, " bytes");
  }
}

void PickleReader::push_global(const std::string& module, const std::string& name) {
  const PickleGlobalRow* row = find_pickle_global(module, name);
  if (row == nullptr)
    reader_.fault("the pickle uses '", printable(module + "." + name),
                  "', which is not needed for tensors; Fovea does not execute pickles");
  const uint32_t node = add(PickleKind::global);
  content_.nodes[node].integer = static_cast<int64_t>(row->meaning);
  content_.nodes[node].number = static_cast<double>(row->type);
  push(node);
}

// REDUCE and NEWOBJ: a global and a tuple of arguments.
void PickleReader::call() {
  const std::vector<uint32_t> parts = pop_many(2);
  if (at(parts[0]).kind != PickleKind::global || at(parts[1]).kind != PickleKind::tuple)
    reader_.fault("a call of a value that is no function, or without a tuple of arguments");
  const std::vector<uint32_t>& arguments = at(parts[1]).items;
  switch (static_cast<PickleGlobal>(at(parts[0]).integer)) {
    case PickleGlobal::ordered_dict:
      push_dictionary(arguments);
      return;
    case PickleGlobal::namespace_class:
      push_items(PickleKind::dictionary, {});
      content_.nodes[stack_.back()].integer = kNamespace;
      return;
    case PickleGlobal::rebuild_tensor:
      push_tensor(arguments);
      return;
    case PickleGlobal::rebuild_parameter:
      if (arguments.empty() || at(arguments[0]).kind != PickleKind::tensor)
        reader_.fault("a parameter without a tensor");
      push(arguments[0]);
      return;
    case PickleGlobal::ignored:
      push(add(PickleKind::ignored));
      return;
    case PickleGlobal::storage_class:
      reader_.fault("a call of a storage class");
  }
}

// OrderedDict() or OrderedDict([[key, value], …]).
void PickleReader::push_dictionary(const std::vector<uint32_t>& arguments) {
  std::vector<uint32_t> items;
  if (arguments.size() > 1) reader_.fault("a dictionary of ", arguments.size(), " arguments");
  if (!arguments.empty()) {
    if (at(arguments[0]).kind != PickleKind::list) reader_.fault("a dictionary of no list");
    count_items(at(arguments[0]).items.size());
    for (const uint32_t pair : at(arguments[0]).items) {
      const PickleNode& node = at(pair);
      const bool is_pair = node.kind == PickleKind::list || node.kind == PickleKind::tuple;
      if (!is_pair || node.items.size() != 2) reader_.fault("a dictionary of values without keys");
      items.insert(items.end(), node.items.begin(), node.items.end());
    }
  }
  push_items(PickleKind::dictionary, std::move(items));
}

// Sets the attributes of an object. Those of a Namespace are its values. Those of an OrderedDict
// are notes of PyTorch, which have no meaning here.
void PickleReader::build() {
  const uint32_t state = pop(), object = pop();
  PickleNode& node = content_.nodes[object];
  const bool takes = node.kind == PickleKind::dictionary || node.kind == PickleKind::ignored;
  if (!takes) reader_.fault("attributes of a value that has none");
  if (node.kind == PickleKind::dictionary && node.integer == kNamespace) {
    if (at(state).kind != PickleKind::dictionary)
      reader_.fault("attributes that are no dictionary");
    count_items(at(state).items.size());
    node.items = std::vector<uint32_t>(at(state).items);
  }
  push(object);
}

// ('storage', class, key, device, number of elements[, view])
void PickleReader::push_storage() {
  const uint32_t id = pop();
  const std::vector<uint32_t>& parts = at(id).items;
  if (at(id).kind != PickleKind::tuple || (parts.size() != 5 && parts.size() != 6))
    reader_.fault("a persistent id that is no tuple of 5 or 6 values");
  if (text(parts[0], "the kind of a persistent id") != "storage")
    reader_.fault("a persistent id that is no storage");
  const PickleNode& type = at(parts[1]);
  if (type.kind != PickleKind::global ||
      static_cast<PickleGlobal>(type.integer) != PickleGlobal::storage_class)
    reader_.fault("a storage without a storage class");
  if (parts.size() == 6 && at(parts[5]).kind != PickleKind::none)
    reader_.fault("a storage that is a view of another one");
  const int64_t count = integer(parts[4], "the size of a storage");
  if (count < 0) reader_.fault("a storage of ", count, " elements");
  PickleStorage storage{text(parts[2], "the key of a storage"),
                        static_cast<StoredType>(static_cast<int>(type.number)),
                        static_cast<uint64_t>(count)};
  const auto [known, added] =
      content_.storage_of_key.emplace(storage.key, content_.storages.size());
  if (added) {
    content_.storages.push_back(storage);
  } else {
    const PickleStorage& first = content_.storages[known->second];
    if (first.type != storage.type || first.elements != storage.elements)
      reader_.fault("storage '", printable(storage.key), "' with two types or sizes");
  }
  push(add(PickleKind::storage, static_cast<int64_t>(known->second)));
}

// (storage, offset, shape, strides, …)
void PickleReader::push_tensor(const std::vector<uint32_t>& arguments) {
  if (arguments.size() < 4 || at(arguments[0]).kind != PickleKind::storage)
    reader_.fault("a tensor without storage, offset, shape and strides");
  const int64_t offset = integer(arguments[1], "the offset of a tensor");
  if (offset < 0) reader_.fault("a tensor with the offset ", offset);
  PickleTensor tensor{static_cast<size_t>(at(arguments[0]).integer),
                      static_cast<uint64_t>(offset),
                      sizes(arguments[2], "the shape of a tensor"),
                      {}};
  for (const int64_t stride : sizes(arguments[3], "the strides of a tensor"))
    tensor.strides.push_back(static_cast<uint64_t>(stride));
  if (tensor.strides.size() != tensor.shape.size())
    reader_.fault("a tensor with ", tensor.shape.size(), " dimensions and ", tensor.strides.size(),
                  " strides");
  content_.tensors.push_back(std::move(tensor));
  push(add(PickleKind::tensor, static_cast<int64_t>(content_.tensors.size()) - 1));
}

std::vector<int64_t> PickleReader::sizes(uint32_t tuple, const char* what) const {
  const PickleNode& node = at(tuple);
  if (node.kind != PickleKind::tuple) reader_.fault(what, ": no tuple");
  if (node.items.size() > SafetensorsFile::kMaxRank)
    reader_.fault(what, ": a rank of ", node.items.size(), ", at most ", SafetensorsFile::kMaxRank,
                  " is allowed");
  std::vector<int64_t> values;
  for (const uint32_t item : node.items) {
    values.push_back(integer(item, what));
    if (values.back() < 0) reader_.fault(what, ": found ", values.back());
  }
  return values;
}

int64_t PickleReader::integer(uint32_t node, const char* what) const {
  if (at(node).kind != PickleKind::integer) reader_.fault(what, ": no integer");
  return at(node).integer;
}

const std::string& PickleReader::text(uint32_t node, const char* what) const {
  if (at(node).kind != PickleKind::text) reader_.fault(what, ": no text");
  return content_.text(at(node));
}

}  // namespace fovea

#include "formats/safetensors_archive.h"

#include <optional>
#include <set>

#include "base/strict_json.h"
#include "base/utf8.h"

namespace fovea {
namespace {

// {"metadata": {…}, "weight_map": {"tensor": "file", …}}. The content of the metadata is ignored.
class IndexEvents : public StrictJson {
 public:
  explicit IndexEvents(const std::string& path) : StrictJson(path, "the index") {}

  WeightMap take() {
    if (!complete_) fault("no weight_map");
    return std::move(map_);
  }

  bool start_object(size_t) override {
    if (++depth_ > 2) return refuse("an object");
    if (depth_ == 2 && section_ == "weight_map") complete_ = true;
    return true;
  }
  bool end_object() override { return --depth_, true; }
  bool key(string_t& text) override {
    if (depth_ == 2) {
      name_ = text;
      return true;
    }
    if (!sections_.insert(text).second) fault("key '" + printable(text) + "' is given twice");
    if (text != "metadata" && text != "weight_map")
      fault("unknown key '" + printable(text) + "'; 'metadata' and 'weight_map' are known");
    section_ = text;
    return true;
  }
  bool string(string_t& text) override {
    if (in_metadata()) return true;
    if (depth_ != 2) return refuse("a string");
    if (map_.size() >= SafetensorsFile::kMaxTensors) fault("too many tensors");
    if (!map_.emplace(name_, text).second)
      fault("tensor '" + printable(name_) + "' is given twice");
    return true;
  }
  bool boolean(bool) override { return in_metadata() || refuse("true or false"); }
  bool null() override { return in_metadata() || refuse("null"); }
  bool number_integer(number_integer_t) override { return in_metadata() || refuse("a number"); }
  bool number_unsigned(number_unsigned_t) override { return in_metadata() || refuse("a number"); }
  bool number_float(number_float_t, const string_t&) override {
    return in_metadata() || refuse("a fraction");
  }

 private:
  bool in_metadata() const { return depth_ == 2 && section_ == "metadata"; }

  int depth_ = 0;
  bool complete_ = false;
  std::set<std::string> sections_;
  std::string section_, name_;
  WeightMap map_;
};

// A shard is a plain file name, so that an index cannot name files elsewhere.
void check_shard_name(const std::string& name, const std::string& path) {
  const bool plain = !name.empty() && name.size() <= 255 && name.front() != '.' &&
                     name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
  check(plain, ExitCode::model, path, ": file '", printable(name),
        "' is not a plain file name; shards must be in the folder of the index");
}

}  // namespace

WeightMap read_weight_map(std::string_view json, const std::string& path) {
  IndexEvents events(path);
  events.read(json);
  WeightMap map = events.take();
  for (const auto& [tensor, shard] : map) check_shard_name(shard, path);
  return map;
}

SafetensorsArchive::SafetensorsArchive(FileBytes file)
    : TensorArchive(file.path), bytes_(std::move(file)),
      file_(SafetensorsFile::parse(bytes_.bytes, bytes_.path)) {
  for (const TensorInfo& t : file_.tensors()) add({t.name, t.dtype, t.shape});
  for (const auto& [key, value] : file_.metadata()) set_metadata(key, value);
}

TensorBytes SafetensorsArchive::bytes_at(size_t index) const {
  return {file_.data(file_.tensors()[index]), nullptr};
}

ShardedSafetensors::ShardedSafetensors(const std::string& index_path) : TensorArchive(index_path) {
  const WeightMap map = read_weight_map(read_file(index_path, kMaxIndex, ExitCode::model), path());
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map) shards.insert(shard);
  check(shards.size() <= kMaxShards, ExitCode::model, path(), ": ", shards.size(),
        " files, at most ", kMaxShards, " are allowed");
  size_t found = 0;
  for (const std::string& shard : shards) {
    const std::string file = parent_directory(index_path) + "/" + shard;
    files_.push_back(FileBytes::map(file));
    const SafetensorsFile content = SafetensorsFile::parse(files_.back().bytes, file);
    for (const TensorInfo& t : content.tensors()) {
      const auto named = map.find(t.name);
      check(named == map.end() || named->second == shard, ExitCode::model, file, ": tensor '",
            printable(t.name), "' is here, but ", path(), " gives another file");
      found += named != map.end() ? 1 : 0;
      add({t.name, t.dtype, t.shape});
      places_.push_back(content.data(t));
    }
    for (const auto& [key, value] : content.metadata()) set_metadata(key, value);
  }
  if (found == map.size()) return;
  for (const auto& [tensor, shard] : map)
    check(find(tensor) != nullptr, ExitCode::model, path(), ": tensor '", printable(tensor),
          "' is not in ", printable(shard));
}

}  // namespace fovea

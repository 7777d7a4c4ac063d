#include "formats/model_folder.h"

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "base/utf8.h"
#include "formats/zip_folder.h"

namespace fovea {
namespace {

// A folder of the file system. Follows links to files, as the cache of Hugging Face has them, but
// no links to folders.
class DiskFolder : public ModelFolder {
 public:
  explicit DiskFolder(const std::string& path) : ModelFolder(path) {
    namespace fs = std::filesystem;
    std::vector<std::string> names;
    std::error_code error;
    fs::recursive_directory_iterator at(path, error), end;
    for (; !error && at != end; at.increment(error)) {
      if (at.depth() >= static_cast<int>(kMaxDepth)) at.disable_recursion_pending();
      std::error_code ignored;  // a link without a file
      if (!at->is_regular_file(ignored)) continue;
      check(names.size() < kMaxFiles, ExitCode::model, path, ": more than ", kMaxFiles, " files");
      names.push_back(at->path().lexically_relative(path).generic_string());
    }
    check(!error, ExitCode::files, path, ": cannot list the folder: ", error.message());
    set_names(std::move(names));
  }

 private:
  FileBytes load(const std::string& name, uint64_t limit) const override {
    FileBytes file = FileBytes::map(path_of(name));
    check(file.bytes.size() <= limit, ExitCode::model, file.path, ": ", file.bytes.size(),
          " bytes, at most ", limit, " are allowed");
    return file;
  }
};

bool is_unsafe_part(std::string_view part) { return part.empty() || part == "." || part == ".."; }

}  // namespace

const char* unsafe_name(std::string_view name) {
  if (name.empty()) return "it is empty";
  if (name.size() > ModelFolder::kMaxName) return "it is too long";
  if (!is_utf8(name)) return "it is not UTF-8";
  if (name.find_first_of(std::string_view("\\\0", 2)) != name.npos) return "it has a '\\' or NUL";
  if (name.front() == '/') return "it is an absolute path";
  if (name.size() > 1 && name[1] == ':') return "it names a drive";
  if (name.back() == '/') name.remove_suffix(1);  // a folder
  size_t parts = 0;
  for (size_t begin = 0; begin <= name.size(); ++parts) {
    const size_t end = std::min(name.find('/', begin), name.size());
    if (is_unsafe_part(name.substr(begin, end - begin))) return "it has an empty part, '.' or '..'";
    begin = end + 1;
  }
  return parts > ModelFolder::kMaxDepth ? "it has too many parts" : nullptr;
}

std::unique_ptr<ModelFolder> ModelFolder::open(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return std::make_unique<DiskFolder>(path);
  return std::make_unique<ZipFolder>(FileBytes::map(path), ZipNames::without_root);
}

void ModelFolder::set_names(std::vector<std::string> names) {
  names_ = std::move(names);
  std::ranges::sort(names_);
}

bool ModelFolder::contains(std::string_view name) const {
  return std::ranges::binary_search(names_, name);
}

FileBytes ModelFolder::read(std::string_view name, uint64_t limit) const {
  check(contains(name), ExitCode::model, path_, ": there is no file '", printable(name), "'");
  return load(std::string(name), limit);
}

std::string ModelFolder::read_text(std::string_view name, uint64_t limit) const {
  const FileBytes file = read(name, limit);
  return {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()};
}

}  // namespace fovea

#include "train/numbered_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/files.h"
#include "base/log.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kExtension = ".safetensors";

template <class Visit>
void for_each_file(const std::string& directory, Visit visit) {
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    visit(*at);
}

}  // namespace

std::string FileSeries::path(int64_t number) const {
  return fmt::format("{}/{}-{:08}{}", directory_, prefix_, number, kExtension);
}

std::vector<int64_t> FileSeries::numbers() const {
  std::vector<int64_t> found;
  for_each_file(directory_, [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix_ + "-") || !name.ends_with(kExtension)) return;
    const char* begin = name.data() + prefix_.size() + 1;
    const char* end = name.data() + name.size() - kExtension.size();
    int64_t number = 0;
    const auto [stop, error] = std::from_chars(begin, end, number);
    if (error == std::errc() && stop == end && number >= 0) found.push_back(number);
  });
  std::ranges::sort(found);
  return found;
}

void FileSeries::remove(int64_t number) const {
  std::error_code error;
  fs::remove(path(number), error);
  if (error) log_warning("{}: cannot remove: {}", path(number), error.message());
}

void FileSeries::prune(int64_t newest, int64_t keep) const {
  std::vector<int64_t> old = numbers();
  std::erase_if(old, [&](int64_t n) { return n > newest; });
  for (size_t i = 0; i + static_cast<size_t>(keep) < old.size(); ++i) remove(old[i]);
}

void make_directory(const std::string& path) {
  std::vector<std::string> made;  // parents of new directories, which must be synced to the disk
  std::error_code error;
  for (fs::path at = fs::path(path).lexically_normal(); !at.empty() && !fs::exists(at, error);
       at = at.parent_path())
    made.push_back(parent_directory(at.has_filename() ? at.string() : at.parent_path().string()));
  fs::create_directories(path, error);
  if (error) fail_errno(path, "create the directory", error.value());
  for (const std::string& parent : made) sync_directory(parent);
}

void remove_temporaries(const std::string& directory) {
  std::vector<fs::path> stale;
  for_each_file(directory, [&](const fs::directory_entry& entry) {
    if (entry.path().filename().string().find(".tmp-") != std::string::npos)
      stale.push_back(entry.path());
  });
  std::error_code error;
  for (const fs::path& path : stale) fs::remove(path, error);
}

}  // namespace fovea

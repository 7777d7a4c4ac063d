#include "formats/zip_folder.h"

#include <sys/stat.h>
#include <zip.h>

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"

namespace fovea {
namespace {

constexpr size_t kEndSize = 22;  // of the last record, without the comment

std::string text_of(zip_error_t& error) {
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

bool is_link(zip_t* archive, uint64_t index) {
  zip_uint8_t system = 0;
  zip_uint32_t attributes = 0;
  if (zip_file_get_external_attributes(archive, index, 0, &system, &attributes) != 0) return false;
  return system == ZIP_OPSYS_UNIX && S_ISLNK(attributes >> 16);
}

}  // namespace

void ZipFolder::ZipCloser::operator()(zip* archive) const { zip_discard(archive); }

ZipFolder::ZipFolder(FileBytes file, ZipNames names)
    : ModelFolder(file.path), file_(std::move(file)) {
  open();
  read_directory();
  if (names == ZipNames::without_root) remove_root();
  std::vector<std::string> all;
  for (const auto& [name, entry] : entries_) all.push_back(name);
  set_names(std::move(all));
}

bool ZipFolder::recognises(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.starts_with("PK\3\4") || text.starts_with("PK\5\6");
}

void ZipFolder::open() {
  // libzip looks for the directory in the last 64 KB. The signature at the start makes sure that a
  // file of another kind gets a clear message.
  check(recognises(file_.bytes), ExitCode::model, path(), ": byte 0: not a zip file");
  // Without ZIP_CHECKCONS, which refuses entries with the CRC-32 only behind the data. Packages of
  // Argos have such entries.
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source =
      zip_source_buffer_create(file_.bytes.data(), file_.bytes.size(), 0, &error);
  if (source != nullptr) zip_.reset(zip_open_from_source(source, ZIP_RDONLY, &error));
  if (source != nullptr && zip_ == nullptr) zip_source_free(source);
  check(zip_ != nullptr, ExitCode::model, path(), ": damaged zip file: ", text_of(error));
  zip_error_fini(&error);
  int comment = 0;
  zip_get_archive_comment(zip_.get(), &comment, ZIP_FL_ENC_RAW);
  const std::string_view text(reinterpret_cast<const char*>(file_.bytes.data()),
                              file_.bytes.size());
  const size_t tail = kEndSize + static_cast<size_t>(std::max(comment, 0));
  check(text.size() >= tail && text.substr(text.size() - tail).starts_with("PK\5\6"),
        ExitCode::model, path(), ": damaged zip file: bytes after its end");
}

void ZipFolder::check_entry(uint64_t index, std::string_view name) const {
  const auto expect = [&](bool ok, const char* problem) {
    check(ok, ExitCode::model, path(), ": entry '", printable(name), "': ", problem);
  };
  zip_stat_t stat;
  expect(zip_stat_index(zip_.get(), index, ZIP_FL_UNCHANGED, &stat) == 0, "damaged");
  constexpr uint64_t kNeeded =
      ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  expect((stat.valid & kNeeded) == kNeeded, "no size or method");
  expect(stat.encryption_method == ZIP_EM_NONE, "it is encrypted");
  expect(stat.comp_method == ZIP_CM_STORE || stat.comp_method == ZIP_CM_DEFLATE,
         "its compression is unknown; only stored and deflated entries are supported");
  expect(stat.comp_method != ZIP_CM_STORE || stat.size == stat.comp_size,
         "it is stored, but its two sizes differ");
  expect(stat.comp_size <= file_.bytes.size(), "it is longer than the file");
  expect(!is_link(zip_.get(), index), "it is a link");
}

void ZipFolder::read_directory() {
  const zip_int64_t count = zip_get_num_entries(zip_.get(), ZIP_FL_UNCHANGED);
  check(count <= static_cast<zip_int64_t>(kMaxFiles), ExitCode::model, path(), ": ", count,
        " entries, at most ", kMaxFiles, " are allowed");
  const uint64_t most = kMaxRatio * file_.bytes.size() + kFreeBytes;
  uint64_t total = 0;
  for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i) {
    const char* raw = zip_get_name(zip_.get(), i, ZIP_FL_ENC_RAW);
    const std::string name = raw == nullptr ? "" : raw;
    const char* unsafe = unsafe_name(name);
    check(unsafe == nullptr, ExitCode::model, path(), ": entry ", i, ", '", printable(name),
          "': unsafe name: ", unsafe == nullptr ? "" : unsafe);
    check_entry(i, name);
    zip_stat_t stat;
    zip_stat_index(zip_.get(), i, ZIP_FL_UNCHANGED, &stat);
    check(stat.size <= most && (total += stat.size) <= most, ExitCode::model, path(), ": entry '",
          printable(name), "': the content is more than ", kMaxRatio,
          " times as long as the file (zip bomb?)");
    if (name.back() == '/') continue;
    check(entries_.emplace(name, Entry{i, stat.size}).second, ExitCode::model, path(), ": entry '",
          printable(name), "' occurs twice");
  }
}

void ZipFolder::remove_root() {
  if (entries_.empty()) return;
  const std::string& first = entries_.begin()->first;
  const std::string root = first.substr(0, first.find('/') + 1);
  if (root.empty()) return;
  std::map<std::string, Entry> relative;
  for (const auto& [name, entry] : entries_) {
    if (!name.starts_with(root)) return;
    relative.emplace(name.substr(root.size()), entry);
  }
  root_ = root;
  entries_ = std::move(relative);
}

std::vector<std::byte> ZipFolder::unpack(const std::string& name, uint64_t size) const {
  const Entry& entry = entries_.at(name);
  const auto broken = [&](const std::string& problem) {
    fail(ExitCode::model, path(), ": entry '", printable(name), "': ", problem);
  };
  std::vector<std::byte> bytes(size);
  const std::lock_guard lock(mutex_);
  const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file(
      zip_fopen_index(zip_.get(), entry.index, ZIP_FL_UNCHANGED), zip_fclose);
  if (file == nullptr) broken(zip_strerror(zip_.get()));
  uint64_t done = 0;
  while (done < size) {
    const zip_int64_t got = zip_fread(file.get(), bytes.data() + done, size - done);
    if (got < 0) broken(zip_file_strerror(file.get()));
    if (got == 0) break;
    done += static_cast<uint64_t>(got);
  }
  if (done < size) broken("its content is shorter than its size");
  std::byte more;  // the end of the content, where libzip checks the CRC
  if (size == entry.size && zip_fread(file.get(), &more, 1) != 0)
    broken("its content is longer than its size, or its CRC-32 is wrong");
  return bytes;
}

FileBytes ZipFolder::load(const std::string& name, uint64_t limit) const {
  const uint64_t size = size_of(name);
  check(size <= limit, ExitCode::model, path_of(name), ": ", size, " bytes, at most ", limit,
        " are allowed");
  return FileBytes::of(unpack(name, size), path_of(name));
}

std::vector<std::byte> ZipFolder::beginning(const std::string& name, uint64_t size) const {
  return unpack(name, std::min(size, size_of(name)));
}

}  // namespace fovea

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "formats/file_bytes.h"
#include "formats/model_folder.h"

struct zip;

namespace fovea {

// Whether names omit the folder that all files of a zip file are in.
enum class ZipNames { complete, without_root };

// A zip file, read with libzip. The constructor refuses: unsafe names, names that occur twice,
// links, encryption, compression other than deflate, and content of more than kMaxRatio times the
// size of the file plus kFreeBytes (zip bombs). Reading checks size and CRC-32 of the content.
class ZipFolder : public ModelFolder {
 public:
  static constexpr uint64_t kMaxRatio = 200, kFreeBytes = uint64_t{16} << 20;

  ZipFolder(FileBytes file, ZipNames names);

  static bool recognises(std::span<const std::byte> bytes);

  // The folder that names omit, with '/' at its end. Can be empty.
  const std::string& root() const { return root_; }
  uint64_t size_of(const std::string& name) const { return entries_.at(name).size; }
  // The first bytes of a file: `size` of them or the whole file.
  std::vector<std::byte> beginning(const std::string& name, uint64_t size) const;

 private:
  struct Entry {
    uint64_t index, size;
  };
  struct ZipCloser {
    void operator()(zip* archive) const;
  };

  void open();
  void read_directory();
  void check_entry(uint64_t index, std::string_view name) const;
  void remove_root();
  FileBytes load(const std::string& name, uint64_t limit) const override;
  std::vector<std::byte> unpack(const std::string& name, uint64_t size) const;

  FileBytes file_;
  mutable std::mutex mutex_;  // guards zip_, which is not thread-safe
  std::unique_ptr<zip, ZipCloser> zip_;
  std::map<std::string, Entry> entries_;
  std::string root_;
};

}  // namespace fovea

#pragma once

#include <string>
#include <string_view>

#include "base/files.h"

namespace fovea {

// An append-only file of records without which training can continue, such as metrics. A full or
// failing disk causes one warning and never stops the run. Each record is written in full and
// without buffering. If a write fails half-way, the file is truncated to its length before the
// record, so that it stays valid.
class AppendFile {
 public:
  enum class Open { existing_or_new, only_new };
  AppendFile(std::string path, Open how);

  bool append(std::string_view record);
  bool sync();  // writes the appended records to the disk (fsync)
  bool is_open() const { return fd_.get() >= 0; }
  const std::string& path() const { return path_; }

 private:
  bool warn_once(std::string_view action, int error);  // returns false

  std::string path_;
  FileDescriptor fd_;
  bool warned_ = false;
};

}  // namespace fovea

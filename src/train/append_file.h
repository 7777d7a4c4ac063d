#pragma once

#include <string>
#include <string_view>

#include "base/files.h"

namespace fovea {

// A file of records that training adds to and can do without: a full or failing disk costs a
// warning, once, never the run. Each record goes to the system whole and at once; of one that
// fails half-way the beginning is cut off again, so that later records stand on a sound file.
class AppendFile {
 public:
  enum class Open { existing_or_new, only_new };
  AppendFile(std::string path, Open how);

  bool append(std::string_view record);
  bool sync();  // makes what was appended survive a power cut
  bool is_open() const { return fd_.get() >= 0; }
  const std::string& path() const { return path_; }

 private:
  bool trouble(std::string_view what, int error);

  std::string path_;
  Descriptor fd_;
  bool warned_ = false;
};

}  // namespace fovea

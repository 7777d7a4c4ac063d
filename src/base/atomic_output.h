#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/lines.h"

namespace fovea {

// Throws ExitCode::usage if `output` is the input file, because the program would overwrite it.
void check_not_overwritten(const std::string& input, const std::string& output);

// Throws ExitCode::files if the program cannot create the file `output`. Call it before long work
// whose result goes to this file.
void check_writable(const std::string& output);

// A file that appears under its name only when it is complete. The program writes to a temporary
// file in the same directory, and close() renames it. If the program fails or a signal ends it, the
// temporary file is removed and the old file does not change. If the path is a pipe, a device or
// "-", the bytes go there directly. At most one object may exist at a time, because the signal
// handler knows only one file name.
class WholeFile {
 public:
  // Throws ExitCode::files if the file cannot be written.
  explicit WholeFile(const std::string& path);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();

  void write(std::string_view text) { out_->write(text); }
  void flush() { out_->flush(); }
  void close();

 private:
  void open_temporary();

  std::string path_, temporary_;  // temporary_ is empty if path_ is written directly
  std::unique_ptr<OutputFile> out_;
};

}  // namespace fovea

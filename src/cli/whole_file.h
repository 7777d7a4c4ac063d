#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/lines.h"

namespace fovea {

// Exit::usage where `output` is the file that is read, which would be lost.
void check_not_overwritten(const std::string& input, const std::string& output);

// Exit::files where a file that appears as a whole could not be written there: to be asked before
// long work whose result it is.
void check_writable(const std::string& output);

// A result that is written as it comes and seen under its name only when it is whole: the lines
// gather in a file beside it, which close() renames and which goes when the program fails or is
// ended by a signal, so that what stood there before stays. Pipes, devices and "-" get each line
// as it comes. At most one may live at a time.
class WholeFile {
 public:
  // Exit::files where it cannot be written.
  explicit WholeFile(const std::string& path);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();

  void write(std::string_view text) { out_->write(text); }
  void flush() { out_->flush(); }
  void close();

 private:
  void open_beside();

  std::string path_, beside_;  // beside_ is empty where path_ itself is written
  std::unique_ptr<OutputFile> out_;
};

}  // namespace fovea

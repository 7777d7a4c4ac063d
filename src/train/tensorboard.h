#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "train/append_file.h"

namespace fovea {

// These functions return one record of a TensorBoard event file as bytes (docs/formats.md). A
// record is a TFRecord: length, masked CRC-32C of the length, an Event message, masked CRC-32C of
// the message.
std::string version_record(double wall_time);
std::string session_record(int64_t step, double wall_time);
std::string scalar_record(std::string_view tag, float value, int64_t step, double wall_time);

// A writer of DIRECTORY/events.out.tfevents.TIME.HOST.PID.N, a new file for each run. No method
// throws: if it cannot write, it returns false, and the first failure is logged as a warning.
class TensorBoard {
 public:
  // `resumed_at` is the update of the checkpoint that this run resumes from. TensorBoard then hides
  // the records of later updates in older files of the directory.
  explicit TensorBoard(const std::string& directory, std::optional<int64_t> resumed_at = {});

  bool scalar(std::string_view tag, double value, int64_t step);
  const std::string& path() const { return file_.path(); }

 private:
  AppendFile file_;
};

}  // namespace fovea

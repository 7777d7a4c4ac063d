#include "train/tensorboard.h"

#include <unistd.h>

#include <bit>
#include <chrono>
#include <filesystem>

#include "base/crc32c.h"

namespace fovea {
namespace {

// The wire types of Protobuf. A field is encoded as number and type in one varint, then the value.
enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void put_little_endian(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_key(std::string& out, uint32_t field, Wire type) { put_varint(out, field << 3 | type); }

void put_double(std::string& out, uint32_t field, double value) {
  put_key(out, field, kFixed64);
  put_little_endian(out, std::bit_cast<uint64_t>(value), 8);
}

void put_float(std::string& out, uint32_t field, float value) {
  put_key(out, field, kFixed32);
  put_little_endian(out, std::bit_cast<uint32_t>(value), 4);
}

void put_integer(std::string& out, uint32_t field, int64_t value) {
  put_key(out, field, kVarint);
  put_varint(out, static_cast<uint64_t>(value));
}

void put_bytes(std::string& out, uint32_t field, std::string_view value) {
  put_key(out, field, kBytes);
  put_varint(out, value.size());
  out += value;
}

uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(as_byte_span(bytes));
  return std::rotr(crc, 15) + 0xA282EAD8u;
}

std::string tf_record(std::string_view message) {
  std::string out;
  put_little_endian(out, message.size(), 8);
  put_little_endian(out, masked_crc(out), 4);
  out += message;
  put_little_endian(out, masked_crc(message), 4);
  return out;
}

double now() {
  using namespace std::chrono;
  return duration<double>(system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  char name[256] = "localhost";
  if (gethostname(name, sizeof name - 1) != 0) return "localhost";
  std::string host = name;
  for (char& c : host)
    if (c == '/') c = '_';
  return host;
}

// Creates the file. Two runs of one process may start within one second; then the last number of
// the file name differs.
AppendFile new_event_file(const std::string& directory) {
  std::error_code ignored;  // AppendFile reports a missing directory
  std::filesystem::create_directories(directory, ignored);
  const std::string stem = directory + "/events.out.tfevents." +
                           std::to_string(static_cast<int64_t>(now())) + "." + host_name() + "." +
                           std::to_string(getpid()) + ".";
  for (int number = 0;; ++number) {
    const std::string path = stem + std::to_string(number);
    if (std::filesystem::exists(path, ignored)) continue;
    return AppendFile(path, AppendFile::Open::only_new);
  }
}

}  // namespace

std::string version_record(double wall_time) {
  std::string event;
  put_double(event, 1, wall_time);
  put_bytes(event, 3, "brain.Event:2");
  return tf_record(event);
}

std::string session_record(int64_t step, double wall_time) {
  std::string session, event;
  put_integer(session, 1, 1);  // SessionLog.status = START
  put_double(event, 1, wall_time);
  put_integer(event, 2, step);
  put_bytes(event, 7, session);
  return tf_record(event);
}

std::string scalar_record(std::string_view tag, float value, int64_t step, double wall_time) {
  std::string entry, summary, event;
  put_bytes(entry, 1, tag);
  put_float(entry, 2, value);
  put_bytes(summary, 1, entry);  // Event { 1: wall_time, 2: step, 5: Summary { 1: Value } }
  put_double(event, 1, wall_time);
  put_integer(event, 2, step);
  put_bytes(event, 5, summary);
  return tf_record(event);
}

TensorBoard::TensorBoard(const std::string& directory, std::optional<int64_t> resumed_at)
    : file_(new_event_file(directory)) {
  file_.append(version_record(now()));
  if (resumed_at) file_.append(session_record(*resumed_at + 1, now()));
}

bool TensorBoard::scalar(std::string_view tag, double value, int64_t step) {
  return file_.append(scalar_record(tag, static_cast<float>(value), step, now()));
}

}  // namespace fovea

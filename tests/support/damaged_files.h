#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "formats/file_bytes.h"
#include "temporary.h"
#include "thread_seconds.h"

namespace fovea::testing {

// Little-endian bytes of values, one after the other: le<uint32_t>(6) + le<uint8_t>(0).
template <class T>
std::string le(T value) {
  std::string out(sizeof(T), '\0');
  std::memcpy(out.data(), &value, sizeof(T));
  return out;
}

template <class T>
std::string le_list(const std::vector<T>& values) {
  std::string out;
  for (const T value : values) out += le<T>(value);
  return out;
}

inline FileBytes file_of(std::string_view bytes, const std::string& name) {
  const auto span = as_byte_span(bytes);
  return FileBytes::of({span.begin(), span.end()}, name);
}

// A file that a reader must refuse, with a part of the message.
struct DamagedFile {
  std::string kind, bytes, says;
};

using FileReader = std::function<void(const FileBytes&)>;

inline double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Checks that the reader refuses each file with ExitCode::model and the name of the file, within
// a second and 64 MB.
inline void expect_refused(const std::vector<DamagedFile>& files, const std::string& name,
                           const FileReader& read) {
  std::set<std::string> kinds;
  for (const DamagedFile& damaged : files) {
    SCOPED_TRACE(damaged.kind);
    EXPECT_TRUE(kinds.insert(damaged.kind).second) << "the kind is tested twice";
    const FileBytes file = file_of(damaged.bytes, name);
    const double begin = thread_seconds(), memory = peak_megabytes();
    const std::string message = message_of(ExitCode::model, [&] { read(file); });
    EXPECT_NE(message.find(damaged.says), std::string::npos) << message;
    EXPECT_TRUE(message.starts_with(name)) << message;
    EXPECT_LT(message.size(), 400u);
    EXPECT_LT(thread_seconds() - begin, time_limit(1));
    EXPECT_LT(peak_megabytes() - memory, 64);
  }
}

// Checks that the reader refuses every beginning of the file.
inline void expect_beginnings_refused(const std::string& bytes, const std::string& name,
                                      const FileReader& read) {
  for (size_t n = 0; n < bytes.size(); ++n) {
    SCOPED_TRACE(n);
    message_of(ExitCode::model, [&] { read(file_of(bytes.substr(0, n), name)); });
  }
  read(file_of(bytes, name));
}

// Checks that the file with one changed byte, at any place, is refused with ExitCode::model or can
// be read.
inline void expect_changes_survived(std::string bytes, const std::string& name,
                                    const FileReader& read) {
  for (size_t at = 0; at < bytes.size(); ++at) {
    const char before = bytes[at];
    for (const int change : {0x01, 0x80, 0xFF, before & 0xFF}) {  // the last gives 0
      bytes[at] = static_cast<char>(before ^ change);
      try {
        read(file_of(bytes, name));
      } catch (const Error& error) {
        EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(ExitCode::model))
            << error.what() << ", byte " << at;
      }
    }
    bytes[at] = before;
  }
}

}  // namespace fovea::testing

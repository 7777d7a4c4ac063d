#include "base/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/files.h"
#include "base/random.h"
#include "effort.h"
#include "temporary.h"
#include "thread_seconds.h"

namespace fovea {
namespace {

std::string with_header(const std::string& json, size_t data, uint64_t length) {
  std::string out;
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(length >> (8 * i)));
  return out + json + std::string(data, 'd');
}
std::string with_header(const std::string& json, size_t data) {
  return with_header(json, data, json.size());
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
         offsets + "}";
}

SafetensorsFile parse(const std::string& bytes) {
  return SafetensorsFile::parse(as_byte_span(bytes), "m.safetensors");
}

void parse_all(const std::string& bytes) { parse(bytes).verify(); }

struct BadFile {
  std::string kind, bytes, says;
};

std::string repeat(const std::string& text, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += text;
  return out;
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets,
                size_t data) {
  return with_header("{" + tensor("w", dtype, shape, offsets) + "}", data);
}

std::string two(const std::string& first, const std::string& second, size_t data) {
  return with_header(
      "{" + tensor("a", "U8", "[4]", first) + "," + tensor("b", "U8", "[4]", second) + "}", data);
}

std::vector<BadFile> bad_containers() {
  return {
      {"empty file", "", "header too small"},
      {"7 bytes", "1234567", "header too small"},
      {"magic of another format (GGUF)", "GGUF\3\0\0\0" + std::string(40, '\0'), "too large"},
      {"magic of another format (zip)", "PK\3\4" + std::string(60, '\0'), "does not fit"},
      {"header length 0", with_header("", 0), "not valid JSON"},
      {"header length 0 with data", with_header("", 40), "not valid JSON"},
      {"header length past the end", with_header("{}", 0, 3), "does not fit"},
      {"header length 100,000,001", with_header("{}", 0, 100'000'001), "too large"},
      {"header length 2^63", with_header("{}", 0, uint64_t{1} << 63), "too large"},
      {"header length 2^64 − 1", with_header("{}", 0, ~uint64_t{0}), "too large"},
      {"header length 2^64 − 8 wraps with the prefix", with_header("{}", 8, ~uint64_t{7}),
       "too large"},
      {"header one byte short", with_header("{} ", 0, 1), "not valid JSON"},
      {"header cut before its brace", with_header("{" + tensor("w", "U8", "[1]", "[0,1]"), 1),
       "not valid JSON"},
      {"header not UTF-8", with_header("{\"\xff\":1}", 0), "byte 10: the header is not UTF-8"},
      {"header overlong UTF-8", with_header("{\"\xc0\x80\":1}", 0), "not UTF-8"},
      {"header surrogate in UTF-8", with_header("{\"\xed\xa0\x80\":1}", 0), "not UTF-8"},
      {"NUL after the object", with_header(std::string("{}\0\0", 4), 0), "byte 10: a NUL"},
      {"NUL within a key", with_header(std::string("{\"a\0\":1}", 8), 0), "a NUL"},
      {"byte order mark", with_header("\xEF\xBB\xBF{}", 0), "byte order mark"},
      {"text after the object", with_header("{}x", 0), "not valid JSON"},
      {"two objects", with_header("{}{}", 0), "not valid JSON"},
      {"root is an array", with_header("[]", 0), "found an array"},
      {"root is a number", with_header("7", 0), "found a number"},
      {"root is a string", with_header("\"x\"", 0), "found a string"},
      {"root is null", with_header("null", 0), "found null"},
      {"JSON with a comment", with_header("{}//", 0), "not valid JSON"},
      {"trailing comma", with_header("{\"__metadata__\":{},}", 0), "not valid JSON"},
      {"single quotes", with_header("{'a':1}", 0), "not valid JSON"},
      {"lone surrogate escape", with_header(R"({"\ud800":{}})", 0), "not valid JSON"},
      {"control character in a string", with_header("{\"a\nb\":1}", 0), "not valid JSON"},
      {"array depth 100,000", with_header(repeat("[", 100'000), 0), "found an array"},
      {"object depth 100,000", with_header(repeat("{\"a\":", 100'000), 0), "found an object"},
      {"depth in metadata", with_header("{\"__metadata__\":" + repeat("{\"a\":", 100'000), 0),
       "found an object"},
      {"depth in a shape", with_header(R"({"w":{"dtype":"U8","shape":)" + repeat("[", 100'000), 0),
       "found an array"},
      {"trailing byte", one("U8", "[4]", "[0,4]", 5), "belong to none"},
      {"data without tensors", with_header("{}", 1), "byte 10: 1 bytes after the last tensor"},
      {"data cut", one("U8", "[4]", "[0,4]", 3), "truncated"},
      {"overlap", two("[0,4]", "[2,6]", 6), "overlap"},
      {"same range twice", two("[0,4]", "[0,4]", 4), "overlap"},
      {"hole", two("[0,4]", "[5,9]", 9), "hole"},
      {"gap at the start", one("U8", "[4]", "[2,6]", 6), "expected 0 (hole)"},
      {"end before begin", one("U8", "[4]", "[4,0]", 4), "before it begins"},
      {"offset beyond the file", one("U8", "[99]", "[0,99]", 4), "truncated"},
      {"offset 2^63", one("U8", "[1]", "[0,9223372036854775808]", 4), "truncated"},
      {"offset 2^64", one("U8", "[1]", "[0,18446744073709551616]", 4), "a fraction"},
      {"offset −1", one("U8", "[1]", "[-1,4]", 4), "negative"},
  };
}

std::vector<BadFile> bad_tensors() {
  return {
      {"name of 0 bytes", with_header("{" + tensor("", "U8", "[4]", "[0,4]") + "}", 4), "empty"},
      {"name of 257 bytes",
       with_header("{" + tensor(std::string(257, 'n'), "U8", "[4]", "[0,4]") + "}", 4),
       "at most 256"},
      {"name with NUL", with_header("{" + tensor("a\\u0000", "U8", "[4]", "[0,4]") + "}", 4),
       "a NUL byte in its name"},
      {"name twice", two("[0,4]", "[4,8]", 8).replace(8 + 2, 1, "b"), "given twice"},
      {"name twice, once escaped",
       with_header("{" + tensor("a", "U8", "[4]", "[0,4]") + "," +
                       tensor("\\u0061", "U8", "[4]", "[4,8]") + "}",
                   8),
       "given twice"},
      {"rank 9", one("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]", 1), "rank beyond 8"},
      {"rank 100,000", one("U8", "[1" + repeat(",1", 99'999) + "]", "[0,1]", 1), "rank beyond 8"},
      {"dimension −1", one("U8", "[-1]", "[0,4]", 4), "negative"},
      {"dimension −0", one("U8", "[-0]", "[0,0]", 0), "negative"},
      {"dimension 1.5", one("U8", "[1.5]", "[0,4]", 4), "a fraction"},
      {"dimension 4.0", one("U8", "[4.0]", "[0,4]", 4), "a fraction"},
      {"dimension 1e999", one("U8", "[1e999]", "[0,4]", 4), "not valid JSON"},
      {"dimension NaN", one("U8", "[NaN]", "[0,4]", 4), "not valid JSON"},
      {"dimension as string", one("U8", "[\"4\"]", "[0,4]", 4), "found a string"},
      {"dimension null", one("U8", "[null]", "[0,4]", 4), "found null"},
      {"dimension 2^63", one("U8", "[9223372036854775808]", "[0,4]", 4), "too large"},
      {"product wraps to 4", one("U8", "[4611686018427387905,4]", "[0,4]", 4), "below 2^64"},
      {"product × bits wraps", one("F32", "[1152921504606846977]", "[0,4]", 4), "below 2^64"},
      {"2^59 elements", one("F32", "[576460752303423488]", "[0,4]", 4), "below 2^64"},
      {"wraps before a zero dimension", one("U8", "[4611686018427387904,4,0]", "[0,0]", 0),
       "below 2^64"},
  };
}

std::vector<BadFile> bad_fields() {
  const auto raw = [](const std::string& inner) { return with_header("{\"w\":" + inner + "}", 4); };
  return {
      {"size ≠ shape", one("F32", "[2]", "[0,4]", 4), "need 8 bytes, its data has 4"},
      {"dimension 0 with data", one("F32", "[0]", "[0,4]", 4), "need 0 bytes"},
      {"rank 0 with two elements", one("U8", "[]", "[0,2]", 2), "need 1 bytes"},
      {"half a byte", one("F4", "[3]", "[0,1]", 1), "no whole number"},
      {"six bits", one("F6_E2M3", "[3]", "[0,2]", 2), "no whole number"},
      {"unknown dtype", one("F128", "[1]", "[0,4]", 4), "unknown dtype 'F128'"},
      {"dtype lower case", one("f32", "[1]", "[0,4]", 4), "unknown dtype"},
      {"dtype empty", one("", "[1]", "[0,4]", 4), "unknown dtype"},
      {"dtype with terminal escape", one("\\u001b[2J", "[1]", "[0,4]", 4), "'\\x1b[2J'"},
      {"dtype a number", raw(R"({"dtype":7,"shape":[4],"data_offsets":[0,4]})"), "a number"},
      {"no dtype", raw(R"({"shape":[4],"data_offsets":[0,4]})"), "no dtype"},
      {"no shape", raw(R"({"dtype":"U8","data_offsets":[0,4]})"), "no shape"},
      {"no offsets", raw(R"({"dtype":"U8","shape":[4]})"), "no data_offsets"},
      {"one offset", one("U8", "[4]", "[0]", 4), "no data_offsets"},
      {"three offsets", one("U8", "[4]", "[0,4,8]", 4), "more than two"},
      {"offsets an object", one("U8", "[4]", "{}", 4), "found an object"},
      {"shape a number", one("U8", "4", "[0,4]", 4), "found a number"},
      {"dtype twice", raw(R"({"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]})"),
       "given twice"},
      {"shape twice", raw(R"({"dtype":"U8","shape":[4],"shape":[4],"data_offsets":[0,4]})"),
       "given twice"},
      {"offsets twice",
       raw(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4],"data_offsets":[0,4]})"),
       "given twice"},
      {"unknown field", raw(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4],"stride":[1]})"),
       "found an array"},
      {"tensor a number", raw("4"), "found a number"},
      {"tensor an array", raw("[]"), "found an array"},
      {"tensor null", raw("null"), "found null"},
      {"tensor true", raw("true"), "true or false"},
  };
}

std::vector<BadFile> bad_metadata() {
  const std::string m = R"("__metadata__":)";
  return {
      {"metadata a string", with_header("{" + m + "\"x\"}", 0), "found a string"},
      {"metadata value a number", with_header("{" + m + "{\"k\":1}}", 0), "found a number"},
      {"metadata value an object", with_header("{" + m + "{\"k\":{}}}", 0), "found an object"},
      {"metadata key twice", with_header("{" + m + R"({"k":"1","k":"2"}})", 0), "given twice"},
      {"metadata twice", with_header("{" + m + "{}," + m + "{}}", 0), "given twice"},
      {"table without header sum", with_header("{" + m + R"({"crc32c":"{}"}})", 0), "only one of"},
      {"header sum without table", with_header("{" + m + R"({"header_crc32c":"00000000"}})", 0),
       "only one of"},
      {"header sum too short", with_header("{" + m + R"({"crc32c":"{}","header_crc32c":"00"}})", 0),
       "written form"},
      {"header sum wrong",
       with_header("{" + m + R"({"crc32c":"{}","header_crc32c":"00000000"}})", 0),
       "checksum of the header"},
  };
}

TEST(Safetensors, RefusesEveryKindOfBadFile) {
  std::vector<BadFile> all = bad_containers();
  for (const auto& more : {bad_tensors(), bad_fields(), bad_metadata()})
    all.insert(all.end(), more.begin(), more.end());
  EXPECT_GE(all.size(), 80u);
  for (const BadFile& bad : all) {
    SCOPED_TRACE(bad.kind);
    const double begin = thread_seconds();
    const std::string message = message_of(ExitCode::model, [&] { parse_all(bad.bytes); });
    EXPECT_NE(message.find(bad.says), std::string::npos) << message;
    EXPECT_TRUE(message.starts_with("m.safetensors: ")) << message;
    EXPECT_LT(message.size(), 400u);
    EXPECT_LT(thread_seconds() - begin, time_limit(0.1));
  }
}

TEST(Safetensors, RefusesTooManyTensors) {
  std::string json = "{";
  for (size_t i = 0; i <= SafetensorsFile::kMaxTensors; ++i)
    json += (i == 0 ? "" : ",") + tensor(std::to_string(i), "U8", "[0]", "[0,0]");
  const std::string message =
      message_of(ExitCode::model, [&] { parse_all(with_header(json + "}", 0)); });
  EXPECT_NE(message.find("more than 100000 tensors"), std::string::npos) << message;
}

TEST(Safetensors, AcceptsAllThatTheReferenceAccepts) {
  EXPECT_TRUE(parse(with_header("{}", 0)).tensors().empty());
  EXPECT_TRUE(parse(with_header(" \n\t{}  ", 0)).tensors().empty());
  EXPECT_EQ(parse(one("F32", "[]", "[0,4]", 4)).get("w").elements(), 1);
  EXPECT_EQ(parse(one("F32", "[3,0,2]", "[0,0]", 0)).get("w").elements(), 0);
  EXPECT_EQ(parse(one("F4", "[4]", "[0,2]", 2)).get("w").dtype, StoredType::F4);
  EXPECT_EQ(parse(with_header("{" + tensor(std::string(256, 'n'), "U8", "[0]", "[0,0]") + "}", 0))
                .tensors()
                .size(),
            1u);
  const SafetensorsFile file = parse(two("[4,8]", "[0,4]", 8));  // not in the order of the data
  EXPECT_EQ(file.tensors()[0].name, "b");
  EXPECT_FALSE(file.has_checksums());
  EXPECT_EQ(parse(with_header(R"({"__metadata__":{"format":"pt"}})", 0)).metadata().at("format"),
            "pt");
}

TEST(Safetensors, WritesTheGoldenBytes) {
  const float values[] = {0, 1, 2, 3, 4, 5};
  SafetensorsWriter writer(ChecksumMode::none);
  writer.add("attn.0", StoredType::F32, {1, 2, 3}, std::as_bytes(std::span(values)));
  std::string expected("\x40\0\0\0\0\0\0\0", 8);
  expected += R"({"attn.0":{"dtype":"F32","shape":[1,2,3],"data_offsets":[0,24]}})";
  expected.append(reinterpret_cast<const char*>(values), sizeof values);
  EXPECT_EQ(writer.to_string(), expected);
  EXPECT_EQ(SafetensorsWriter(ChecksumMode::none).to_string(),
            std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
}

// A small model with tensors of many types. Their data is the same static buffer.
std::string tiny_model() {
  static const std::vector<std::byte> zeros(4096, std::byte{7});
  const std::span<const std::byte> all(zeros);
  SafetensorsWriter writer;
  writer.set_metadata("note", "quotes \" and ünïcode");
  writer.add("encoder/layers/0/attend/W_Q", StoredType::F32, {8, 16}, all.first(512));
  writer.add("decoder/norm", StoredType::BF16, {16}, all.first(32));
  writer.add("steps", StoredType::I64, {}, all.first(8));
  writer.add("nothing", StoredType::F32, {0, 4}, all.first(0));
  writer.add("é", StoredType::U8, {3}, all.first(3));
  return writer.to_string();
}

TEST(Safetensors, ReadsBackWhatItWrote) {
  const TemporaryFolder folder;
  const std::string path = folder / "m.safetensors";
  const std::vector<std::byte> bytes(24, std::byte{42});
  SafetensorsWriter writer;
  writer.add("b", StoredType::F32, {2, 3}, bytes);
  writer.add("a", StoredType::F32, {6}, bytes);
  writer.add("wide", StoredType::F64, {3}, bytes);
  writer.set_metadata("version", "1");
  writer.write(path);
  const SafetensorsFile file = SafetensorsFile::open(path);
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors()[0].name, "wide");  // widest type first, then by name
  EXPECT_EQ(file.tensors()[1].name, "a");
  EXPECT_EQ(file.get("b").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file.data(file.get("b"))[23], std::byte{42});
  EXPECT_EQ(file.metadata().at("version"), "1");
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_TRUE(file.has_checksums());
  file.verify();
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_NE(message_of(ExitCode::model, [&] { file.get("c"); }).find("no tensor 'c'"),
            std::string::npos);
  message_of(ExitCode::files, [&] { SafetensorsFile::open(folder / "absent"); });
  message_of(ExitCode::files, [&] { SafetensorsFile::open(folder.path()); });
}

TEST(Safetensors, WriterRefusesMisuse) {
  const std::vector<std::byte> four(4);
  SafetensorsWriter writer;
  writer.add("a", StoredType::F32, {1}, four);
  message_of(ExitCode::unexpected, [&] { writer.add("a", StoredType::F32, {1}, four); });
  message_of(ExitCode::unexpected, [&] { writer.add("b", StoredType::F32, {2}, four); });
  message_of(ExitCode::unexpected, [&] { writer.add("", StoredType::F32, {1}, four); });
  message_of(ExitCode::unexpected, [&] { writer.add("\xff", StoredType::F32, {1}, four); });
  message_of(ExitCode::unexpected, [&] { writer.set_metadata("crc32c", "{}"); });
}

TEST(Safetensors, EveryTruncationIsDetected) {
  const std::string model = tiny_model();
  const size_t header =
      8 + static_cast<unsigned char>(model[0]) + 256u * static_cast<unsigned char>(model[1]);
  ASSERT_LT(header, model.size());
  for (size_t n = 0; n < model.size(); ++n) {  // all of the header, and all of the data
    SCOPED_TRACE(n);
    message_of(ExitCode::model, [&] { parse_all(model.substr(0, n)); });
  }
  EXPECT_GE(model.size() - header, 200u);
  parse_all(model);
}

TEST(Safetensors, EverySingleBitFlipIsDetected) {
  std::string model = tiny_model();
  size_t undetected = 0;
  for (size_t bit = 0; bit < model.size() * 8; ++bit) {  // header and data, all bits
    model[bit / 8] = static_cast<char>(model[bit / 8] ^ (1 << (bit % 8)));
    try {
      parse_all(model);
      ++undetected;
      ADD_FAILURE() << "bit " << bit % 8 << " of byte " << bit / 8;
    } catch (const Error& error) {
      EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(ExitCode::model)) << error.what();
    }
    model[bit / 8] = static_cast<char>(model[bit / 8] ^ (1 << (bit % 8)));
  }
  EXPECT_EQ(undetected, 0u);
  parse_all(model);
}

TEST(Safetensors, RandomDataFlipsNameTheTensor) {
  std::string model = tiny_model();
  const size_t data = 555;  // 512 + 32 + 8 + 0 + 3 bytes at the end of the file
  Random random(1);
  for (int64_t i = 0; i < repeats(10'000); ++i) {
    const size_t at = model.size() - 1 - static_cast<size_t>(random.below(data));
    const char before = model[at];
    model[at] = static_cast<char>(before ^ (1 + random.below(255)));
    const SafetensorsFile file = parse(model);
    const std::string message = message_of(ExitCode::model, [&] { file.verify(); });
    EXPECT_NE(message.find("checksum of tensor '"), std::string::npos) << message;
    model[at] = before;
  }
}

}  // namespace
}  // namespace fovea

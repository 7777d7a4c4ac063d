#include "formats/tensor_archive.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "formats/safetensors_archive.h"
#include "formats/stored_values.h"
#include "support/damaged_files.h"
#include "text_samples.h"

namespace fovea {
namespace {

using testing::le;
using testing::le_list;

std::vector<float> converted(StoredType type, const std::string& bytes) {
  return to_floats(type, as_byte_span(bytes));
}

// The value of a half from its definition.
float reference_half(uint16_t half) {
  const int exponent = (half >> 10) & 31, fraction = half & 0x3FF;
  float value = 0;
  if (exponent == 31)
    value = fraction != 0 ? std::numeric_limits<float>::quiet_NaN() : INFINITY;
  else
    value = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                          : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return std::copysign(value, (half & 0x8000) != 0 ? -1.0F : 1.0F);
}

TEST(StoredValues, HalvesAreExact) {
  for (uint32_t half = 0; half < 65536; ++half) {
    const float found = half_to_float(static_cast<uint16_t>(half));
    const float expected = reference_half(static_cast<uint16_t>(half));
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(found)) << half;
    else
      ASSERT_EQ(std::bit_cast<uint32_t>(found), std::bit_cast<uint32_t>(expected)) << half;
  }
}

TEST(StoredValues, ConvertsEveryType) {
  using F = std::vector<float>;
  EXPECT_EQ(converted(StoredType::F32, le_list<float>({1.5F, -2})), (F{1.5F, -2}));
  EXPECT_EQ(converted(StoredType::F64, le(-0.25)), F{-0.25F});
  EXPECT_EQ(converted(StoredType::BF16, le<uint16_t>(0xC020)), F{-2.5F});
  EXPECT_EQ(converted(StoredType::F16, le<uint16_t>(0x3C00)), F{1});
  EXPECT_EQ(converted(StoredType::I8, le_list<int8_t>({-128, 127})), (F{-128, 127}));
  EXPECT_EQ(converted(StoredType::U8, le<uint8_t>(255)), F{255});
  EXPECT_EQ(converted(StoredType::BOOL, le_list<uint8_t>({0, 2})), (F{0, 1}));
  EXPECT_EQ(converted(StoredType::I16, le<int16_t>(-300)), F{-300});
  EXPECT_EQ(converted(StoredType::U16, le<uint16_t>(65535)), F{65535});
  EXPECT_EQ(converted(StoredType::I32, le<int32_t>(-70000)), F{-70000});
  EXPECT_EQ(converted(StoredType::U32, le<uint32_t>(70000)), F{70000});
  EXPECT_EQ(converted(StoredType::I64, le<int64_t>(-5)), F{-5});
  EXPECT_EQ(converted(StoredType::U64, le<uint64_t>(5)), F{5});
  EXPECT_FALSE(has_floats(StoredType::C64));
}

std::string model_with(const std::vector<std::pair<std::string, std::vector<float>>>& tensors) {
  SafetensorsWriter writer(ChecksumMode::none);
  for (const auto& [name, values] : tensors)
    writer.add(name, StoredType::F32, {static_cast<int64_t>(values.size())},
               std::as_bytes(std::span(values)));
  return writer.to_string();
}

TEST(SafetensorsArchive, ReadsAFile) {
  const samples::Folder folder;
  const auto archive =
      open_tensor_archive(folder.write("model.safetensors", model_with({{"w", {1, 2, 3}}})));
  ASSERT_EQ(archive->tensors().size(), 1u);
  EXPECT_EQ(archive->floats("w"), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(archive->get("w").elements(), 3);
  EXPECT_TRUE(archive->scales(archive->get("w")).empty());
  EXPECT_EQ(archive->bytes(archive->get("w")).bytes.size(), 12u);
  EXPECT_EQ(archive->find("x"), nullptr);
  EXPECT_NE(message_of(ExitCode::model, [&] { archive->floats("x"); }).find("no tensor 'x'"),
            std::string::npos);
}

TEST(SafetensorsArchive, RefusesTypesThatFloatsCannotHold) {
  SafetensorsWriter writer(ChecksumMode::none);
  const std::vector<std::byte> eight(8);
  writer.add("c", StoredType::C64, {1}, eight);
  const SafetensorsArchive archive(testing::file_of(writer.to_string(), "m"));
  EXPECT_EQ(message_of(ExitCode::model, [&] { archive.floats("c"); }),
            "m: tensor 'c': values of type C64 cannot be converted to float32");
}

// A folder with the shards a.safetensors {x, y} and b.safetensors {z}.
struct ShardedModel : samples::Folder {
  ShardedModel() {
    write("a.safetensors", model_with({{"x", {1}}, {"y", {2, 3}}}));
    write("b.safetensors", model_with({{"z", {4}}}));
  }
  std::string with_index(const std::string& json) const {
    return write("model.safetensors.index.json", json);
  }
};

std::string map_of(const std::string& entries) { return "{\"weight_map\":{" + entries + "}}"; }

const std::string kGood = R"("x":"a.safetensors","y":"a.safetensors","z":"b.safetensors")";

TEST(ShardedSafetensors, ReadsAllFiles) {
  const ShardedModel model;
  const auto archive = open_tensor_archive(model.with_index(
      R"({"metadata":{"total_size":16,"dtype":null,"ok":true,"f":1.5,"n":-1,"s":""},)" +
      map_of(kGood).substr(1)));
  EXPECT_EQ(archive->tensors().size(), 3u);
  EXPECT_EQ(archive->floats("y"), (std::vector<float>{2, 3}));
  EXPECT_EQ(archive->floats("z"), std::vector<float>{4});
}

std::string many(const std::string& part) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += part;
  return text;
}

// Indexes of a ShardedModel with the additional files c and cut, each with a part of the message.
std::vector<std::pair<std::string, std::string>> bad_indexes() {
  std::string shards;
  for (int i = 0; i < 1001; ++i) shards += fmt::format("{}\"t{}\":\"s{}\"", i > 0 ? "," : "", i, i);
  return {
      {"", "not valid JSON"},
      {"[]", "found an array"},
      {"{}", "no weight_map"},
      {"7", "found a number"},
      {"null", "found null"},
      {"\"a\"", "found a string"},
      {map_of(kGood).substr(0, 30), "not valid JSON"},
      {map_of(kGood) + "}", "not valid JSON"},
      {std::string("{}\0", 3), "a NUL"},
      {"\xEF\xBB\xBF{}", "byte order mark"},
      {R"({"weight_map":"a"})", "found a string"},
      {R"({"weight_map":[]})", "found an array"},
      {R"({"weight_map":{"x":7}})", "found a number"},
      {R"({"weight_map":{"x":null}})", "found null"},
      {R"({"weight_map":{"x":true}})", "found true"},
      {R"({"weight_map":{"x":-7}})", "found a number"},
      {R"({"weight_map":{"x":0.5}})", "found a fraction"},
      {R"({"weight_map":{"x":{}}})", "found an object"},
      {R"({"weight_map":{},"weight_map":{}})", "given twice"},
      {R"({"other":{}})", "unknown key 'other'"},
      {R"({"weight_map":{"\ud800":"a"}})", "not valid JSON"},
      {"{\"weight_map\":{\"\xff\":\"a\"}}", "not valid JSON"},
      {R"({"metadata":{"a":{}}})", "found an object"},
      {R"({"metadata":[1]})", "found an array"},
      {many("["), "found an array"},
      {many("{\"weight_map\":"), "found an object"},
      {map_of(kGood + R"(,"x":"a.safetensors")"), "tensor 'x' is given twice"},
      {map_of(kGood + R"(,"w":"a.safetensors")"), "tensor 'w' is not in a.safetensors"},
      {map_of(R"("x":"b.safetensors","y":"a.safetensors")"), "tensor 'x' is here"},
      {map_of(kGood + R"(,"w":"c.safetensors")"), "tensor 'x' is here"},
      {map_of(R"("x":"cut.safetensors")"), "cut.safetensors: "},
      {map_of(R"("x":"")"), "not a plain file name"},
      {map_of(R"("x":"../a.safetensors")"), "not a plain file name"},
      {map_of(R"("x":"/etc/passwd")"), "not a plain file name"},
      {map_of(R"("x":"..")"), "not a plain file name"},
      {map_of(R"("x":".hidden")"), "not a plain file name"},
      {map_of(R"("x":"a\\b")"), "not a plain file name"},
      {map_of(R"("x":"a\u0000b")"), "not a plain file name"},
      {map_of("\"x\":\"" + std::string(300, 'n') + "\""), "not a plain file name"},
      {map_of(shards), "1001 files, at most 1000"},
  };
}

TEST(ShardedSafetensors, RefusesBadIndexes) {
  const ShardedModel model;
  model.write("c.safetensors", model_with({{"x", {1}}}));
  model.write("cut.safetensors", model_with({{"x", {1}}}).substr(0, 40));
  for (const auto& [json, says] : bad_indexes()) {
    SCOPED_TRACE(json.substr(0, 80));
    const std::string path = model.with_index(json);
    const std::string message = message_of(ExitCode::model, [&] { open_tensor_archive(path); });
    EXPECT_NE(message.find(says), std::string::npos) << message;
    EXPECT_TRUE(message.starts_with(model.path())) << message;
  }
  const std::string path = model.with_index(map_of(R"("x":"absent.safetensors")"));
  EXPECT_NE(message_of(ExitCode::files, [&] { open_tensor_archive(path); }).find("absent"),
            std::string::npos);
}

}  // namespace
}  // namespace fovea

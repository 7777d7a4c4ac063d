#include "formats/ctranslate2_archive.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/damaged_files.h"
#include "text_samples.h"

namespace fovea {
namespace {

using testing::DamagedFile;
using testing::file_of;
using testing::le;
using testing::le_list;

std::string text(const std::string& s) {
  return le(static_cast<uint16_t>(s.size() + 1)) + s + std::string(1, '\0');
}

enum TypeId : uint8_t { kF32, kI8, kI16, kI32, kF16, kBF16 };

// A variable as versions 4 to 6 write it.
std::string variable(const std::string& name, const std::vector<uint32_t>& shape, uint8_t type,
                     const std::string& data) {
  return text(name) + le(static_cast<uint8_t>(shape.size())) + le_list(shape) + le(type) +
         le(static_cast<uint32_t>(data.size())) + data;
}

// The same in versions 1 to 3: bytes of an element, number of elements.
std::string old_variable(const std::string& name, const std::vector<uint32_t>& shape, uint8_t width,
                         const std::string& data) {
  return text(name) + le(static_cast<uint8_t>(shape.size())) + le_list(shape) + le(width) +
         le(static_cast<uint32_t>(data.size() / width)) + data;
}

std::string list(const std::vector<std::string>& items) {
  std::string out = le(static_cast<uint32_t>(items.size()));
  for (const std::string& item : items) out += item;
  return out;
}

std::string model(uint32_t version, const std::vector<std::string>& variables,
                  const std::vector<std::string>& aliases = {}) {
  std::string out = le(version);
  if (version >= 2) out += text("TransformerSpec") + le<uint32_t>(7);
  out += list(variables);
  return version >= 3 ? out + list(aliases) : out;
}

std::string alias(const std::string& name, const std::string& of) { return text(name) + text(of); }

// Two rows of int8 with their scales, a float16 bias, a scalar, and aliases.
std::string small_model(uint32_t version = 6) {
  return model(version,
               {variable("d/bias", {2}, kF16, le_list<uint16_t>({0x3C00, 0xC000})),
                variable("d/weight", {2, 3}, kI8, le_list<int8_t>({1, 2, 3, -4, 5, 127})),
                variable("d/weight_scale", {2}, kF32, le_list<float>({2, 4})),
                variable("heads", {}, kI8, le<int8_t>(8))},
               {alias("e/weight", "d/weight")});
}

CTranslate2Archive parse(const std::string& bytes) {
  return CTranslate2Archive(file_of(bytes, "model.bin"));
}

void read_all(const FileBytes& file) {
  const CTranslate2Archive archive(file);
  for (const ArchivedTensor& tensor : archive.tensors()) archive.floats(tensor);
}

using F = std::vector<float>;

TEST(CTranslate2, ReadsVersionsFourToSix) {
  for (uint32_t version = 4; version <= 6; ++version) {
    const CTranslate2Archive archive(file_of(small_model(version), "model.bin"));
    EXPECT_EQ(archive.metadata().at("version"), std::to_string(version));
    EXPECT_EQ(archive.metadata().at("spec"), "TransformerSpec");
    EXPECT_EQ(archive.metadata().at("revision"), "7");
    ASSERT_EQ(archive.tensors().size(), 6u);
    EXPECT_EQ(archive.tensors()[0].name, "d/bias");
    EXPECT_EQ(archive.floats("d/bias"), (F{1, -2}));
    EXPECT_EQ(archive.floats("d/weight"), (F{0.5F, 1, 1.5F, -1, 1.25F, 31.75F}));
    EXPECT_EQ(archive.floats("e/weight"), archive.floats("d/weight"));
    EXPECT_EQ(archive.scales(archive.get("e/weight")), (F{2, 4}));
    EXPECT_EQ(archive.get("d/weight").shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(archive.bytes(archive.get("d/weight")).bytes[5], std::byte{127});
    EXPECT_EQ(archive.floats("heads"), F{8});
    EXPECT_TRUE(archive.scales(archive.get("heads")).empty());
  }
}

TEST(CTranslate2, ReadsOldVersions) {
  const std::vector<std::string> variables = {
      old_variable("a/weight", {2}, 2, le_list<int16_t>({1000, -500})),
      old_variable("b/weight", {1, 2}, 1, le_list<int8_t>({4, 8})),
      old_variable("b/weight_scale", {1}, 4, le<float>(4)),
      old_variable("c", {2}, 4, le_list<float>({1, 2}))};
  for (uint32_t version = 1; version <= 3; ++version) {
    const CTranslate2Archive archive(file_of(model(version, variables), "model.bin"));
    EXPECT_EQ(archive.metadata().at("spec"), version == 1 ? "" : "TransformerSpec");
    EXPECT_EQ(archive.floats("a/weight"), (F{1, -0.5F}));  // the scale of files without one
    EXPECT_EQ(archive.floats("b/weight"), (F{1, 2}));
    EXPECT_EQ(archive.floats("c"), (F{1, 2}));
  }
}

TEST(CTranslate2, ReadsInt16WithOneScaleAndBfloat16) {
  const CTranslate2Archive archive =
      parse(model(6, {variable("w/weight", {2, 1}, kI16, le_list<int16_t>({512, -1024})),
                      variable("w/weight_scale", {}, kF32, le<float>(1024)),
                      variable("x", {1}, kBF16, le<uint16_t>(0x4000)),
                      variable("y", {1}, kI32, le<int32_t>(-9)), variable("z", {0, 4}, kF32, "")}));
  EXPECT_EQ(archive.floats("w/weight"), (F{0.5F, -1}));
  EXPECT_EQ(archive.floats("x"), F{2});
  EXPECT_EQ(archive.floats("y"), F{-9});
  EXPECT_TRUE(archive.floats("z").empty());
}

TEST(CTranslate2, IsRecognisedByItsFirstBytes) {
  const samples::Folder folder;
  EXPECT_EQ(open_tensor_archive(folder.write("model.bin", small_model()))->tensors().size(), 6u);
  for (const std::string& other : {std::string(), std::string("PK\3\4abcd"), le<uint64_t>(1),
                                   le<uint32_t>(0) + le<uint32_t>(9), le<uint64_t>(7)})
    EXPECT_FALSE(CTranslate2Archive::recognises(as_byte_span(other)));
}

std::vector<DamagedFile> bad_headers() {
  const std::string v6 = le<uint32_t>(6), spec = text("S") + le<uint32_t>(1);
  return {
      {"empty", "", "binary version needs 4 bytes"},
      {"three bytes", "\6\0", "byte 0: the binary version"},
      {"version 0", le<uint32_t>(0) + spec, "binary version 0"},
      {"version 7", le<uint32_t>(7) + spec, "binary version 7"},
      {"version 2^32 - 1", le<uint32_t>(~0u) + spec, "binary version 4294967295"},
      {"big-endian version", std::string("\0\0\0\6", 4) + spec, "binary version 100663296"},
      {"magic of zip", "PK\3\4" + spec, "binary version"},
      {"magic of GGUF", "GGUF" + spec, "binary version"},
      {"text", "hello world", "binary version"},
      {"no spec", v6, "name of the specification needs 2 bytes"},
      {"spec of 0 bytes", v6 + le<uint16_t>(0) + le<uint32_t>(1), "no NUL"},
      {"spec without NUL", v6 + le<uint16_t>(2) + "ab" + le<uint32_t>(1), "only NUL"},
      {"spec with two NULs", v6 + le<uint16_t>(3) + std::string("a\0\0", 3), "only NUL"},
      {"spec beyond the file", v6 + le<uint16_t>(65535) + "abc", "needs 65535 bytes"},
      {"spec not UTF-8", v6 + text("\xff") + le<uint32_t>(1), "not UTF-8"},
      {"spec overlong UTF-8", v6 + text("\xc0\x80") + le<uint32_t>(1), "not UTF-8"},
      {"no revision", v6 + text("S"), "revision needs 4"},
      {"no count", v6 + spec, "number of variables needs 4"},
      {"2^32 - 1 variables", v6 + spec + le<uint32_t>(~0u), "4294967295 variables"},
      {"2^31 variables", v6 + spec + le<uint32_t>(1u << 31), "2147483648 variables"},
      {"100,000,000 variables in version 1", le<uint32_t>(1) + le<uint32_t>(100'000'000),
       "100000000 variables"},
      {"one variable, none there", v6 + spec + le<uint32_t>(1), "1 variables"},
      {"no count of aliases", v6 + spec + le<uint32_t>(0), "number of aliases"},
      {"no count of aliases in version 3", le<uint32_t>(3) + spec + le<uint32_t>(0),
       "number of aliases"},
      {"byte after the end", model(6, {}) + "x", "1 bytes after the end"},
      {"byte after the end of version 1", model(1, {}) + "x", "1 bytes after the end"},
      {"two files in one", model(6, {}) + model(6, {}), "after the end"},
      {"more variables than the count",
       v6 + spec + le<uint32_t>(0) + variable("a", {}, kI8, "x") + le<uint32_t>(0), ""},
      {"fewer variables than the count",
       v6 + spec + le<uint32_t>(2) + variable("a", {}, kI8, "x") + le<uint32_t>(0), ""},
  };
}

// Models with one variable that is bad.
std::vector<DamagedFile> bad_variables() {
  const auto with = [](const std::string& v) { return model(6, {v}) + std::string(64, '\0'); };
  const auto raw = [&](const std::string& name, uint8_t rank, const std::vector<uint32_t>& shape,
                       uint8_t type, uint32_t size) {
    return with(name + le(rank) + le_list(shape) + le(type) + le(size));
  };
  const std::vector<uint32_t> nine(9, 1), many(255, 1);
  return {
      {"name empty", raw(text(""), 0, {}, kI8, 1), "name is empty"},
      {"name of 257 bytes", raw(text(std::string(257, 'n')), 0, {}, kI8, 1), "at most 256"},
      {"name of 65,534 bytes", raw(text(std::string(65534, 'n')), 0, {}, kI8, 1), "at most 256"},
      {"name with NUL", raw(le<uint16_t>(4) + std::string("a\0b\0", 4), 0, {}, kI8, 1), "only NUL"},
      {"name without NUL", raw(le<uint16_t>(1) + "a", 0, {}, kI8, 1), "only NUL"},
      {"name of length 0", raw(le<uint16_t>(0), 0, {}, kI8, 1), "no NUL"},
      {"name not UTF-8", raw(text("a\xff"), 0, {}, kI8, 1), "not UTF-8"},
      {"name with a surrogate", raw(text("\xed\xa0\x80"), 0, {}, kI8, 1), "not UTF-8"},
      {"name cut UTF-8", raw(text("\xe2\x82"), 0, {}, kI8, 1), "not UTF-8"},
      {"rank 9", raw(text("a"), 9, nine, kI8, 1), "rank of 9"},
      {"rank 255", raw(text("a"), 255, many, kI8, 1), "rank of 255"},
      {"rank 255 beyond the file", raw(text("a"), 255, {}, kI8, 1), "shape of a variable"},
      {"type 6", raw(text("a"), 0, {}, 6, 1), "unknown type 6"},
      {"type 255", raw(text("a"), 0, {}, 255, 1), "unknown type 255"},
      {"size 0", raw(text("a"), 1, {1}, kF32, 0), "need 4 bytes, its data has 0"},
      {"size too small", raw(text("a"), 1, {2}, kF32, 4), "need 8 bytes, its data has 4"},
      {"size too large", raw(text("a"), 1, {2}, kF32, 12), "need 8 bytes, its data has 12"},
      {"size in elements", raw(text("a"), 1, {8}, kF32, 8), "need 32 bytes"},
      {"size 2^32 - 1", raw(text("a"), 1, {2}, kF32, ~0u), "its data has 4294967295"},
      {"data beyond the file", raw(text("a"), 1, {1000}, kF32, 4000), "the data needs 4000"},
      {"data of 4 GiB", raw(text("a"), 1, {~0u}, kI8, ~0u), "the data needs 4294967295"},
      {"product 2^64", raw(text("a"), 2, {~0u, ~0u}, kF32, 4), "below 2^62"},
      {"product wraps to 0", raw(text("a"), 3, {1u << 31, 1u << 31, 4}, kF32, 0), "below 2^62"},
      {"product wraps to 4 bytes", raw(text("a"), 4, {65536, 65536, 65536, 65536}, kF32, 4),
       "below 2^62"},
      {"product wraps before 0", raw(text("a"), 5, {~0u, ~0u, ~0u, ~0u, 0}, kF32, 0), "below 2^62"},
      {"bytes wrap", raw(text("a"), 2, {1u << 31, 1u << 31}, kF32, 0), "below 2^62"},
      {"zero dimension with data", raw(text("a"), 2, {0, 5}, kF32, 20), "need 0 bytes"},
      {"scalar with two values", raw(text("a"), 0, {}, kI8, 2), "need 1 bytes"},
      {"no rank", model(6, {text("abcdef")}).substr(0, 39), "the rank"},
      {"name cut", model(6, {le<uint16_t>(99) + "abcdefgh"}), "needs 99 bytes"},
  };
}

std::vector<DamagedFile> bad_old_variables() {
  const auto raw = [](uint32_t version, const std::vector<uint32_t>& shape, uint8_t width,
                      uint32_t count) {
    return model(version, {text("a") + le(static_cast<uint8_t>(shape.size())) + le_list(shape) +
                           le(width) + le(count)}) +
           std::string(64, '\0');
  };
  return {
      {"width 0", raw(1, {1}, 0, 1), "elements of 0 bytes"},
      {"width 3", raw(2, {1}, 3, 1), "elements of 3 bytes"},
      {"width 8", raw(3, {1}, 8, 1), "elements of 8 bytes"},
      {"width 255", raw(3, {1}, 255, 1), "elements of 255 bytes"},
      {"count too small", raw(3, {4}, 4, 3), "need 16 bytes, its data has 12"},
      {"count in bytes", raw(3, {4}, 4, 16), "need 16 bytes, its data has 64"},
      {"count times width is 2^34", raw(3, {4}, 4, ~0u), "its data has 17179869180"},
      {"old data beyond the file", raw(1, {5000}, 2, 5000), "the data needs 10000"},
      {"version 6 read as 3", small_model(3), ""},
      {"version 6 read as 1", small_model(1), ""},
      {"version 3 read as 6", model(6, {old_variable("a", {2}, 4, "12345678")}), ""},
  };
}

std::vector<DamagedFile> bad_names_and_scales() {
  const std::string a = variable("a", {1}, kI8, "x");
  const auto scaled = [](const std::string& scale) {
    return model(6, {variable("w", {2, 2}, kI8, "abcd"), scale});
  };
  const auto values = [](const std::vector<float>& list) { return le_list<float>(list); };
  const auto shape = [](uint32_t n) { return std::vector<uint32_t>{n}; };
  return {
      {"variable twice", model(6, {a, a}), "'a' is given twice"},
      {"alias of a missing variable", model(6, {a}, {alias("b", "c")}), "does not exist"},
      {"alias of itself", model(6, {a}, {alias("b", "b")}), "does not exist"},
      {"alias has the name of a variable", model(6, {a}, {alias("a", "a")}), "'a' is given twice"},
      {"alias twice", model(6, {a}, {alias("b", "a"), alias("b", "a")}), "'b' is given twice"},
      {"alias empty", model(6, {a}, {alias("", "a")}), "name is empty"},
      {"alias not UTF-8", model(6, {a}, {alias("\xff", "a")}), "not UTF-8"},
      {"alias with NUL", model(6, {a}, {alias(std::string("b\0c", 3), "a")}), "only NUL"},
      {"alias too long", model(6, {a}, {alias(std::string(300, 'b'), "a")}), "at most 256"},
      {"2^32 - 1 aliases", model(6, {a}).substr(0, model(6, {a}).size() - 4) + le<uint32_t>(~0u),
       "4294967295 aliases"},
      {"one alias, none there", model(6, {a}).substr(0, model(6, {a}).size() - 4) + le<uint32_t>(1),
       "1 aliases"},
      {"alias cut", model(6, {a}, {alias("bbbbbbbb", "a")}).substr(0, model(6, {a}).size() + 8),
       "an alias needs"},
      {"three scales of two rows", scaled(variable("w_scale", shape(3), kF32, values({1, 1, 1}))),
       "no scales of 2 rows"},
      {"no scales", scaled(variable("w_scale", shape(0), kF32, "")), "no scales of 2 rows"},
      {"scales of a wrong type", scaled(variable("w_scale", shape(2), kF16, "abcd")),
       "2 F16 values are no scales"},
      {"scales with rank 2", scaled(variable("w_scale", {2, 1}, kF32, values({1, 1}))),
       "no scales"},
      {"scale 0", scaled(variable("w_scale", shape(2), kF32, values({1, 0}))), "a scale of 0"},
      {"scale negative", scaled(variable("w_scale", shape(2), kF32, values({1, -1}))),
       "a scale of -1"},
      {"scale infinite", scaled(variable("w_scale", shape(2), kF32, values({1, INFINITY}))),
       "a scale of inf"},
      {"scale NaN", scaled(variable("w_scale", shape(2), kF32, values({1, NAN}))), "a scale of"},
  };
}

TEST(CTranslate2, RefusesEveryKindOfBadFile) {
  std::vector<DamagedFile> all = bad_headers();
  for (const auto& more : {bad_variables(), bad_old_variables(), bad_names_and_scales()})
    all.insert(all.end(), more.begin(), more.end());
  EXPECT_GE(all.size(), 80u);
  testing::expect_refused(all, "model.bin", read_all);
}

TEST(CTranslate2, RefusesTooManyVariables) {
  std::vector<std::string> variables;
  for (size_t i = 0; i <= SafetensorsFile::kMaxTensors; ++i)
    variables.push_back(variable(std::to_string(i), {}, kI8, "x"));
  testing::expect_refused({{"100,001 variables", model(6, variables), "more than 100000 tensors"}},
                          "model.bin", read_all);
}

TEST(CTranslate2, EveryTruncationIsRefused) {
  testing::expect_beginnings_refused(small_model(), "model.bin", read_all);
}

TEST(CTranslate2, EveryChangedByteIsSurvived) {
  testing::expect_changes_survived(small_model(), "model.bin", read_all);
}

}  // namespace
}  // namespace fovea

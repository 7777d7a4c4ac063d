#include "formats/marian_archive.h"

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

constexpr uint64_t kI8 = 0x101, kF16 = 0x402, kF32 = 0x404, kGemm8 = 0x4101, kGemm16 = 0x4102;

struct Item {
  std::string name;
  uint64_t type;
  std::vector<int32_t> shape;
  std::string data;
  std::optional<uint64_t> name_size = {}, rank = {}, size = {};  // replace the right values
};

// Data with zeros up to a multiple of 256 bytes, as Marian writes it.
std::string aligned(std::string data) {
  data.resize((data.size() + 255) / 256 * 256);
  return data;
}

std::string model(const std::vector<Item>& items, uint64_t version = 1) {
  std::string out = le(version) + le<uint64_t>(items.size());
  for (const Item& i : items)
    out += le(i.name_size.value_or(i.name.size() + 1)) + le(i.type) +
           le<uint64_t>(i.rank.value_or(i.shape.size())) +
           le<uint64_t>(i.size.value_or(i.data.size()));
  for (const Item& i : items) out += i.name + std::string(1, '\0');
  for (const Item& i : items) out += le_list(i.shape);
  const uint64_t padding = ((out.size() + 8) / 256 + 1) * 256 - out.size() - 8;
  out += le(padding) + std::string(padding, '\0');
  for (const Item& i : items) out += i.data;
  return out;
}

// W is [3, 2]. intgemm stores it as [2, 3].
Item weight(uint64_t type = kGemm8) {
  return {
      "encoder_l1_self_Wq", type, {3, 2}, aligned(le_list<int8_t>({1, 2, 3, 4, 5, 6}) + le(2.0F))};
}

std::string small_model() {
  return model({{"Wemb", kGemm8, {2, 2}, aligned(le_list<int8_t>({10, 20, 30, -40}) + le(10.0F))},
                {"b", kF32, {1, 2}, aligned(le_list<float>({1, -2}))},
                weight(),
                {"h", kF16, {1}, le<uint16_t>(0x4000)},
                {"special:model.yml", kI8, {15}, std::string("dim-emb: 2\n\0\0\0\0", 15)}});
}

void read_all(const FileBytes& file) {
  const MarianArchive archive(file);
  for (const ArchivedTensor& tensor : archive.tensors()) archive.floats(tensor);
}

using F = std::vector<float>;

TEST(Marian, ReadsAllTypes) {
  const samples::Folder folder;
  const auto archive = open_tensor_archive(folder.write("model.bin", small_model()));
  ASSERT_EQ(archive->tensors().size(), 4u);
  EXPECT_EQ(archive->metadata().at("special:model.yml"), "dim-emb: 2\n");
  EXPECT_EQ(archive->floats("Wemb"), (F{1, 2, 3, -4}));  // the only matrix that is not transposed
  EXPECT_EQ(archive->floats("b"), (F{1, -2}));
  EXPECT_EQ(archive->floats("encoder_l1_self_Wq"), (F{0.5F, 2, 1, 2.5F, 1.5F, 3}));
  EXPECT_EQ(archive->floats("h"), F{2});
  const ArchivedTensor& w = archive->get("encoder_l1_self_Wq");
  EXPECT_EQ(w.shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(archive->scales(w), F{2});
  EXPECT_EQ(archive->bytes(w).bytes[1], std::byte{4});
  EXPECT_TRUE(archive->scales(archive->get("b")).empty());
}

TEST(Marian, ReadsInt16AndTheTypesOfMarian112) {
  const auto floats_of = [](uint64_t type, const std::string& data) {
    return MarianArchive(file_of(model({{"W", type, {2, 1}, data}}), "m")).floats("W");
  };
  EXPECT_EQ(floats_of(kGemm16, le_list<int16_t>({512, 2048}) + le(1024.0F)), (F{0.5F, 2}));
  EXPECT_EQ(floats_of(0x10002, le_list<int16_t>({512, 2048}) + le(1024.0F)), (F{0.5F, 2}));
  EXPECT_EQ(floats_of(0x10001, le_list<int8_t>({1, 2}) + le(4.0F)), (F{0.25F, 0.5F}));
  EXPECT_EQ(floats_of(0x408, le_list<double>({1, 2})), (F{1, 2}));
  EXPECT_EQ(floats_of(0x104, le_list<int32_t>({1, -2})), (F{1, -2}));
}

// A loop over the rows of such a matrix would take seconds.
TEST(Marian, ReadsEmptyMatricesWithManyRows) {
  const MarianArchive archive(file_of(model({{"W", kGemm8, {0, 0x7FFFFFFF}, le(1.0F)}}), "m"));
  const double begin = thread_seconds();
  EXPECT_TRUE(archive.floats("W").empty());
  EXPECT_LT(thread_seconds() - begin, time_limit(0.1));
}

std::vector<DamagedFile> bad_headers() {
  const std::string one = le<uint64_t>(1);
  const std::string good = model({weight()});
  const auto padded = [&](uint64_t padding) {
    std::string bytes = one + le<uint64_t>(0) + le(padding);
    return bytes + std::string(std::min<uint64_t>(padding, 2000), '\0');
  };
  return {
      {"empty", "", "the version needs 8 bytes"},
      {"seven bytes", std::string(7, '\1'), "the version needs 8 bytes"},
      {"version 0", model({weight()}, 0), "version 0"},
      {"version 2", model({weight()}, 2), "encrypted"},
      {"version 3", model({weight()}, 3), "version 3"},
      {"version 2^64 - 1", model({weight()}, ~uint64_t{0}), "version 18446744073709551615"},
      {"big-endian version", std::string("\0\0\0\0\0\0\0\1", 8) + good.substr(8), "version 72057"},
      {"no count", one, "the number of tensors needs"},
      {"count 2^64 - 1", one + le(~uint64_t{0}), "18446744073709551615 tensors"},
      {"count times 32 wraps", one + le(uint64_t{1} << 59) + std::string(64, '\0'), "tensors of"},
      {"count beyond the file", one + le<uint64_t>(100) + std::string(320, '\1'), "100 tensors"},
      {"count too large by one", one + le<uint64_t>(2) + good.substr(16), ""},
      {"count too small by one", one + le<uint64_t>(0) + good.substr(16), ""},
      {"no padding size", one + le<uint64_t>(0), "size of the padding"},
      {"padding 257", padded(257), "a padding of 257"},
      {"padding 2^64 - 1", padded(~uint64_t{0}), "a padding of"},
      {"padding beyond the file", one + le<uint64_t>(0) + le<uint64_t>(100) + "x",
       "the padding needs 100"},
      {"byte after the end", good + "x", "1 bytes after the end"},
      {"two files in one", good + good, "after the end"},
      {"magic of zip", "PK\3\4" + good, "version"},
      {"text", "this is a text and no model of Marian", "version"},
  };
}

std::vector<DamagedFile> bad_names() {
  const auto named = [](const std::string& name) {
    Item item = weight();
    item.name = name;
    return model({item});
  };
  const auto name_size = [](uint64_t size) {
    Item item = weight();
    item.name_size = size;
    return model({item, {"z", kF32, {1}, "abcd"}});
  };
  return {
      {"name empty", named(""), "name is empty"},
      {"name of 257 bytes", named(std::string(257, 'n')), "at most 256"},
      {"name of 1 MB", named(std::string(1'000'000, 'n')), "at most 256"},
      {"name with NUL", named(std::string("a\0b", 3)), "only NUL"},
      {"name not UTF-8", named("\xff"), "not UTF-8"},
      {"name cut UTF-8", named("a\xe2\x82"), "not UTF-8"},
      {"name with a surrogate", named("\xed\xa0\x80"), "not UTF-8"},
      {"name of length 0", name_size(0), "only NUL"},
      {"name one byte short", name_size(18), "only NUL"},
      {"name one byte long", name_size(20), "only NUL"},
      {"name beyond the file", name_size(100'000), "needs 100000 bytes"},
      {"name of 2^64 - 1 bytes", name_size(~uint64_t{0}), "needs 18446744073709551615"},
      {"name of 2^63 bytes", name_size(uint64_t{1} << 63), "needs 9223372036854775808"},
      {"name twice", model({weight(), weight()}), "given twice"},
      {"options twice",
       model({{"special:model.yml", kI8, {1}, "x"}, {"special:model.yml", kI8, {1}, "x"}}),
       "given twice"},
      {"options are float32", model({{"special:model.yml", kF32, {1}, "abcd"}}), "not text"},
      {"options not UTF-8", model({{"special:model.yml", kI8, {2}, "a\xff"}}), "not text"},
  };
}

std::vector<DamagedFile> bad_types() {
  std::vector<DamagedFile> all;
  for (const uint64_t type : {uint64_t{0},       uint64_t{1},       uint64_t{0x100},
                              uint64_t{0x103},   uint64_t{0x110},   uint64_t{0x208} + 1,
                              uint64_t{0x401},   uint64_t{0x802},   uint64_t{0x1801},
                              uint64_t{0x2801},  uint64_t{0x4104},  uint64_t{0x4404},
                              uint64_t{0x5101},  uint64_t{0x6101},  uint64_t{0x8101},
                              uint64_t{0x11001}, uint64_t{0x12001}, uint64_t{0x13001},
                              uint64_t{0x14001}, uint64_t{0x18001}, uint64_t{1} << 32 | kF32,
                              uint64_t{1} << 63, ~uint64_t{0}})
    all.push_back({"type " + std::to_string(type), model({weight(type)}), "cannot be read"});
  all.push_back({"names packed8avx512", model({weight(0x2801)}), "(packed8avx512)"});
  all.push_back({"names packed16", model({weight(0x802)}), "(packed16)"});
  all.push_back({"names intgemm", model({weight(0x14001)}), "(packed for intgemm)"});
  return all;
}

std::vector<DamagedFile> bad_shapes() {
  const auto f32 = [](const std::vector<int32_t>& shape, uint64_t size) {
    return model(
        {{"a", kF32, shape, std::string(std::min<uint64_t>(size, 4096), 'd'), {}, {}, size}});
  };
  const auto rank = [](uint64_t n) {
    Item item = weight();
    item.rank = n;
    return model({item});
  };
  const auto scaled = [](float scale) {
    Item item = weight();
    item.data = aligned("abcdef" + le(scale));
    return model({item});
  };
  const int32_t most = 0x7FFFFFFF;
  return {
      {"rank 9", rank(9), "a rank of 9"},
      {"rank 2^64 - 1", rank(~uint64_t{0}), "a rank of 18446744073709551615"},
      {"rank 2^62 wraps", rank(uint64_t{1} << 62), "a rank of"},
      {"rank 1 of 2", rank(1), ""},
      {"rank 3 of 2", rank(3), ""},
      {"dimension -1", f32({-1}, 4), "a dimension of -1"},
      {"dimension -2^31", f32({-most - 1}, 4), "a dimension of -2147483648"},
      {"negative and zero", f32({0, -3}, 0), "a dimension of -3"},
      {"product 2^62", f32({most, most}, 4), "below 2^62"},
      {"product wraps to 4", f32({65536, 65536, 65536, 65536}, 4), "below 2^62"},
      {"product wraps before 0", f32({most, most, most, most, 0}, 0), "below 2^62"},
      {"data missing", f32({2}, 4), "need 8 bytes, its data has 4"},
      {"data empty", f32({2}, 0), "need 8 bytes, its data has 0"},
      {"data too long", f32({2}, 265), "need 8 bytes, its data has 265"},
      {"data of 2^64 - 1 bytes", f32({2}, ~uint64_t{0}), "its data has 18446744073709551615"},
      {"data beyond the file", f32({5000}, 20000), "the data needs 20000"},
      {"data of 4 GB beyond the file", f32({1'000'000'000}, 4'000'000'000), "needs 4000000000"},
      {"zero dimension with data", f32({0}, 400), "need 0 bytes"},
      {"no scale", model({{"W", kGemm8, {2, 2}, "abcd"}}), "need 8 bytes, its data has 4"},
      {"half a scale", model({{"W", kGemm8, {2, 2}, "abcdef"}}), "need 8 bytes, its data has 6"},
      {"int16 without scale", model({{"W", kGemm16, {2, 2}, "abcdefgh"}}), "need 12 bytes"},
      {"scale 0", scaled(0), "a scale of 0"},
      {"scale -1", scaled(-1), "a scale of -1"},
      {"scale infinite", scaled(INFINITY), "a scale of inf"},
      {"scale NaN", scaled(NAN), "a scale of"},
  };
}

TEST(Marian, RefusesEveryKindOfBadFile) {
  std::vector<DamagedFile> all = bad_headers();
  for (const auto& more : {bad_names(), bad_types(), bad_shapes()})
    all.insert(all.end(), more.begin(), more.end());
  EXPECT_GE(all.size(), 80u);
  testing::expect_refused(all, "model.bin", read_all);
}

TEST(Marian, EveryTruncationIsRefused) {
  testing::expect_beginnings_refused(small_model(), "model.bin", read_all);
}

TEST(Marian, EveryChangedByteIsSurvived) {
  testing::expect_changes_survived(small_model(), "model.bin", read_all);
}

}  // namespace
}  // namespace fovea

#include "formats/marian_writer.h"

#include <gtest/gtest.h>

#include "support/damaged_files.h"

namespace fovea {
namespace {

using testing::le;

TEST(MarianWriter, WritesTheBytesOfTheFormat) {
  const float values[] = {1, 2};
  MarianWriter writer;
  writer.add("W", StoredType::F32, {2, 1}, std::as_bytes(std::span(values)));
  std::string expected = le<uint64_t>(1) + le<uint64_t>(1) +                        //
                         le<uint64_t>(2) + le<uint64_t>(0x404) + le<uint64_t>(2) +  //
                         le<uint64_t>(256) + "W" + std::string(1, '\0') +           //
                         le<int32_t>(2) + le<int32_t>(1) + le<uint64_t>(256 - 66);  //
  expected.resize(256);
  expected += le(1.0F) + le(2.0F);
  expected.resize(512);
  EXPECT_EQ(writer.to_string(), expected);
}

// Marian adds 256 zeros if the data would begin at a multiple of 256 without zeros.
TEST(MarianWriter, WritesAtLeastOneZero) {
  const std::vector<std::byte> none;
  MarianWriter writer;  // 16 + 32 + 196 + 4 + 8 bytes
  writer.add(std::string(195, 'n'), StoredType::I8, {0}, none);
  EXPECT_EQ(writer.to_string().size(), 512u);
  EXPECT_EQ(writer.to_string().substr(248, 8), le<uint64_t>(256));
}

TEST(MarianWriter, ReaderReadsWhatItWrote) {
  const std::vector<float> floats(100, 1.5F);
  const int16_t ints[] = {-1, 2};
  MarianWriter writer;
  writer.add("b", StoredType::F32, {1, 100}, std::as_bytes(std::span(floats)));
  writer.add("a", StoredType::I16, {2}, std::as_bytes(std::span(ints)));
  writer.add_options("type: transformer\n");
  const TemporaryFolder folder;
  writer.write(folder / "model.bin");
  const auto archive = open_tensor_archive(folder / "model.bin");
  ASSERT_EQ(archive->tensors().size(), 2u);
  EXPECT_EQ(archive->tensors()[0].name, "b");
  EXPECT_EQ(archive->floats("b"), floats);
  EXPECT_EQ(archive->floats("a"), (std::vector<float>{-1, 2}));
  EXPECT_EQ(archive->metadata().at("special:model.yml"), "type: transformer\n");
}

TEST(MarianWriter, RefusesMisuse) {
  const std::vector<std::byte> four(4), none;
  MarianWriter writer;
  writer.add("a", StoredType::F32, {1}, four);
  writer.add_options("x: 1");
  const auto refuses = [](auto action) { message_of(ExitCode::unexpected, action); };
  refuses([&] { writer.add("a", StoredType::F32, {1}, four); });
  refuses([&] { writer.add("b", StoredType::F32, {2}, four); });
  refuses([&] { writer.add("c", StoredType::BF16, {2}, four); });
  refuses([&] { writer.add("", StoredType::F32, {1}, four); });
  refuses([&] { writer.add("d", StoredType::I8, {int64_t{1} << 31, 0}, none); });
  refuses([&] { writer.add_options("x: 2"); });
}

}  // namespace
}  // namespace fovea

#include "formats/ctranslate2_writer.h"

#include <gtest/gtest.h>

#include "formats/ctranslate2_archive.h"
#include "support/damaged_files.h"

namespace fovea {
namespace {

using testing::le;

TEST(CTranslate2Writer, WritesTheBytesOfTheFormat) {
  const std::vector<int8_t> values = {1, -1};
  CTranslate2Writer writer("S", 7);
  writer.add("b", StoredType::I8, {2, 1}, std::as_bytes(std::span(values)));
  writer.add_scalar("a", int16_t{3});
  writer.add_alias("c", "b");
  const std::string nul(1, '\0');
  EXPECT_EQ(writer.to_string(),
            le<uint32_t>(6) + "\2" + nul + "S" + nul + le<uint32_t>(7) + le<uint32_t>(2) +  //
                "\2" + nul + "a" + nul + nul + "\2" + le<uint32_t>(2) + le<int16_t>(3) +    //
                "\2" + nul + "b" + nul + "\2" + le<uint32_t>(2) + le<uint32_t>(1) + "\1" +  //
                le<uint32_t>(2) + "\1\xff" +                                                //
                le<uint32_t>(1) + "\2" + nul + "c" + nul + "\2" + nul + "b" + nul);
}

TEST(CTranslate2Writer, ReaderReadsWhatItWrote) {
  const std::vector<float> floats = {1, -2, 3};
  const std::vector<int8_t> ints = {2, 4};
  const float scale = 4;
  CTranslate2Writer writer("TransformerSpec", 7);
  writer.add("w/weight", StoredType::I8, {1, 2}, std::as_bytes(std::span(ints)));
  writer.add("w/weight_scale", StoredType::F32, {1}, std::as_bytes(std::span(&scale, 1)));
  writer.add("f", StoredType::F32, {3}, std::as_bytes(std::span(floats)));
  writer.add("none", StoredType::F16, {0}, {});
  writer.add_scalar("x", 0.5F);
  writer.add_scalar("y", int8_t{-1});
  writer.add_scalar("z", int32_t{70000});
  writer.add_alias("v/weight", "w/weight");
  const TemporaryFolder folder;
  writer.write(folder / "model.bin");
  const auto archive = open_tensor_archive(folder / "model.bin");
  using F = std::vector<float>;
  EXPECT_EQ(archive->floats("v/weight"), (F{0.5F, 1}));
  EXPECT_EQ(archive->floats("f"), (F{1, -2, 3}));
  EXPECT_TRUE(archive->floats("none").empty());
  EXPECT_EQ(archive->floats("x"), F{0.5F});
  EXPECT_EQ(archive->floats("y"), F{-1});
  EXPECT_EQ(archive->floats("z"), F{70000});
  EXPECT_EQ(archive->metadata().at("spec"), "TransformerSpec");
}

TEST(CTranslate2Writer, RefusesMisuse) {
  const std::vector<std::byte> eight(8);
  CTranslate2Writer writer("S", 1);
  writer.add("a", StoredType::F32, {2}, eight);
  const auto refuses = [](auto action) { message_of(ExitCode::unexpected, action); };
  refuses([&] { writer.add("a", StoredType::F32, {2}, eight); });
  refuses([&] { writer.add("b", StoredType::F32, {3}, eight); });
  refuses([&] { writer.add("b", StoredType::F64, {1}, eight); });
  refuses([&] { writer.add("", StoredType::F32, {2}, eight); });
  refuses([&] { writer.add("b", StoredType::I8, std::vector<int64_t>(9, 1), eight); });
  refuses([&] { writer.add_scalar("a", 1.0F); });
  refuses([&] { writer.add_alias("a", "a"); });
  const std::vector<std::byte> none;
  message_of(ExitCode::model, [&] {
    writer.add("b", StoredType::I8, {int64_t{1} << 32, 0}, none);
  });
  writer.add_alias("b", "absent");
  refuses([&] { writer.to_string(); });
}

}  // namespace
}  // namespace fovea

#include "formats/npz_archive.h"

#include <gtest/gtest.h>

#include "support/zip_bytes.h"
#include "text_samples.h"

namespace fovea {
namespace {

using testing::DamagedFile;
using testing::file_of;
using testing::le;
using testing::le_list;
using testing::zip_bytes;

// An .npy file with any text as its header.
std::string npy_with(const std::string& header, const std::string& data, uint16_t version = 1) {
  const std::string length = version == 1 ? le(static_cast<uint16_t>(header.size()))
                                          : le(static_cast<uint32_t>(header.size()));
  return "\x93NUMPY" + le(version) + length + header + data;
}

std::string header(const std::string& type, const std::string& shape,
                   const std::string& order = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }  \n";
}

std::string npy(const std::string& type, const std::string& shape, const std::string& data) {
  return npy_with(header(type, shape), data);
}

std::string npz(const std::string& array) { return zip_bytes({{"w.npy", array}}); }

const std::string kTwo = le_list<float>({1, -2});

std::string small_model() {
  return zip_bytes(
      {{"Wemb.npy", npy("<f4", "(2, 1)", kTwo)},
       {"special:model.yml.npy", npy("|i1", "(16,)", std::string("type: s2s\n\0\0\0\0\0\0", 16))},
       {"b.npy", npy("<f8", "(1,)", le(0.5)), true}});
}

void read_all(const FileBytes& file) {
  const NpzArchive archive(file);
  for (const ArchivedTensor& tensor : archive.tensors()) archive.floats(tensor);
}

using F = std::vector<float>;

TEST(Npz, ReadsStoredAndDeflatedArrays) {
  const samples::Folder folder;
  const auto archive = open_tensor_archive(folder.write("model.npz", small_model()));
  ASSERT_EQ(archive->tensors().size(), 2u);
  EXPECT_EQ(archive->floats("Wemb"), (F{1, -2}));
  EXPECT_EQ(archive->get("Wemb").shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(archive->floats("b"), F{0.5F});
  EXPECT_EQ(archive->metadata().at("special:model.yml"), "type: s2s\n");
  EXPECT_EQ(archive->find("special:model.yml"), nullptr);
}

TEST(Npz, ReadsEveryFormOfTheHeader) {
  const auto floats_of = [](const std::string& array) {
    return NpzArchive(file_of(npz(array), "m.npz")).floats("w");
  };
  for (const std::string text :
       {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
        "{'shape':(2,),'fortran_order':False,'descr':'<f4'}",
        "{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (1, 2)}\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2), }        \n"})
    EXPECT_EQ(floats_of(npy_with(text, kTwo)), (F{1, -2})) << text;
  EXPECT_EQ(floats_of(npy_with(header("<f4", "(2,)"), kTwo, 2)), (F{1, -2}));
  EXPECT_EQ(floats_of(npy_with(header("<f4", "(2,)"), kTwo, 3)), (F{1, -2}));
  EXPECT_EQ(floats_of(npy("<f4", "()", le(7.0F))), F{7});
  EXPECT_EQ(floats_of(npy("<f2", "(1,)", le<uint16_t>(0x3C00))), F{1});
  EXPECT_EQ(floats_of(npy("<i8", "(1,)", le<int64_t>(-3))), F{-3});
  EXPECT_EQ(floats_of(npy("<u2", "(1,)", le<uint16_t>(3))), F{3});
  EXPECT_EQ(floats_of(npy("|u1", "(1,)", "\7")), F{7});
  EXPECT_EQ(floats_of(npy("<i1", "(1,)", "\7")), F{7});
  EXPECT_EQ(floats_of(npy("|b1", "(1,)", "\1")), F{1});
  EXPECT_TRUE(floats_of(npy("<f4", "(0, 3)", "")).empty());
}

std::vector<DamagedFile> bad_arrays() {
  const std::string good = npy("<f4", "(2,)", kTwo);
  const auto version = [](uint16_t v) { return npz(npy_with(header("<f4", "(2,)"), kTwo, v)); };
  std::vector<DamagedFile> all = {
      {"array empty", npz(""), "the signature needs 6"},
      {"signature wrong", npz("\x93NUMPX" + good.substr(6)), "not an array of NumPy"},
      {"signature of pickle", npz("\x80\4\x95" + good), "not an array of NumPy"},
      {"no version", npz("\x93NUMPY"), "the version needs"},
      {"version 0", version(0), "version 0"},
      {"version 4", version(4), "version 4"},
      {"minor version 1", version(257), "version 257"},
      {"no length", npz("\x93NUMPY\1" + std::string(1, '\0')), "length of the header"},
      {"header beyond the array", npz("\x93NUMPY" + le<uint16_t>(1) + le<uint16_t>(500) + "{"),
       "the header needs 500"},
      {"header of 65,535 bytes", npz(npy_with(std::string(65535, ' '), kTwo)), "a header of 65535"},
      {"header of 4 GiB", npz("\x93NUMPY" + le<uint16_t>(2) + le(~uint32_t{0})), "a header of"},
      {"data missing", npz(npy("<f4", "(3,)", kTwo)), "need 12 bytes, the array has 8"},
      {"data empty", npz(npy("<f4", "(3,)", "")), "need 12 bytes, the array has 0"},
      {"data too long", npz(npy("<f4", "(1,)", kTwo)), "need 4 bytes, the array has 8"},
      {"data of a scalar too long", npz(npy("<f4", "()", kTwo)), "need 4 bytes"},
      {"zero dimension with data", npz(npy("<f4", "(0,)", kTwo)), "need 0 bytes"},
      {"entry is no array", zip_bytes({{"readme.txt", "x"}}), "does not end in .npy"},
      {"entry without extension", zip_bytes({{"w", good}}), "does not end in .npy"},
      {"name empty", zip_bytes({{".npy", good}}), "name is empty"},
      {"name of 257 bytes", zip_bytes({{std::string(257, 'n') + ".npy", good}}), "at most 256"},
      {"name twice", zip_bytes({{"w.npy", good}, {"w.npy", good}}), "occurs twice"},
      {"name leads out", zip_bytes({{"../w.npy", good}}), "unsafe name"},
      {"options are floats", zip_bytes({{"special:model.yml.npy", good}}), "are no text"},
      {"options of 2 MB",
       zip_bytes({{"special:model.yml.npy", npy("|i1", "(2000000,)", std::string(2000000, 'x'))}}),
       "are no text"},
      {"options not UTF-8", zip_bytes({{"special:model.yml.npy", npy("|i1", "(2,)", "a\xff")}}),
       "not UTF-8"},
      {"zip bomb",
       zip_bytes({{"w.npy", npy("<f4", "(7500000,)", std::string(30'000'000, '\0')), true}}),
       "zip bomb"},
      {"CRC wrong", zip_bytes({{"w.npy", good, false, {}, {}, 1}}), "CRC"},
      {"zip cut", npz(good).substr(0, 60), "damaged zip"},
      {"not a zip file", "PK\3\4" + good, "damaged zip"},
  };
  return all;
}

std::vector<DamagedFile> bad_types() {
  std::vector<DamagedFile> all;
  for (const std::string type :
       {">f4",  ">f8", ">i4",  ">u2",  "=f4",  "|f4",     "f4",   "",     "<",      "<f3",
        "<f16", "<f1", "<i3",  "<c8",  "<c16", "<M8[s]",  "<m8",  "|O",   "O",      "|S5",
        "<U5",  "|V8", "<f4 ", " <f4", "<F4",  "float32", "<b1x", "\xff", "\x1b[2J"})
    all.push_back({"type " + type, npz(npy(type, "(2,)", kTwo)), "cannot be read"});
  all.push_back(
      {"structured type",
       npz(npy_with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", kTwo)),
       "structured arrays"});
  all.push_back({"long type", npz(npy(std::string(9000, 'f'), "(2,)", kTwo)), "cannot be read"});
  return all;
}

std::vector<DamagedFile> bad_headers() {
  std::vector<DamagedFile> all;
  const std::string type = "'descr': '<f4', ", order = "'fortran_order': False, ",
                    shape = "'shape': (2,), ";
  for (const std::string& text :
       std::vector<std::string>{std::string(),
                                std::string("{"),
                                std::string("{}"),
                                std::string("[]"),
                                std::string("{'"),
                                "{" + type + order + "}",
                                "{" + type + shape + "}",
                                "{" + order + shape + "}",
                                "{" + type + type + order + shape + "}",
                                "{" + type + order + order + shape + "}",
                                "{" + type + order + shape + shape + "}",
                                "{" + type + order + shape + "'x': 1}",
                                type + order + shape,
                                "{" + type + order + shape,
                                "{" + type + order + shape + "} x",
                                "{" + type + order + shape + "}{}",
                                "{'descr' '<f4'}",
                                "{'descr': <f4}",
                                "{descr: '<f4'}",
                                "{'descr': '<f4' 'shape': (2,)}",
                                "{" + type + "'fortran_order': True, " + shape + "}",
                                "{" + type + "'fortran_order': 0, " + shape + "}",
                                "{,}",
                                "{" + type + ",}",
                                "__import__('os').system('true')",
                                std::string(16000, '{'),
                                std::string(16000, '\0')})
    all.push_back(
        {"header " + text.substr(0, 100), npz(npy_with(text, kTwo)), "m.npz/w.npy: byte"});
  return all;
}

std::vector<DamagedFile> bad_shapes() {
  std::vector<DamagedFile> all;
  for (const std::string shape : {"2",
                                  "[2]",
                                  "(",
                                  "(2",
                                  "(2,",
                                  "(2,,)",
                                  "(,)",
                                  "(,2)",
                                  "(-2,)",
                                  "(+2,)",
                                  "(2.0,)",
                                  "(2e0,)",
                                  "(0x2,)",
                                  "('2',)",
                                  "(None,)",
                                  "((2,),)",
                                  "(2 2)",
                                  "(9223372036854775808,)",
                                  "(18446744073709551616,)",
                                  "(99999999999999999999999999,)"})
    all.push_back({"shape " + shape, npz(npy("<f4", shape, kTwo)), "m.npz/w.npy: byte"});
  for (const std::string shape : {"(9223372036854775807,)", "(4294967296, 4294967296)",
                                  "(4611686018427387905, 4)", "(4294967296, 4294967296, 0)"})
    all.push_back({"shape " + shape, npz(npy("<f4", shape, kTwo)), "below 2^62"});
  all.push_back({"rank 9", npz(npy("<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 2)", kTwo)), "a rank of 9"});
  std::string many = "(";
  for (int i = 0; i < 5000; ++i) many += "1,";
  all.push_back({"rank 5,000", npz(npy("<f4", many + ")", le(1.0F))), "a rank of 5000"});
  return all;
}

TEST(Npz, RefusesEveryKindOfBadFile) {
  std::vector<DamagedFile> all = bad_arrays();
  for (const auto& more : {bad_types(), bad_headers(), bad_shapes()})
    all.insert(all.end(), more.begin(), more.end());
  EXPECT_GE(all.size(), 80u);
  testing::expect_refused(all, "m.npz", read_all);
}

TEST(Npz, EveryTruncationIsRefused) {
  testing::expect_beginnings_refused(small_model(), "m.npz", read_all);
}

TEST(Npz, EveryChangedByteIsSurvived) {
  testing::expect_changes_survived(small_model(), "m.npz", read_all);
}

}  // namespace
}  // namespace fovea

#include "formats/zip_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "formats/model_folder.h"
#include "support/zip_bytes.h"
#include "text_samples.h"

namespace fovea {
namespace {

using testing::DamagedFile;
using testing::file_of;
using testing::le;
using testing::zip_bytes;
using testing::ZipEnd;
using testing::ZipEntry;

const std::string kText = "hello, hello, hello, world";

std::vector<ZipEntry> two_entries() { return {{"m/a.txt", kText}, {"m/b/c.txt", kText, true}}; }

ZipFolder parse(const std::string& bytes, ZipNames names = ZipNames::complete) {
  return {file_of(bytes, "m.zip"), names};
}

void read_all(const FileBytes& file) {
  const ZipFolder zip(file, ZipNames::without_root);
  for (const std::string& name : zip.names()) zip.read(name);
}

TEST(ZipFolder, ReadsStoredAndDeflatedEntries) {
  const std::string bytes = zip_bytes(two_entries());
  const ZipFolder zip(file_of(bytes, "m.zip"), ZipNames::complete);
  EXPECT_EQ(zip.names(), (std::vector<std::string>{"m/a.txt", "m/b/c.txt"}));
  EXPECT_EQ(zip.read_text("m/a.txt", 100), kText);
  EXPECT_EQ(zip.read_text("m/b/c.txt", 100), kText);
  EXPECT_EQ(zip.read("m/a.txt").path, "m.zip/m/a.txt");
  EXPECT_EQ(zip.size_of("m/b/c.txt"), kText.size());
  EXPECT_EQ(zip.beginning("m/b/c.txt", 3).size(), 3u);
  EXPECT_EQ(zip.beginning("m/b/c.txt", 300).size(), kText.size());
  EXPECT_EQ(message_of(ExitCode::model, [&] { zip.read("m/b/c.txt", 25); }),
            "m.zip/m/b/c.txt: 26 bytes, at most 25 are allowed");
  EXPECT_EQ(message_of(ExitCode::model, [&] { zip.read("x"); }), "m.zip: there is no file 'x'");
}

// Programs that write without seeking store the CRC-32 behind the data. Packages of Argos have it.
TEST(ZipFolder, ReadsEntriesWithALateCrc) {
  ZipEntry entry{"a", kText, true};
  entry.late_crc = true;
  EXPECT_EQ(parse(zip_bytes({entry})).read_text("a", 100), kText);
}

TEST(ZipFolder, ReadsAComment) {
  ZipEnd end;
  end.comment = "a comment";
  EXPECT_EQ(parse(zip_bytes(two_entries(), end)).names().size(), 2u);
}

TEST(ZipFolder, RemovesTheFolderOfAllFiles) {
  const auto root_of = [](const std::vector<ZipEntry>& entries) {
    return parse(zip_bytes(entries), ZipNames::without_root).root();
  };
  EXPECT_EQ(root_of(two_entries()), "m/");
  EXPECT_EQ(root_of({{"m/", ""}, {"m/a", "x"}}), "m/");
  EXPECT_EQ(root_of({{"m/a", "x"}, {"n/a", "x"}}), "");
  EXPECT_EQ(root_of({{"a", "x"}, {"m/a", "x"}}), "");
  EXPECT_EQ(root_of({}), "");
  EXPECT_TRUE(parse(zip_bytes(two_entries()), ZipNames::without_root).contains("b/c.txt"));
}

TEST(ModelFolder, OpensFoldersAndZipFiles) {
  const samples::Folder folder;
  std::filesystem::create_directories(folder / "model/b");
  folder.write("model/a.txt", kText);
  folder.write("model/b/c.txt", kText);
  std::filesystem::create_symlink(folder / "model/a.txt", folder / "model/link.txt");
  std::filesystem::create_symlink(folder / "absent", folder / "model/broken");
  std::filesystem::create_directory_symlink(folder.path(), folder / "model/loop");
  folder.write("model.zip", zip_bytes(two_entries()));
  const auto disk = ModelFolder::open(folder / "model"),
             zip = ModelFolder::open(folder / "model.zip");
  EXPECT_EQ(disk->names(), (std::vector<std::string>{"a.txt", "b/c.txt", "link.txt"}));
  EXPECT_EQ(zip->names(), (std::vector<std::string>{"a.txt", "b/c.txt"}));
  for (const ModelFolder* either : {disk.get(), zip.get()}) {
    EXPECT_EQ(either->read_text("b/c.txt", 100), kText);
    EXPECT_FALSE(either->contains("b"));
    message_of(ExitCode::model, [&] { either->read("../model.zip"); });
    message_of(ExitCode::model, [&] { either->read("a.txt", 3); });
  }
  message_of(ExitCode::files, [&] { ModelFolder::open(folder / "absent"); });
  message_of(ExitCode::model, [&] { ModelFolder::open(folder / "model/a.txt"); });
}

std::vector<DamagedFile> bad_names() {
  const auto named = [](const std::string& name) {
    return zip_bytes({{"good", "x"}, {name, "x"}});
  };
  std::string deep;
  for (int i = 0; i < 9; ++i) deep += "d/";
  return {
      {"name empty", named(""), "unsafe name"},
      {"name absolute", named("/etc/passwd"), "an absolute path"},
      {"name leads out", named("../x"), "'.' or '..'"},
      {"name leads out later", named("a/../../x"), "'.' or '..'"},
      {"name ends in ..", named("a/.."), "'.' or '..'"},
      {"folder ..", named("../"), "'.' or '..'"},
      {"name .", named("."), "'.' or '..'"},
      {"name with a part .", named("a/./b"), "'.' or '..'"},
      {"name with an empty part", named("a//b"), "empty part"},
      {"name is /", named("/"), "an absolute path"},
      {"name with backslash", named("a\\b"), "a '\\'"},
      {"name of a drive", named("C:x"), "a drive"},
      {"name not UTF-8", named("a\xff"), "not UTF-8"},
      {"name overlong UTF-8", named("a\xc0\xaf"), "not UTF-8"},
      {"name too long", named(std::string(1025, 'n')), "too long"},
      {"name of 65,535 bytes", named(std::string(65535, 'n')), "too long"},
      {"name too deep", named(deep + "x"), "too many parts"},
      {"name twice", zip_bytes({{"a", "x"}, {"a", "y"}}), "occurs twice"},
      {"file and folder", zip_bytes({{"a", "x"}, {"a", "y"}, {"a/", ""}}), "occurs twice"},
      {"link", zip_bytes({{"a", "/etc/passwd", false, {}, {}, {}, {}, {}, {}, 0xA1FF0000}}),
       "is a link"},
  };
}

std::vector<DamagedFile> bad_entries() {
  const std::string good = zip_bytes(two_entries());
  const auto with = [](auto change) {
    std::vector<ZipEntry> entries = two_entries();
    change(entries[1]);
    return zip_bytes(entries);
  };
  const auto value = [&](auto member, uint32_t v) {
    return with([&](ZipEntry& e) {
      (e.*member) = static_cast<typename std::decay_t<decltype(e.*member)>::value_type>(v);
    });
  };
  std::vector<DamagedFile> all = {
      {"encrypted", value(&ZipEntry::flags, 1), "encrypted"},
      {"strongly encrypted", value(&ZipEntry::flags, 65), "encrypted"},
      {"packed data longer than the file", value(&ZipEntry::packed_size, 5000), ""},
      {"packed data of 4 GiB", value(&ZipEntry::packed_size, 0xFFFFFFF0), ""},
      {"packed data too short", value(&ZipEntry::packed_size, 3), ""},
      {"packed data empty", value(&ZipEntry::packed_size, 0), ""},
      {"size too large", value(&ZipEntry::size, 27), ""},
      {"size too small", value(&ZipEntry::size, 25), "longer than its size"},
      {"size 0", value(&ZipEntry::size, 0), "longer than its size"},
      {"size 4 GiB", value(&ZipEntry::size, 0xFFFFFFF0), "zip bomb"},
      {"size in an absent zip64 field", value(&ZipEntry::size, 0xFFFFFFFF), ""},
      {"offset in an absent zip64 field", value(&ZipEntry::offset, 0xFFFFFFFF), ""},
      {"CRC wrong", value(&ZipEntry::crc, 1), "CRC"},
      {"offset beyond the file", value(&ZipEntry::offset, 5000), ""},
      {"offset 1", value(&ZipEntry::offset, 1), ""},
      {"offset of the other entry", value(&ZipEntry::offset, 0), ""},
      {"stored with two sizes", with([](ZipEntry& e) { e.deflated = false, e.size = 25; }),
       "two sizes"},
      {"stored bytes read as deflated", with([](ZipEntry& e) { e.deflated = false, e.method = 8; }),
       ""},
  };
  for (const int method : {1, 6, 9, 12, 14, 19, 93, 95, 97, 98, 99, 65535})
    all.push_back({"method " + std::to_string(method), value(&ZipEntry::method, method),
                   method == 99 ? "" : "compression is unknown"});
  return all;
}

std::vector<DamagedFile> bad_bombs() {
  const std::string zeros(30'000'000, '\0');
  std::vector<ZipEntry> many;
  for (int i = 0; i < 40; ++i)
    many.push_back({"z" + std::to_string(i), std::string(1'000'000, '\0'), true});
  std::vector<ZipEntry> overlapping = {{"z0", std::string(3'000'000, '\0'), true}};
  for (int i = 1; i < 20; ++i) {  // every entry of the directory has the same data
    ZipEntry e = overlapping[0];
    e.name = "z" + std::to_string(i);
    e.offset = 0;
    overlapping.push_back(e);
  }
  return {
      {"30 MB of zeros", zip_bytes({{"z", zeros, true}}), "zip bomb"},
      {"40 entries of 1 MB of zeros", zip_bytes(many), "zip bomb"},
      {"20 entries with the same data", zip_bytes(overlapping), ""},
  };
}

std::vector<DamagedFile> bad_ends() {
  const std::string good = zip_bytes(two_entries());
  const auto end = [](const ZipEnd& e) { return zip_bytes(two_entries(), e); };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string copy = good;
    return copy.replace(copy.rfind(from), to.size(), to);
  };
  const std::string zip64 = "PK\6\6" + le<uint64_t>(44) + le<uint16_t>(45) + le<uint16_t>(45) +
                            le<uint32_t>(0) + le<uint32_t>(0) + le(~uint64_t{0} >> 4) +
                            le(~uint64_t{0} >> 4) + le<uint64_t>(100) + le<uint64_t>(0);
  const std::string locator =
      "PK\6\7" + le<uint32_t>(0) + le<uint64_t>(good.size() - 22) + le<uint32_t>(1);
  return {
      {"empty file", "", "not a zip file"},
      {"four bytes", "PK\3\4", "damaged zip file"},
      {"text", "this is a text, not a zip file", "byte 0: not a zip file"},
      {"bytes before the zip", "#!/bin/sh\n" + good, "not a zip file"},
      {"no end", good.substr(0, good.size() - 22), "damaged zip file"},
      {"no directory", good.substr(0, good.rfind("PK\1\2")), "damaged zip file"},
      {"end cut", good.substr(0, good.size() - 1), "damaged zip file"},
      {"only an end with a count", zip_bytes({}, {.count = 3}), "damaged zip file"},
      {"count too large", end({.count = 3}), "damaged zip file"},
      {"count too small", end({.count = 1}), "damaged zip file"},
      {"count 65,534", end({.count = 65534}), "damaged zip file"},
      {"count in an absent zip64 record", end({.count = 65535}), "damaged zip file"},
      {"second disk", end({.disk = 1}), "damaged zip file"},
      {"directory of 0 bytes", end({.size = 0}), "damaged zip file"},
      {"directory of 4 GiB", end({.size = 0xFFFFFFF0}), "damaged zip file"},
      {"directory too short", end({.size = 40}), "damaged zip file"},
      {"directory too long", end({.size = 400}), "damaged zip file"},
      {"directory at 0", end({.offset = 0}), "damaged zip file"},
      {"directory beyond the file", end({.offset = 100'000}), "damaged zip file"},
      {"directory at 4 GiB", end({.offset = 0xFFFFFFF0}), "damaged zip file"},
      {"signature of the directory wrong", replaced("PK\1\2", "PKxx"), "damaged zip file"},
      {"signature of the end wrong", replaced("PK\5\6", "PKxx"), "damaged zip file"},
      {"zip64 with 2^60 entries",
       good.substr(0, good.size() - 22) + zip64 + locator + "PK\5\6" + le<uint32_t>(0) +
           le<uint32_t>(~0u) + le<uint64_t>(~uint64_t{0}) + le<uint16_t>(0),
       "damaged zip file"},
      {"zip64 locator beyond the file",
       good.substr(0, good.size() - 22) + "PK\6\7" + le<uint32_t>(0) + le(~uint64_t{0} >> 1) +
           le<uint32_t>(1) + "PK\5\6" + le<uint32_t>(0) + le<uint32_t>(~0u) +
           le<uint64_t>(~uint64_t{0}) + le<uint16_t>(0),
       "damaged zip file"},
      {"comment longer than the file", good.substr(0, good.size() - 2) + le<uint16_t>(500),
       "damaged zip file"},
      {"bytes after the end", good + "xyz", "damaged zip file"},
  };
}

// Every byte of the compressed data that is inverted gives other content, so the CRC detects it.
std::vector<DamagedFile> bad_data() {
  const std::string good = zip_bytes(two_entries());
  const std::string packed = testing::deflate_bytes(kText);
  const size_t begin = good.find(packed);
  std::vector<DamagedFile> all;
  for (size_t i = 0; i < packed.size(); ++i) {
    std::string bytes = good;
    bytes[begin + i] = static_cast<char>(~bytes[begin + i]);
    all.push_back({"byte " + std::to_string(i) + " of deflated data", bytes, "entry 'b/c.txt'"});
  }
  return all;
}

TEST(ZipFolder, RefusesEveryKindOfBadFile) {
  std::vector<DamagedFile> all = bad_names();
  for (const auto& more : {bad_entries(), bad_bombs(), bad_ends(), bad_data()})
    all.insert(all.end(), more.begin(), more.end());
  EXPECT_GE(all.size(), 80u);
  testing::expect_refused(all, "m.zip", read_all);
}

TEST(ZipFolder, RefusesTooManyEntries) {
  std::vector<ZipEntry> entries;
  for (size_t i = 0; i < ModelFolder::kMaxFiles; ++i) entries.push_back({std::to_string(i), ""});
  ZipEnd end;
  end.zip64 = true;
  EXPECT_EQ(parse(zip_bytes(entries, end)).names().size(), ModelFolder::kMaxFiles);
  entries.push_back({"one more", ""});
  EXPECT_EQ(message_of(ExitCode::model, [&] { parse(zip_bytes(entries, end)); }),
            "m.zip: 100001 entries, at most 100000 are allowed");
}

TEST(ZipFolder, EveryTruncationIsRefused) {
  testing::expect_beginnings_refused(zip_bytes(two_entries()), "m.zip", read_all);
}

TEST(ZipFolder, EveryChangedByteIsSurvived) {
  testing::expect_changes_survived(zip_bytes(two_entries()), "m.zip", read_all);
}

}  // namespace
}  // namespace fovea

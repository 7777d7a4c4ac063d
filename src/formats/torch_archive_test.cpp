#include "formats/torch_archive.h"

#include <gtest/gtest.h>

#include "support/pickle_bytes.h"
#include "support/zip_bytes.h"
#include "text_samples.h"

namespace fovea {
namespace {

using namespace testing::pickle;  // NOLINT
using testing::DamagedFile;
using testing::file_of;
using testing::le;
using testing::le_list;
using testing::zip_bytes;
using testing::ZipEntry;

const std::string kSix = le_list<float>({0, 1, 2, 3, 4, 5});

std::string checkpoint(const std::string& value, const std::string& data = kSix) {
  return zip_bytes({{"m/data.pkl", whole(value)}, {"m/byteorder", "little"}, {"m/data/0", data}});
}

void read_all(const FileBytes& file) {
  const TorchArchive archive(file);
  for (const ArchivedTensor& tensor : archive.tensors()) archive.floats(tensor);
}

using F = std::vector<float>;

F values_of(const std::string& tensor_bytes, const std::string& data = kSix) {
  const TorchArchive archive(file_of(checkpoint(dict({{"w", tensor_bytes}}), data), "m.bin"));
  return archive.floats("w");
}

// The tensors and options of a checkpoint of fairseq.
std::string small_content() {
  const std::string args = global("argparse", "Namespace") + tuple({}) + "\x81" +
                           dict({{"arch", text("transformer")},
                                 {"layers", number(6)},
                                 {"dropout", real(0.5)},
                                 {"share", "\x88"},
                                 {"none", "N"},
                                 {"list", list({number(1), text("b")})}}) +
                           "b";
  const std::string state =
      ordered({{"a.weight", tensor({2, 3}, {3, 1})}, {"b", parameter(tensor({2}, {1}, 4))}}) +
      dict({{"_metadata", dict({})}}) + "b";
  return dict({{"args", args}, {"model", state}, {"numpy", numpy_array()}});
}

TEST(Torch, ReadsTensorsAndOptions) {
  const samples::Folder folder;
  const auto archive = open_tensor_archive(folder.write("m.pt", checkpoint(small_content())));
  ASSERT_EQ(archive->tensors().size(), 2u);
  EXPECT_EQ(archive->floats("model/a.weight"), (F{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(archive->get("model/a.weight").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(archive->floats("model/b"), (F{4, 5}));
  const std::map<std::string, std::string> expected = {
      {"args/arch", "transformer"}, {"args/layers", "6"}, {"args/dropout", "0.5"},
      {"args/share", "true"},       {"args/list/0", "1"}, {"args/list/1", "b"}};
  EXPECT_EQ(archive->metadata(), expected);
}

TEST(Torch, ReadsViewsOfAStorage) {
  EXPECT_EQ(values_of(tensor({3, 2}, {1, 3})), (F{0, 3, 1, 4, 2, 5}));  // transposed
  EXPECT_EQ(values_of(tensor({2}, {2}, 1)), (F{1, 3}));
  EXPECT_EQ(values_of(tensor({2, 2}, {1, 1})), (F{0, 1, 1, 2}));  // overlapping rows
  EXPECT_EQ(values_of(tensor({3}, {0}, 5)), (F{5, 5, 5}));
  EXPECT_EQ(values_of(tensor({1, 6, 1}, {99, 1, 77})), (F{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values_of(tensor({}, {}, 3)), F{3});
  EXPECT_TRUE(values_of(tensor({0, 3}, {3, 1})).empty());
}

TEST(Torch, ReadsEveryTypeOfStorage) {
  const auto of = [](const std::string& type, uint32_t elements, const std::string& data) {
    return values_of(tensor({elements}, {1}, 0, storage("torch", type, "0", elements)), data);
  };
  EXPECT_EQ(of("HalfStorage", 1, le<uint16_t>(0x3C00)), F{1});
  EXPECT_EQ(of("BFloat16Storage", 1, le<uint16_t>(0x4000)), F{2});
  EXPECT_EQ(of("DoubleStorage", 1, le(0.25)), F{0.25F});
  EXPECT_EQ(of("LongStorage", 1, le<int64_t>(-7)), F{-7});
  EXPECT_EQ(of("IntStorage", 1, le<int32_t>(-7)), F{-7});
  EXPECT_EQ(of("ShortStorage", 1, le<int16_t>(-7)), F{-7});
  EXPECT_EQ(of("CharStorage", 2, "\1\2"), (F{1, 2}));
  EXPECT_EQ(of("ByteStorage", 1, "\xff"), F{255});
  EXPECT_EQ(of("BoolStorage", 1, "\1"), F{1});
}

// The format before PyTorch 1.6: five pickles and the storages.
std::string legacy(const std::string& content, const std::string& keys, const std::string& data) {
  const std::string magic("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12);
  return whole(magic) + whole(number(1001)) + whole(dict({{"little_endian", "\x88"}})) +
         whole(content) + whole(keys) + data;
}

std::string old_storage(const std::string& view = "N") {
  return tuple({text("storage"), global("torch", "FloatStorage"), text("77"), text("cpu"),
                number(6), view}) +
         "Q";
}

std::string old_content() { return dict({{"w", tensor({2, 3}, {3, 1}, 0, old_storage())}}); }

TEST(Torch, ReadsTheFormatBeforeZipFiles) {
  const samples::Folder folder;
  const auto archive = open_tensor_archive(
      folder.write("m.bin", legacy(old_content(), list({text("77")}), le<uint64_t>(6) + kSix)));
  EXPECT_EQ(archive->floats("w"), (F{0, 1, 2, 3, 4, 5}));
}

// Names that must not be used: functions that execute code, and objects that need a class.
std::vector<DamagedFile> bad_globals() {
  std::vector<DamagedFile> all;
  const std::vector<std::pair<std::string, std::string>> names = {
      {"os", "system"},
      {"posix", "system"},
      {"nt", "system"},
      {"subprocess", "Popen"},
      {"subprocess", "check_output"},
      {"builtins", "eval"},
      {"builtins", "exec"},
      {"builtins", "getattr"},
      {"builtins", "__import__"},
      {"builtins", "open"},
      {"__builtin__", "eval"},
      {"__main__", "Model"},
      {"sys", "exit"},
      {"importlib", "import_module"},
      {"runpy", "run_path"},
      {"pickle", "loads"},
      {"marshal", "loads"},
      {"types", "CodeType"},
      {"functools", "partial"},
      {"operator", "attrgetter"},
      {"copyreg", "_reconstructor"},
      {"torch", "load"},
      {"torch.storage", "_load_from_bytes"},
      {"torch.hub", "load"},
      {"torch.nn.modules.linear", "Linear"},
      {"torch._utils", "_rebuild_qtensor"},
      {"torch._utils", "_rebuild_sparse_tensor"},
      {"torch", "QInt8Storage"},
      {"torch", "ComplexFloatStorage"},
      {"torch.jit", "ScriptModule"},
      {"numpy", "load"},
      {"numpy.testing", "run_module_suite"},
      {"collections", "Counter"},
      {"omegaconf.dictconfig", "DictConfig"},
      {"fairseq.data.dictionary", "Dictionary"},
      {"collections", ""},
      {"", "OrderedDict"},
      {"collections.", "OrderedDict"},
      {"collections", "OrderedDict "},
      {"Collections", "ordereddict"}};
  for (const auto& [module, name] : names)
    all.push_back({"calls " + module + "." + name,
                   checkpoint(global(module, name) + tuple({text("touch /tmp/x")}) + "R"),
                   "the pickle uses '" + module + "." + name + "'"});
  all.push_back({"stack global", checkpoint(text("os") + text("system") + "\x93"), "'os.system'"});
  all.push_back({"stack global of numbers", checkpoint(number(1) + number(2) + "\x93"), "no text"});
  all.push_back({"name of 300 bytes", checkpoint(global("os", std::string(300, 'x'))),
                 "a name of more than 256"});
  all.push_back({"name without end", checkpoint("cos"), "name of a class needs"});
  all.push_back({"name with escapes", checkpoint(global("\x1b[2J", "\xff")), "\\x1b[2J.\\xff"});
  return all;
}

std::vector<DamagedFile> bad_instructions() {
  std::vector<DamagedFile> all;
  for (const std::string code :
       {"I1\n", "L1L\n", "F1\n",   "S'a'\n", "Va\n",   "P0\n",   "ios\nsystem\n", "o",
        "g0\n", "p0\n",  "\x82\1", "\x83\1", "\x84\1", "\x8b\1", "\x8f",          "\x90",
        "\x91", "\x92",  "\x95",   "\x96",   "\x97",   "\x98",   "\xff",          " "})
    all.push_back(
        {"instruction " + code, checkpoint(std::string(code) + "N"), "m.bin/data.pkl: byte"});
  const auto add = [&](const std::string& kind, const std::string& value, const std::string& says) {
    all.push_back({kind, checkpoint(value), says});
  };
  add("pickle empty", "", "ends with 0 values");
  add("two values", "NN", "ends with 2 values");
  add("mark left", "(N", "ends with");
  add("pop of nothing", "0", "needs 1 values");
  add("dup of nothing", "2", "needs 1 values");
  add("tuple without mark", "Nt", "needs a mark");
  add("pair of one", "N\x86", "needs 2 values");
  add("pop below a mark", "N(\x85", "needs 1 values");
  add("append to a number", number(1) + "Na", "no list");
  add("append to a dictionary", "}Na", "no list");
  add("item of a list", "]NNs", "no dictionary");
  add("odd items", "}(Nu", "a key without value");
  add("odd dictionary", "(Nd", "a key without value");
  add("memo without value", "h\5", "the memo has no value 5");
  add("memo at 2^32 - 1", "j\xff\xff\xff\xff", "the memo has no value 4294967295");
  add("put of nothing", "q" + std::string(1, '\0'), "needs 1 values");
  add("protocol 0", "\x80" + std::string(1, '\0') + "N", "protocol 0");
  add("protocol 1", "\x80\1N", "protocol 1");
  add("protocol 6", "\x80\6N", "protocol 6");
  add("text beyond the file", "X" + le<uint32_t>(1000) + "abc", "a text needs 1000");
  add("text of 4 GiB", "X" + le(~uint32_t{0}), "a text of 4294967295");
  add("text of 2^64 bytes", "\x8d" + le(~uint64_t{0}), "a text of 18446744073709551615");
  add("text not UTF-8", text("\xff"), "not UTF-8");
  add("reduce of a number", number(1) + tuple({}) + "R", "no function");
  add("reduce without tuple", global("collections", "OrderedDict") + "NR", "no function");
  add("new object of a text", text("os") + tuple({}) + "\x81", "no function");
  add("call of a storage class", global("torch", "FloatStorage") + tuple({}) + "R",
      "a call of a storage class");
  add("attributes of a number", number(1) + "}b", "attributes of a value");
  add("attributes of a tensor", tensor({1}, {1}) + "}b", "attributes of a value");
  add("attributes that are a list", global("argparse", "Namespace") + tuple({}) + "\x81" + "]b",
      "attributes that are no dict");
  add("dictionary of a number", global("collections", "OrderedDict") + tuple({number(1)}) + "R",
      "a dictionary of no list");
  add("dictionary of triples",
      global("collections", "OrderedDict") + tuple({list({tuple({"N", "N", "N"})})}) + "R",
      "without keys");
  return all;
}

std::string repeated(const std::string& part, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += part;
  return out;
}

std::vector<DamagedFile> bad_bombs() {
  // Ten lists, each with ten times the one before: 10^10 values.
  std::string shared = list({"N", "N", "N", "N", "N", "N", "N", "N", "N", "N"}) + "q\1";
  for (int i = 0; i < 10; ++i) shared += "0](" + repeated("h\1", 10) + "eq\1";
  const std::string self = "]q\1h\1a";
  const std::string wide = "](" + repeated("N", 100'000) + "eq\1";
  const std::string copies =
      "(" + repeated(global("argparse", "Namespace") + ")\x81h\2b", 1000) + "l";
  const std::string big = "}(" + repeated("NN", 100'000) + "uq\2";
  const auto bomb = [](const std::string& kind, const std::string& value, const std::string& says) {
    return DamagedFile{kind, zip_bytes({{"m/data.pkl", whole(value), true}}), says};
  };
  return {
      bomb("memo bomb", shared, "more than 300000 values"),
      bomb("list in itself", self, "nested more than 32 times"),
      bomb("depth 100,000", repeated("]", 100'000) + repeated("a", 99'999), "nested more than 32"),
      bomb("tuples of depth 100,000", "N" + repeated("\x85", 100'000), "nested more than 32"),
      bomb("1,001 marks", repeated("(", 1001), "more than 1000 marks"),
      bomb("500,001 values", repeated("N", 500'001), "more than 500000 values"),
      bomb("500,001 copies on the stack", "Nq\1" + repeated("h\1", 500'001), "on the stack"),
      bomb("copies of a dictionary", "(" + big + copies + "t", "containers with more than"),
      bomb("wide list", wide + "0" + repeated("](" + repeated("h\1", 10) + "e", 3), ""),
      bomb("long keys", dict({{std::string(600, 'k'), "N"}}), "keys of more than 512"),
      bomb("texts of 65 MB", repeated(text(std::string(1'000'000, 'x')), 30), ""),
      bomb("text of 2 MB", text(std::string(2'000'000, 'x')), "at most 1048576"),
  };
}

std::vector<DamagedFile> bad_tensors() {
  std::vector<DamagedFile> all;
  const auto add = [&](const std::string& kind, const std::string& value, const std::string& says) {
    all.push_back({kind, checkpoint(dict({{"w", value}})), says});
  };
  const std::string beyond = "it reaches beyond its storage";
  const int64_t huge = int64_t{1} << 62;
  add("shape beyond the storage", tensor({7}, {1}), beyond);
  add("offset beyond the storage", tensor({2}, {1}, 5), beyond);
  add("offset is the end", tensor({}, {}, 6), beyond);
  add("stride beyond the storage", tensor({2}, {6}), beyond);
  add("offset 2^62", tensor({1}, {1}, huge), beyond);
  add("offset -1", tensor({1}, {1}, -1), "the offset -1");
  add("shape -1", tensor({-1}, {1}), "found -1");
  add("stride -1", tensor({2}, {-1}, 3), "found -1");
  add("stride 2^62 wraps", tensor({5}, {huge}), beyond);
  add("strides that add to 2^64", tensor({3, 3}, {huge, huge}), beyond);
  add("shape 2^62", tensor({huge}, {0}), "below 2^62");
  add("shape product wraps", tensor({huge, 4, 1}, {0, 0, 0}), "below 2^62");
  add("expanded beyond its storage", tensor({1'000'000'000}, {0}),
      "more elements than its storage");
  add("expanded by one", tensor({7}, {0}), "more elements than its storage");
  add("more strides than dimensions", tensor({6}, {1, 1}), "1 dimensions and 2 strides");
  add("no strides", tensor({6}, {}), "1 dimensions and 0 strides");
  add("rank 9", tensor(std::vector<int64_t>(9, 1), std::vector<int64_t>(9, 1)), "a rank of 9");
  add("shape a list", rebuild({storage(), number(0), list({number(6)}), tuple({number(1)})}),
      "no tuple");
  add("shape of texts", rebuild({storage(), number(0), tuple({text("6")}), tuple({number(1)})}),
      "no integer");
  add("offset a text", rebuild({storage(), text("0"), tuple({}), tuple({})}), "no integer");
  add("offset a number", rebuild({storage(), real(0), tuple({}), tuple({})}), "no integer");
  add("three arguments", rebuild({storage(), number(0), tuple({})}), "without storage, offset");
  add("no arguments", rebuild({}), "without storage, offset");
  add("storage a number", rebuild({number(0), number(0), tuple({}), tuple({})}), "without storage");
  add("parameter without tensor", parameter(number(1)), "a parameter without a tensor");
  add("name of 257 bytes", dict({{std::string(255, 'n'), tensor({1}, {1})}}), "at most 256");
  all.push_back({"name twice", checkpoint(dict({{"w", tensor({1}, {1})}, {"w", tensor({1}, {1})}})),
                 "given twice"});
  all.push_back(
      {"joined names are equal",
       checkpoint(dict({{"a/b", tensor({1}, {1})}, {"a", dict({{"b", tensor({1}, {1})}})}})),
       "given twice"});
  all.push_back(
      {"value twice", checkpoint(dict({{"w", number(1)}, {"w", number(2)}})), "given twice"});
  all.push_back({"tensor without name", checkpoint(tensor({1}, {1})), "name is empty"});
  all.push_back({"name with NUL", checkpoint(dict({{std::string("a\0b", 3), tensor({1}, {1})}})),
                 "a NUL byte"});
  all.push_back({"key a tuple", checkpoint("}" + tuple({}) + "Ns"), "no text or integer"});
  std::vector<std::pair<std::string, std::string>> many;
  for (int i = 0; i < 20; ++i) many.emplace_back(std::to_string(i), tensor({6}, {1}));
  all.push_back({"20 tensors of one storage", checkpoint(dict(many)), "16 times as many bytes"});
  return all;
}

std::vector<DamagedFile> bad_storages() {
  std::vector<DamagedFile> all;
  const auto add = [&](const std::string& kind, const std::string& id, const std::string& says) {
    all.push_back({kind, checkpoint(dict({{"w", tensor({1}, {1}, 0, id)}})), says});
  };
  const std::string type = global("torch", "FloatStorage");
  const auto id = [&](const std::vector<std::string>& parts) { return tuple(parts) + "Q"; };
  add("id a text", text("0") + "Q", "a persistent id");
  add("id of four parts", id({text("storage"), type, text("0"), text("cpu")}), "5 or 6 values");
  add("id of seven parts", id({"N", "N", "N", "N", "N", "N", "N"}), "5 or 6 values");
  add("id is no storage", id({text("module"), type, text("0"), text("cpu"), number(6)}),
      "no storage");
  add("id without class", id({text("storage"), text("f"), text("0"), text("cpu"), number(6)}),
      "without a storage class");
  add("id with another class",
      id({text("storage"), global("collections", "OrderedDict"), text("0"), text("cpu"),
          number(6)}),
      "without a storage class");
  add("key a number", id({text("storage"), type, number(0), text("cpu"), number(6)}), "no text");
  add("size a text", id({text("storage"), type, text("0"), text("cpu"), text("6")}), "no integer");
  add("size -1", storage("torch", "FloatStorage", "0", -1), "a storage of -1");
  add("size 5", storage("torch", "FloatStorage", "0", 5), "24 bytes, its tensors expect 20");
  add("size 7", storage("torch", "FloatStorage", "0", 7), "24 bytes, its tensors expect 28");
  add("size 2^62", storage("torch", "FloatStorage", "0", int64_t{1} << 62), "elements");
  add("size times width wraps", storage("torch", "DoubleStorage", "0", (int64_t{1} << 61) + 3),
      "elements");
  add("entry absent", storage("torch", "FloatStorage", "1", 6), "no entry 'data/1'");
  add("key leads out", storage("torch", "FloatStorage", "../data.pkl", 6), "no entry 'data/../");
  add("key of an escape", storage("torch", "FloatStorage", "\x1b[2J", 6), "\\x1b[2J");
  add("view of a storage", old_storage(tuple({text("0"), number(0), number(6)})), "a view of");
  all.push_back(
      {"storage with two types",
       checkpoint(dict({{"v", tensor({1}, {1})},
                        {"w", tensor({1}, {1}, 0, storage("torch", "IntStorage", "0", 6))}})),
       "two types or sizes"});
  all.push_back(
      {"storage with two sizes",
       checkpoint(dict({{"v", tensor({1}, {1})},
                        {"w", tensor({1}, {1}, 0, storage("torch", "FloatStorage", "0", 5))}})),
       "two types or sizes"});
  return all;
}

std::vector<DamagedFile> bad_containers() {
  const std::string good = whole(dict({{"w", tensor({6}, {1})}}));
  const std::string old = legacy(old_content(), list({text("77")}), le<uint64_t>(6) + kSix);
  const auto old_with = [](const std::string& keys, const std::string& data) {
    return legacy(old_content(), keys, data);
  };
  std::string version = old;
  version.replace(version.find(le<uint16_t>(1001)), 2, le<uint16_t>(1002));
  std::string big_endian = old;
  big_endian.replace(big_endian.find('\x88'), 1, "\x89");
  return {
      {"no data.pkl", zip_bytes({{"m/data/0", kSix}}), "no entry 'data.pkl'"},
      {"big-endian", zip_bytes({{"m/data.pkl", good}, {"m/byteorder", "big"}, {"m/data/0", kSix}}),
       "'little'"},
      {"bytes after the pickle", zip_bytes({{"m/data.pkl", good + "x"}, {"m/data/0", kSix}}),
       "1 bytes after the end"},
      {"pickle of 33 MB", zip_bytes({{"m/data.pkl", std::string(33 << 20, '\x80')}}),
       "at most 33554432 are allowed"},
      {"pickle without end", zip_bytes({{"m/data.pkl", good.substr(0, good.size() - 1)}}),
       "next instruction"},
      {"CRC of a storage", zip_bytes({{"m/data.pkl", good}, {"m/data/0", kSix, false, {}, {}, 1}}),
       "CRC"},
      {"storage longer", checkpoint(dict({{"w", tensor({6}, {1})}}), kSix + "x"), "25 bytes"},
      {"storage empty", checkpoint(dict({{"w", tensor({6}, {1})}}), ""), "0 bytes"},
      {"old: version", version, "version 1002"},
      {"old: big-endian", big_endian, "big-endian"},
      {"old: no storage", old_with(list({}), ""), "storage '77' has no values"},
      {"old: unknown storage", old_with(list({text("78")}), ""), "'78' belongs to no tensor"},
      {"old: key a number", old_with(list({number(77)}), ""), "no text"},
      {"old: storage twice",
       old_with(list({text("77"), text("77")}), le<uint64_t>(6) + kSix + le<uint64_t>(6) + kSix),
       "expected once"},
      {"old: size 7", old_with(list({text("77")}), le<uint64_t>(7) + kSix), "has 7 elements"},
      {"old: size 2^64 - 1", old_with(list({text("77")}), le(~uint64_t{0}) + kSix), "elements"},
      {"old: cut", old_with(list({text("77")}), le<uint64_t>(6) + "abc"), "truncated"},
      {"old: bytes after the end", old + "x", "1 bytes after the end"},
      {"old: calls a function", legacy(global("os", "system"), list({}), ""), "'os.system'"},
  };
}

TEST(Torch, RefusesEveryKindOfBadFile) {
  std::vector<DamagedFile> all = bad_globals();
  for (const auto& more :
       {bad_instructions(), bad_bombs(), bad_tensors(), bad_storages(), bad_containers()})
    all.insert(all.end(), more.begin(), more.end());
  EXPECT_GE(all.size(), 80u);
  testing::expect_refused(all, "m.bin", read_all);
}

TEST(Torch, EveryTruncationIsRefused) {
  testing::expect_beginnings_refused(checkpoint(dict({{"w", tensor({6}, {1})}})), "m.bin",
                                     read_all);
  testing::expect_beginnings_refused(
      legacy(old_content(), list({text("77")}), le<uint64_t>(6) + kSix), "m.bin", read_all);
}

// Truncates and changes the pickle inside an intact zip file.
TEST(Torch, EveryChangeOfThePickleIsSurvived) {
  const std::string pickle = whole(small_content());
  const auto in_zip = [](const FileBytes& file) {
    const std::string bytes(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
    read_all(file_of(zip_bytes({{"m/data.pkl", bytes}, {"m/data/0", kSix}}), "m.bin"));
  };
  testing::expect_beginnings_refused(pickle, "m.bin", in_zip);
  testing::expect_changes_survived(pickle, "m.bin", in_zip);
  testing::expect_changes_survived(
      legacy(old_content(), list({text("77")}), le<uint64_t>(6) + kSix), "m.bin", read_all);
}

}  // namespace
}  // namespace fovea

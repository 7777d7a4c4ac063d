#include "base/settings.h"

#include <gtest/gtest.h>

#include <clocale>

#include "base/files.h"
#include "temporary.h"

namespace fovea {
namespace {

enum class Norm { post, pre };

struct ModelOptions {
  int64_t layers = 6;
  double dropout = 0.1;
  Norm norm = Norm::post;
  std::string activation = "relu";
  void describe(Settings& s) {
    s.field("layers", layers, "layers of the encoder and of the decoder").between(1, 100);
    s.field("dropout", dropout, "share of values dropped").between(0, 0.9);
    s.choice("norm", norm, {{"post", Norm::post}, {"pre", Norm::pre}}, "place of the norm");
    s.choice("activation", activation, {"relu", "gelu"}, "of the feed-forward layer");
  }
};

struct DataOptions {
  std::vector<std::string> source = {"a.en"};
  ModelOptions inner;
  bool lowercase = false;
  void describe(Settings& s) {
    s.field("source", source, "training files");
    s.group("inner", inner, "a group within a group");
    s.field("lowercase", lowercase, "");
  }
};

struct Options {
  ModelOptions model;
  DataOptions data;
  std::string title = "plain";
  float rate = 0.25f;
  uint64_t seed = 1;
  int threads = 2;
  void describe(Settings& s) {
    s.field("title", title, "first line\nsecond line");
    s.group("model", model, "the network");
    s.group("data", data);
    s.field("rate", rate, "learning rate").above(0);
    s.field("seed", seed, "of all random numbers");
    s.field("threads", threads, "at least one").at_least(1);
  }
};

struct Fixture {
  Options options;
  Settings settings;
  Fixture() { options.describe(settings); }
  std::string error(const std::string& yaml, ExitCode code = ExitCode::data) {
    return message_of(code, [&] { settings.read_text(yaml, "r.yml", code); });
  }
  std::string set_error(const std::string& text) {
    return message_of(ExitCode::usage, [&] { settings.set(text); });
  }
};

TEST(Settings, ReadsNestedAndDottedKeys) {
  Fixture f;
  f.settings.read_text(
      "# a recipe\n"
      "model:\n"
      "  layers: 4\n"
      "  norm: pre\n"
      "model.dropout: 0.3\n"
      "data: {source: [x.en, \"y, z.en\"], lowercase: yes, inner: {layers: 2}}\n"
      "title: 'a: b # c'\n"
      "seed: 18446744073709551615\n",
      "r.yml");
  EXPECT_EQ(f.options.model.layers, 4);
  EXPECT_EQ(f.options.model.norm, Norm::pre);
  EXPECT_EQ(f.options.model.dropout, 0.3);
  EXPECT_EQ(f.options.data.source, (std::vector<std::string>{"x.en", "y, z.en"}));
  EXPECT_TRUE(f.options.data.lowercase);
  EXPECT_EQ(f.options.data.inner.layers, 2);
  EXPECT_EQ(f.options.title, "a: b # c");
  EXPECT_EQ(f.options.seed, ~uint64_t{0});
}

TEST(Settings, EmptyFilesAndGroupsKeepDefaults) {
  Fixture f;
  for (const char* text : {"", "# nothing\n", "---\n", "model:\n", "model: {}\n", "{}", "~"})
    f.settings.read_text(text, "r.yml");
  EXPECT_EQ(f.options.model.layers, 6);
  EXPECT_THROW(f.settings.read_text("modle: {}\n", "r.yml"), Error);
}

TEST(Settings, SetsByCommandLine) {
  Fixture f;
  f.settings.set("model.layers=4");
  f.settings.set("data.source=p,q");
  f.settings.set("title=x: [y=z");
  EXPECT_EQ(f.options.model.layers, 4);
  EXPECT_EQ(f.options.data.source, (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(f.options.title, "x: [y=z");
  f.settings.set("data.source=[\"p,1\", q]");
  EXPECT_EQ(f.options.data.source, (std::vector<std::string>{"p,1", "q"}));
  f.settings.set("data.source=");
  EXPECT_TRUE(f.options.data.source.empty());
}

TEST(Settings, ErrorsOfTheCommandLine) {
  Fixture f;
  EXPECT_EQ(f.set_error("model.layer=4"),
            "`set` model.layer=4: unknown key 'model.layer'; did you mean 'model.layers'?");
  EXPECT_EQ(f.set_error("layers=4"),
            "`set` layers=4: unknown key 'layers'; did you mean 'model.layers' or "
            "'data.inner.layers'?");
  EXPECT_EQ(f.set_error("model.layers=four"),
            "`set` model.layers=four: model.layers: expected an integer, found 'four'");
  f.set_error("nothing");
  f.set_error("=4");
  f.set_error("title=\xff");
  f.set_error("data.source=[a");
  f.set_error("data.source=[a, {b: c}]");
}

TEST(Settings, UnknownKeysNameLineAndNearest) {
  Fixture f;
  EXPECT_EQ(f.error("model:\n  layers: 4\n  dorpout: 0.1\n"),
            "r.yml:3: unknown key 'model.dorpout'; did you mean 'model.dropout'?");
  EXPECT_EQ(f.error("modle.norm: pre"),
            "r.yml:1: unknown key 'modle.norm'; did you mean 'model.norm'?");
  EXPECT_EQ(f.error("zzzzzzzzz: 1"),
            "r.yml:1: unknown key 'zzzzzzzzz'; `dump_config` lists all keys");
}

TEST(Settings, UnclosedBracketsAreReportedOnTheLastLineWithText) {
  Fixture f;
  EXPECT_TRUE(f.error("title: a\nmodel: {layers: 4\n\n \n").starts_with("r.yml:2: a '{' is not"));
  EXPECT_TRUE(f.error("data: [\n").starts_with("r.yml:1: a '[' is not")) << f.error("data: [\n");
}

TEST(Settings, ForeignKeysGiveTheirMessage) {
  Fixture f;
  f.settings.foreign("variants", "this is for others");
  EXPECT_EQ(f.error("variants: [a]"), "r.yml:1: variants: this is for others");
  EXPECT_EQ(f.error("title: x\nvariants:\n  a: {b: 1}\n"), "r.yml:3: variants: this is for others");
  EXPECT_EQ(f.error("variant: 1"), "r.yml:1: unknown key 'variant'; `dump_config` lists all keys");
}

TEST(Settings, WrongTypesNameTheValueFound) {
  Fixture f;
  const std::pair<const char*, const char*> cases[] = {
      {"model: {layers: four}", "model.layers: expected an integer, found 'four'"},
      {"model: {layers: 4.5}", "model.layers: expected an integer, found '4.5'"},
      {"model: {layers: 99999999999999999999}", "expected an integer"},
      {"model: {layers: [4]}", "model.layers: expected an integer, found a list"},
      {"model: {layers: {a: 4}}", "model.layers: expected an integer, found a map"},
      {"model: {layers: }", "model.layers: expected an integer, found nothing"},
      {"model: {norm: mid}", "model.norm: expected one of post, pre, found 'mid'"},
      {"model: {norm: psot}", "expected one of post, pre, found 'psot'; did you mean 'post'?"},
      {"model: {norm: PRE}", "found 'PRE'; did you mean 'pre'?"},
      {"model: {activation: tanh}", "expected one of relu, gelu, found 'tanh'"},
      {"model: {dropout: .nan}", "expected a number, found '.nan'"},
      {"model: {dropout: nan}", "expected a number, found 'nan'"},
      {"model: {dropout: 1e999}", "expected a number, found '1e999'"},
      {"model: {dropout: \"0,1\"}", "expected a number, found '0,1'"},
      {"model: 4", "model: expected keys below it, found a value"},
      {"model: [4]", "model: expected keys below it, found a list"},
      {"data: {lowercase: maybe}", "data.lowercase: expected true or false, found 'maybe'"},
      {"data: {source: [[a]]}", "data.source: a list within a list"},
      {"data: {source: [{a: b}]}", "data.source: a map within a list"},
      {"data: {source: [a, ~]}", "data.source: a list item is empty"},
      {"seed: -1", "seed: expected an integer, found '-1'"},
      {"threads: 4294967296", "threads: expected an integer"},
  };
  for (const auto& [yaml, says] : cases) {
    const std::string message = f.error(yaml);
    EXPECT_NE(message.find(says), std::string::npos) << message;
    EXPECT_TRUE(message.starts_with("r.yml:1: ")) << message;
  }
}

TEST(Settings, InvalidYamlGivesARemedy) {
  Fixture f;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"model: {layers: 4", "a '{' is not closed by '}'"},
      {"data:\n  source: [a, b\n  lowercase: true", "a '[' is not closed by ']'"},
      {"data: {source: [a, b", "is the ']' of the list missing?"},
      {"title: a]\nmodel: {layers: 4}}", "a '}' or ']' without an opening bracket"},
      {"model:\n  layers: 4\n norm: pre", "indent the lines of a section alike"},
      {"title: a: b", "a ':' is not allowed here"},
      {"title: \"a", "a quote is not closed"},
      {"model:\n\tlayers: 4", "r.yml:2: a tab indents this line"},
      {"model:\n  layers: 4\n \t norm: pre", "r.yml:3: a tab indents this line"},
      {"title: @a", "put the value in quotes"},
  };
  for (const auto& [yaml, says] : cases)
    EXPECT_NE(f.error(yaml).find(says), std::string::npos) << yaml << ": " << f.error(yaml);
}

TEST(Settings, RangesAreChecked) {
  Fixture f;
  EXPECT_EQ(f.error("\nmodel: {layers: 0}"),
            "r.yml:2: model.layers: 0 is out of range, 1 to 100 is expected");
  EXPECT_EQ(f.error("rate: 0"), "r.yml:1: rate: 0 is out of range, more than 0 is expected");
  EXPECT_EQ(f.error("threads: -3"), "r.yml:1: threads: -3 is out of range, at least 1 is expected");
  EXPECT_EQ(f.error("model.dropout: 1", ExitCode::model),
            "r.yml:1: model.dropout: 1 is out of range, 0 to 0.9 is expected");
}

TEST(Settings, AWordMayReplaceANumber) {
  int64_t tokens = 7;
  Settings settings;
  settings.field("tokens", tokens, "how many").at_least(1).or_word("auto", 0);
  settings.set("tokens=auto");
  EXPECT_EQ(tokens, 0);
  EXPECT_EQ(settings.values().front().second, "auto");
  settings.read_text(settings.dump(), "r.yml");
  EXPECT_EQ(tokens, 0);
  settings.set("tokens=12");
  EXPECT_EQ(settings.values().front().second, "12");
  const auto error = [&](const char* text) {
    return message_of(ExitCode::usage, [&] { settings.set(text); });
  };
  EXPECT_EQ(error("tokens=many"),
            "`set` tokens=many: tokens: expected an integer or auto, found 'many'");
  EXPECT_EQ(error("tokens=-1"),
            "`set` tokens=-1: tokens: -1 is out of range, at least 1 is expected");
}

TEST(Settings, BadYamlIsAnErrorNotACrash) {
  Fixture f;
  std::string flow(100'000, '['), maps, block;
  for (int i = 0; i < 50'000; ++i) maps += "{a: ", block += "- ";
  const std::string laughs = "a: &a [x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\ntitle: *c\n";
  std::string deep;
  for (int i = 0; i < 500; ++i) deep += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  const std::string cases[] = {"title: " + flow,
                               maps,
                               block,
                               laughs,
                               deep,
                               "a: b: c",
                               "\t- x",
                               "title: \"open",
                               "{",
                               "}",
                               "- a\n- b",
                               "just text",
                               "? [a]\n: b",
                               "title: a\ntitle: b",
                               "model: {layers: 1}\nmodel.layers: 2",
                               "title: a\n---\ntitle: b",
                               "title: \xff",
                               "? {a: b}\n: c",
                               "\"\": x",
                               std::string(300, 'k') + ": x",
                               "title: *x",
                               "title: &x y",
                               "%YAML 9.9\n---\ntitle: x",
                               "title: !!binary x\n  y: z",
                               std::string(1, '\0'),
                               "title: |9x\n a"};
  for (const std::string& yaml : cases) {
    SCOPED_TRACE(yaml.substr(0, 60));
    EXPECT_TRUE(f.error(yaml).starts_with("r.yml:"));
  }
  EXPECT_NE(f.error(laughs).find("anchors and aliases"), std::string::npos);
  EXPECT_NE(f.error(deep).find("nested more than 16 levels"), std::string::npos);
  EXPECT_NE(f.error(std::string(Settings::kMaxBytes + 1, ' ')).find("at most 1048576"),
            std::string::npos);
}

TEST(Settings, DumpReadsBackToTheSameValues) {
  Fixture a, b;
  a.settings.set("model.norm=pre");
  a.settings.set("model.dropout=0.30000000000000004");
  a.settings.set("rate=1e-9");
  a.options.title = "tabs\t \"quotes\" \\ new\nline ü \u2028 # : - [x] \x01";
  a.options.data.source = {"", "no", "a b", "-", "~", "1", "é"};
  const std::string text = a.settings.dump();
  b.settings.read_text(text, "dump");
  EXPECT_EQ(a.settings.values(), b.settings.values());
  EXPECT_EQ(b.options.title, a.options.title);
  EXPECT_EQ(b.options.data.source, a.options.data.source);
  EXPECT_EQ(b.settings.dump(), text);
  EXPECT_NE(text.find("# the network\nmodel:\n  # layers of the encoder and of the decoder\n"
                      "  layers: 6\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("# place of the norm: post, pre\n  norm: pre\n"), std::string::npos);
}

TEST(Settings, KeysThatBelongToAChoice) {
  std::string kind = "plane";
  int64_t wings = 2, wheels = 4;
  Settings s;
  s.choice("kind", kind, {"plane", "car"}, "");
  s.when([&] { return kind == "plane"; }, "kind: plane", [&] { s.field("wings", wings, ""); });
  s.when([&] { return kind == "car"; }, "kind: car", [&] { s.field("wheels", wheels, ""); });
  EXPECT_EQ(s.dump(), "# plane, car\nkind: plane\nwings: 2\n");
  EXPECT_EQ(s.values().size(), 2u);
  EXPECT_EQ(message_of(ExitCode::data, [&] { s.read_text("wheels: 3", "r.yml"); }),
            "r.yml:1: wheels belongs to kind: car; omit it or change that setting");
  message_of(ExitCode::usage, [&] { s.set("wheels=3"); });
  s.read_text("wheels: 3\nkind: car", "r.yml");  // the choice may follow later
  EXPECT_EQ(wheels, 3);
  EXPECT_EQ(s.values().back().first, "wheels");
}

// Both fields are settings, although the options hold only one of them.
struct WheelsOrSails {
  bool sails = false;
  int64_t count = 4;  // of the vehicle's kind
};
struct VehicleCopy {
  bool sails = false;
  int64_t wheel_count = 4, sail_count = 2;
  void load(const WheelsOrSails& from) {
    sails = from.sails;
    (sails ? sail_count : wheel_count) = from.count;
  }
  void store(WheelsOrSails& to) const { to = {sails, sails ? sail_count : wheel_count}; }
};

TEST(Settings, CopiesHoldFieldsThatTheOptionsDoNot) {
  WheelsOrSails options;
  Settings s;
  VehicleCopy& copy = s.copy_of<VehicleCopy>(options);
  s.field("wheels", copy.wheel_count, "").between(0, 9);
  s.field("sails", copy.sail_count, "");
  s.field("has_sails", copy.sails, "");
  s.read_text("sails: 3\nhas_sails: true", "r.yml");
  EXPECT_EQ(options.count, 3);
  options = {false, 6};
  EXPECT_EQ(s.values().front().second, "6");
  EXPECT_NE(s.dump().find("sails: 3\n"), std::string::npos);
  EXPECT_NE(message_of(ExitCode::usage, [&] { s.set("wheels=10"); }).find("10 is out of range"),
            std::string::npos);
}

TEST(Settings, FilesAndTheirErrors) {
  const TemporaryFolder folder;
  Fixture f;
  write_atomically(folder / "r.yml", "model:\n  layers: x\n");
  const std::string message =
      message_of(ExitCode::model, [&] { f.settings.read_file(folder / "r.yml", ExitCode::model); });
  EXPECT_TRUE(message.starts_with(folder / "r.yml:2: ")) << message;
  message_of(ExitCode::files, [&] { f.settings.read_file(folder / "absent"); });
  write_atomically(folder / "huge.yml", std::string(Settings::kMaxBytes + 1, '#'));
  message_of(ExitCode::data, [&] { f.settings.read_file(folder / "huge.yml"); });
}

TEST(Settings, DoesNotDependOnTheLocale) {
  const char* set = std::setlocale(LC_ALL, "de_DE.UTF-8");
  Fixture f;
  f.settings.set("model.dropout=0.25");
  EXPECT_EQ(f.options.model.dropout, 0.25);
  EXPECT_NE(f.settings.dump().find("dropout: 0.25\n"), std::string::npos);
  std::setlocale(LC_ALL, "C");
  if (set == nullptr) GTEST_SKIP() << "de_DE.UTF-8 is not installed";
}

}  // namespace
}  // namespace fovea

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/picture_files.h"
#include "support/command_run.h"

namespace fovea {
namespace {

class Show : public CommandTest {
 protected:
  Words words(const Words& more) const {
    Words all{"show", "-m", "transformer", "-b", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  void fails(const std::string& part, const Words& more) {
    expect_error(ExitCode::usage, part, words(more));
  }
  bool exists(const std::string& name) { return std::filesystem::exists(folder_ / name); }
};

TEST_F(Show, PrintsTheTranslationAndAMap) {
  const std::string text = output(words({"A dog sleeps."}));
  EXPECT_EQ(text.substr(0, text.find('\n') + 1),
            output({"translate", "-m", "transformer", "-b", "1", "A dog sleeps."}));
  EXPECT_TRUE(has(text, "cross attention, mean of all layers, mean of heads")) << text;
  for (const char* word : {"A", "dog", "sleeps."}) EXPECT_TRUE(has(text, word)) << text;
  const std::string ascii = output(words({"--ascii", "A dog sleeps."}));
  EXPECT_TRUE(std::ranges::all_of(ascii.substr(ascii.find('\n')), [](char c) { return c > 0; }))
      << ascii;
}

TEST_F(Show, OneHeadOrTheDecoder) {
  EXPECT_TRUE(has(output(words({"--layer", "1", "--head", "2", "A dog."})),
                  "cross attention, layer 1, head 2"));
  EXPECT_TRUE(has(output(words({"--kind", "encoder", "--layer", "2", "A dog."})),
                  "encoder attention, layer 2, mean of heads"));
  fails("--layer 2: the model has layers 0 to 1", {"--layer", "2", "A dog."});
  fails("--head 4: the model has heads 0 to 3", {"--head", "4", "A dog."});
}

TEST_F(Show, AGivenTranslationIsNotChanged) {
  EXPECT_TRUE(output(words({"-t", "Eine Katze.", "A dog."})).starts_with("Eine Katze.\n"));
  std::string longest;
  for (int i = 0; i < 200; ++i) longest += "Hund ";
  fails("--target: ", {"-t", longest, "A dog."});
  fails("the sentence is empty", {" "});
}

TEST_F(Show, PicturesAreWritten) {
  const std::string log = messages(words({"--svg", folder_ / "map.svg", "A dog."}));
  EXPECT_TRUE(has(log, "wrote " + folder_ / "map.svg")) << log;
  EXPECT_TRUE(content("map.svg").starts_with("<svg")) << content("map.svg").substr(0, 40);
  EXPECT_EQ(output(words({"--svg", "-", "A dog."})), content("map.svg"));
  messages(words({"--grid", "--svg", folder_ / "grid.svg", "A dog."}));
  EXPECT_TRUE(has(content("grid.svg"), "layer 1, head 3"));
  messages(words({"--html", folder_ / "page.html", "A dog."}));
  EXPECT_TRUE(has(content("page.html"), "<html"));
}

TEST_F(Show, PairsAreNumberedFiles) {
  const std::string pairs = file("pairs", "A dog.\n\nA cat.\tEine Katze.\n");
  messages(words({"--pairs", pairs, "--svg", folder_ / "map.svg"}));
  EXPECT_TRUE(exists("map-1.svg"));
  EXPECT_TRUE(exists("map-2.svg"));
  EXPECT_FALSE(exists("map.svg"));
  EXPECT_TRUE(has(content("map-2.svg"), "Katze"));
  const std::string text = output(words({"--pairs", pairs}));
  EXPECT_TRUE(has(text, "\n\nEine Katze.\n")) << text;
}

TEST_F(Show, InterventionsChangeTheAttention) {
  const std::string sentence = "A small dog runs.";
  const auto map = [&](const Words& more) {
    Words all{"--layer", "1", "--head", "0", "-t", "Ein Hund.", "--svg", "-"};
    all.insert(all.end(), more.begin(), more.end());
    all.push_back(sentence);
    return output(words(all));
  };
  const std::string plain = map({});
  EXPECT_NE(map({"--mask", "dog"}), plain);
  EXPECT_EQ(map({"--mask", "dog"}), map({"--mask", "3"})) << "the third word";
  EXPECT_NE(map({"--mask-head", "encoder.0.1"}), plain);
  const std::string forced = map({"--force", "0=dog"});
  EXPECT_TRUE(has(forced, "dog: 1.00")) << forced.substr(0, 2000);
  fails("--mask cat: the sentence has no such word", {"--mask", "cat", sentence});
  fails("--mask-head cross.9: expected KIND.LAYER.HEAD", {"--mask-head", "cross.9", sentence});
  fails("--mask-head", {"--mask-head", "cross.0.9", sentence});
  fails("--force dog: expected STEP=WORD", {"--force", "dog", sentence});
  fails("--force 99=…: the translation has steps 0 to ", {"--force", "99=dog", sentence});
}

TEST_F(Show, ExplainsAWord) {
  const std::string text = output(words({"--explain", "dog", "A dog sleeps."}));
  EXPECT_TRUE(has(text, "layer 0, head 0 (choose others by layer and head)")) << text;
  const std::string chosen =
      output(words({"--explain", "dog", "--layer", "1", "--head", "2", "A dog sleeps."}));
  EXPECT_TRUE(has(chosen, "layer 1, head 2\n")) << chosen;
  const auto json = nlohmann::json::parse(output(words({"--explain", "2", "--json", "A dog."})));
  EXPECT_TRUE(json.is_object());
  fails("--explain: there is no word 'cat' in: ", {"--explain", "cat", "A dog."});
  fails("--kind encoder", {"-m", "additive", "--kind", "encoder", "--explain", "dog", "A dog."});
}

TEST_F(Show, OptionsThatDoNotFitTogether) {
  fails("--grid draws a picture; add --svg FILE or --png FILE", {"--grid", "A dog."});
  fails("--explain prints numbers", {"--explain", "dog", "--svg", "x.svg", "A dog."});
  fails("--json requires --explain WORD", {"--json", "A dog."});
  fails("omit --mask, --mask-head and --force", {"--mask", "dog", "--html", "x", "A dog."});
  fails("give either a sentence, or a file of sentences with --pairs", {});
  fails("give either a sentence, or a file", {"--pairs", "x", "A dog."});
  fails("--target and --explain apply only to a single sentence", {"--pairs", "x", "-t", "y"});
  fails("--prefix sets the beginning", {"--prefix", "x", "-t", "y", "A dog."});
  fails("give a file name, not standard output", {"--pairs", "x", "--svg", "-"});
  fails("show uses a single model; give -m only once", {"-m", "en-de", "A dog."});
}

TEST_F(Show, AModelWithoutAttentionHasNoMap) {
  expect_error(ExitCode::usage, "no attention from target to source; choose another model with -m",
               {"show", "-m", "none", "A dog."});
}

TEST_F(Show, MechanismsNameThemselves) {
  EXPECT_TRUE(has(output({"show", "-m", "general", "-b", "1", "A dog."}),
                  "global attention, score general"));
  EXPECT_TRUE(has(output({"show", "-m", "local-p", "-b", "1", "A dog."}), "local-p attention"));
}

TEST_F(Show, PairsAreRead) {
  const auto pairs = read_pairs(file("pairs", "a  b\n\nc\td\n\t\ne\t\n"));
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[0].source, "a b") << "blanks are cleaned";
  EXPECT_EQ(pairs[0].target, "");
  EXPECT_EQ(pairs[1].target, "d");
  EXPECT_EQ(pairs[1].line, 3);
  EXPECT_EQ(pairs[2].source, "e");
  const auto error = [&](const std::string& text) {
    const std::string path = file("bad", text);
    return message_of(ExitCode::data, [&] { read_pairs(path); }).substr(path.size());
  };
  EXPECT_TRUE(error("a\tb\tc\n").starts_with(":1: found more than one tab"));
  EXPECT_EQ(error("a\n\tb\n"), ":2: the sentence before the tab is empty");
  EXPECT_TRUE(error("\n\n").starts_with(": no sentences found"));
}

TEST(FileNumberTest, ComesBeforeTheExtension) {
  EXPECT_EQ(FileNumber{}.in("a/map.svg"), "a/map.svg");
  EXPECT_EQ(FileNumber{7}.in("map.svg"), "map-7.svg");
  EXPECT_EQ(FileNumber{12}.in("a.b/map"), "a.b/map-12");
  EXPECT_EQ(FileNumber{1}.in("map.tar.gz"), "map.tar-1.gz");
}

}  // namespace
}  // namespace fovea

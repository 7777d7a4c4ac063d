#include <nlohmann/json.hpp>

#include "base/signals.h"
#include "support/command_run.h"

namespace fovea {
namespace {

// fovea embed and fovea neighbours.
class Vectors : public CommandTest {
 protected:
  Vectors() {
    std::string text;
    const char* const animals[] = {"dog", "cat", "cow"};
    for (int i = 0; i < 300; ++i)
      text += std::string("The ") + animals[i % 3] + " runs home.\n" + "one plus two is three\n";
    text_ = file("text", text);
    vectors_ = file("v.vec", "5 2\nking 1 0\nqueen 0.8 0.6\nman 0 1\nwoman -1 0\nKing 0.6 0.8\n");
  }
  std::string text_, vectors_;
};

TEST_F(Vectors, LearningWritesAVectorForEachWord) {
  const Words learn{
      "embed",       text_,        "--size", "4",  "--epochs",         "1", "--min-count", "1",
      "--lowercase", "--tokenize", "13a",    "-o", folder_ / "out.vec"};
  const std::string log = messages(learn);
  EXPECT_TRUE(has(log, "are not enough for good word vectors")) << log;
  EXPECT_TRUE(has(log, "wrote " + folder_ / "out.vec" + ": 12 vectors of size 4")) << log;
  const std::string first = content("out.vec");
  EXPECT_TRUE(first.starts_with("12 4\n")) << first.substr(0, 40);
  EXPECT_TRUE(has(first, "\nthe ")) << "lower case";
  EXPECT_TRUE(has(first, "\n. ")) << "punctuation split off";
  messages(learn);
  EXPECT_EQ(content("out.vec"), first) << "the same seed gives the same vectors";
}

TEST_F(Vectors, LearningErrors) {
  const auto fails = [&](ExitCode code, const std::string& part, Words more) {
    more.insert(more.begin(), {"embed", "-q"});
    expect_error(code, part, more);
  };
  fails(ExitCode::usage, "no output file; give one with -o FILE", {text_});
  fails(ExitCode::usage, "no text files; give at least one FILE", {"-o", folder_ / "v"});
  fails(ExitCode::usage, "vectors cannot be written compressed", {text_, "-o", "v.gz"});
  fails(ExitCode::files, folder_ / "none" + ": no such directory",
        {text_, "-o", folder_ / "none/v.vec"});
  fails(ExitCode::files, " is a directory; give a file in it", {text_, "-o", folder_.path()});
  fails(ExitCode::data, "give more text or a lower --min-count",
        {text_, "-o", folder_ / "v", "--min-count", "9999"});
  fails(ExitCode::usage, "--size: expected a whole number from 1 to ", {text_, "--size", "0"});
}

TEST_F(Vectors, NeighboursByTheCosine) {
  EXPECT_EQ(output({"neighbours", "king", "-v", vectors_, "-n", "2"}),
            "king\n   0.800  queen\n   0.600  King\n");
  const auto json =
      nlohmann::json::parse(output({"neighbours", "man", "-v", vectors_, "-n", "4", "--json"}));
  EXPECT_EQ(json["word"], "man");
  ASSERT_EQ(json["neighbours"].size(), 4u);
  EXPECT_EQ(json["neighbours"][0]["word"], "King");
  EXPECT_EQ(json["neighbours"][0]["cosine"], 0.8);
  EXPECT_EQ(json["neighbours"][3]["cosine"], 0.0);
  EXPECT_TRUE(has(messages({"neighbours", "man", "-v", vectors_}), "5 vectors of size 2"));
}

TEST_F(Vectors, TheMapHasEachWordOnce) {
  const std::string log = messages(
      {"neighbours", "king", "queen", "-v", vectors_, "-n", "2", "--svg", folder_ / "map.svg"});
  EXPECT_TRUE(has(log, "wrote the map to " + folder_ / "map.svg")) << log;
  const std::string map = content("map.svg");
  EXPECT_TRUE(has(map, "Nearest words of king, queen")) << map.substr(0, 500);
  for (const std::string word : {">king<", ">queen<", ">King<"}) {
    int shown = 0;
    for (size_t at = map.find(word); at != map.npos; at = map.find(word, at + 1)) ++shown;
    EXPECT_EQ(shown, 2) << word << ": a label and a tooltip";
  }
  EXPECT_FALSE(has(map, ">woman<"));
}

TEST_F(Vectors, EmbeddingsOfAModel) {
  const std::string source = output({"neighbours", "dog", "-m", "transformer", "-n", "1"});
  EXPECT_EQ(std::count(source.begin(), source.end(), '\n'), 2) << source;
  EXPECT_EQ(output({"neighbours", "dog", "-m", "transformer", "-n", "1", "--side", "target"}),
            source)
      << "the model has joint embeddings";
}

TEST_F(Vectors, NeighboursErrors) {
  expect_error(ExitCode::usage, "no vectors; give either -v FILE or -m MODEL",
               {"neighbours", "king"});
  expect_error(ExitCode::usage, "no vectors; give either",
               {"neighbours", "king", "-v", vectors_, "-m", "en-de"});
  expect_error(ExitCode::usage, "no words; give at least one WORD", {"neighbours", "-v", vectors_});
  expect_error(ExitCode::data, "there is no vector for 'quen'; did you mean 'queen'?",
               {"neighbours", "quen", "-v", vectors_, "-q"});
  const std::string latin = file("latin.vec", "2 1\nk\xf6nig 1\nking 1\n");
  expect_error(ExitCode::data, "or skip such words with --bad-utf8 skip",
               {"neighbours", "king", "-v", latin, "-q"});
  EXPECT_EQ(output({"neighbours", "king", "-v", latin, "-q", "--bad-utf8", "skip"}), "king\n");
}

}  // namespace
}  // namespace fovea

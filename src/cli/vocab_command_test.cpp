#include <filesystem>

#include "support/command_run.h"

namespace fovea {
namespace {

class Vocab : public CommandTest {
 protected:
  Vocab() {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "the dog sees the cat\nthe cat sees\n";
    text_ = file("text", text + "rare dog\n");
  }
  std::string text_;
};

TEST_F(Vocab, WordsByFrequency) {
  const std::string log = messages({"vocab", "-k", "words", "-o", folder_ / "v.txt", text_});
  EXPECT_TRUE(has(log, "wrote " + folder_ / "v.txt" + ": 9 entries of kind words")) << log;
  EXPECT_TRUE(has(log, "checked on 81 lines: ")) << log;
  EXPECT_TRUE(has(log, "0.000 % unknown pieces, 100.00 % of words covered")) << log;
  EXPECT_TRUE(has(content("v.txt"), "\nthe\t120\ncat\t80\n")) << content("v.txt");
}

TEST_F(Vocab, RareWordsAndLargeVocabulariesAreLimited) {
  messages({"vocab", "-k", "word", "--min-count", "2", "-o", folder_ / "v.txt", text_});
  EXPECT_FALSE(has(content("v.txt"), "rare"));
  messages({"vocab", "-k", "words", "--size", "6", "-o", folder_ / "v.txt", text_});
  EXPECT_TRUE(has(content("v.txt"), "the")) << content("v.txt");
  EXPECT_FALSE(has(content("v.txt"), "sees")) << "four specials and two words";
  expect_error(ExitCode::data, "give more text or a lower --min-count",
               {"vocab", "-q", "-k", "words", "--min-count", "999", "-o", folder_ / "w", text_});
}

TEST_F(Vocab, AFolderGetsAFileOfTheKind) {
  messages({"vocab", "-k", "characters", "-o", folder_ / "new/folder", text_});
  EXPECT_TRUE(has(content("new/folder/vocab.txt"), "\ne\t"));
  messages(
      {"vocab", "-k", "bpe", "--size", "24", "--no-byte-fallback", "-o", folder_ / "new", text_});
  EXPECT_TRUE(std::filesystem::exists(folder_ / "new/vocab.spm"));
  expect_error(ExitCode::usage, "a vocabulary of kind words needs a file name ending in .txt",
               {"vocab", "-k", "words", "-o", folder_ / "v.spm", text_});
  expect_error(ExitCode::usage, "a vocabulary of kind unigram needs a file name ending in .spm",
               {"vocab", "-o", folder_ / "v.txt", text_});
}

TEST_F(Vocab, ShowsPiecesAndIds) {
  messages({"vocab", "-k", "words", "-o", folder_ / "v.txt", text_});
  EXPECT_EQ(output({"vocab", "--show", folder_ / "v.txt", "the bird cat", "cat"}),
            "the <unk> cat\n4 3 5\ncat\n5\n");
  EXPECT_EQ(output({"vocab", "--show", folder_ / "v.txt"}, "cat the\n\n"), "cat the\n5 4\n\n\n");
  const std::string pieces = output({"vocab", "--show", "transformer", "A dog."});
  EXPECT_TRUE(pieces.starts_with("▁A")) << pieces;
}

TEST_F(Vocab, PiecesThatTheTextDoesNotYield) {
  const CommandResult result = run({"vocab", "-k", "words", "-o", folder_ / "all.txt", text_});
  EXPECT_EQ(result.code, 0);
  EXPECT_FALSE(has(result.err, "yields only")) << "a maximum is no promise";
}

TEST_F(Vocab, Errors) {
  expect_error(ExitCode::usage, "no output; give it with -o FOLDER or -o FILE", {"vocab", text_});
  expect_error(ExitCode::usage, "no text files; give at least one FILE",
               {"vocab", "-o", folder_ / "v.spm"});
  expect_error(ExitCode::usage, "--min-count 2: unigram learns pieces",
               {"vocab", "--min-count", "2", "-o", folder_ / "v.spm", text_});
  expect_error(ExitCode::usage, "--kind: expected one of unigram, bpe, words",
               {"vocab", "--kind", "letters", "-o", folder_ / "v", text_});
  std::filesystem::create_directory(folder_ / "model");
  file("model/config.yml", "");
  expect_error(ExitCode::usage, "the folder holds a model, which needs its own vocabulary",
               {"vocab", "-k", "words", "-o", folder_ / "model", text_});
  expect_error(ExitCode::files, folder_ / "missing",
               {"vocab", "-q", "-k", "words", "-o", folder_ / "v.txt", folder_ / "missing"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "v.txt"));
}

}  // namespace
}  // namespace fovea

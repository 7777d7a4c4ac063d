#include <gtest/gtest.h>

#include <algorithm>

#include "base/files.h"
#include "temporary.h"
#include "text/vocabulary.h"
#include "text/vocabulary_build.h"

namespace fovea {
namespace {

using Ids = std::vector<int32_t>;

TEST(VocabularyExtension, AppendsWords) {
  const Vocabulary old = Vocabulary::from_entries(Segmentation::words, {{"a", 5}, {"b", 2}});
  const Vocabulary now = old.with_pieces({"kubectl", "a", "kubectl"});
  ASSERT_EQ(now.size(), old.size() + 1);
  for (int32_t id = 0; id < old.size(); ++id) EXPECT_EQ(now.name(id), old.name(id));
  EXPECT_EQ(now.count(kSpecials), 5);
  EXPECT_EQ(now.encode("b kubectl"), (Ids{kSpecials + 1, kSpecials + 2}));
  EXPECT_EQ(old.with_pieces({"b"}).fingerprint(), old.fingerprint());
}

TEST(VocabularyExtension, CutsTextAroundNewSymbols) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 40; ++i) text += "the dog sees the cat and a bird\n";
  write_atomically(folder / "text", text);
  for (const SubwordModel kind : {SubwordModel::unigram, SubwordModel::bpe}) {
    const Vocabulary old =
        train_sentencepiece({folder / "text"}, {.model = kind, .size = 40, .byte_fallback = false});
    const Vocabulary made = old.with_pieces({"<name>", "⟦1⟧"});
    made.save(folder / "vocab.spm");
    const Vocabulary now = Vocabulary::load(folder / "vocab.spm");
    ASSERT_EQ(now.size(), old.size() + 2);
    for (int32_t id = 0; id < old.size(); ++id) EXPECT_EQ(now.name(id), old.name(id));
    EXPECT_EQ(now.encode("the dog sees the cat"), old.encode("the dog sees the cat"));
    const Ids ids = now.encode("the <name> sees ⟦1⟧");
    EXPECT_EQ(std::ranges::count(ids, now.id("<name>")), 1);
    EXPECT_EQ(std::ranges::count(ids, now.id("⟦1⟧")), 1);
    EXPECT_EQ(std::ranges::count(ids, kUnk), 0);
    EXPECT_EQ(now.decode(ids), "the <name> sees ⟦1⟧");
  }
}

TEST(VocabularyExtension, RefusesPiecesThatTextCannotHave) {
  const Vocabulary old = Vocabulary::from_entries(Segmentation::words, {{"a", 5}});
  for (const char* piece : {"", "two words", "\xFF"})
    message_of(ExitCode::data, [&] { old.with_pieces({piece}); });
  const Vocabulary letters = Vocabulary::from_entries(Segmentation::characters, {{"a", 5}});
  message_of(ExitCode::data, [&] { letters.with_pieces({"ab"}); });
}

}  // namespace
}  // namespace fovea

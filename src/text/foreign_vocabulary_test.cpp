#include "text/foreign_vocabulary.h"

#include <gtest/gtest.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <map>

#include "base/check.h"
#include "effort.h"
#include "text/sentencepiece_model.h"
#include "text/vocabulary_build.h"
#include "text_samples.h"

namespace fovea {
namespace {

using Settings = std::unordered_map<std::string, std::string>;

// Passes lines to SentencePiece.
class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const std::vector<std::string>& lines) : lines_(lines) {}
  bool done() const override { return at_ == lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return lines_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  size_t at_ = 0;
};

// A model as another program trains it: <unk> <s> </s> are pieces 0 to 2, and NFKC.
std::string foreign_model(const std::string& type, const Settings& others = {}) {
  static std::map<std::pair<std::string, std::map<std::string, std::string>>, std::string> known;
  std::string& model = known[{type, {others.begin(), others.end()}}];
  if (!model.empty()) return model;
  Settings settings{{"model_type", type},
                    {"vocab_size", "400"},
                    {"hard_vocab_limit", "false"},
                    {"minloglevel", "3"},
                    {"num_threads", "2"}};
  if (type == "word" || type == "char") settings["use_all_vocab"] = "true";
  for (const auto& [key, value] : others) settings[key] = value;
  const std::vector<std::string> lines = samples::lines_of(samples::corpus(600) + "我爱 你 ½ x\n");
  Lines iterator(lines);
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &iterator, &model);
  EXPECT_TRUE(status.ok()) << status.message();
  return model;
}

struct ForeignCase {
  std::string type;
  Settings settings;
};

const ForeignCase kCases[] = {
    {"unigram", {}},
    {"bpe", {}},
    {"char", {}},
    {"word", {}},
    {"unigram", {{"byte_fallback", "true"}, {"normalization_rule_name", "identity"}}},
    {"bpe", {{"byte_fallback", "true"}, {"user_defined_symbols", "<sep>,@@,<0x41"}}},
    {"unigram", {{"add_dummy_prefix", "false"}, {"remove_extra_whitespaces", "false"}}},
    {"bpe", {{"treat_whitespace_as_suffix", "true"}, {"control_symbols", "__de__,__en__"}}},
};

std::vector<std::string> hostile_lines(int64_t count) {
  Random random(7);
  std::vector<std::string> lines{"",
                                 " ",
                                 "  ba  ko ",
                                 "\u2581",
                                 "\u3000ba",
                                 "½ 4² \uFB01 e\u0301",
                                 "<s> </s> <pad> <unk>",
                                 "__de__ <sep> @@ba <0x41>",
                                 "我爱你",
                                 std::string("a\0b", 3),
                                 std::string(3000, 'q')};
  for (int64_t i = 0; i < count; ++i) lines.push_back(samples::wild(random));
  for (int64_t i = 0; i < count; ++i) lines.push_back(samples::sentence(random, 6));
  return lines;
}

// Reverses the original order, drops every 20th piece and adds pieces of another model.
std::vector<std::string> shuffled(std::vector<std::string> names) {
  std::vector<std::string> result{"<pad>", "ж", "\u2581foreign", "__xx__", "爱"};
  std::reverse(names.begin(), names.end());
  for (size_t i = 0; i < names.size(); ++i)
    if (std::ranges::count(result, names[i]) == 0 && (i % 20 != 0 || names[i].starts_with('<')))
      result.push_back(names[i]);
  return result;
}

TEST(ForeignVocabulary, HasTheSegmentationOfTheOriginal) {
  for (const auto& [type, settings] : kCases) {
    const std::string model = foreign_model(type, settings);
    const std::vector<std::string> names = shuffled(sentencepiece_names(model, "m"));
    const PieceOrder order = order_pieces(names, {"<pad>", "<s>", "</s>", "<unk>"},
                                          std::vector<std::string>{"__xx__"}, "m");
    const Vocabulary v = import_sentencepiece(model, order, "m");
    ASSERT_EQ(static_cast<size_t>(v.size()), names.size());
    const SentencePieceModel original(model, "m");
    for (const std::string& line : hostile_lines(repeats(300))) {
      std::vector<int32_t> expected;
      for (const auto& token : original.tokens(line)) {
        const int32_t id = v.id(token.text);
        const bool reserved = id < kSpecials || token.text == "__xx__";
        expected.push_back(reserved ? kUnk : id);
      }
      ASSERT_EQ(v.encode(line), expected) << type << ": " << line;
      if (std::ranges::count(expected, kUnk) == 0) {
        ASSERT_EQ(v.decode(v.encode(line)), v.normalise(line));
      }
      ASSERT_EQ(v.words_in(line).size(), expected.size() + 1);
      v.coverage(line);
      v.words(expected, line);
    }
  }
}

TEST(ForeignVocabulary, OrdersSpecialPiecesFirst) {
  const std::vector<std::string> names{"[EOS]", "a", "", "[UNK]", "__de__", "a", "<pad>", "b"};
  const PieceOrder order = order_pieces(names, {"", "[EOS]", "[EOS]", "[UNK]"},
                                        std::vector<std::string>{"__de__"}, "vocab.json");
  const std::vector<int32_t> rows{-1, -1, 0, 3, 1, 2, 4, 5, 6, 7};
  EXPECT_EQ(order.rows, rows);
  const char* const expected[] = {"<pad>",   "<s>",    "</s>",    "<unk>",   "a",
                                  "<row-2>", "__de__", "<row-5>", "<row-6>", "b"};
  const bool controls[] = {true, true, true, false, false, true, true, true, true, false};
  for (size_t id = 0; id < order.pieces.size(); ++id) {
    EXPECT_EQ(order.pieces[id].name, expected[id]);
    EXPECT_EQ(order.pieces[id].control, controls[id]) << expected[id];
  }
  const std::string error = message_of(ExitCode::model, [&] {
    order_pieces(names, {"[PAD]", "", "[EOS]", "[UNK]"}, {}, "v.json");
  });
  EXPECT_NE(error.find("v.json: the special piece '[PAD]'"), std::string::npos) << error;
}

TEST(ForeignVocabulary, ControlPiecesNeverMatchText) {
  const std::string model = foreign_model("bpe", {{"control_symbols", "__de__,__en__"}});
  std::vector<std::string> names = sentencepiece_names(model, "m");
  names.push_back("\u2581foreign");
  names.push_back(">>deu<<");
  const std::vector<std::string> controls{"__de__", "__en__", ">>deu<<"};
  const PieceOrder order = order_pieces(names, {"", "<s>", "</s>", "<unk>"}, controls, "m");
  const Vocabulary v = import_sentencepiece(model, order, "m");
  for (const std::string& control : controls) {
    const int32_t id = v.id(control);
    ASSERT_GE(id, kSpecials);
    for (const int32_t piece : v.encode("ba " + control + " " + control)) EXPECT_NE(piece, id);
    const std::vector<int32_t> ids{id, v.id("\u2581foreign"), kEos};
    EXPECT_EQ(v.decode(ids), "foreign");
    EXPECT_EQ(v.text_words_of(ids), (std::vector<int>{0, 0, 1}));
  }
}

// The program that reads the pieces as strings finds the name of an unknown character.
TEST(ForeignVocabulary, UnknownTextThatIsAPieceHasItsId) {
  const std::string model = foreign_model("unigram");
  std::vector<std::string> names = sentencepiece_names(model, "m");
  names.push_back("ж");
  const PieceOrder order = order_pieces(names, {"", "<s>", "</s>", "<unk>"}, {}, "m");
  const Vocabulary v = import_sentencepiece(model, order, "m");
  const std::vector<int32_t> ids = v.encode("ba ж");
  EXPECT_EQ(ids.back(), v.id("ж"));
  EXPECT_EQ(v.encode("ba жж").back(), kUnk) << "consecutive unknown characters are one piece";
  EXPECT_EQ(v.coverage("ba ж").unknown, 0);
}

TEST(ForeignVocabulary, KeepsItsNormalisationInTheFile) {
  const std::string model = foreign_model("unigram", {{"byte_fallback", "true"}});
  const std::vector<std::string> names = sentencepiece_names(model, "m");
  const PieceOrder order = order_pieces(names, {"", "<s>", "</s>", "<unk>"}, {}, "m");
  const Vocabulary v = import_sentencepiece(model, order, "m");
  EXPECT_EQ(v.normalise("\uFB01 4²  x"), "fi 42 x");
  EXPECT_EQ(v.normalise("e\u0301"), "\u00E9");
  const samples::Folder folder;
  v.save(folder / "vocab.spm");
  const Vocabulary loaded = Vocabulary::load(folder / "vocab.spm");
  EXPECT_EQ(loaded.fingerprint(), v.fingerprint());
  EXPECT_EQ(loaded.encode("\uFB01 4²"), v.encode("fi 42"));
  EXPECT_EQ(loaded.with_compatible_characters().encode("⑤"), v.encode("5"));
  const std::string again = message_of(ExitCode::model, [&] {
    import_sentencepiece(samples::slurp(folder / "vocab.spm"), order, "vocab.spm");
  });
  EXPECT_NE(again.find("imported before"), std::string::npos) << again;
}

TEST(ForeignVocabulary, TakesNewPieces) {
  const std::string model = foreign_model("unigram");
  std::vector<std::string> names = sentencepiece_names(model, "m");
  const std::string dropped = names.back();  // the library knows it, but it has no id
  names.pop_back();
  const PieceOrder order = order_pieces(names, {"", "<s>", "</s>", "<unk>"}, {}, "m");
  const Vocabulary v = import_sentencepiece(model, order, "m");
  const Vocabulary more = v.with_pieces({"<new>", dropped});
  ASSERT_EQ(more.size(), v.size() + 2);
  EXPECT_EQ(more.name(v.size()), "<new>");
  EXPECT_EQ(std::ranges::count(more.encode("ba <new> ko"), v.size()), 1);
  EXPECT_EQ(more.encode("ba ko"), v.encode("ba ko"));
  EXPECT_EQ(more.normalise("4²"), v.normalise("4²")) << "still imported";
  const Vocabulary cut = import_pieces(order, "dict.txt");
  const std::string error = message_of(ExitCode::usage, [&] { cut.with_pieces({"<new>"}); });
  EXPECT_NE(error.find("imported vocabulary of pieces"), std::string::npos) << error;
}

TEST(ForeignVocabulary, RefusesDamagedOrders) {
  const std::string model = foreign_model("unigram");
  const auto error_of = [&](std::vector<OrderedPiece> more) {
    std::vector<OrderedPiece> order{{"<pad>", PieceRole::control},
                                    {"<s>", PieceRole::control},
                                    {"</s>", PieceRole::control},
                                    {"<unk>"}};
    order.insert(order.end(), more.begin(), more.end());
    return message_of(ExitCode::model,
                      [&] { Vocabulary::parse_sentencepiece(with_order(model, order), "v.spm"); });
  };
  EXPECT_NE(error_of({}).find("more than the four"), std::string::npos);
  EXPECT_NE(error_of({{""}}).find("id 4 has an empty piece"), std::string::npos);
  EXPECT_NE(error_of({{"a"}, {"a"}}).find("id 5 has a piece that occurs twice"), std::string::npos);
  EXPECT_NE(error_of({{"<s>"}}).find("occurs twice"), std::string::npos);
  EXPECT_NE(error_of({{"a\xC3"}}).find("not UTF-8"), std::string::npos);
  EXPECT_NE(error_of({{"<0xG0>", PieceRole::byte}}).find("not a byte"), std::string::npos);
  const std::string longest(2000, 'a');
  EXPECT_NE(error_of({{longest}}).find("longer than"), std::string::npos);
  const std::string other = message_of(ExitCode::model, [&] {
    Vocabulary::parse_sentencepiece(with_order(model, {{"a"}, {"b"}, {"c"}, {"d"}, {"e"}}),
                                    "v.spm");
  });
  EXPECT_NE(other.find("id 0 is not the special piece"), std::string::npos) << other;
}

}  // namespace
}  // namespace fovea

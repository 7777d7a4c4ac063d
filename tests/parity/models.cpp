#include <algorithm>

#include "models/decodable.h"
#include "models/explainable.h"
#include "models/label_predictor.h"
#include "support/network_settings.h"
#include "support/parity.h"
#include "support/sentences.h"

namespace fovea::parity {
namespace {

// Sentences, longest source, longest target, a number that determines the widths, different words.
const Shapes kBatches{.largest = {7, 12, 12, 12, 60}, .large = {{24, 30, 28, 40, 600}}, .few = 12};

std::vector<int32_t> words(Trial& t, int64_t most, int64_t kinds, int32_t from = 3) {
  std::vector<int32_t> all(t.random().below(static_cast<uint64_t>(most)));
  for (int32_t& word : all)
    word = from + static_cast<int32_t>(t.random().below(static_cast<uint64_t>(kinds)));
  return all;
}

testing::Sentences sentences(Trial& t, const Sizes& n) {
  testing::Sentences all;
  for (int64_t i = 0; i < n[0]; ++i) all.add(words(t, n[1], n[4]), words(t, n[2], n[4]));
  return all;
}

void expect_loss(Trial& t, const BatchLoss& found) {
  t.expect("loss", found.loss);
  t.expect_value("log_likelihood", found.log_likelihood);
  if (found.surrogate) t.expect("surrogate", found.surrogate);
  if (found.guided) t.expect_value("guided", found.guided);
}

void expect_training(Trial& t, const ModelConfig& config, const testing::Sentences& s) {
  expect_loss(t, t.model(config).loss({s.sources(), s.targets(), s.out}, 0.1));
}

// Decodes word by word, as in search: rows are repeated and dropped.
void expect_decoding(Trial& t, const ModelConfig& config, const testing::Sentences& s) {
  const Model& model = t.model(config);
  const Decodable& decoder = *model.as<Decodable>();
  const auto state = decoder.start(s.sources());
  std::vector<int32_t> next(static_cast<size_t>(s.sources().sentences()), 1);
  for (int step = 0; step < 4; ++step) {
    t.expect_numbers("scores", decoder.step(*state, next).values());
    std::vector<int32_t> parents(1 + t.random().below(2 * next.size()));
    for (int32_t& p : parents) p = static_cast<int32_t>(t.random().below(next.size()));
    decoder.reorder(*state, parents);
    next.assign(parents.size(), 0);
    for (int32_t& word : next)
      word = static_cast<int32_t>(
          3 + t.random().below(static_cast<uint64_t>(model.target_words() - 3)));
  }
  std::vector<double> weights;
  for (const auto& maps : model.as<Attentive>()->attention(s.sources(), s.targets()))
    for (const AttentionMap& map : maps) {
      if (map.mechanism != "window")  // its weights may be all but 0
        weights.insert(weights.end(), map.weights.begin(), map.weights.end());
      for (const NamedSeries& series : map.series)
        weights.insert(weights.end(), series.values.begin(), series.values.end());
    }
  t.expect_numbers("attention", weights);
}

void check_model(Family& family, const std::string& name, Bar bar,
                 const std::function<ModelConfig(const Sizes&)>& config) {
  family.check(name, bar, kBatches,
               [&](Trial& t, const Sizes& n) { expect_training(t, config(n), sentences(t, n)); });
  family.check_forward(
      name + ", word by word", bar == Bar::rough ? Bar::products : bar, kBatches,
      [&](Trial& t, const Sizes& n) { expect_decoding(t, config(n), sentences(t, n)); });
}

ModelConfig transformer(const Sizes& n) {
  ModelConfig c;
  c.encoder_layers = c.decoder_layers = 1 + n[3] % 2;
  auto& own = transformer_of(c);
  own.heads = 2, c.size = 2 * (n[3] + 7), own.inner = 3 * n[3] + 1;
  c.source_words = c.target_words = n[4] + 19;
  c.max_length = std::max(n[1], n[2]) + 5;
  own.activation = Function::gelu;
  c.dropout = own.attention_dropout = own.activation_dropout = 0.2;
  return c;
}

using Change = void (*)(ModelConfig&);

struct TransformerKind {
  const char* name;
  Change change;
  Bar bar = Bar::products;
};
void check_transformers(Family& family, const std::vector<TransformerKind>& kinds) {
  for (const TransformerKind& kind : kinds)
    check_model(family, kind.name, kind.bar, [&](const Sizes& n) {
      ModelConfig c = transformer(n);
      kind.change(c);
      return c;
    });
}

TEST(Parity, Transformer) {
  Family family("transformer");
  check_transformers(
      family,
      {{"post-norm", [](ModelConfig&) {}},
       {"pre-norm", [](ModelConfig& c) { transformer_of(c).norm = NormPlace::pre; }},
       {"relu", [](ModelConfig& c) { transformer_of(c).activation = Function::relu; }, Bar::rough},
       {"silu, own output", [](ModelConfig& c) {
          transformer_of(c).activation = Function::silu, c.tied = TiedEmbeddings::none;
        }}});
}

TEST(Parity, PublishedTransformers) {
  Family family("published transformers");
  check_transformers(family, {{"BART",
                               [](ModelConfig& c) {
                                 auto& own = transformer_of(c);
                                 own.embedding_norm = own.output_bias = true;
                                 own.positions = Positions::learned;
                               }},
                              {"M2M100",
                               [](ModelConfig& c) {
                                 auto& own = transformer_of(c);
                                 own.norm = NormPlace::pre, own.activation = Function::silu;
                                 own.positions = Positions::half_m1, own.first_position = 2;
                               }},
                              {"T5",
                               [](ModelConfig& c) {
                                 auto& own = transformer_of(c);
                                 own.norm = NormPlace::pre, own.norm_type = NormType::rms;
                                 own.gated = true, own.activation = Function::gelu_tanh;
                                 own.head_size = 9, own.positions = Positions::relative;
                                 own.relative_buckets = 8, own.relative_distance = 12;
                               }},
                              {"Marian",
                               [](ModelConfig& c) {
                                 auto& own = transformer_of(c);
                                 own.decoder_layer = DecoderLayerType::ssru;
                                 own.positions = Positions::half_m1, own.norm_epsilon = 1e-6;
                               },
                               Bar::rough}});
}

TEST(Parity, TransformerEnds) {
  Family family("transformer's ends");
  check_transformers(
      family, {{"tied output, learned positions",
                [](ModelConfig& c) {
                  c.tied = TiedEmbeddings::output, transformer_of(c).positions = Positions::learned;
                }},
               {"output bias, final norm, half-m1", [](ModelConfig& c) {
                  transformer_of(c).output_bias = transformer_of(c).final_norm = true,
                  transformer_of(c).positions = Positions::half_m1;
                  transformer_of(c).scale_embeddings = false;
                }}});
  family.check("guided", Bar::products, kBatches, [](Trial& t, const Sizes& n) {
    ModelConfig c = transformer(n);
    transformer_of(c).alignment_layer = 0, transformer_of(c).alignment_head = 1;
    const testing::Sentences s = sentences(t, n);
    std::vector<int32_t> offsets{0}, keys;
    for (int64_t b = 0; b < n[0]; ++b)
      for (int32_t i = s.offsets[b]; i < s.offsets[b + 1]; ++i) {
        const int32_t source = s.source_offsets[b + 1] - s.source_offsets[b];
        for (int32_t j = 0; j < std::min(i % 3, source); ++j) keys.push_back((i + j) % source);
        offsets.push_back(static_cast<int32_t>(keys.size()));
      }
    const AlignmentGuidance guidance{offsets, keys, 0.3};
    expect_loss(t, t.model(c).loss({s.sources(), s.targets(), s.out, guidance}, 0.1));
  });
}

ModelConfig recurrent(const Sizes& n, const std::string& attention, DecoderForm decoder) {
  ModelConfig c;
  RecurrentConfig& own = c.network.emplace<RecurrentConfig>();
  c.encoder_layers = 1 + n[3] % 2, c.decoder_layers = 1 + n[3] % 3 / 2;
  own.encoder_size = n[3] + 3, c.size = 2 * own.encoder_size;  // states and annotations of one size
  own.embedding = n[3] + 4, own.readout = n[3] + 5, c.tied = TiedEmbeddings::none;
  c.source_words = c.target_words = n[4] + 19;
  c.max_length = std::max(n[1], n[2]) + 5;
  c.dropout = 0.2;
  own.decoder = decoder, own.cell = decoder == DecoderForm::luong ? Cell::lstm : Cell::gru;
  own.attention.kind = attention;
  if (!own.attention.attends()) c.decoder_layers = std::max(c.decoder_layers, c.encoder_layers);
  own.attention.inner = n[3], own.attention.window = 2, own.attention.gaussians = 3;
  return c;
}

void check_attentions(Family& family, DecoderForm decoder) {
  for (const AttentionMechanism& mechanism : attention_mechanisms()) {
    const std::string attention = mechanism.about.name;
    const bool chooses =
        attention.starts_with("hard") || attention == "local-p" || attention == "forward";
    const Bar of_products = attention == "window" ? Bar::rough : Bar::products;
    check_model(family, attention, chooses ? Bar::choices : of_products,
                [&](const Sizes& n) { return recurrent(n, attention, decoder); });
  }
}

TEST(Parity, Bahdanau) {
  Family family("bahdanau");
  check_attentions(family, DecoderForm::bahdanau);
  for (const auto& [name, cell] : {std::pair("rnn", Cell::rnn), {"gru-after", Cell::gru_after}})
    check_model(family, name, Bar::products, [cell = cell](const Sizes& n) {
      ModelConfig c = recurrent(n, "global", DecoderForm::bahdanau);
      recurrent_of(c).cell = cell;
      return c;
    });
}

TEST(Parity, Luong) {
  Family family("luong");
  check_attentions(family, DecoderForm::luong);
  check_model(family, "without input feeding", Bar::products, [](const Sizes& n) {
    ModelConfig c = recurrent(n, "global", DecoderForm::luong);
    recurrent_of(c).input_feeding = false, recurrent_of(c).attention.score = "general";
    return c;
  });
}

struct LabelledTexts {
  testing::Sentences texts;  // the start symbol is the whole target
  std::vector<int32_t> labels;
};

// Documents consist of sentences, the last of which is a question.
LabelledTexts texts(Trial& t, const Sizes& n, bool documents) {
  LabelledTexts all;
  for (int64_t i = 0; i < n[0]; ++i) {
    std::vector<int32_t> text = words(t, n[1], n[4]);
    for (uint64_t more = 0; documents && more < 1 + t.random().below(3); ++more) {
      text.push_back(2);
      const std::vector<int32_t> sentence = words(t, n[2], n[4]);
      text.insert(text.end(), sentence.begin(), sentence.end());
    }
    all.texts.add(text, {});
    all.labels.push_back(kFirstLabel +
                         static_cast<int32_t>(t.random().below(static_cast<uint64_t>(n[4]))));
  }
  return all;
}

TEST(Parity, Reader) {
  Family family("reader");
  const struct {
    const char* name;
    ReaderQuery query;
    const char* attention;
    EncoderContext context;
  } kinds[] = {{"summary", ReaderQuery::summary, "static", EncoderContext::text},
               {"learned", ReaderQuery::learned, "static", EncoderContext::text},
               {"question", ReaderQuery::question, "static", EncoderContext::text},
               {"question, sentences", ReaderQuery::question, "static", EncoderContext::sentence},
               {"without attention", ReaderQuery::summary, "none", EncoderContext::text}};
  for (const auto& kind : kinds) {
    const auto config = [&](const Sizes& n) {
      ModelConfig c = recurrent(n, kind.attention, DecoderForm::luong);
      const EncoderConfig encoder = recurrent_of(c);
      ReaderConfig& own = c.network.emplace<ReaderConfig>();
      static_cast<EncoderConfig&>(own) = encoder;
      own.query = kind.query, own.context = kind.context;
      c.target_words = n[4] + 4, c.max_length = 200;
      return c;
    };
    const bool documents = kind.query == ReaderQuery::question;
    family.check(kind.name, Bar::products, kBatches, [&](Trial& t, const Sizes& n) {
      const auto [s, labels] = texts(t, n, documents);
      expect_loss(t, t.model(config(n)).loss({s.sources(), s.targets(), labels}, 0.1));
    });
    family.check_forward(std::string(kind.name) + ", read only", Bar::products, kBatches,
                         [&](Trial& t, const Sizes& n) {
                           const Model& model = t.model(config(n));
                           const LabelScores found = model.as<LabelPredictor>()->predict_labels(
                               texts(t, n, documents).texts.sources());
                           t.expect_numbers("logits", found.logits.values());
                           if (found.weights) t.expect_numbers("attention", found.weights.values());
                         });
  }
}

}  // namespace
}  // namespace fovea::parity

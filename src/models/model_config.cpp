#include "models/model_config.h"

#include <algorithm>

#include "models/recurrent_model.h"
#include "models/text_classifier.h"
#include "models/transformer.h"

namespace fovea {

void TransformerConfig::describe(Settings& s) {
  s.field("heads", heads, "attention heads; must divide size, unless head_size is set")
      .between(1, 1024);
  s.field("head_size", head_size, "width of one head; 0: size / heads").between(0, 1024);
  s.field("inner", inner, "width inside the feed-forward layer").between(1, 65536);
  s.choice("norm", norm, {{"post", NormPlace::post}, {"pre", NormPlace::pre}},
           "LayerNorm after each sub-layer (as published) or before it");
  s.choice("norm_type", norm_type, {{"layer", NormType::layer}, {"rms", NormType::rms}},
           "LayerNorm, or RMSNorm, which has no mean and no bias");
  s.field("norm_epsilon", norm_epsilon, "number that norms add to the variance")
      .between(1e-12, 0.1);
  s.field("final_norm", final_norm, "a norm after each stack (pre-norm always has one)");
  s.field("embedding_norm", embedding_norm, "a norm after the sum of embeddings and positions");
  s.choice("activation", activation,
           {{"relu", Function::relu},
            {"gelu", Function::gelu},
            {"gelu-tanh", Function::gelu_tanh},
            {"silu", Function::silu}},
           "function inside the feed-forward layer; gelu-tanh approximates gelu by tanh");
  s.field("gated", gated,
          "feed-forward layer that multiplies the activations by a second projection W_3");
  s.choice("decoder_layer", decoder_layer,
           {{"attention", DecoderLayerType::attention}, {"ssru", DecoderLayerType::ssru}},
           "part of a decoder layer that reads earlier target words: self-attention, or the "
           "recurrent unit SSRU");
  s.choice("positions", positions,
           {{"interleaved", Positions::interleaved},
            {"half", Positions::half},
            {"half-m1", Positions::half_m1},
            {"learned", Positions::learned},
            {"relative", Positions::relative},
            {"none", Positions::none}},
           "sinusoids: sine and cosine in turn (as published), all sines then all cosines (half), "
           "the same with frequencies 10000^(-i/(size/2 - 1)) as in tensor2tensor and Marian "
           "(half-m1); learned; a learned score per distance of two words, as in T5 (relative); "
           "or none");
  s.field("first_position", first_position, "number of the first position of sinusoids")
      .between(0, 1024);
  s.field("relative_buckets", relative_buckets, "ranges of distances of relative positions")
      .between(4, 1024);
  s.field("relative_distance", relative_distance,
          "distance from which all distances share the last bucket")
      .between(2, 65536);
  s.field("scale_embeddings", scale_embeddings, "multiply embeddings by the root of size");
  s.field("output_bias", output_bias, "a bias per word in the output layer");
  s.field("attention_dropout", attention_dropout, "dropout of attention weights").between(0, 0.95);
  s.field("activation_dropout", activation_dropout,
          "dropout of the activations inside the feed-forward layer")
      .between(0, 0.95);
  s.field("alignment_layer", alignment_layer,
          "decoder layer that was trained on alignments; follows from train.guided_layer; -1: none")
      .between(-1, 63);
  s.field("alignment_head", alignment_head, "head of that layer; -1: none").between(-1, 1023);
  s.choice("alignment_step", alignment_step,
           {{"writes", AlignmentStep::writes}, {"reads", AlignmentStep::reads}},
           "decoder step of that head that aligns a word; follows from train.guided_step");
}

void EncoderConfig::describe(Settings& s) {
  s.choice("cell", cell,
           {{"rnn", Cell::rnn},
            {"lstm", Cell::lstm},
            {"gru", Cell::gru},
            {"gru-after", Cell::gru_after}},
           "recurrent cell; gru resets before the product (Cho 2014), gru-after after it (cuDNN)");
  s.field("bidirectional", bidirectional, "the encoder reads in both directions");
  s.field("embedding", embedding, "width of word embeddings; 0: size").between(0, 16384);
  s.field("encoder_size", encoder_size, "width of one direction of the encoder; 0: size")
      .between(0, 16384);
  attention.describe_choice(s);
}

RecurrentStack::Sizes EncoderConfig::sizes(const ModelShape& m) const {
  return {.kind = cell,
          .in = embedding_size(m),
          .H = annotation_size(m) / (bidirectional ? 2 : 1),
          .layers = m.encoder_layers,
          .reading = bidirectional ? EncoderDirections::both_ways : EncoderDirections::forward,
          .dropout = m.dropout};
}

void RecurrentConfig::describe(Settings& s) {
  s.choice("decoder", decoder, {{"bahdanau", DecoderForm::bahdanau}, {"luong", DecoderForm::luong}},
           "attention before the recurrent step (bahdanau) or after it (luong)");
  s.field("input_feeding", input_feeding,
          "luong: the attentional state is part of the next step's input");
  s.field("readout", readout, "width of the output layer's input; 0: size, or embedding if tied")
      .between(0, 16384);
  attention.describe_details(s);
}

void ReaderConfig::describe(Settings& s) {
  s.choice("query", query,
           {{"learned", ReaderQuery::learned},
            {"summary", ReaderQuery::summary},
            {"question", ReaderQuery::question}},
           "query of the attention: a learned vector, the summary of the text, or a question");
  s.choice("context", context,
           {{"text", EncoderContext::text}, {"sentence", EncoderContext::sentence}},
           "the encoder reads a document as a whole, or each sentence separately; a learned "
           "vector then encodes the number of sentences that follow");
}

namespace {

void check_languages(const ModelShape& m, ExitCode code) {
  const auto is_code = [](const std::string& text) {
    return text.size() >= 2 && text.size() <= 12 &&
           text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") ==
               text.npos;
  };
  const bool two = m.languages.size() == 2 && std::ranges::all_of(m.languages, is_code);
  check(m.languages.empty() || two, code, "model.languages: the codes of two languages are ",
        "expected, source and target, for example [en, de]");
}

// The settings of all types of network. They are kept separately, because in a recipe `type` may
// come after the settings of that type.
struct NetworkSettings {
  std::string type;
  TransformerConfig transformer;
  RecurrentConfig recurrent;  // a text classifier uses its EncoderConfig part, too
  ReaderConfig reader;

  void load(const ModelConfig& m) {
    type = m.type();
    if (const auto* own = m.as<TransformerConfig>()) transformer = *own;
    if (const auto* own = m.as<RecurrentConfig>()) recurrent = *own;
    if (const auto* own = m.as<ReaderConfig>()) recurrent.EncoderConfig::operator=(reader = *own);
  }
  void store(ModelConfig& m) {
    if (type == transformer.kName) m.network = transformer;
    if (type == recurrent.kName) m.network = recurrent;
    if (type == reader.kName) reader.EncoderConfig::operator=(recurrent), m.network = reader;
  }
};

}  // namespace

void ModelConfig::describe(Settings& s) {
  NetworkSettings& own = s.copy_of<NetworkSettings>(*this);
  s.choice("type", own.type, {own.transformer.kName, own.recurrent.kName, own.reader.kName},
           "type of network; reader: for the tasks classify and read");
  s.field("encoder_layers", encoder_layers, "layers of the encoder").between(1, 64);
  s.field("size", size, "width of the model (d_model), or size of the decoder's state")
      .between(1, 16384);
  s.when(
      [this] { return !as<ReaderConfig>(); }, "model.type: transformer or recurrent",
      [&] {
        s.field("decoder_layers", decoder_layers, "layers of the decoder").between(1, 64);
        s.choice("tied", tied,
                 {{"none", TiedEmbeddings::none},
                  {"output", TiedEmbeddings::output},
                  {"all", TiedEmbeddings::all}},
                 "embeddings shared with the output layer (output), and also with the source side "
                 "(all)");
        s.field(
            "languages", languages,
            "codes of source and target, [en, de], for fovea serve; []: from the directory's name");
      });
  s.field("max_length", max_length, "longest sentence in pieces").between(2, 65536);
  s.field("dropout", dropout, "dropout of embeddings and of the outputs of layers")
      .between(0, 0.95);
  s.field("source_words", source_words, "size of the source vocabulary; 0: from the vocabulary")
      .between(0, 1e8);
  s.field("target_words", target_words, "size of the target vocabulary; 0: from the vocabulary")
      .between(0, 1e8);
  s.when([this] { return as<TransformerConfig>(); }, "model.type: transformer",
         [&] { own.transformer.describe(s); });
  s.when([this] { return !as<TransformerConfig>(); }, "model.type: recurrent or reader",
         [&] { own.recurrent.EncoderConfig::describe(s); });
  s.when([this] { return as<RecurrentConfig>(); }, "model.type: recurrent",
         [&] { own.recurrent.describe(s); });
  s.when([this] { return as<ReaderConfig>(); }, "model.type: reader",
         [&] { own.reader.describe(s); });
  s.when([this] { return !as<ReaderConfig>(); }, "model.type: transformer or recurrent",
         [&] { s.group("generation", generation, "defaults of the translation of texts"); });
}

void ModelConfig::check(ExitCode code) const {
  if (!as<ReaderConfig>()) {
    fovea::check(tied != TiedEmbeddings::all || source_words == target_words, code,
                 "model.tied: all needs one joint vocabulary, found ", source_words, " source and ",
                 target_words, " target words; set model.tied to output or none");
    check_languages(*this, code);
    generation.check(max_length, code);
  }
  std::visit([&](const auto& own) { own.check(*this, code); }, network);
}

void TransformerConfig::check(const ModelShape& m, ExitCode code) const {
  fovea::check(head_size > 0 || m.size % heads == 0, code, "model.heads: ", heads,
               " heads do not divide a size of ", m.size,
               "; choose a divisor of model.size or set model.head_size");
  const bool sinusoids = positions == Positions::interleaved || positions == Positions::half ||
                         positions == Positions::half_m1;
  fovea::check(!sinusoids || m.size % 2 == 0, code,
               "model.size: sinusoidal positions need an even size, found ", m.size,
               "; or set model.positions to learned or none");
  fovea::check(sinusoids || first_position == 0, code, "model.first_position: found ",
               first_position,
               ", but only sinusoids have numbers; omit it, or set model.positions ",
               "to interleaved, half or half-m1");
  fovea::check(!relative() || relative_buckets % 4 == 0, code,
               "model.relative_buckets: a multiple of 4 is expected, found ", relative_buckets);
  fovea::check(!relative() || relative_distance > relative_buckets / 2, code,
               "model.relative_distance: the first ", relative_buckets / 2, " distances have ",
               "buckets of their own, so a greater number is expected, found ", relative_distance);
  fovea::check(alignment_layer < m.decoder_layers && alignment_head < heads &&
                   (alignment_layer < 0) == (alignment_head < 0),
               code, "model.alignment_layer, model.alignment_head: there is no layer ",
               alignment_layer, " with a head ", alignment_head, "; the decoder has ",
               m.decoder_layers, " layers of ", heads,
               " heads, both counted from 0, and -1 stands for none");
}

void RecurrentConfig::check(const ModelShape& m, ExitCode code) const {
  fovea::check(
      attention.attends() || m.encoder_layers <= m.decoder_layers, code,
      "model.encoder_layers: without attention each layer of the decoder starts from the encoder ",
      "layer of the same number, and ", m.decoder_layers, " of ", m.encoder_layers,
      " would leave the upper ones unread; set model.decoder_layers to ", m.encoder_layers,
      " or model.encoder_layers to ", m.decoder_layers);
  attention.check(code, attention_sizes(m));
  fovea::check(m.tied == TiedEmbeddings::none || readout_size(m) == embedding_size(m), code,
               "model.tied: the output layer reads ", readout_size(m), " numbers",
               attention.attends() ? "" : " (without attention, the state itself)",
               " and cannot share embeddings of ", embedding_size(m),
               "; make both sizes equal or set model.tied to none");
}

void ReaderConfig::check(const ModelShape& m, ExitCode code) const {
  fovea::check(attention.kind == "static" || attention.kind == "none", code,
               "model.attention: a reader attends once and supports static and none, found ",
               attention.kind, "; set one of them");
  fovea::check(
      attention.score == "auto" || (attention.kind == "static" && attention.score == "additive"),
      code, "model.score: a reader supports only additive, found ", attention.score,
      "; remove model.score");
  const bool has_question = query == ReaderQuery::question && attention.attends();
  fovea::check(context == EncoderContext::text || has_question, code,
               "model.context: sentence needs model.query question and an attention; ",
               "set model.context to text");
  fovea::check(m.target_words == 0 || m.target_words > 4, code,
               "model.target_words: ", m.target_words,
               " leaves no label besides the four special words; expected at least 5");
}

std::unique_ptr<Model> declare_model(const ModelConfig& config, ElementType type, Device device) {
  config.check(ExitCode::model);
  if (const auto* own = config.as<RecurrentConfig>())
    return std::make_unique<RecurrentModel>(config, *own, type, device);
  if (const auto* own = config.as<ReaderConfig>())
    return std::make_unique<TextClassifier>(config, *own, type, device);
  const auto& own = std::get<TransformerConfig>(config.network);
  if (std::holds_alternative<Cpu>(device))
    return std::make_unique<HostTransformer>(config, own, type, device);
  return std::make_unique<DeviceTransformer>(config, own, type, device);
}

std::unique_ptr<Model> make_model(const ModelConfig& config, uint64_t seed, ElementType type,
                                  Device device) {
  auto model = declare_model(config, type, device);
  model->parameters().allocate(seed);
  return model;
}

}  // namespace fovea

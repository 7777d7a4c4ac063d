#include "models/model_config.h"

#include <algorithm>

#include "models/recurrent_model.h"
#include "models/text_classifier.h"
#include "models/transformer.h"

namespace fovea {

namespace {

void describe_transformer(ModelConfig& m, Settings& s) {
  s.field("heads", m.heads, "attention heads; must divide size").between(1, 1024);
  s.field("inner", m.inner, "width inside the feed-forward layer").between(1, 65536);
  s.choice("norm", m.norm, {{"post", NormPlace::post}, {"pre", NormPlace::pre}},
           "LayerNorm after each sub-layer (as published) or before it");
  s.field("final_norm", m.final_norm, "a norm after each stack (pre-norm always has one)");
  s.choice("activation", m.activation,
           {{"relu", Function::relu}, {"gelu", Function::gelu}, {"silu", Function::silu}},
           "function inside the feed-forward layer");
  s.choice("positions", m.positions,
           {{"interleaved", Positions::interleaved},
            {"half", Positions::half},
            {"half-m1", Positions::half_m1},
            {"learned", Positions::learned},
            {"none", Positions::none}},
           "sinusoids: sine and cosine in turn (as published), all sines then all cosines (half), "
           "the same with frequencies 10000^(-i/(size/2 - 1)) as in tensor2tensor and Marian "
           "(half-m1); learned; or none");
  s.field("scale_embeddings", m.scale_embeddings, "multiply embeddings by the root of size");
  s.field("output_bias", m.output_bias, "a bias per word in the output layer");
  s.field("attention_dropout", m.attention_dropout, "dropout of attention weights")
      .between(0, 0.95);
  s.field("activation_dropout", m.activation_dropout,
          "dropout of the activations inside the feed-forward layer")
      .between(0, 0.95);
  s.field("alignment_layer", m.alignment_layer,
          "decoder layer that was trained on alignments; follows from train.guided_layer; -1: none")
      .between(-1, 63);
  s.field("alignment_head", m.alignment_head, "head of that layer; -1: none").between(-1, 1023);
  s.choice("alignment_step", m.alignment_step,
           {{"writes", AlignmentStep::writes}, {"reads", AlignmentStep::reads}},
           "decoder step of that head that aligns a word; follows from train.guided_step");
}

// The settings that recurrent models and readers share.
void describe_encoder(ModelConfig& m, Settings& s) {
  s.choice("cell", m.cell,
           {{"rnn", Cell::rnn},
            {"lstm", Cell::lstm},
            {"gru", Cell::gru},
            {"gru-after", Cell::gru_after}},
           "recurrent cell; gru resets before the product (Cho 2014), gru-after after it (cuDNN)");
  s.field("bidirectional", m.bidirectional, "the encoder reads in both directions");
  s.field("embedding", m.embedding, "width of word embeddings; 0: size").between(0, 16384);
  s.field("encoder_size", m.encoder_size, "width of one direction of the encoder; 0: size")
      .between(0, 16384);
  m.attention.describe_choice(s);
}

void describe_recurrent(ModelConfig& m, Settings& s) {
  s.choice("decoder", m.decoder,
           {{"bahdanau", DecoderForm::bahdanau}, {"luong", DecoderForm::luong}},
           "attention before the recurrent step (bahdanau) or after it (luong)");
  s.field("input_feeding", m.input_feeding,
          "luong: the attentional state is part of the next step's input");
  s.field("readout", m.readout, "width of the output layer's input; 0: size, or embedding if tied")
      .between(0, 16384);
  m.attention.describe_details(s);
}

void describe_reader(ModelConfig& m, Settings& s) {
  s.choice("query", m.query,
           {{"learned", ReaderQuery::learned},
            {"summary", ReaderQuery::summary},
            {"question", ReaderQuery::question}},
           "query of the attention: a learned vector, the summary of the text, or a question");
  s.choice("context", m.context,
           {{"text", EncoderContext::text}, {"sentence", EncoderContext::sentence}},
           "the encoder reads a document as a whole, or each sentence separately; a learned "
           "vector then encodes the number of sentences that follow");
}

void describe_decoder(ModelConfig& m, Settings& s) {
  s.field("decoder_layers", m.decoder_layers, "layers of the decoder").between(1, 64);
  s.choice("tied", m.tied,
           {{"none", TiedEmbeddings::none},
            {"output", TiedEmbeddings::output},
            {"all", TiedEmbeddings::all}},
           "embeddings shared with the output layer (output), and also with the source side (all)");
  s.field("languages", m.languages,
          "codes of source and target, [en, de], for fovea serve; []: from the directory's name");
}

void check_languages(const ModelConfig& m, ExitCode code) {
  const auto is_code = [](const std::string& text) {
    return text.size() >= 2 && text.size() <= 12 &&
           text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") ==
               text.npos;
  };
  const bool two = m.languages.size() == 2 && std::ranges::all_of(m.languages, is_code);
  check(m.languages.empty() || two, code, "model.languages: the codes of two languages are ",
        "expected, source and target, for example [en, de]");
}

void check_transformer(const ModelConfig& m, ExitCode code) {
  check(m.size % m.heads == 0, code, "model.heads: ", m.heads, " heads do not divide a size of ",
        m.size, "; choose a divisor of model.size");
  const bool sinusoids = m.positions != Positions::learned && m.positions != Positions::none;
  check(!sinusoids || m.size % 2 == 0, code, "model.size: sinusoidal positions need an even ",
        "size, found ", m.size, "; or set model.positions to learned or none");
  check(m.alignment_layer < m.decoder_layers && m.alignment_head < m.heads &&
            (m.alignment_layer < 0) == (m.alignment_head < 0),
        code, "model.alignment_layer, model.alignment_head: there is no layer ", m.alignment_layer,
        " with a head ", m.alignment_head, "; the decoder has ", m.decoder_layers, " layers of ",
        m.heads, " heads, both counted from 0, and -1 stands for none");
}

void check_recurrent(const ModelConfig& m, ExitCode code) {
  check(
      m.attention.attends() || m.encoder_layers <= m.decoder_layers, code,
      "model.encoder_layers: without attention each layer of the decoder starts from the encoder ",
      "layer of the same number, and ", m.decoder_layers, " of ", m.encoder_layers,
      " would leave the upper ones unread; set model.decoder_layers to ", m.encoder_layers,
      " or model.encoder_layers to ", m.decoder_layers);
  m.attention.check(code, m.attention_sizes());
  check(m.tied == TiedEmbeddings::none || m.readout_size() == m.embedding_size(), code,
        "model.tied: the output layer reads ", m.readout_size(), " numbers",
        m.attention.attends() ? "" : " (without attention, the state itself)",
        " and cannot share embeddings of ", m.embedding_size(),
        "; make both sizes equal or set model.tied to none");
}

void check_reader(const ModelConfig& m, ExitCode code) {
  const AttentionConfig& a = m.attention;
  check(a.kind == "static" || a.kind == "none", code, "model.attention: a reader attends once and ",
        "supports static and none, found ", a.kind, "; set one of them");
  check(a.score == "auto" || (a.kind == "static" && a.score == "additive"), code,
        "model.score: a reader supports only additive, found ", a.score, "; remove model.score");
  const bool has_question = m.query == ReaderQuery::question && a.attends();
  check(m.context == EncoderContext::text || has_question, code,
        "model.context: sentence needs model.query question and an attention; ",
        "set model.context to text");
  check(m.target_words == 0 || m.target_words > 4, code, "model.target_words: ", m.target_words,
        " leaves no label besides the four special words; expected at least 5");
}

}  // namespace

void ModelConfig::describe(Settings& s) {
  s.choice("type", type, {"transformer", "recurrent", "reader"},
           "type of network; reader: for the tasks classify and read");
  s.field("encoder_layers", encoder_layers, "layers of the encoder").between(1, 64);
  s.field("size", size, "width of the model (d_model), or size of the decoder's state")
      .between(1, 16384);
  s.when([this] { return type != "reader"; }, "model.type: transformer or recurrent",
         [&] { describe_decoder(*this, s); });
  s.field("max_length", max_length, "longest sentence in pieces").between(2, 65536);
  s.field("dropout", dropout, "dropout of embeddings and of the outputs of layers")
      .between(0, 0.95);
  s.field("source_words", source_words, "size of the source vocabulary; 0: from the vocabulary")
      .between(0, 1e8);
  s.field("target_words", target_words, "size of the target vocabulary; 0: from the vocabulary")
      .between(0, 1e8);
  s.when([this] { return type == "transformer"; }, "model.type: transformer",
         [&] { describe_transformer(*this, s); });
  s.when([this] { return type == "recurrent" || type == "reader"; },
         "model.type: recurrent or reader", [&] { describe_encoder(*this, s); });
  s.when([this] { return type == "recurrent"; }, "model.type: recurrent",
         [&] { describe_recurrent(*this, s); });
  s.when([this] { return type == "reader"; }, "model.type: reader",
         [&] { describe_reader(*this, s); });
}

void ModelConfig::check(ExitCode code) const {
  if (type == "reader") return check_reader(*this, code);
  fovea::check(tied != TiedEmbeddings::all || source_words == target_words, code,
               "model.tied: all needs one joint vocabulary, found ", source_words, " source and ",
               target_words, " target words; set model.tied to output or none");
  check_languages(*this, code);
  if (type == "transformer")
    check_transformer(*this, code);
  else
    check_recurrent(*this, code);
}

std::unique_ptr<Model> declare_model(const ModelConfig& config, ElementType type, Device device) {
  config.check(ExitCode::model);
  if (config.type == "recurrent") return std::make_unique<RecurrentModel>(config, type, device);
  if (config.type == "reader") return std::make_unique<TextClassifier>(config, type, device);
  if (std::holds_alternative<Cpu>(device))
    return std::make_unique<HostTransformer>(config, type, device);
  return std::make_unique<DeviceTransformer>(config, type, device);
}

std::unique_ptr<Model> make_model(const ModelConfig& config, uint64_t seed, ElementType type,
                                  Device device) {
  auto model = declare_model(config, type, device);
  model->parameters().allocate(seed);
  return model;
}

}  // namespace fovea

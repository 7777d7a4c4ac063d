#include "importer/hf_vocabulary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/files.h"
#include "text/foreign_vocabulary.h"

namespace fovea {
namespace {

using Names = std::vector<std::string>;

constexpr size_t kMaxTokenizer = size_t{1} << 28;

std::string read_text(const std::string& path) {
  return read_file(path, kMaxTokenizer, ExitCode::model);
}

Vocabulary spm_vocabulary(const std::string& path, const ForeignPieces& pieces) {
  return import_sentencepiece(read_text(path), pieces.order(), path);
}

Names names_of(const LanguagePieces& languages) {
  Names names;
  for (const auto& [code, piece] : languages) names.push_back(piece);
  return names;
}

// The names of the special pieces, from the ids of config.json.
SpecialNames special_names(const HfCheckpoint& checkpoint, const Names& pieces) {
  const ForeignSettings& config = checkpoint.config;
  const auto name = [&](const char* key) {
    return name_at(pieces, config.integer(key, -1), config.path() + ": " + key);
  };
  SpecialNames names{name("pad_token_id"), if_present(pieces, "<s>"), name("eos_token_id"),
                     if_present(pieces, checkpoint.tokenizer.text("unk_token", "<unk>"))};
  if (names.pad == names.eos) names.pad.clear();
  return names;
}

// Marian: the ids of vocab.json, and the segmentation of source.spm and target.spm.
HfVocabulary marian_vocabulary(const HfCheckpoint& checkpoint) {
  HfVocabulary v;
  const auto pieces = [&](const std::string& path) {
    const Names names = json_names(read_text(path), path);
    const LanguagePieces languages = languages_between(names, ">>", "<<");
    if (!languages.empty()) v.languages = languages;
    return ForeignPieces(names, special_names(checkpoint, names), names_of(languages), path);
  };
  v.source = v.target = pieces(checkpoint.first_file({"vocab.json"}));
  if (checkpoint.tokenizer.flag("separate_vocabs", false))
    v.target = pieces(checkpoint.first_file({"target_vocab.json"}));
  v.source_text = spm_vocabulary(checkpoint.first_file({"source.spm"}), v.source);
  v.target_text = spm_vocabulary(checkpoint.first_file({"target.spm"}), v.target);
  return v;
}

// Adds the pieces of a list such as additional_special_tokens, in order.
void add_listed(const ForeignSettings& file, const char* key, Names& names, Names& added) {
  if (!file.has(key) || !added.empty()) return;
  for (const nlohmann::json& item : file.json()[key]) {
    const nlohmann::json& content =
        item.is_object() && item.contains("content") ? item["content"] : item;
    if (!content.is_string()) file.reject(key, "expected a list of strings");
    if (std::ranges::find(names, content.get<std::string>()) != names.end()) continue;
    added.push_back(content.get<std::string>());
    names.push_back(added.back());
  }
}

// Adds the pieces of an object of ids and pieces: {"ID": {"content": PIECE}} or {"PIECE": ID}.
void add_numbered(const ForeignSettings& file, Names& names, Names& added) {
  for (const auto& [key, value] : file.json().items()) {
    const bool by_id = value.is_object() && value.contains("content");
    if (by_id && !value["content"].is_string()) file.reject(key, "expected a string as content");
    if (!by_id && !value.is_number_unsigned()) file.reject(key, "expected an id");
    const std::string piece = by_id ? value["content"].get<std::string>() : key;
    const uint64_t id = by_id ? std::strtoull(key.c_str(), nullptr, 10) : value.get<uint64_t>();
    if (id < names.size() && names[id] == piece) continue;
    if (id > 2 * names.size() + 1000) file.reject(key, "the id is far above the other ids");
    add_unused_pieces(names, static_cast<int64_t>(id) + 1);
    names[id] = piece;
    added.push_back(piece);
  }
}

// Adds the pieces that the tokenizer has besides its model, such as those of languages.
Names add_special_pieces(const HfCheckpoint& checkpoint, Names& names) {
  Names added;
  add_numbered(checkpoint.tokenizer.object("added_tokens_decoder"), names, added);
  if (added.empty())
    add_numbered(ForeignSettings::load_if_exists(checkpoint.file("added_tokens.json")), names,
                 added);
  add_listed(checkpoint.tokenizer, "additional_special_tokens", names, added);
  add_listed(ForeignSettings::load_if_exists(checkpoint.file("special_tokens_map.json")),
             "additional_special_tokens", names, added);
  return added;
}

// The ids of fairseq for a SentencePiece model: <s>, <pad>, </s>, <unk>, then its other pieces.
Names spm_names_of_fairseq(const std::string& path) {
  constexpr int kOwnSpecials = 3;  // <unk>, <s>, </s>
  Names names{"<s>", "<pad>", "</s>", "<unk>"};
  const Names stored = sentencepiece_names(read_text(path), path);
  check(std::ssize(stored) > kOwnSpecials, ExitCode::model, path, ": found ", stored.size(),
        " pieces, expected more than ", kOwnSpecials, "; copy the file again from the original ",
        "model");
  names.insert(names.end(), stored.begin() + kOwnSpecials, stored.end());
  return names;
}

// The codes of mBART and NLLB, "en_XX" and "eng_Latn".
LanguagePieces codes_with_region(const Names& added) {
  LanguagePieces languages;
  for (const std::string& name : added)
    if (name.find('_') != name.npos && name.find('<') == name.npos) languages[name] = name;
  return languages;
}

// M2M100, NLLB, mBART: one SentencePiece model and a piece for each language.
HfVocabulary multilingual_vocabulary(const HfCheckpoint& checkpoint) {
  const std::string path = checkpoint.first_file({"sentencepiece.bpe.model"});
  const bool m2m = checkpoint.has("vocab.json");
  const std::string listed = m2m ? checkpoint.file("vocab.json") : path;
  Names names = m2m ? json_names(read_text(listed), listed) : spm_names_of_fairseq(path);
  const Names added = add_special_pieces(checkpoint, names);
  add_unused_pieces(names, checkpoint.config.size("vocab_size"));
  HfVocabulary v;
  v.languages = m2m ? languages_between(added, "__", "__") : codes_with_region(added);
  check(!v.languages.empty(), ExitCode::model, checkpoint.directory,
        ": found no pieces of languages, expected added_tokens.json, special_tokens_map.json or "
        "tokenizer_config.json with them; download all files of the model");
  v.source = v.target =
      ForeignPieces(names, special_names(checkpoint, names), names_of(v.languages), listed);
  v.source_text = v.target_text = spm_vocabulary(path, v.source);
  return v;
}

// T5: the ids of spiece.model, then the sentinels <extra_id_99> to <extra_id_0>.
HfVocabulary t5_vocabulary(const HfCheckpoint& checkpoint) {
  const std::string path = checkpoint.first_file({"spiece.model"});
  Names names = sentencepiece_names(read_text(path), path);
  const int64_t rows = checkpoint.config.size("vocab_size");
  const int64_t sentinels =
      std::min(checkpoint.tokenizer.integer("extra_ids", 100), rows - std::ssize(names));
  Names controls;
  for (int64_t i = sentinels - 1; i >= 0; --i)
    names.push_back(controls.emplace_back("<extra_id_" + std::to_string(i) + ">"));
  add_unused_pieces(names, rows);
  HfVocabulary v;
  v.source = v.target = ForeignPieces(names, special_names(checkpoint, names), controls, path);
  v.source_text = v.target_text = spm_vocabulary(path, v.source);
  return v;
}

// The pieces and the text of tokenizer.json.
HfVocabulary json_vocabulary(const HfCheckpoint& checkpoint) {
  const std::string path = checkpoint.first_file({"tokenizer.json"});
  const std::string json = read_text(path);
  TokenizerPieces pieces = tokenizer_pieces(json, path);
  add_unused_pieces(pieces.names, checkpoint.config.size("vocab_size"));
  HfVocabulary v;
  if (checkpoint.model_type() == "m2m_100")
    v.languages = languages_between(pieces.controls, "__", "__");
  if (v.languages.empty()) v.languages = codes_with_region(pieces.controls);
  const SpecialNames specials = special_names(checkpoint, pieces.names);
  v.source = v.target = ForeignPieces(pieces.names, specials, pieces.controls, path);
  v.source_text = v.target_text = import_tokenizer_json(json, v.source.order(), path);
  return v;
}

}  // namespace

HfVocabulary hf_vocabulary(const HfCheckpoint& checkpoint) {
  const std::string type = checkpoint.model_type();
  if (type == "marian") return marian_vocabulary(checkpoint);
  const bool multilingual = type == "m2m_100" || type == "mbart";
  if (multilingual && checkpoint.has("sentencepiece.bpe.model"))
    return multilingual_vocabulary(checkpoint);
  const bool t5 = type == "t5" || type == "mt5";
  return t5 && checkpoint.has("spiece.model") ? t5_vocabulary(checkpoint)
                                              : json_vocabulary(checkpoint);
}

namespace {

// The languages in the name of a directory, such as opus-mt-zh-en.
std::vector<std::string> languages_in_name(const std::string& directory) {
  const std::string name =
      std::filesystem::absolute(directory).lexically_normal().filename().string();
  const size_t last = name.rfind('-');
  if (last == name.npos || last == 0) return {};
  const size_t before = name.rfind('-', last - 1);
  if (before == name.npos) return {};
  const std::string from = name.substr(before + 1, last - before - 1), to = name.substr(last + 1);
  return from.size() <= 3 && to.size() <= 3 ? language_pair(from, to) : std::vector<std::string>();
}

// Where a multilingual model has its language pieces.
enum class LanguagePlaces {
  prefixes,       // [source] text </s> → [target] text </s>, as in M2M100
  suffix_prefix,  // text </s> [source] → [target] text </s>, as in older NLLB models
  suffix_start,   // text </s> [source] → decoder starts with [target], as in mBART
};

LanguagePlaces places_of(const HfCheckpoint& checkpoint) {
  if (checkpoint.model_type() == "mbart") {
    const std::string tokenizer =
        checkpoint.tokenizer.text("tokenizer_class", checkpoint.config.text("tokenizer_class", ""));
    const bool fifty = tokenizer.find("50") != tokenizer.npos;
    return fifty ? LanguagePlaces::prefixes : LanguagePlaces::suffix_start;
  }
  return checkpoint.tokenizer.flag("legacy_behaviour", false) ? LanguagePlaces::suffix_prefix
                                                              : LanguagePlaces::prefixes;
}

// The pieces of the instruction of T5, such as "translate English to German: ".
void bind_task(const HfCheckpoint& checkpoint, const HfVocabulary& vocabulary,
               const ImportSource& source, GenerationConfig& generation) {
  if (source.from.empty() && source.to.empty()) return;
  const ForeignSettings tasks = checkpoint.config.object("task_specific_params");
  const std::string task = "translation_" + source.from + "_to_" + source.to;
  check(tasks.has(task.c_str()), ExitCode::usage, checkpoint.directory,
        ": config.json has no task '", task, "' for `from` and `to`; ",
        tasks.keys().empty()
            ? "import the model without them and begin each text with the instruction "
              "that the model was trained with"
            : "tasks of this model: " + fmt::format("{}", fmt::join(tasks.keys(), ", ")));
  const std::string text = tasks.object(task.c_str()).text("prefix", "");
  for (const int32_t id : vocabulary.source_text.encode(text))
    generation.source_prefix.emplace_back(vocabulary.source_text.name(id));
}

}  // namespace

std::vector<std::string> bind_languages(const HfCheckpoint& checkpoint,
                                        const HfVocabulary& vocabulary, const ImportSource& source,
                                        GenerationConfig& generation) {
  const std::string type = checkpoint.model_type();
  if (type == "bart") generation.source_prefix = {"<s>"};
  if (type == "t5" || type == "mt5") bind_task(checkpoint, vocabulary, source, generation);
  if (vocabulary.languages.empty()) {
    const auto given = language_pair(source.from, source.to);
    return given.empty() ? languages_in_name(checkpoint.directory) : given;
  }
  const auto choose = [&](const std::string& code, const char* field) {
    return choose_language(vocabulary.languages, code, field, checkpoint.directory);
  };
  const ChosenLanguage to = choose(source.to, "to");
  if (type == "marian") {
    generation.source_prefix = {to.piece};
    return language_pair(source.from, source.to);
  }
  const ChosenLanguage from = choose(source.from, "from");
  const LanguagePlaces places = places_of(checkpoint);
  generation.target_prefix = {to.piece};
  if (places == LanguagePlaces::prefixes) {
    generation.source_prefix = {from.piece};
  } else {
    generation.source_suffix = {"</s>", from.piece};
    generation.source_end = false;
  }
  if (places == LanguagePlaces::suffix_start) {
    generation.start = to.piece;
    generation.target_prefix.clear();
  }
  return language_pair(source.from, source.to);
}

}  // namespace fovea

#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/log.h"
#include "base/utf8.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "importer/import_model.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  A downloaded OPUS-MT directory of Hugging Face, then a translation and a server:
    fovea import opus-mt-zh-en -o zh-en
    fovea translate -m zh-en "我是一个学生。"
    fovea serve -m zh-en

  A package of Argos Translate or LibreTranslate:
    fovea import translate-zh_en-1_9.argosmodel -o zh-en

  A multilingual model, bound to one pair of languages:
    fovea import nllb-200-distilled-600M --from zho_Hans --to eng_Latn -o zh-en

  The same with half the size on disk:
    fovea import nllb-200-distilled-600M --from zho_Hans --to eng_Latn --store bf16 -o zh-en

SOURCE is a directory of Hugging Face Transformers (Marian, M2M100, NLLB, BART, mBART, T5) or of
CTranslate2, or an .argosmodel file. The command reads weights, vocabulary, tokenizer and generation
settings. It never executes code from SOURCE. docs/models.md says where to find models.)";

struct ImportCommand {
  ImportRequest request;
  std::string store = "f32";
};

// A word for a shell: quoted if necessary.
std::string shell_word(const std::string& word) {
  const bool plain = word.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789-_./+:=,@") == std::string::npos;
  if (plain && !word.empty()) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string command_text(const ImportCommand& c) {
  std::string text = "fovea import " + shell_word(c.request.source.path);
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) text += fmt::format(" {} {}", option, shell_word(value));
  };
  add("--from", c.request.source.from);
  add("--to", c.request.source.to);
  add("--name", c.request.name);
  if (c.store != "f32") add("--store", c.store);
  add("-o", c.request.output);
  return text + "\n";
}

void import_foreign(ImportCommand& c) {
  c.request.stored = c.store == "bf16" ? StoredType::BF16 : StoredType::F32;
  c.request.command = command_text(c);
  const std::string directory = shell_word(c.request.output);
  c.request.usage =
      fmt::format("fovea translate -m {} FILE\nfovea serve -m {}\n", directory, directory);
  const ImportedModel model = import_model(c.request);
  log_info("read {} ({}): {} parameters", printable(c.request.source.path), model.notes.model,
           with_commas(model.weights->elements()));
  for (const std::string& remark : model.notes.remarks) log_warning("{}", remark);
  if (model.notes.licence.empty())
    log_warning("{}: no licence is stated; ask the authors before you publish the model",
                printable(c.request.source.path));
  else
    log_info("licence: {}", model.notes.licence);
  log_info("wrote {}; next: fovea translate -m {}", c.request.output, directory);
}

}  // namespace

void add_import(Command& program) {
  Command command = program.command("import", "Convert a model of another program");
  auto c = std::make_shared<ImportCommand>();
  command.option("source", c->request.source.path, "Directory or file of the model")
      .required()
      .takes("SOURCE");
  command.option("-o,--output", c->request.output, "Model directory to write")
      .required()
      .takes("MODEL_DIR");
  command.option("--from", c->request.source.from, "Source language of a multilingual model")
      .takes("CODE");
  command.option("--to", c->request.source.to, "Target language of a multilingual model")
      .takes("CODE");
  command.option("--name", c->request.name, "Title in README.md; default: the name of SOURCE")
      .takes("TEXT");
  command.option("--store", c->store, "Data type of the stored weights")
      .among({"f32", "bf16"})
      .with_default();
  command.flag("--force", c->request.replace, "Replace the model in MODEL_DIR");
  command.footer(kExamples);
  command.runs([c] { import_foreign(*c); });
}

}  // namespace fovea

#include "importer/import_readme.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "base/log.h"
#include "base/utf8.h"
#include "models/model_directory.h"

namespace fovea {
namespace {

std::string row(const std::string& name, const std::string& value) {
  return fmt::format("| {} | {} |\n", name, value);
}

std::string network_text(const ImportedModel& model) {
  const ModelConfig& m = model.config;
  return fmt::format("{}, {} encoder and {} decoder layers of size {}; {} parameters", m.type(),
                     m.encoder_layers, m.decoder_layers, m.size,
                     with_commas(model.weights->elements()));
}

std::string pieces_text(const std::vector<std::string>& pieces) {
  std::vector<std::string> shown;
  for (const std::string& piece : pieces) shown.push_back("`" + printable(piece) + "`");
  return fmt::format("{}", fmt::join(shown, " "));
}

std::string generation_text(const GenerationConfig& g) {
  std::string text = fmt::format("beam {}, length penalty {}", g.beam, g.length_penalty);
  if (g.max_length > 0) text += fmt::format(", at most {} pieces", g.max_length);
  if (g.min_length > 0) text += fmt::format(", at least {} pieces", g.min_length);
  if (g.no_repeat_ngram > 0) text += fmt::format(", no {} pieces twice", g.no_repeat_ngram);
  if (!g.source_prefix.empty()) text += "; before the source " + pieces_text(g.source_prefix);
  if (!g.source_suffix.empty()) text += "; after the source " + pieces_text(g.source_suffix);
  if (!g.target_prefix.empty()) text += "; before the target " + pieces_text(g.target_prefix);
  return text;
}

}  // namespace

std::string source_name(const std::string& path) {
  const auto normal = std::filesystem::path(path).lexically_normal();
  const auto name = normal.has_filename() ? normal.filename() : normal.parent_path().filename();
  for (const char* extension : {".argosmodel", ".npz", ".bin", ".pt"})
    if (name.extension() == extension) return name.stem().string();
  return name.string();
}

std::string import_readme(const ImportRequest& request, const ImportedModel& model) {
  const ImportNotes& notes = model.notes;
  const auto& languages = model.config.languages;
  const std::string source = source_name(request.source.path);
  std::string text =
      fmt::format("# {}\n\nImported by fovea {}.\n\n| | |\n|---|---|\n",
                  printable(request.name.empty() ? source : request.name), FOVEA_VERSION);
  text += row("origin", fmt::format("{} of {}", printable(source), notes.program));
  text += row("architecture", notes.model);
  text += row("licence", notes.licence.empty()
                             ? "not stated in the source; ask its authors before you publish it"
                             : notes.licence + " (as the source states it)");
  if (languages.size() == 2)
    text += row("languages", fmt::format("{} → {}", languages[0], languages[1]));
  text += row("network", network_text(model));
  text += row("weights", fmt::format("{} in the original, {} here", notes.weights,
                                     stored_name(request.stored)));
  text += row("translation", generation_text(model.config.generation));
  for (const std::string& remark : notes.remarks) text += row("remark", remark);
  text += fmt::format(
      "\nEvery setting is in `{}`. To use the model:\n\n```\n{}```\n\nThe command that made this "
      "directory:\n\n```\n{}```\n",
      kConfigFile, request.usage, request.command);
  return text;
}

}  // namespace fovea

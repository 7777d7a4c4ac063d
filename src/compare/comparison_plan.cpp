#include "compare/comparison_plan.h"

#include <algorithm>
#include <string_view>

#include "attention/registry.h"
#include "base/files.h"
#include "base/yaml.h"
#include "train/recipe_reader.h"

namespace fovea {
namespace {

constexpr std::string_view kVariants = "variants";

std::string quoted(std::string_view text) {
  const std::string yaml = yaml_string(text);
  return yaml.starts_with('"') ? yaml : '"' + yaml + '"';
}

std::string as_it_is(std::string_view text) { return std::string(text); }

// A part of the comparison file as YAML text. Each entry is on its original line, so that error
// messages name that line.
class YamlPart {
 public:
  void add(const YamlEntry& entry, std::string_view path) {
    for (; line_ < entry.line; ++line_) text_ += '\n';
    text_ += quoted(std::string(path)) + ": " + value_of(entry, quoted) + ", ";
    changes_.push_back(std::string(path) + ": " + value_of(entry, as_it_is));
  }
  std::string text() const { return text_ + "}\n"; }
  const std::vector<std::string>& changes() const { return changes_; }

 private:
  static std::string value_of(const YamlEntry& entry, std::string (*written)(std::string_view)) {
    if (entry.kind == YamlEntry::Kind::null) return "~";
    if (entry.kind == YamlEntry::Kind::scalar) return written(entry.items.front());
    std::string list;
    for (const std::string& item : entry.items) list += (list.empty() ? "" : ", ") + written(item);
    return "[" + list + "]";
  }

  std::string text_ = "{";
  std::vector<std::string> changes_;
  int64_t line_ = 1;
};

void check_name(const std::string& name, const std::string& where) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  check(!name.empty() && name.size() <= 64 && std::ranges::all_of(name, plain), ExitCode::data,
        where,
        ": a variant's name becomes a folder: letters, digits, '-' and '_', at most 64; found '",
        name, "'");
}

// A reader that collects the variants in the order of the file.
class VariantReader {
 public:
  explicit VariantReader(std::string file) : file_(std::move(file)) {}

  void take(const YamlEntry& entry) {
    const std::string where = file_ + ":" + std::to_string(entry.line);
    if (entry.path == kVariants) return take_names(entry, where);
    const std::string rest = entry.path.substr(kVariants.size() + 1);
    const size_t dot = std::min(rest.find('.'), rest.size());
    const std::string name = rest.substr(0, dot);
    check_name(name, where);
    if (names_.empty() || names_.back() != name) {
      check(std::ranges::count(names_, name) == 0, ExitCode::data, where, ": variant ", name,
            " is given twice");
      names_.push_back(name);
      parts_.emplace_back();
    }
    if (dot < rest.size()) return parts_.back().add(entry, rest.substr(dot + 1));
    check(entry.kind == YamlEntry::Kind::null, ExitCode::data, where, ": ", entry.path,
          ": expected settings, such as {model.attention: local-p}");
  }

  // Returns the variants; empty if the file names none.
  std::vector<ComparisonVariant> variants() const {
    if (names_.empty()) return known_;
    std::vector<ComparisonVariant> all;
    for (size_t i = 0; i < names_.size(); ++i)
      all.push_back({names_[i], parts_[i].text(), parts_[i].changes(), file_});
    return all;
  }

 private:
  void take_names(const YamlEntry& entry, const std::string& where) {
    if (entry.kind == YamlEntry::Kind::null) return;
    check(entry.kind == YamlEntry::Kind::list, ExitCode::data, where,
          ": variants: expected a map of names to settings, or a list of mechanisms");
    std::string names;
    for (const ComparisonVariant& known : known_variants())
      names += (names.empty() ? "" : ", ") + known.name;
    for (const std::string& name : entry.items) {
      const auto all = known_variants();
      const auto found = std::ranges::find(all, name, &ComparisonVariant::name);
      check(found != all.end(), ExitCode::data, where, ": variants: there is no mechanism '", name,
            "'; there are ", names, "; or give a map of names to settings");
      check(std::ranges::count(known_, name, &ComparisonVariant::name) == 0, ExitCode::data, where,
            ": variant ", name, " is given twice");
      known_.push_back(*found);
    }
  }

  std::string file_;
  std::vector<std::string> names_;
  std::vector<YamlPart> parts_;
  std::vector<ComparisonVariant> known_;
};

}  // namespace

void CompareOptions::describe(Settings& s) {
  s.field("sentence", sentence,
          "line of the test text whose attention is drawn; 0: one of middling length")
      .at_least(0);
  s.field("length_step", length_step, "words that source lengths of one bucket lie apart")
      .between(1, 1000);
  s.field("gold", gold, "word links that people made (Talp), for the alignment error rate");
  s.field("gold_source", gold_source, "the sentences of gold, source side");
  s.field("gold_target", gold_target, "the sentences of gold, target side");
  s.field("gold_from", gold_from, "number of the first word in gold").between(0, 1);
}

std::vector<ComparisonVariant> known_variants() {
  std::vector<ComparisonVariant> all;
  for (const AttentionMechanism& mechanism : attention_mechanisms()) {
    const std::string choice = std::string("model.attention: ") + mechanism.about.name;
    all.push_back({mechanism.about.name, "model.type: recurrent\n" + choice + "\n", {choice}});
  }
  return all;
}

ComparisonPlan ComparisonPlan::read(const std::string& path) {
  ComparisonPlan plan = read(path, kMostBases);
  if (plan.variants.empty()) plan.variants = known_variants();
  return plan;
}

ComparisonPlan ComparisonPlan::read(const std::string& path, int bases) {
  ComparisonPlan plan;
  const std::string text = read_file(path, Settings::kMaxBytes);
  YamlPart own, compare;
  VariantReader variants(path);
  for (const YamlEntry& entry : read_yaml(text, path, ExitCode::data, Settings::kMaxDepth)) {
    const std::string_view name = entry.path;
    if (name == "base") {
      check(entry.kind == YamlEntry::Kind::scalar, ExitCode::data, path, ":", entry.line,
            ": base: expected the name of a recipe");
      check(bases > 0, ExitCode::data, path, ":", entry.line,
            ": base: this is the base of a base of a base; keep it to fewer files");
      const std::string& base = entry.items.front();
      plan = read(base.starts_with('/') ? base : parent_directory(path) + "/" + base, bases - 1);
    } else if (name == kVariants || name.starts_with("variants.")) {
      variants.take(entry);
    } else {
      (name == "compare" || name.starts_with("compare.") ? compare : own).add(entry, entry.path);
    }
  }
  Settings settings;
  settings.group("compare", plan.options);
  settings.read_text(compare.text(), path);
  const CompareOptions& o = plan.options;
  check(o.gold.empty() == o.gold_source.empty() && o.gold.empty() == o.gold_target.empty(),
        ExitCode::data, path,
        ": compare.gold, gold_source and gold_target belong together: set all or ", "none");
  plan.file = path;
  plan.layers_.push_back({path, own.text()});
  if (auto named = variants.variants(); !named.empty()) plan.variants = std::move(named);
  return plan;
}

TrainOptions ComparisonPlan::options_of(const ComparisonVariant& variant,
                                        const std::vector<std::string>& assignments) const {
  const auto assign = [&](Settings& settings) {
    for (const Layer& layer : layers_) settings.read_text(layer.settings, layer.file);
    for (const std::string& assignment : assignments) settings.set(assignment);
    settings.read_text(variant.settings,
                       variant.file.empty() ? "variant " + variant.name : variant.file);
  };
  TrainOptions options = read_recipe(assign, ExitCode::data);
  check(options.train.lora.rank == 0, ExitCode::data, "train.lora.rank: 'fovea compare' measures ",
        "whole models; set it to 0, or train the adapter with 'fovea train'");
  return options;
}

void check_same_text(const TrainOptions& a, const TrainOptions& b, const std::string& variant) {
  const auto text_of = [](TrainOptions options) {
    auto values = Settings(options).values();
    std::erase_if(values, [](const auto& value) {
      const std::string& path = value.first;
      return !path.starts_with("data.") && !path.starts_with("vocabulary.") &&
             path != "model.max_length" && path != "valid.beam" && path != "valid.length_penalty" &&
             path != "valid.tokenize" && path != "valid.lowercase";
    });
    return values;
  };
  const auto first = text_of(a), second = text_of(b);
  for (size_t i = 0; i < first.size() && i < second.size(); ++i)
    check(first[i] == second[i], ExitCode::data, "variant ", variant, ": ", second[i].first, " is ",
          second[i].second, ", of the first variant ", first[i].second,
          "; all models of a comparison read the same text and are measured alike");
}

}  // namespace fovea

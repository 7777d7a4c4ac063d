#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"

namespace fovea {

// One setting: where its value lives, how it is called and what it may be.
class Field {
 public:
  Field& between(double low, double high);  // both ends allowed
  Field& at_least(double low);
  Field& above(double low);  // low itself is not allowed
  // A word that stands for one number, which need not be in the range; it is printed so.
  Field& or_word(const std::string& word, int64_t number);

 private:
  friend class Settings;
  using Items = std::vector<std::string>;
  bool in_range() const;
  std::string range() const;

  std::string path_, help_, expected_;
  std::vector<std::string> names_;            // of a choice
  std::function<bool(const Items&)> assign_;  // false: the text is not of this type
  std::function<std::string()> print_;        // the value as YAML
  std::function<double()> number_;            // for the range; empty where there is none
  double low_, high_;
  bool low_excluded_ = false, list_ = false, given_ = false;
  std::optional<double> named_;    // the number that has a word
  std::function<bool()> applies_;  // empty: always
  std::string belongs_to_;         // where it applies, in words
};

// The settings of a program: each options struct describes itself once, and reading YAML,
// `--set key=value`, checking and dumping all follow from that description.
//
//   struct ModelOptions {
//     int64_t layers = 6;
//     Norm norm = Norm::post;
//     void describe(Settings& s) {
//       s.field("layers", layers, "layers of the encoder and of the decoder").at_least(1);
//       s.choice("norm", norm, {{"post", Norm::post}, {"pre", Norm::pre}}, "place of the norm");
//     }
//   };
//
//   Settings settings;
//   settings.group("model", options.model, "the network");
//   settings.read_file("recipe.yml", Exit::data);
//   settings.set("model.layers=4");
//
// The structs must outlive the Settings, which holds pointers into them.
class Settings {
 public:
  static constexpr size_t kMaxBytes = size_t{1} << 20;
  static constexpr int kMaxDepth = 16;

  // The value the variable has at this point is the default. Types: bool, int, int64_t,
  // uint64_t, float, double, std::string, std::vector<std::string>.
  template <class T>
  Field& field(std::string_view name, T& value, std::string_view help);

  // A string that must be one of the names.
  Field& choice(std::string_view name, std::string& value, std::vector<std::string> names,
                std::string_view help);

  // An enum by a table of names.
  template <class Enum>
  Field& choice(std::string_view name, Enum& value,
                std::initializer_list<std::pair<const char*, Enum>> table, std::string_view help) {
    std::vector<std::pair<std::string, Enum>> names(table.begin(), table.end());
    std::vector<std::string> list;
    for (const auto& [n, e] : names) list.push_back(n);
    return add_choice(
        name, std::move(list), help, [&value, names](size_t i) { value = names[i].second; },
        [&value, names] {
          for (const auto& [n, e] : names)
            if (e == value) return n;
          return std::string();
        });
  }

  // Everything `options.describe(*this)` describes, under "name.".
  template <class Options>
  void group(std::string_view name, Options& options, std::string_view help = "") {
    open_group(name, help);
    options.describe(*this);
    close_group();
  }

  // What `describe` describes belongs to one choice of another setting, named by `belongs_to`
  // ("model.type: transformer"). Unless `condition` holds, giving it is an error and dump() and
  // values() leave it out.
  void when(const std::function<bool()>& condition, const std::string& belongs_to,
            const std::function<void()>& describe);

  // A key that is no setting here, nor is anything below it: whoever gives it is told `why`.
  void foreign(std::string_view key, std::string_view why) { foreign_.emplace_back(key, why); }

  // Reads YAML. Keys may be nested maps or dotted. An unknown key, a key given twice, a wrong
  // type or a value out of range is an Error with `code`, the source's name and the line;
  // `code` is Exit::data for recipes and Exit::model for a model's config.yml.
  void read_text(std::string_view yaml, const std::string& source, Exit code = Exit::data);
  void read_file(const std::string& path, Exit code = Exit::data);

  // "model.layers=4", as given by --set; lists as "[a, b]" or "a,b". Errors are Exit::usage.
  void set(std::string_view assignment);

  // The whole configuration as YAML, help as comments; reads back to the same values.
  std::string dump() const;

  // Path and value (as YAML) of every setting in order: to compare two configurations.
  std::vector<std::pair<std::string, std::string>> values() const;

  // Whether read_text, read_file or set gave a value to this path.
  bool given(std::string_view path) const;

 private:
  struct Place {
    std::string source;
    int64_t line;
    Exit code;
  };
  Field& add(std::string_view name, std::string_view help);
  Field& add_choice(std::string_view name, std::vector<std::string> names, std::string_view help,
                    std::function<void(size_t)> store, std::function<std::string()> load);
  void open_group(std::string_view name, std::string_view help);
  void close_group();
  bool is_group(std::string_view path) const;
  Field* find(std::string_view path) const;
  std::string meant_by(const std::string& path) const;  // quoted; "" where nothing is near
  [[noreturn]] void fail_unknown(const std::string& path, const Place& place) const;
  void check_applies(const Field& field, const Place& place) const;
  void assign(Field& field, const std::vector<std::string>& items, bool list, const Place& place);

  std::string prefix_;
  std::vector<std::unique_ptr<Field>> fields_;
  std::vector<std::pair<std::string, std::string>> groups_;   // path and help
  std::vector<std::pair<std::string, std::string>> foreign_;  // key and why
};

}  // namespace fovea

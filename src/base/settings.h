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

// One setting of a program: its name, its allowed values, and access to the variable that stores
// it.
class SettingField {
 public:
  SettingField& between(double low, double high);  // low and high are allowed
  SettingField& at_least(double low);
  SettingField& above(double low);  // low itself is not allowed
  // The setting accepts and prints `word` for the value `number`, which may be out of range.
  SettingField& or_word(const std::string& word, int64_t number);

 private:
  friend class Settings;
  using Items = std::vector<std::string>;
  bool in_range() const;
  std::string range() const;

  std::string path_, help_, expected_;
  std::vector<std::string> names_;            // the allowed names of a choice
  std::function<bool(const Items&)> assign_;  // returns false if the text has another type
  std::function<std::string()> print_;        // the value as YAML
  std::function<double()> number_;            // the value, for the range check; may be empty
  double low_, high_;
  bool low_excluded_ = false, list_ = false;
  std::optional<double> named_;    // the number of or_word()
  std::function<bool()> applies_;  // the condition of Settings::when(); empty: always allowed
  std::string belongs_to_;         // `belongs_to` of Settings::when()
};

// The settings of a program. Each options struct describes its members once. This description is
// enough to read YAML input and `--set key=value`, to check values and to print them.
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
//   settings.read_file("recipe.yml", ExitCode::data);
//   settings.set("model.layers=4");
//
// The structs must outlive the Settings, which holds pointers into them.
class Settings {
 public:
  static constexpr size_t kMaxBytes = size_t{1} << 20;
  static constexpr int kMaxDepth = 16;

  Settings() = default;
  template <class Options>
  explicit Settings(Options& options) {  // takes all settings that `options` describes
    options.describe(*this);
  }

  // Declares a setting. The current value of the variable is its default. Types: bool, int,
  // int64_t, uint64_t, float, double, std::string, std::vector<std::string>.
  template <class T>
  SettingField& field(std::string_view name, T& value, std::string_view help);

  // A string that must be one of the names.
  SettingField& choice(std::string_view name, std::string& value, std::vector<std::string> names,
                       std::string_view help);

  // Declares a setting that is an enum. `table` gives the name of each value.
  template <class Enum>
  SettingField& choice(std::string_view name, Enum& value,
                       std::initializer_list<std::pair<const char*, Enum>> table,
                       std::string_view help) {
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

  // Declares a group: all settings that `options.describe(*this)` describes get the prefix "name.".
  template <class Options>
  void group(std::string_view name, Options& options, std::string_view help = "") {
    open_group(name, help);
    options.describe(*this);
    close_group();
  }

  // Declares settings that depend on another setting: if `condition` is false, it is an error to
  // give one of them, and dump() and values() omit them. `belongs_to` names the choice in messages
  // ("model.type: transformer"). `describe` declares the settings.
  void when(const std::function<bool()>& condition, const std::string& belongs_to,
            const std::function<void()>& describe);

  // Creates a Copy, whose members can be settings even if `options` does not always have them, such
  // as the alternatives of a variant. Before an access, copy.load(options) updates the copy. After
  // an assignment, copy.store(options) writes the values to `options`.
  template <class Copy, class Options>
  Copy& copy_of(Options& options) {
    const auto copy = std::make_shared<Copy>();
    load_copies_.push_back([copy, &options] { copy->load(options); });
    store_copies_.push_back([copy, &options] { copy->store(options); });
    return *copy;
  }

  // Declares a key that other programs use. If the input has this key or a key below it, the error
  // message is `why`.
  void foreign(std::string_view key, std::string_view why) { foreign_.emplace_back(key, why); }

  // Reads YAML. Keys may be nested maps or dotted. An unknown key, a duplicate key, a wrong type or
  // a value out of range is an Error with `code`, the source's name and the line. `code` is
  // ExitCode::data for recipes and ExitCode::model for a model's config.yml.
  void read_text(std::string_view yaml, const std::string& source, ExitCode code = ExitCode::data);
  void read_file(const std::string& path, ExitCode code = ExitCode::data);

  // Assigns "model.layers=4" from --set; lists as "[a, b]" or "a,b". Errors are ExitCode::usage.
  void set(std::string_view assignment);

  // The whole configuration as YAML with the help texts as comments. Reading this YAML gives the
  // same values.
  std::string dump() const;

  // The path and value (as YAML) of every setting, in order. It serves to compare two
  // configurations.
  std::vector<std::pair<std::string, std::string>> values() const;

 private:
  struct Location {
    std::string source;
    int64_t line;
    ExitCode code;
  };
  SettingField& add(std::string_view name, std::string_view help);
  SettingField& add_choice(std::string_view name, std::vector<std::string> names,
                           std::string_view help, std::function<void(size_t)> store,
                           std::function<std::string()> load);
  void open_group(std::string_view name, std::string_view help);
  void close_group();
  bool is_group(std::string_view path) const;
  SettingField* find(std::string_view path) const;
  std::string similar_keys(const std::string& path) const;  // in quotes; "" if no key is similar
  [[noreturn]] void fail_unknown(const std::string& path, const Location& location) const;
  void check_applies(const SettingField& field, const Location& location) const;
  void assign(SettingField& field, const std::vector<std::string>& items, bool list,
              const Location& location);

  std::string prefix_;
  std::vector<std::unique_ptr<SettingField>> fields_;
  std::vector<std::function<void()>> load_copies_, store_copies_;
  std::vector<std::pair<std::string, std::string>> groups_;   // path and help text of each group
  std::vector<std::pair<std::string, std::string>> foreign_;  // key and error message
};

}  // namespace fovea

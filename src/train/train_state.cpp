#include "train/train_state.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/log.h"

namespace fovea {
namespace {

using Json = nlohmann::json;

// Limits that no run reaches. They are so far below 2^63 that sums and products cannot overflow.
constexpr int64_t kMostUpdates = 1'000'000'000'000, kMostEpochs = 1'000'000'000,
                  kMostWords = 1'000'000'000'000'000, kMostParts = int64_t{1} << 20;

// Calls visit(name, member) for every member that is a plain number.
template <class State, class Visit>
void for_each_number(State& s, Visit visit) {
  visit("update", s.update);
  visit("epoch", s.epoch);
  visit("batch", s.batch);
  visit("drawn", s.drawn);
  visit("loss", s.loss);
  visit("nll", s.nll);
  visit("words", s.words);
  visit("best_update", s.best_update);
  visit("since_best", s.since_best);
  visit("epoch_ended", s.epoch_ended);
  visit("validated", s.validated);
  visit("finished", s.finished);
  visit("skipped", s.skipped);
  visit("skipped_in_a_row", s.skipped_in_a_row);
  visit("rollbacks", s.rollbacks);
  visit("rate_factor", s.rate_factor);
}

// Calls visit(name, member) for members that a checkpoint of an older version may lack.
template <class State, class Visit>
void for_each_late_number(State& s, Visit visit) {
  visit("loss_mean", s.watch.mean);
  visit("loss_variance", s.watch.variance);
  visit("loss_seen", s.watch.seen);
  visit("loss_high", s.watch.high);
  visit("rises", s.rises);
  visit("parts", s.parts);
  visit("save_waits", s.save_waits);
  visit("asked", s.asked);
  visit("guided", s.guided);
  visit("guided_words", s.guided_words);
}

// A reader of the fields of one state from JSON.
class StateReader {
 public:
  StateReader(const Json& json, const std::string& path) : json_(json), path_(path) {}

  // A whole number that does not fit into int64_t becomes the nearest int64_t, which the range
  // check then rejects.
  void read(const char* name, int64_t& value) const {
    const Json& field = find(name);
    check_type(name, field.is_number_integer(), "a whole number");
    const bool large =
        field.is_number_unsigned() && field.get<uint64_t>() > std::numeric_limits<int64_t>::max();
    value = large ? std::numeric_limits<int64_t>::max() : field.get<int64_t>();
  }
  void read(const char* name, double& value) const {
    const Json& field = find(name);
    check_type(name, field.is_number(), "a number");
    value = field.get<double>();
  }
  void read(const char* name, bool& value) const {
    const Json& field = find(name);
    check_type(name, field.is_boolean(), "true or false");
    value = field.get<bool>();
  }
  // JSON has no infinity. format_state() writes an infinite perplexity, as of an untrained model,
  // as null.
  void read(const char* name, std::optional<double>& value) const {
    if (!json_.contains(name)) return;
    value = std::numeric_limits<double>::infinity();
    if (json_.at(name).is_null()) return;
    read(name, *value);
  }

 private:
  const Json& find(const char* name) const {
    const auto at = json_.find(name);
    check(at != json_.end(), ExitCode::model, path_, ": state.", name, ": missing");
    return *at;
  }
  void check_type(const char* name, bool right, const char* wanted) const {
    check(right, ExitCode::model, path_, ": state.", name, ": found ", json_.at(name).type_name(),
          ", expected ", wanted);
  }

  const Json& json_;
  const std::string& path_;
};

// Checks the values of one state.
class RangeCheck {
 public:
  explicit RangeCheck(const std::string& path) : path_(path) {}

  void within(const char* name, int64_t value, int64_t least, int64_t most) const {
    if (value < least || value > most)
      reject(name, with_commas(value),
             fmt::format("{} to {}", with_commas(least), with_commas(most)));
  }
  // Checks value ≤ most, which is the value of the field `limit`.
  void at_most(const char* name, int64_t value, const char* limit, int64_t most) const {
    if (value < 0 || value > most)
      reject(name, with_commas(value), fmt::format("0 to {} ({})", with_commas(most), limit));
  }
  void finite(const char* name, double value) const {
    if (!std::isfinite(value)) reject(name, fmt::format("{}", value), "a finite number");
  }
  [[noreturn]] void reject(const char* name, const std::string& found,
                           const std::string& allowed) const {
    fail(ExitCode::data, path_, ": state.", name, ": found ", found, ", allowed: ", allowed,
         "; the file is not a checkpoint of a run: remove it, or start over with `restart`");
  }

 private:
  const std::string& path_;
};

void check_ranges(const TrainState& s, const std::string& path) {
  const RangeCheck range(path);
  range.within("update", s.update, 0, kMostUpdates);
  range.within("drawn", s.drawn, s.update, kMostUpdates * 65536);  // train.accumulate ≤ 65536
  range.within("epoch", s.epoch, 0, std::min(s.drawn, kMostEpochs));
  range.at_most("batch", s.batch, "drawn", s.drawn);
  range.within("words", s.words, 0, kMostWords);
  range.within("guided_words", s.guided_words, 0, kMostWords);
  range.at_most("best_update", s.best_update, "update", s.update);
  range.at_most("since_best", s.since_best, "update", s.update);
  range.at_most("epoch_ended", s.epoch_ended, "update", s.update);
  range.at_most("validated", s.validated, "update", s.update);
  range.at_most("skipped", s.skipped, "drawn", s.drawn);
  range.at_most("skipped_in_a_row", s.skipped_in_a_row, "skipped", s.skipped);
  range.at_most("rollbacks", s.rollbacks, "skipped", s.skipped);
  range.at_most("rises", s.rises, "skipped", s.skipped);
  range.within("loss_seen", s.watch.seen, 0, kMostUpdates);
  range.within("loss_high", s.watch.high, 0, kMostUpdates);
  range.within("parts", s.parts, 1, kMostParts);
  range.finite("loss", s.loss);
  range.finite("nll", s.nll);
  range.finite("guided", s.guided);
  range.finite("loss_mean", s.watch.mean);
  range.finite("loss_variance", s.watch.variance);
  if (s.watch.variance < 0)
    range.reject("loss_variance", fmt::format("{}", s.watch.variance), "0 or more");
  if (!(s.rate_factor > 0 && s.rate_factor <= 1))
    range.reject("rate_factor", fmt::format("{}", s.rate_factor), "more than 0, at most 1");
}

}  // namespace

std::string format_state(const TrainState& state) {
  Json json;
  const auto write = [&](const char* name, const auto& value) { json[name] = value; };
  for_each_number(state, write);
  for_each_late_number(state, write);
  if (state.best) json["best"] = *state.best;
  return json.dump();
}

TrainState parse_state(const std::string& text, const std::string& path) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  check(json.is_object(), ExitCode::model, path, ": state: not a JSON object");
  const StateReader reader(json, path);
  TrainState state;
  for_each_number(state, [&](const char* name, auto& value) { reader.read(name, value); });
  for_each_late_number(state, [&](const char* name, auto& value) {
    if (json.contains(name)) reader.read(name, value);
  });
  reader.read("best", state.best);
  check_ranges(state, path);
  return state;
}

}  // namespace fovea

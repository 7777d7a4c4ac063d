#include "train/checkpoint.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/crc32c.h"
#include "base/log.h"

namespace fovea {
namespace {

using Json = nlohmann::json;
constexpr const char* kStateKey = "fovea.state";
constexpr const char* kIdentityKey = "fovea.identity";
constexpr const char* kLayoutKey = "fovea.layout";

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

// The same for members that a checkpoint may lack.
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

std::string format_state(const TrainState& state) {
  Json json;
  const auto write = [&](const char* name, const auto& value) { json[name] = value; };
  for_each_number(state, write);
  for_each_late_number(state, write);
  if (state.best) json["best"] = *state.best;
  return json.dump();
}

TrainState parse_state(const std::string& text) {
  const Json json = Json::parse(text);
  TrainState state;
  for_each_number(state, [&](const char* name, auto& value) { json.at(name).get_to(value); });
  for_each_late_number(state, [&](const char* name, auto& value) {
    if (json.contains(name)) json.at(name).get_to(value);
  });
  if (!json.contains("best")) return state;
  // JSON has no infinity and writes null: the perplexity of a model that makes no sense yet.
  const Json& best = json.at("best");
  state.best = best.is_null() ? std::numeric_limits<double>::infinity() : best.get<double>();
  return state;
}

// The bytes of a flat tensor that must have `n` floats.
std::span<const std::byte> flat(const SafetensorsFile& file, const char* name, int64_t n) {
  const TensorInfo& info = file.get(name);
  check(info.dtype == StoredType::F32 && info.elements() == n, Exit::model, file.path(),
        ": tensor ", name, " has ", info.elements(), " ", stored_name(info.dtype),
        " numbers, the model has ", n, " F32");
  return file.data(info);
}

const std::string& entry(const SafetensorsFile& file, const char* key) {
  const auto at = file.metadata().find(key);
  check(at != file.metadata().end(), Exit::model, file.path(), ": no \"", key,
        "\" in the metadata; it is not a checkpoint");
  return at->second;
}

void check_layout(const SafetensorsFile& file, const ParameterStore& store) {
  check(entry(file, kLayoutKey) == layout_of(store), Exit::model, file.path(),
        ": the names or shapes of its parameters are not those of this model");
}

CheckpointNote read_note(const SafetensorsFile& file) {
  try {
    return {.state = parse_state(entry(file, kStateKey)),
            .identity = Json::parse(entry(file, kIdentityKey)).get<Identity>()};
  } catch (const Json::exception& error) {
    fail(Exit::model, file.path(), ": its metadata cannot be read: ", error.what());
  }
}

// "skipped update 30: …; skipped update 20: …; resumed from update 10" needs reasons without paths.
std::string reason(const Error& error, const std::string& path) {
  std::string text = error.what();
  for (size_t at; (at = text.find(path + ": ")) != std::string::npos;)
    text.erase(at, path.size() + 2);
  return text;
}

}  // namespace

std::string difference(const Identity& saved, const Identity& now) {
  const auto value = [](const Identity& fields, const std::string& name) {
    for (const auto& [n, v] : fields)
      if (n == name) return v;
    return std::string("(not there)");
  };
  const auto differ = [&](const std::string& name) {
    const std::string a = value(saved, name), b = value(now, name);
    return a == b ? std::string() : fmt::format("{} was {}, now it is {}", name, a, b);
  };
  for (const Identity* fields : {&saved, &now})
    for (const auto& [name, unused] : *fields)
      if (std::string text = differ(name); !text.empty()) return text;
  return {};
}

std::string layout_of(const ParameterStore& store) {
  std::string text;
  for (const auto& p : store.all()) {
    text += p.name;
    for (const int64_t n : p.tensor.shape()) text += " " + std::to_string(n);
    text += "\n";
  }
  return fmt::format("{}-{:08x}", store.size(), crc32c(as_byte_span(text)));
}

void write_checkpoint(const std::string& path, const CheckpointNote& note,
                      const ParameterStore& store, const Optimizer& optimizer) {
  SafetensorsWriter writer;
  std::vector<Tensor> kept;  // the writer reads their bytes at the end
  const auto add = [&](const char* name, const Tensor& tensor) {
    if (!tensor) return;
    kept.push_back(tensor.to(Cpu{}));
    writer.add(name, StoredType::F32, {tensor.elements()}, kept.back().bytes());
  };
  add("weights", store.values());
  add("adam.m", optimizer.m());
  add("adam.v", optimizer.v());
  add("ema", optimizer.ema());
  writer.set_metadata("fovea.version", FOVEA_VERSION);
  writer.set_metadata(kLayoutKey, layout_of(store));
  writer.set_metadata(kStateKey, format_state(note.state));
  writer.set_metadata(kIdentityKey, Json(note.identity).dump());
  writer.write(path);
}

TrainState read_checkpoint(const std::string& path, const Identity& identity,
                           const ParameterStore& store, const Optimizer& optimizer) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  check(file.has_checksums(), Exit::model, path, ": no checksums");
  file.verify();
  const CheckpointNote note = read_note(file);
  const std::string other = difference(note.identity, identity);
  check(other.empty(), Exit::data, path, ": cannot resume: ", other,
        "; undo the change, choose another directory, or give --restart to begin anew");
  check_layout(file, store);
  std::vector<std::pair<Tensor, std::span<const std::byte>>> parts;
  const auto want = [&](const char* name, const Tensor& to) {
    parts.emplace_back(to, flat(file, name, store.size()));
  };
  want("weights", store.values());
  want("adam.m", optimizer.m());
  want("adam.v", optimizer.v());
  // A moving average that is asked for only now begins at the weights.
  if (optimizer.ema()) want(file.find("ema") ? "ema" : "weights", optimizer.ema());
  for (const auto& [to, bytes] : parts) to.assign_bytes(bytes);
  return note.state;
}

std::optional<Restored> restore_newest(const FileSeries& series, const Identity& identity,
                                       const ParameterStore& store, const Optimizer& optimizer,
                                       std::vector<int64_t> updates) {
  if (updates.empty()) return {};
  Restored restored;
  for (; !updates.empty(); updates.pop_back()) {
    const std::string path = series.path(updates.back());
    try {
      restored.state = read_checkpoint(path, identity, store, optimizer);
      return restored;
    } catch (const Error& error) {
      if (error.code() == Exit::data) throw;  // not damaged, but of another run
      if (!restored.skipped.empty()) restored.skipped += "; ";
      restored.skipped += fmt::format("skipped update {}: {}", updates.back(), reason(error, path));
    }
  }
  fail(Exit::model, series.directory(), ": no checkpoint can be read: ", restored.skipped,
       "; --restart begins anew");
}

std::optional<CheckpointNote> note_of(const std::string& path) {
  try {
    return read_note(SafetensorsFile::open(path));
  } catch (const Error&) {
    return {};
  }
}

std::optional<CheckpointNote> newest_note(const FileSeries& series) {
  const std::vector<int64_t> numbers = series.numbers();
  return numbers.empty() ? std::nullopt : note_of(series.path(numbers.back()));
}

void write_weights(const std::string& path, const ParameterStore& store) {
  SafetensorsWriter writer;
  const Tensor values = store.values().to(Cpu{});
  writer.add("weights", StoredType::F32, {values.elements()}, values.bytes());
  writer.set_metadata("fovea.version", FOVEA_VERSION);
  writer.set_metadata(kLayoutKey, layout_of(store));
  writer.write(path);
}

bool is_flat(const SafetensorsFile& file) { return file.metadata().contains(kLayoutKey); }

std::vector<float> read_weights(const std::string& path, const ParameterStore& store) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  check_layout(file, store);
  const char* name = file.find("ema") ? "ema" : "weights";
  file.verify(file.get(name));
  const std::span<const std::byte> bytes = flat(file, name, store.size());
  std::vector<float> values(static_cast<size_t>(store.size()));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace fovea

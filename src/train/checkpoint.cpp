#include "train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/crc32c.h"
#include "base/log.h"
#include "models/model_directory.h"
#include "models/stored_weights.h"

namespace fovea {
namespace {

using Json = nlohmann::json;
constexpr const char* kStateKey = "fovea.state";
constexpr const char* kIdentityKey = "fovea.identity";
constexpr const char* kLayoutKey = "fovea.layout";

// Returns the bytes of a flat tensor that must have `n` floats.
std::span<const std::byte> flat(const SafetensorsFile& file, const char* name, int64_t n) {
  const TensorInfo& info = file.get(name);
  check(info.dtype == StoredType::F32 && info.elements() == n, ExitCode::model, file.path(),
        ": tensor ", name, ": found ", info.elements(), " values of type ", stored_name(info.dtype),
        ", expected ", n, " of type F32");
  return file.data(info);
}

const std::string& entry(const SafetensorsFile& file, const char* key) {
  const auto at = file.metadata().find(key);
  check(at != file.metadata().end(), ExitCode::model, file.path(), ": the metadata has no \"", key,
        "\"; the file is not a checkpoint");
  return at->second;
}

void check_layout(const SafetensorsFile& file, const ParameterStore& store) {
  check(entry(file, kLayoutKey) == layout_of(store), ExitCode::model, file.path(),
        ": the names or shapes of the parameters differ from those of this model");
}

CheckpointNote read_note(const SafetensorsFile& file) {
  try {
    return {.state = parse_state(entry(file, kStateKey), file.path()),
            .identity = Json::parse(entry(file, kIdentityKey)).get<RunIdentity>()};
  } catch (const Json::exception& error) {
    fail(ExitCode::model, file.path(), ": cannot read the metadata: ", error.what());
  }
}

struct Difference {
  std::string name;
  std::optional<std::string> before, now;  // absent if the identity does not have the name
};

constexpr std::string_view kContents = " (contents)";

// Parses the value of a "(contents)" entry of a RunIdentity, "a6fb9045f3a970ab 2000": a
// fingerprint, and the number of pairs, entries or words.
std::pair<std::string, int64_t> parse_contents(const std::string& value) {
  const size_t blank = value.find(' ');
  int64_t count = -1;
  if (blank != std::string::npos)
    std::from_chars(value.data() + blank + 1, value.data() + value.size(), count);
  return {value.substr(0, blank), count};
}

std::vector<Difference> differences(const RunIdentity& saved, const RunIdentity& now) {
  const auto find = [](const RunIdentity& fields, const std::string& name) {
    const auto at = std::ranges::find(fields, name, &RunIdentity::value_type::first);
    return at == fields.end() ? std::nullopt : std::optional(at->second);
  };
  const auto same = [](const Difference& d) {
    if (!d.before || !d.now || !d.name.ends_with(kContents)) return d.before == d.now;
    return parse_contents(*d.before).first == parse_contents(*d.now).first;
  };
  std::vector<Difference> all;
  for (const RunIdentity* fields : {&saved, &now})
    for (const auto& [name, unused] : *fields) {
      const Difference d{name, find(saved, name), find(now, name)};
      if (!same(d) && std::ranges::find(all, name, &Difference::name) == all.end())
        all.push_back(d);
    }
  return all;
}

// Returns the words for a message about a "(contents)" entry: the name of the contents, and the
// unit of their count.
std::pair<std::string, std::string> describe_contents(const std::string& name) {
  if (name.starts_with("data.train")) return {"the training text", "pairs"};
  if (name.starts_with("data.valid")) return {"the validation text", "pairs"};
  if (name.starts_with("vocabulary.source")) return {"the source vocabulary", "entries"};
  if (name.starts_with("vocabulary.target")) return {"the target vocabulary", "entries"};
  const std::string setting = name.substr(0, name.size() - kContents.size());
  if (setting == "train.from") return {"the model of train.from", "tensors"};
  return {setting, "vectors"};
}

std::string in_words(const Difference& d) {
  const auto value = [](const std::optional<std::string>& v) { return v ? *v : "(not set)"; };
  if (!d.name.ends_with(kContents) || !d.before || !d.now)
    return fmt::format("{} was {}, now it is {}", d.name, value(d.before), value(d.now));
  const auto [what, unit] = describe_contents(d.name);
  const int64_t before = parse_contents(*d.before).second, now = parse_contents(*d.now).second;
  if (before < 0 || now < 0) return what + " has changed";
  if (before == now)
    return fmt::format("{} has changed (still {} {})", what, with_commas(now), unit);
  return fmt::format("{} has changed ({} → {} {})", what, with_commas(before), with_commas(now),
                     unit);
}

// Returns the state with which a run resumes from a checkpoint of another identity.
TrainState adapted(TrainState state, const std::vector<Difference>& changes) {
  for (const Difference& d : changes) {
    if (d.name.starts_with("data.valid")) {
      state.best.reset();
      state.since_best = 0;
    } else {
      state.batch = 0;
    }
    if (d.name.starts_with("data.train")) state.watch = {};
  }
  return state;
}

// Reads the weights of a model file, which has one tensor per parameter instead of one flat tensor.
std::vector<float> read_named(const SafetensorsFile& file, const ParameterStore& store) {
  const BorrowedValues own(store, store.values());  // restored at the end
  load_parameters(file, store);
  const float* values = store.values().data<float>();
  return {values, values + store.size()};
}

std::vector<float> read_any(const std::string& path, const ParameterStore& store) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const bool flat = file.metadata().contains(kLayoutKey);
  return flat ? read_weights(path, store) : read_named(file, store);
}

}  // namespace

std::string difference(const RunIdentity& saved, const RunIdentity& now) {
  std::string text;
  for (const Difference& d : differences(saved, now))
    text += (text.empty() ? "" : "; ") + in_words(d);
  return text;
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

int64_t checkpoint_bytes(const ParameterStore& store, const Optimizer& optimizer) {
  constexpr int64_t kHeader = 64 << 10;  // upper bound for names, state and identity
  return kHeader + (optimizer.ema() ? 4 : 3) * store.size() * static_cast<int64_t>(sizeof(float));
}

void write_checkpoint(const std::string& path, const CheckpointNote& note,
                      const ParameterStore& store, const Optimizer& optimizer) {
  SafetensorsWriter writer;
  std::vector<Tensor> kept;  // host copies, which must live until writer.write()
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

RestoredCheckpoint read_checkpoint(const std::string& path, const RunIdentity& identity,
                                   const ParameterStore& store, const Optimizer& optimizer,
                                   ResumeMode mode) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  check(file.has_checksums(), ExitCode::model, path, ": no checksums");
  file.verify();
  const CheckpointNote note = read_note(file);
  const std::vector<Difference> changes = differences(note.identity, identity);
  const std::string changed = difference(note.identity, identity);
  check(changes.empty() || mode == ResumeMode::changed, ExitCode::data, path,
        ": cannot resume: ", changed, "; undo the change, accept it with `resume_anyway`, ",
        "choose another directory, or start over with `restart`");
  for (const Difference& d : changes)
    check(!d.name.starts_with("model."), ExitCode::data, path, ": cannot resume: ", in_words(d),
          "; the weights do not fit another model: choose another directory, or start over with ",
          "`restart`");
  check_layout(file, store);
  std::vector<std::pair<Tensor, std::span<const std::byte>>> parts;
  const auto want = [&](const char* name, const Tensor& to) {
    parts.emplace_back(to, flat(file, name, store.size()));
  };
  want("weights", store.values());
  want("adam.m", optimizer.m());
  want("adam.v", optimizer.v());
  // A moving average that the checkpoint does not have starts at the weights.
  if (optimizer.ema()) want(file.find("ema") ? "ema" : "weights", optimizer.ema());
  for (const auto& [to, bytes] : parts) to.assign_bytes(bytes);
  return {.state = adapted(note.state, changes), .path = path, .changed = changed};
}

std::optional<CheckpointNote> note_of(const std::string& path) {
  try {
    return read_note(SafetensorsFile::open(path));
  } catch (const Error&) {
    return {};
  }
}

void write_weights(const std::string& path, const ParameterStore& store) {
  SafetensorsWriter writer;
  const Tensor values = store.values().to(Cpu{});
  writer.add("weights", StoredType::F32, {values.elements()}, values.bytes());
  writer.set_metadata("fovea.version", FOVEA_VERSION);
  writer.set_metadata(kLayoutKey, layout_of(store));
  writer.write(path);
}

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

Tensor mean_weights(const std::vector<std::string>& paths, const ParameterStore& store) {
  std::vector<double> sums(static_cast<size_t>(store.size()), 0.0);
  for (const std::string& path : paths) {
    const std::vector<float> weights = read_any(path, store);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += weights[i];
  }
  for (double& sum : sums) sum /= static_cast<double>(paths.size());
  return Tensor::of({store.size()}, sums, store.type(), store.device());
}

}  // namespace fovea

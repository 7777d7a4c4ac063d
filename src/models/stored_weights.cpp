#include "models/stored_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <vector>

#include "base/utf8.h"
#include "ops/matmul.h"

namespace fovea {
namespace {

constexpr const char* kSameModel = "; use the weights and config.yml of the same model";
constexpr float kMaxByte = 127;

std::string scale_name(const std::string& parameter) { return parameter + "/scale"; }

Shape shape_of(const TensorInfo& info) { return Shape(info.shape.begin(), info.shape.end()); }

std::string location(const SafetensorsFile& file, const std::string& tensor) {
  return file.path() + ": tensor '" + printable(tensor) + "': ";
}

const TensorInfo& find_tensor(const SafetensorsFile& file, const std::string& name,
                              const Shape& shape) {
  const TensorInfo* found = file.find(name);
  check(found != nullptr, ExitCode::model, location(file, name),
        "missing, the configuration asks for one of shape ", shape, kSameModel);
  check(shape_of(*found) == shape, ExitCode::model, location(file, name), "shape ",
        shape_of(*found), ", the configuration asks for ", shape, kSameModel);
  return *found;
}

template <class T>
std::vector<T> elements(const SafetensorsFile& file, const TensorInfo& info) {
  const std::span<const std::byte> bytes = file.data(info);  // the bytes may not be aligned
  std::vector<T> values(static_cast<size_t>(info.elements()));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The index of the first value that is not finite. If all are finite, values.size().
size_t first_not_finite(std::span<const float> values) {
  float sum = 0;  // x − x is 0 if x is finite, otherwise NaN
  for (const float x : values) sum += x - x;
  if (sum == 0) return values.size();
  size_t i = 0;
  while (std::isfinite(values[i])) ++i;
  return i;
}

void check_finite(const SafetensorsFile& file, const std::string& tensor,
                  std::span<const float> values) {
  const size_t bad = first_not_finite(values);
  check(bad == values.size(), ExitCode::model, location(file, tensor), "element ", bad, " is ",
        bad < values.size() ? values[bad] : 0.0f,
        ", weights must be finite; use an earlier checkpoint");
}

std::vector<float> floats_of_bytes(const SafetensorsFile& file, const TensorInfo& info) {
  const TensorInfo& scale_info = file.get(scale_name(info.name));
  file.verify(scale_info);
  const std::vector<float> scales = elements<float>(file, scale_info);
  check_finite(file, scale_info.name, scales);
  const std::vector<int8_t> bytes = elements<int8_t>(file, info);
  std::vector<float> values(bytes.size());
  const size_t columns = static_cast<size_t>(info.shape[1]);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(bytes[i]) * scales[i / columns];
  return values;
}

std::vector<float> floats_of(const SafetensorsFile& file, const TensorInfo& info) {
  if (info.dtype == StoredType::I8) return floats_of_bytes(file, info);
  if (info.dtype == StoredType::F32) return elements<float>(file, info);
  const std::vector<uint16_t> halves = elements<uint16_t>(file, info);
  std::vector<float> values(halves.size());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::bit_cast<float>(uint32_t{halves[i]} << 16);
  return values;
}

void assign(const Tensor& tensor, std::span<const float> values) {
  if (tensor.type() == ElementType::f32)
    tensor.assign_bytes(std::as_bytes(values));
  else
    tensor.assign(std::vector<double>(values.begin(), values.end()));
}

std::vector<float> finite_values(const ParameterStore::Parameter& p) {
  const std::vector<double> values = p.tensor.values();
  std::vector<float> floats(values.size());
  for (size_t i = 0; i < values.size(); ++i) floats[i] = static_cast<float>(values[i]);
  const size_t bad = first_not_finite(floats);
  check(bad == floats.size(), ExitCode::diverged, "parameter '", p.name, "': element ", bad,
        " is not finite; the model was not saved");
  return floats;
}

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// A matrix in 8-bit integers with a scale per row: Note [Stored bytes].
struct QuantisedMatrix {
  std::vector<int8_t> values;
  std::vector<float> scales;
};

QuantisedMatrix quantise(std::span<const float> values, size_t columns) {
  QuantisedMatrix result;
  result.values.reserve(values.size());
  for (; !values.empty(); values = values.subspan(columns)) {
    const std::span<const float> row = values.first(columns);
    float top = 0;
    for (const float x : row) top = std::max(top, std::abs(x));
    const float by = top > 1e-30f ? kMaxByte / top : 0.0f;
    for (const float x : row) result.values.push_back(static_cast<int8_t>(std::nearbyint(x * by)));
    result.scales.push_back(top / kMaxByte);
  }
  return result;
}

// A writer of parameters. It owns the bytes that its SafetensorsWriter refers to.
class ParameterWriter {
 public:
  void add(const ParameterStore::Parameter& p, StoredType stored) {
    const Shape& shape = p.tensor.shape();
    const std::vector<float> values = finite_values(p);
    if (stored == StoredType::BF16) {
      std::vector<uint16_t> halves(values.size());
      std::ranges::transform(values, halves.begin(), [](float x) { return to_bf16(x).bits; });
      return add(p.name, stored, shape, bytes_of(halves));
    }
    if (stored != StoredType::I8 || shape.size() != 2)
      return add(p.name, StoredType::F32, shape, bytes_of(values));
    const QuantisedMatrix q = quantise(values, static_cast<size_t>(shape[1]));
    add(p.name, StoredType::I8, shape, bytes_of(q.values));
    add(scale_name(p.name), StoredType::F32, {shape[0]}, bytes_of(q.scales));
  }
  void write(const std::string& path) {
    writer_.set_metadata("producer", "fovea " FOVEA_VERSION);
    writer_.write(path);
  }

 private:
  void add(const std::string& name, StoredType type, const Shape& shape,
           std::vector<std::byte> bytes) {
    bytes_.push_back(std::move(bytes));
    writer_.add(name, type, {shape.begin(), shape.end()}, bytes_.back());
  }
  std::deque<std::vector<std::byte>> bytes_;  // the writer refers to them
  SafetensorsWriter writer_;
};

}  // namespace

void save_parameters(const std::string& path, const ParameterStore& parameters, StoredType stored) {
  check(stored == StoredType::F32 || stored == StoredType::BF16 || stored == StoredType::I8,
        ExitCode::usage, "weights can be stored as F32, BF16 or I8, not as ", stored_name(stored));
  ParameterWriter writer;
  for (const ParameterStore::Parameter& p : parameters.all()) writer.add(p, stored);
  writer.write(path);
}

void check_parameters(const SafetensorsFile& file, const ParameterStore& parameters) {
  size_t expected = 0;
  for (const ParameterStore::Parameter& p : parameters.all()) {
    const TensorInfo& found = find_tensor(file, p.name, p.tensor.shape());
    const bool in_bytes = found.dtype == StoredType::I8 && p.tensor.shape().size() == 2;
    check(in_bytes || found.dtype == StoredType::F32 || found.dtype == StoredType::BF16,
          ExitCode::model, location(file, p.name), "type ", stored_name(found.dtype),
          ", expected F32, BF16 or (for matrices) I8; convert the file");
    expected += in_bytes ? 2 : 1;
    if (!in_bytes) continue;
    const TensorInfo& scale = find_tensor(file, scale_name(p.name), {p.tensor.shape()[0]});
    check(scale.dtype == StoredType::F32, ExitCode::model, location(file, scale.name), "type ",
          stored_name(scale.dtype), ", expected F32; convert the file");
  }
  if (file.tensors().size() == expected) return;
  for (const TensorInfo& t : file.tensors()) {
    const bool is_scale = t.name.ends_with("/scale") &&
                          parameters.find(t.name.substr(0, t.name.rfind('/'))) != nullptr &&
                          file.get(t.name.substr(0, t.name.rfind('/'))).dtype == StoredType::I8;
    check(is_scale || parameters.find(t.name) != nullptr, ExitCode::model, location(file, t.name),
          "the configuration has no such parameter", kSameModel);
  }
}

void load_parameters(const SafetensorsFile& file, const ParameterStore& parameters) {
  check_parameters(file, parameters);
  for (const ParameterStore::Parameter& p : parameters.all()) {
    const TensorInfo& info = file.get(p.name);
    file.verify(info);
    const std::vector<float> values = floats_of(file, info);
    check_finite(file, p.name, values);
    assign(p.tensor, values);
  }
  parameters_changed();
}

}  // namespace fovea

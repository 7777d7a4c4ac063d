#include "goldens/case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/safetensors.h"

namespace fovea::goldens {
namespace {

template <class T>
std::vector<double> numbers(std::span<const std::byte> bytes) {
  std::vector<T> raw(bytes.size() / sizeof(T));
  std::memcpy(raw.data(), bytes.data(), bytes.size());
  return {raw.begin(), raw.end()};
}

double tolerance(ElementType type) { return type == ElementType::f64 ? 1e-9 : 2e-5; }

}  // namespace

Case::Case(const std::string& path, ElementType type, Device device)
    : name_(std::filesystem::path(path).stem()), type_(type), device_(device) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  for (const TensorInfo& info : file.tensors()) {
    Array array;
    array.shape.assign(info.shape.begin(), info.shape.end());
    array.values = info.dtype == StoredType::I64 ? numbers<int64_t>(file.data(info))
                                                 : numbers<double>(file.data(info));
    arrays_.emplace(info.name, std::move(array));
  }
}

const Case::Array& Case::at(const std::string& key) const {
  const auto found = arrays_.find(key);
  if (found == arrays_.end()) fail(ExitCode::data, name_, ": the golden file has no ", key);
  read_.insert(key);
  return found->second;
}

std::vector<std::string> Case::unread() const {
  std::vector<std::string> keys;
  for (const auto& [key, array] : arrays_)
    if (!read_.contains(key)) keys.push_back(key);
  return keys;
}

std::vector<int32_t> Case::integers(const std::string& key) const {
  const auto& v = values(key);
  return {v.begin(), v.end()};
}

Tensor Case::of(Shape shape, std::span<const double> values) const {
  return Tensor::of(std::move(shape), values, type_, device_);
}
Tensor Case::of(std::span<const int32_t> values) const { return Tensor::of(values, device_); }

Tensor Case::tensor(const std::string& key) const { return of(shape(key), values(key)); }

Tensor Case::tracked(const std::string& key) const {
  Tensor t = tensor(key);
  t.track();
  return t;
}

std::vector<int32_t> Case::offsets(const std::string& mask) const {
  const int64_t B = shape(mask)[0], T = shape(mask)[1];
  std::vector<int32_t> offsets{0};
  for (int64_t b = 0; b < B; ++b) {
    int32_t length = 0;
    for (int64_t t = 0; t < T; ++t) length += values(mask)[b * T + t] != 0;
    offsets.push_back(offsets.back() + length);
  }
  return offsets;
}

SentenceOffsets Case::packing(const std::string& mask) const {
  return SentenceOffsets::of(offsets(mask), device_);
}

std::vector<double> Case::kept(const std::string& key, const std::string& mask) const {
  const auto& keep = values(mask);
  const auto& from = values(key);
  const size_t width = from.size() / keep.size();
  std::vector<double> rows;
  for (size_t i = 0; i < keep.size(); ++i)
    if (keep[i] != 0)
      rows.insert(rows.end(), from.begin() + static_cast<std::ptrdiff_t>(i * width),
                  from.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
  return rows;
}

Tensor Case::packed(const std::string& key, const std::string& mask) const {
  const auto rows = kept(key, mask);
  const int64_t width = shape(key).cols();
  Tensor t = of({static_cast<int64_t>(rows.size()) / width, width}, rows);
  t.track();
  return t;
}

void Case::compare(const std::string& key, std::span<const double> expected,
                   std::span<const double> found) {
  if (expected.size() != found.size()) {
    failures_.push_back(key + ": " + std::to_string(found.size()) + " numbers, expected " +
                        std::to_string(expected.size()));
    return;
  }
  double worst = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double error = std::abs(found[i] - expected[i]) / std::max(1.0, std::abs(expected[i]));
    worst = std::isfinite(error) ? std::max(worst, error) : HUGE_VAL;
  }
  compared_ += static_cast<int64_t>(found.size());
  worst_ = std::max(worst_, worst);
  if (worst > tolerance(type_)) failures_.push_back(key + ": off by " + std::to_string(worst));
}

void Case::expect(const std::string& key, std::span<const double> found) {
  compare(key, values(key), found);
}

void Case::expect_kept(const std::string& key, const std::string& mask, const Tensor& found) {
  compare(key, kept(key, mask), found.values());
}

void Case::assign(const std::string& name, const Tensor& parameter) {
  const auto& v = values("param." + name);
  if (static_cast<int64_t>(v.size()) != parameter.elements())
    fail(ExitCode::data, name_, ": param.", name, " has ", v.size(), " entries, the layer ",
         parameter.elements());
  parameter.assign(v);
  assigned_.emplace_back(name, parameter);
}

void Case::expect_gradients() {
  for (const auto& [name, parameter] : assigned_) expect("grad.param." + name, parameter.grad());
}

void Case::backward(Tape& tape, const Tensor& result, const std::string& mask) {
  const auto weight = mask.empty() ? values("in.loss_weight") : kept("in.loss_weight", mask);
  tape.backward(result, of(result.shape(), weight));
}

std::map<std::string, Run> built_cases() {
  std::map<std::string, Run> cases;
  add_transformer_cases(cases);
  add_loss_cases(cases);
  add_training_cases(cases);
  add_beam_cases(cases);
  add_attention_cases(cases);
  add_recurrent_cases(cases);
  add_decoder_cases(cases);
  return cases;
}

}  // namespace fovea::goldens

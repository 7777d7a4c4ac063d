#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "nn/params.h"
#include "ops/packing.h"
#include "tensor/tape.h"

namespace fovea::goldens {

// A golden file, which holds named arrays of expected numbers. The case runs in one number type on
// one device. docs/formats.md, "Golden cases", defines the names, the masks and L.
class Case {
 public:
  Case(const std::string& path, ElementType type, Device device);

  const std::string& name() const { return name_; }
  ElementType type() const { return type_; }
  Device device() const { return device_; }
  bool has(const std::string& key) const { return arrays_.contains(key); }
  const Shape& shape(const std::string& key) const { return at(key).shape; }
  const std::vector<double>& values(const std::string& key) const { return at(key).values; }
  double number(const std::string& key) const { return values(key).at(0); }
  std::vector<int32_t> integers(const std::string& key) const;
  // Tensors of the case's type on its device.
  Tensor of(Shape shape, std::span<const double> values) const;
  Tensor of(std::span<const int32_t> values) const;
  Tensor tensor(const std::string& key) const;
  Tensor tracked(const std::string& key) const;  // with a gradient

  // The offsets of the rows that a keep mask [B, T] keeps, one after another.
  std::vector<int32_t> offsets(const std::string& mask) const;
  SentenceOffsets packing(const std::string& mask) const;
  std::vector<double> kept(const std::string& key, const std::string& mask) const;
  Tensor packed(const std::string& key, const std::string& mask) const;  // tracked

  // Compares with the file; expect_kept() compares packed rows with the rows that the mask keeps.
  // failures() collects the differences.
  void expect(const std::string& key, std::span<const double> found);
  void expect(const std::string& key, const Tensor& found) { expect(key, found.values()); }
  void expect_kept(const std::string& key, const std::string& mask, const Tensor& found);

  // Sets a parameter from "param.NAME", and compares its gradient with "grad.param.NAME".
  void assign(const std::string& name, const Tensor& parameter);
  void expect_gradients();  // of all assigned parameters

  // Runs the backward pass from `result`, weighted by in.loss_weight (with a mask: by its kept
  // rows).
  void backward(Tape& tape, const Tensor& result, const std::string& mask = "");

  int64_t compared() const { return compared_; }
  double worst() const { return worst_; }
  const std::vector<std::string>& failures() const { return failures_; }
  // The arrays of the file that the case has not read and therefore not tested.
  std::vector<std::string> unread() const;

 private:
  struct Array {
    Shape shape;
    std::vector<double> values;
  };
  const Array& at(const std::string& key) const;
  void compare(const std::string& key, std::span<const double> expected,
               std::span<const double> found);

  std::string name_;
  ElementType type_;
  Device device_;
  std::map<std::string, Array> arrays_;
  mutable std::set<std::string> read_;
  std::vector<std::pair<std::string, Tensor>> assigned_;
  std::vector<std::string> failures_;
  int64_t compared_ = 0;
  double worst_ = 0;
};

using Run = void (*)(Case&);

// All implemented cases, by name.
std::map<std::string, Run> built_cases();

void add_transformer_cases(std::map<std::string, Run>& cases);
void add_loss_cases(std::map<std::string, Run>& cases);
void add_training_cases(std::map<std::string, Run>& cases);
void add_beam_cases(std::map<std::string, Run>& cases);
void add_attention_cases(std::map<std::string, Run>& cases);
void add_recurrent_cases(std::map<std::string, Run>& cases);
void add_decoder_cases(std::map<std::string, Run>& cases);

}  // namespace fovea::goldens

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

// One golden file: named arrays of expected numbers, run in one number type on one device. The
// file's rules (names, masks, what L is) are those of docs/formats.md, "Golden cases".
class Case {
 public:
  Case(const std::string& path, Type type, Device device);

  const std::string& name() const { return name_; }
  Type type() const { return type_; }
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
  Tensor tracked(const std::string& key) const;  // gathering a gradient

  // Rows that a keep mask [B, T] keeps, one after another, and the table of offsets for them.
  std::vector<int32_t> offsets(const std::string& mask) const;
  Packing packing(const std::string& mask) const;
  std::vector<double> kept(const std::string& key, const std::string& mask) const;
  Tensor packed(const std::string& key, const std::string& mask) const;  // tracked

  // Compares with the file; packed rows with the rows the mask keeps. Differences are collected.
  void expect(const std::string& key, std::span<const double> found);
  void expect(const std::string& key, const Tensor& found) { expect(key, found.values()); }
  void expect_kept(const std::string& key, const std::string& mask, const Tensor& found);

  // Sets a parameter from "param.NAME", and compares its gradient with "grad.param.NAME".
  void assign(const std::string& name, const Tensor& parameter);
  void expect_gradients();  // of all that were assigned

  // Runs backward from `result`, weighted by in.loss_weight (kept rows only when masked).
  void backward(Tape& tape, const Tensor& result, const std::string& mask = "");

  int64_t compared() const { return compared_; }
  double worst() const { return worst_; }
  const std::vector<std::string>& failures() const { return failures_; }
  // Arrays of the file that nobody has asked for: what they hold was not tested.
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
  Type type_;
  Device device_;
  std::map<std::string, Array> arrays_;
  mutable std::set<std::string> read_;
  std::vector<std::pair<std::string, Tensor>> assigned_;
  std::vector<std::string> failures_;
  int64_t compared_ = 0;
  double worst_ = 0;
};

using Run = void (*)(Case&);

// Every case that is built, by name.
std::map<std::string, Run> built_cases();

void add_transformer_cases(std::map<std::string, Run>& cases);
void add_loss_cases(std::map<std::string, Run>& cases);
void add_training_cases(std::map<std::string, Run>& cases);
void add_beam_cases(std::map<std::string, Run>& cases);
void add_attention_cases(std::map<std::string, Run>& cases);
void add_recurrent_cases(std::map<std::string, Run>& cases);
void add_decoder_cases(std::map<std::string, Run>& cases);

}  // namespace fovea::goldens

#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "models/model_config.h"
#include "nn/params.h"
#include "ops/dropout.h"
#include "ops/matmul.h"
#include "ops/ragged_attention.h"
#include "tensor/tape.h"

// Everything that is computed on a device in float32, and with products of bf16, against the CPU in
// double: the same numbers go in, and results and gradients must agree. The device is the one
// that FOVEA_DEVICE names, the CPU where it is not set. FOVEA_PARITY=all gives the CPU the shapes
// that other devices are given; a number there is how many small shapes each case has, two at
// least; FOVEA_PARITY=large leaves the large shapes alone, with the numbers that they have among
// all. With FOVEA_PARITY_SINGLY every tensor is an allocation of its own, for compute-sanitizer,
// and FOVEA_PARITY_SHARE=K/N, K from 0, takes every Nth case, for several of it at once.
namespace fovea::parity {

Device device_under_test();

using Sizes = std::vector<int64_t>;  // of one shape; a case says what each of them means

// How near is near enough, as Σ(out − ref)² / Σref²: 1e-10 elementwise, 1e-7 for all else. What has
// products also runs with products of bf16, where ‖out − ref‖ / ‖ref‖ may be 1.6e-2. Choices do
// not, because rounding to bf16 makes other choices.
//
// What is small because terms cancel is not measured by itself but by them: it may be wrong by
// three times what it moves by when the reference is rounded at every operation (Note [Rounding]):
// to 22 bits instead of the 24 of float32, or to the 8 of bf16. Where it is 0, and the terms are
// inside one operation, they are taken to be as large as the largest result of its kind, or as
// 1, which inputs are, where all of them are 0.
//
// Products are rough where rounding may change a gradient altogether: through the kink of a relu,
// or through a window whose place is a sum of exponentials. Note [Judgement] has the rest.
enum class Bar { elementwise, products, rough, choices };

// One run of one shape of a case. All that it hands out is drawn from the case and the shape, and
// is a float even in double, so that two trials differ in nothing but where they compute.
class Trial {
 public:
  struct Place {
    ElementType type = ElementType::f64;
    Device device = Cpu{};
  };
  struct Result {
    enum class Kind { value, integers, gradient };
    std::string name;
    Kind kind;
    std::vector<double> values;
  };

  Trial(uint64_t seed, int64_t number, Place place);

  ElementType type() const { return place_.type; }
  Device device() const { return place_.device; }
  Random& random() { return random_; }
  // Shapes alternate in what they drop out and in whether gradients add to what is there.
  int64_t number() const { return number_; }
  bool drops() const { return number_ % 2 != 0; }
  bool adds() const { return number_ / 2 % 2 != 0; }

  // Numbers around `middle`; an input gathers a gradient, which is compared.
  Tensor input(Shape shape, double scale = 1, double middle = 0);
  Tensor constant(Shape shape, double scale = 1, double middle = 0);
  Tensor numbers(Shape shape, std::vector<double> values) const;
  Tensor integers(std::span<const int32_t> values) const;
  Tensor integers_below(int64_t count, int64_t below, int64_t from = 0);
  Dropout dropout(double rate);

  // Lengths of sentences from 1 to `longest`, one of which is `longest`; and packed sentences.
  std::vector<int32_t> lengths(int64_t sentences, int64_t longest);
  static std::vector<int32_t> offsets(std::span<const int32_t> lengths);
  SentenceOffsets packing(std::span<const int32_t> lengths) const;
  RaggedQueries lookup(int64_t sentences, int64_t longest, int64_t queries);
  ColumnRanges late(const RaggedQueries& look);  // from some word on to the end; some are empty

  // Parameters of layers; ready() gives all of a store that was declared to numbers, biases too,
  // and their gradients are compared. A model comes ready.
  ParameterStore& store() { return *store_; }
  void ready(ParameterStore& store);
  const Model& model(const ModelConfig& config);

  // What is compared. Gradients flow back from everything that was given to expect().
  void expect(const std::string& name, const Tensor& found);
  void expect_value(const std::string& name, const Tensor& found);
  void expect_integers(const std::string& name, const Tensor& found);
  void expect_numbers(const std::string& name, std::vector<double> found);

  void go_back(Tape& tape);  // from all expected results at once
  const std::vector<Result>& results() const { return results_; }

 private:
  struct Leaf {
    std::string name;
    Tensor x;
    std::vector<double> start;  // what its gradient holds before anything flows back
  };
  std::vector<double> drawn(const Shape& shape, double scale, double middle);
  void add_leaf(const std::string& name, const Tensor& x);

  Place place_;
  int64_t number_;
  Random random_;
  uint32_t dropouts_ = 0;
  std::shared_ptr<ParameterStore> store_;
  std::vector<std::shared_ptr<void>> kept_;
  std::vector<Leaf> leaves_;
  std::vector<std::pair<std::string, Tensor>> roots_;
  std::vector<Result> results_;
};

// Fifty shapes of a case, drawn from its name: all sizes 1, all sizes `largest`, and others between
// them of which many are odd or multiples of eight. `large` ones are added on devices that are
// worth it; the CPU gets smaller ones, and `few` of them.
struct Shapes {
  Sizes largest;
  std::vector<Sizes> large = {};
  int64_t few = 50;

  std::vector<Sizes> draw(uint64_t seed) const;
};

// The cases of one family of ops, layers or models, and one line of the report.
class Family {
 public:
  using Case = std::function<void(Trial& trial, const Sizes& n)>;

  explicit Family(std::string name);
  ~Family();  // reports
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  // Forward and back; or forward alone without a tape, as in translation.
  void check(const std::string& name, Bar bar, const Shapes& shapes, const Case& run);
  void check_forward(const std::string& name, Bar bar, const Shapes& shapes, const Case& run);

  // What the comparison is worth: of all contributions to gradients that one shape of a case has
  // and that count, of how many it is seen when that one alone is spoilt.
  struct Mutant {
    const char* name;
    GradientMutation::Kind kind;
    double by = 1;
  };
  struct Mutants {
    int64_t all = 0, caught = 0;
  };
  Mutants mutants(const Mutant& kind, Precision precision, const Sizes& sizes,
                  const Case& run) const;
  void report(const std::string& line) const;  // among those of all families

 private:
  struct Summary;
  enum class Way { forward, and_back };
  void check(const std::string& name, Bar bar, const Shapes& shapes, const Case& run, Way way);

  std::string name_;
  std::unique_ptr<Summary> f32_, bf16_;
  int64_t number_ = 0;  // of shapes
};

}  // namespace fovea::parity

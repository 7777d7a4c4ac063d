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

// Compares all computations on a device, in float32 and with products in bf16, with the CPU in
// double. The inputs are the same numbers, and results and gradients must agree. FOVEA_DEVICE names
// the device; the default is the CPU.
//
// FOVEA_PARITY=all uses the shapes for other devices on the CPU, too. A number (at least two) is
// the number of small shapes of each case. FOVEA_PARITY=large uses only the large shapes, with the
// same numbers. With FOVEA_PARITY_SINGLY each tensor has its own allocation, for compute-sanitizer.
// FOVEA_PARITY_SHARE=K/N, with K from 0, selects every Nth case, so that several programs can share
// them.
namespace fovea::parity {

Device device_under_test();

using Sizes = std::vector<int64_t>;  // of one shape; each case defines its sizes

// The tolerance of a case, as Σ(out − ref)² / Σref²: 1e-10 elementwise, 1e-7 for the others. Cases
// with products also run with products in bf16, with a tolerance of 1.6e-2 for ‖out − ref‖ / ‖ref‖.
// Choices do not, because rounding to bf16 changes choices.
//
// If a result is small because terms cancel, its error is relative to the terms. It may be three
// times the change of the reference when the reference is rounded after every operation (Note
// [Rounding]): to 22 bits instead of the 24 of float32, or to the 8 of bf16. If that change is 0
// and the terms are inside one operation, they count as large as the largest result of the same
// kind, or as 1, the size of inputs, if all of these are 0.
//
// Bar::rough is for products after which rounding may change a gradient completely: at the kink of
// a relu, or in a window whose position is a sum of exponentials. Note [Judgement] has the details.
enum class Bar { elementwise, products, rough, choices };

// One run of one shape of a case. All its numbers are drawn from the case and the shape, and are
// floats even in double. So two trials differ only in the device and type of their computation.
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
  // Shapes alternate: with and without dropout, and with and without earlier gradients.
  int64_t number() const { return number_; }
  bool drops() const { return number_ % 2 != 0; }
  bool adds() const { return number_ / 2 % 2 != 0; }

  // Numbers around `middle`. An input has a gradient, which is compared.
  Tensor input(Shape shape, double scale = 1, double middle = 0);
  Tensor constant(Shape shape, double scale = 1, double middle = 0);
  Tensor numbers(Shape shape, std::vector<double> values) const;
  Tensor integers(std::span<const int32_t> values) const;
  Tensor integers_below(int64_t count, int64_t below, int64_t from = 0);
  Dropout dropout(double rate);

  // Lengths of sentences from 1 to `longest`, at least one of which is `longest`; and packed
  // sentences.
  std::vector<int32_t> lengths(int64_t sentences, int64_t longest);
  static std::vector<int32_t> offsets(std::span<const int32_t> lengths);
  SentenceOffsets packing(std::span<const int32_t> lengths) const;
  RaggedQueries lookup(int64_t sentences, int64_t longest, int64_t queries);
  ColumnRanges late(const RaggedQueries& look);  // from some word to the end; some ranges are empty

  // Parameters of layers. ready() sets all parameters of a declared store to numbers, including
  // biases; their gradients are compared. A model is already ready.
  ParameterStore& store() { return *store_; }
  void ready(ParameterStore& store);
  const Model& model(const ModelConfig& config);

  // Adds results to compare. The backward pass starts from all of them.
  void expect(const std::string& name, const Tensor& found);
  void expect_value(const std::string& name, const Tensor& found);
  void expect_integers(const std::string& name, const Tensor& found);
  void expect_numbers(const std::string& name, std::vector<double> found);

  void go_back(Tape& tape);  // the backward pass of all expected results
  const std::vector<Result>& results() const { return results_; }

 private:
  struct Leaf {
    std::string name;
    Tensor x;
    std::vector<double> start;  // the gradient before the backward pass
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

// Fifty shapes of a case, drawn from its name: all sizes 1, all sizes `largest`, and sizes between
// them, many of which are odd or multiples of eight. Fast devices also get the `large` shapes. The
// CPU gets smaller ones, and `few` of them.
struct Shapes {
  Sizes largest;
  std::vector<Sizes> large = {};
  int64_t few = 50;

  std::vector<Sizes> draw(uint64_t seed) const;
};

// The cases of one family of ops, layers or models. It has one line in the report.
class Family {
 public:
  using Case = std::function<void(Trial& trial, const Sizes& n)>;

  explicit Family(std::string name);
  ~Family();  // adds the line to the report
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  // Compares the forward and backward pass, or only the forward pass without a tape, as in
  // translation.
  void check(const std::string& name, Bar bar, const Shapes& shapes, const Case& run);
  void check_forward(const std::string& name, Bar bar, const Shapes& shapes, const Case& run);

  // The sensitivity of the comparison: the number of contributions to gradients that one shape of a
  // case has, and how many of them are detected if that one alone is mutated.
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
  void report(const std::string& line) const;  // adds a line to the report of all families

 private:
  struct Summary;
  enum class Way { forward, and_back };
  void check(const std::string& name, Bar bar, const Shapes& shapes, const Case& run, Way way);

  std::string name_;
  std::unique_ptr<Summary> f32_, bf16_;
  int64_t number_ = 0;  // the number of shapes so far
};

}  // namespace fovea::parity

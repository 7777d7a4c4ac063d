#include "models/model_directory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>

#include "base/files.h"
#include "ops/matmul.h"
#include "support/network_settings.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

ModelConfig tiny() {
  ModelConfig config;
  ModelConfig& t = config;
  t.encoder_layers = t.decoder_layers = 1;
  auto& own = transformer_of(t);
  t.size = 8, own.heads = 2, own.inner = 16, t.max_length = 32;
  t.source_words = t.target_words = 20;
  return config;
}

// A temporary model directory, removed at the end of the test.
class ModelDirectory : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = fs::temp_directory_path() /
            ("fovea_directory_" + std::string(test->name()) + "_" + std::to_string(getpid()));
    fs::remove_all(path_);
    save(tiny());
  }
  void TearDown() override { fs::remove_all(path_); }

  void save(const ModelConfig& config, StoredType stored = StoredType::F32) {
    save_model(path_.string(), config, make_model(config, 7)->parameters(), stored);
  }
  std::string file(const char* name) const { return (path_ / name).string(); }

  // The error message of load_model(), or "" if it accepts the model.
  std::string load_error() const {
    try {
      load_model(path_.string());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::model) << error.what();
      return error.what();
    }
    return "";
  }

  // Rewrites the weights after `change` has edited the list of tensors.
  struct StoredTensor {
    std::string name;
    StoredType type;
    std::vector<int64_t> shape;
    std::vector<std::byte> bytes;
  };
  void rewrite(const std::function<void(std::vector<StoredTensor>&)>& change) {
    std::vector<StoredTensor> tensors;
    {
      const SafetensorsFile weights = SafetensorsFile::open(file(kWeightsFile));
      for (const TensorInfo& t : weights.tensors()) {
        const auto bytes = weights.data(t);
        tensors.push_back({t.name, t.dtype, t.shape, {bytes.begin(), bytes.end()}});
      }
    }
    change(tensors);
    SafetensorsWriter writer;
    for (const StoredTensor& t : tensors) writer.add(t.name, t.type, t.shape, t.bytes);
    writer.write(file(kWeightsFile));
  }

  void edit_config(const std::string& key, const std::string& line) {
    std::string text = read_file(file(kConfigFile));
    const size_t at = text.find("  " + key + ":");
    ASSERT_NE(at, text.npos) << key;
    text.replace(at, text.find('\n', at) - at, line.empty() ? "" : "  " + line);
    write_atomically(file(kConfigFile), text);
  }

  fs::path path_;
};

TEST_F(ModelDirectory, LoadsTheSavedModel) {
  const auto before = make_model(tiny(), 7);
  const LoadedModel after = load_model(path_.string());
  EXPECT_EQ(after.config.size, 8);
  EXPECT_EQ(after.model->parameters().values().values(), before->parameters().values().values());
}

TEST_F(ModelDirectory, Bf16KeepsEightBits) {
  const auto whole = fs::file_size(file(kWeightsFile));
  save(tiny(), StoredType::BF16);
  const auto exact = make_model(tiny(), 7)->parameters().values().values();
  const auto rounded = load_model(path_.string()).model->parameters().values().values();
  for (size_t i = 0; i < exact.size(); ++i)
    EXPECT_NEAR(rounded[i], exact[i], std::abs(exact[i]) / 256);
  EXPECT_LT(fs::file_size(file(kWeightsFile)), whole - exact.size());
}

TEST_F(ModelDirectory, BytesKeepSevenBitsOfTheLargestNumberOfARow) {
  save(tiny(), StoredType::I8);
  const auto model = make_model(tiny(), 7);
  const auto stored = load_model(path_.string());
  for (const ParameterStore::Parameter& p : model->parameters().all()) {
    const std::vector<double> exact = p.tensor.values();
    const std::vector<double> found = stored.model->parameters().find(p.name)->tensor.values();
    if (p.tensor.shape().size() != 2) {
      EXPECT_EQ(found, exact) << p.name;
      continue;
    }
    const size_t columns = static_cast<size_t>(p.tensor.cols());
    for (size_t row = 0; row < exact.size(); row += columns) {
      double top = 0;
      for (size_t i = row; i < row + columns; ++i) top = std::max(top, std::abs(exact[i]));
      for (size_t i = row; i < row + columns; ++i)
        EXPECT_NEAR(found[i], exact[i], top / 127 * 0.5001) << p.name;
    }
  }
}

TEST_F(ModelDirectory, BytesStoreWhatInt8ProductsRead) {
  const auto model = make_model(tiny(), 7);
  save(tiny(), StoredType::I8);
  const LoadedModel stored = load_model(path_.string());
  const auto product = [](const Model& m) {
    const PrecisionScope scope(Precision::int8);
    const Tensor W = m.parameters().find("encoder/layers/0/feed_forward/W_1/W")->tensor;
    const std::vector<double> numbers{1, -2, 3, 4, -5, 6, 7, 8, 8, 7, 6, 5, 4, -3, 2, 1};
    const Tensor x = Tensor::of({2, 8}, numbers, ElementType::f32);
    return linear(x, W).values();
  };
  EXPECT_EQ(product(*stored.model), product(*model));
}

TEST_F(ModelDirectory, SavingBytesAgainChangesNothing) {
  save(tiny(), StoredType::I8);
  const std::string before = read_file(file(kWeightsFile));
  const LoadedModel stored = load_model(path_.string());
  save_model(path_.string(), stored.config, stored.model->parameters(), StoredType::I8);
  EXPECT_EQ(read_file(file(kWeightsFile)), before);
}

TEST_F(ModelDirectory, RefusesBadScales) {
  using List = std::vector<StoredTensor>;
  const auto scale_of = [](List& l) -> StoredTensor& {
    return *std::ranges::find_if(
        l, [](const StoredTensor& t) { return t.name == "encoder/layers/0/attend/W_Q/scale"; });
  };
  struct Case {
    std::function<void(List&)> change;
    const char* says;
  };
  const float infinity = std::numeric_limits<float>::infinity();
  const Case cases[] = {
      {[&](List& l) { scale_of(l).name += "s"; }, "W_Q/scale': missing"},
      {[&](List& l) { scale_of(l).type = StoredType::I32; }, "type I32, expected F32"},
      {[&](List& l) {
         scale_of(l).shape = {2, 4};
       },
       "W_Q/scale': shape [2, 4]"},
      {[&](List& l) { std::memcpy(scale_of(l).bytes.data(), &infinity, 4); },
       "inf, weights must be finite"},
      {[&](List& l) {
         l.push_back(
             {"encoder/layers/0/norm_1/g/scale", StoredType::F32, {8}, std::vector<std::byte>(32)});
       },
       "norm_1/g/scale': the configuration has no such parameter"},
  };
  for (const Case& c : cases) {
    save(tiny(), StoredType::I8);
    rewrite(c.change);
    const std::string message = load_error();
    EXPECT_NE(message.find(c.says), message.npos) << c.says << ": " << message;
  }
}

TEST_F(ModelDirectory, RefusesBadWeights) {
  using List = std::vector<StoredTensor>;
  const auto put = [](StoredTensor& t, float value) {
    std::memcpy(t.bytes.data() + t.bytes.size() - 4, &value, 4);
  };
  const float infinity = std::numeric_limits<float>::infinity();
  struct Case {
    const char* what;
    std::function<void(List&)> change;
    const char* says;
  };
  const Case cases[] = {
      {"missing tensor", [](List& l) { l.pop_back(); }, "missing"},
      {"extra tensor",
       [](List& l) {
         l.push_back({"more", l[0].type, l[0].shape, l[0].bytes});
       },
       "'more': the configuration has no such parameter"},
      {"renamed tensor", [](List& l) { l[0].name += "x"; }, "missing"},
      {"no tensors", [](List& l) { l.clear(); }, "missing"},
      {"other shape", [](List& l) { l[0].shape = {l[0].shape.at(0) * l[0].shape.at(1)}; },
       "the configuration asks for ["},
      {"transposed shape", [](List& l) { std::swap(l[0].shape.at(0), l[0].shape.at(1)); },
       "the configuration asks for ["},
      {"one row less",
       [](List& l) {
         l[0].shape.at(0) -= 1;
         l[0].bytes.resize(l[0].bytes.size() - 4 * static_cast<size_t>(l[0].shape.at(1)));
       },
       "the configuration asks for ["},
      {"integers", [](List& l) { l[0].type = StoredType::I32; }, "type I32, expected F32, BF16"},
      {"half precision",
       [](List& l) {
         l[0].type = StoredType::F16;
         l[0].bytes.resize(l[0].bytes.size() / 2);
       },
       "type F16"},
      {"NaN", [&](List& l) { put(l[0], std::nanf("")); }, "nan, weights must be finite"},
      {"infinity", [&](List& l) { put(l[1], infinity); }, "inf, weights must be finite"},
      {"minus infinity", [&](List& l) { put(l[2], -infinity); }, "-inf, weights must be finite"},
  };
  for (const Case& c : cases) {
    save(tiny());
    rewrite([&](List& l) {
      std::ranges::stable_sort(l, std::greater{},
                               [](const StoredTensor& t) { return t.bytes.size(); });
      c.change(l);
    });
    const std::string message = load_error();
    EXPECT_NE(message.find(c.says), message.npos) << c.what << ": " << message;
    EXPECT_NE(message.find("tensor '"), message.npos) << c.what << ": " << message;
    EXPECT_NE(message.find(kWeightsFile), message.npos) << c.what << ": " << message;
  }
}

TEST_F(ModelDirectory, RefusesBadConfigurations) {
  struct Case {
    const char *key, *line, *says;
  };
  const Case cases[] = {
      {"size", "size: 16", "the configuration asks for ["},
      {"size", "size: 9", "heads"},
      {"size", "size: 0", "size"},
      {"size", "size: -8", "size"},
      {"size", "size: 9223372036854775808", "size"},
      {"size", "size: 16384", "the configuration asks for ["},
      {"size", "size: eight", "size"},
      {"size", "sise: 8", "did you mean"},
      {"heads", "heads: 3", "heads do not divide"},
      {"heads", "heads: 0", "heads"},
      {"inner", "inner: 15", "the configuration asks for ["},
      {"encoder_layers", "encoder_layers: 2", "missing"},
      {"decoder_layers", "decoder_layers: 64", "missing"},
      {"decoder_layers", "decoder_layers: 1000000", "decoder_layers"},
      {"norm", "norm: middle", "norm"},
      {"norm", "norm: pre", "missing"},
      {"final_norm", "final_norm: maybe", "final_norm"},
      {"activation", "activation: step", "activation"},
      {"positions", "positions: learned", "missing"},
      {"tied", "tied: none", "missing"},
      {"tied", "tied: some", "tied"},
      {"output_bias", "output_bias: true", "missing"},
      {"dropout", "dropout: nan", "dropout"},
      {"dropout", "dropout: 2", "dropout"},
      {"max_length", "max_length: 0", "max_length"},
      {"source_words", "source_words: 3", "special"},
      {"target_words", "target_words: 0", "special"},
      {"source_words", "source_words: 19", "joint vocabulary"},
      {"target_words", "target_words: 99999999", "joint vocabulary"},
      {"type", "type: oracle", "type"},
  };
  for (const Case& c : cases) {
    save(tiny());
    edit_config(c.key, c.line);
    const std::string message = load_error();
    EXPECT_NE(message.find(c.says), message.npos) << c.line << ": " << message;
    EXPECT_TRUE(message.find(kConfigFile) != message.npos ||
                message.find(kWeightsFile) != message.npos)
        << c.line << ": " << message;
  }
}

TEST_F(ModelDirectory, RefusesBadFiles) {
  struct Case {
    const char* what;
    std::function<void()> change;
    const char* says;
  };
  const auto cut = [&](const char* name, uintmax_t size) { fs::resize_file(file(name), size); };
  const auto whole = fs::file_size(file(kWeightsFile));
  const Case cases[] = {
      {"no weights", [&] { fs::remove(file(kWeightsFile)); }, "missing"},
      {"no configuration", [&] { fs::remove(file(kConfigFile)); }, "missing"},
      {"no directory", [&] { fs::remove_all(path_); }, "no such model directory"},
      {"empty weights", [&] { cut(kWeightsFile, 0); }, "0 bytes"},
      {"cut weights", [&] { cut(kWeightsFile, whole - 1); }, "truncated"},
      {"longer weights", [&] { cut(kWeightsFile, whole + 1); }, "belong to none"},
      {"empty configuration", [&] { cut(kConfigFile, 0); }, "special"},
      {"no YAML", [&] { write_atomically(file(kConfigFile), "model: [1, {"); }, kConfigFile},
      {"binary", [&] { write_atomically(file(kConfigFile), std::string(99, '\0')); }, kConfigFile},
      {"unknown key", [&] { write_atomically(file(kConfigFile), "modell:\n  size: 8\n"); },
       "did you mean"},
      {"flipped bit",
       [&] {
         std::string bytes = read_file(file(kWeightsFile));
         bytes[bytes.size() - 2] = static_cast<char>(bytes[bytes.size() - 2] ^ 1);
         write_atomically(file(kWeightsFile), bytes);
       },
       "checksum of tensor"},
  };
  for (const Case& c : cases) {
    fs::remove_all(path_);
    save(tiny());
    c.change();
    const std::string message = load_error();
    EXPECT_NE(message.find(c.says), message.npos) << c.what << ": " << message;
  }
}

TEST_F(ModelDirectory, DoesNotSaveWeightsThatAreNotFinite) {
  const auto model = make_model(tiny(), 7);
  model->parameters().all().front().tensor.fill(std::nan(""));
  const std::string before = read_file(file(kWeightsFile));
  EXPECT_THROW(save_model(path_.string(), tiny(), model->parameters()), Error);
  EXPECT_EQ(read_file(file(kWeightsFile)), before);
}

}  // namespace
}  // namespace fovea

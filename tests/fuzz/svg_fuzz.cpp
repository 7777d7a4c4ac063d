// Any words and weights give well-formed XML, and terminal text without control characters.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "view/curve.h"
#include "view/svg.h"
#include "view/terminal.h"
#include "xml_scan.h"

namespace {

using namespace fovea;

void require(bool ok, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

// A reader of the input: small numbers, words up to a space, floats.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  size_t number(size_t limit) { return size_ == 0 ? 0 : take() % limit; }
  std::string word() {
    std::string text;
    while (size_ > 0) {
      const uint8_t c = take();
      if (c == ' ') break;
      text += static_cast<char>(c);
    }
    return text;
  }
  float weight() {
    if (size_ < 4) return 0.25f;
    float value;
    std::memcpy(&value, data_, 4);
    const bool fraction = take() % 2 == 0;
    const uint8_t share = take();
    take(), take();
    return fraction ? static_cast<float>(share) / 255 : value;
  }

 private:
  uint8_t take() {
    --size_;
    return *data_++;
  }
  const uint8_t* data_;
  size_t size_;
};

void check_terminal(const AttentionMatrix& matrix, Input& input) {
  const TerminalOptions options{
      .shades = input.number(2) == 0 ? TerminalShades::ascii : TerminalShades::blocks,
      .width = static_cast<int>(20 + input.number(200))};
  const std::string text = terminal_map(matrix, options);
  require(is_utf8(text), "terminal text is not UTF-8");
  for (char32_t c : code_points(text))
    require(c == '\n' || (c >= 0x20 && (c < 0x7F || c >= 0xA0) && (c < 0x202A || c > 0x202E) &&
                          (c < 0x2066 || c > 0x2069)),
            "control character in the terminal");
}

void check_chart(const AttentionMatrix& matrix, Input& input) {
  Curve curve{matrix.title, {}, {}};
  for (float w : matrix.weights) {
    curve.x.push_back(static_cast<double>(input.weight()));
    curve.y.push_back(static_cast<double>(w));
  }
  const std::string svg = svg_chart(
      {.title = matrix.title, .x_name = matrix.title, .y_name = "y", .curves = {curve, curve}});
  require(XmlScan(svg).run().empty(), "chart: " + XmlScan(svg).run());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  AttentionMatrix matrix;
  matrix.source.resize(input.number(6));
  matrix.target.resize(input.number(6));
  for (std::string& word : matrix.source) word = input.word();
  for (std::string& word : matrix.target) word = input.word();
  matrix.title = input.word();
  for (size_t i = 0; i < matrix.source.size() * matrix.target.size(); ++i)
    matrix.weights.push_back(input.weight());
  const std::string svg = svg_map(matrix, matrix.title);
  require(XmlScan(svg).run().empty(), "map: " + XmlScan(svg).run());
  const std::string grid =
      svg_grid({.layers = {{matrix, matrix}, {matrix}}, .title = matrix.title});
  require(XmlScan(grid).run().empty(), "grid: " + XmlScan(grid).run());
  check_terminal(matrix, input);
  check_chart(matrix, input);
  return 0;
}

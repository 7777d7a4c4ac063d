#include "view/bars.h"

#include <algorithm>
#include <cstdio>

#include "view/colour.h"
#include "view/drawing.h"
#include "view/label.h"

namespace fovea {
namespace {

constexpr double kPad = Drawing::kPad, kHigh = 120, kSlant = 0.7071, kWordSize = 13;

class BarPicture {
 public:
  explicit BarPicture(const AttentionMatrix& matrix)
      : matrix_(matrix), top_(scale_top(matrix)), wide_(matrix.source.size() <= 24 ? 36 : 18) {
    for (const std::string& word : matrix.source) words_.push_back(label(word));
  }

  std::string draw() {
    const double across = wide_ * static_cast<double>(words_.size());
    double reach = 0;  // pixels of the slanted words below and left of their start
    for (const std::string& word : words_)
      reach = std::max(reach, text_width(word, kWordSize) * kSlant + kWordSize);
    const double left = kPad + reach;
    const double width = std::max(320.0, left + across + kPad);
    const double base = drawing_.heading(matrix_.title, width) + 24 + kHigh;
    for (size_t j = 0; j < words_.size(); ++j) bar(j, left + wide_ * static_cast<double>(j), base);
    drawing_.add("<path class=\"frame\" d=\"M" + number(left) + " " + number(base) + "h" +
                 number(across) + "\"/>\n");
    const Drawing::Text note{.x = kPad, .y = base + reach + 24, .size = 11, .style = "faint"};
    const double y = drawing_.paragraph(matrix_.marks.note, note, width - 2 * kPad, 8, 15);
    return drawing_.finish({width, y + kPad - 16},
                           matrix_.title.empty() ? "Attention to each word" : matrix_.title,
                           description());
  }

 private:
  void bar(size_t j, double x, double base) {
    const float weight = matrix_.at(0, j);
    const bool known = drawable(weight);
    const double share = known ? std::clamp(static_cast<double>(weight / top_), 0.0, 1.0) : 0;
    const double high = share * kHigh, gap = wide_ * 0.12;
    char value[32];
    std::snprintf(value, sizeof value, "%.4f", static_cast<double>(weight));
    drawing_.add("<g>");
    drawing_.tooltip(words_[j] + ": " + (known ? value : "no value"));
    drawing_.add("<rect class=\"" + drawing_.paint(kColourSteps * 5 / 8) + "\" x=\"" +
                 number(x + gap) + "\" y=\"" + number(base - high) + "\" width=\"" +
                 number(wide_ - 2 * gap) + "\" height=\"" + number(high) + "\"/>");
    if (wide_ >= 28)
      drawing_.text(known ? short_weight(weight) : "?", {.x = x + wide_ / 2,
                                                         .y = base - high - 5,
                                                         .size = 11,
                                                         .style = "faint",
                                                         .anchor = "middle"});
    drawing_.add("</g>\n");
    drawing_.text(words_[j], {.x = x + wide_ / 2 + kWordSize * 0.3,
                              .y = base + kWordSize,
                              .size = kWordSize,
                              .anchor = "end",
                              .turn = -45});
  }

  std::string description() const {
    std::string text;
    for (size_t j = 0; j < words_.size() && text.size() < 1500; ++j)
      text += words_[j] + " " + short_weight(matrix_.at(0, j)) + "; ";
    return text;
  }

  const AttentionMatrix& matrix_;
  std::vector<std::string> words_;
  float top_;
  double wide_;
  Drawing drawing_;
};

}  // namespace

std::string svg_bars(const AttentionMatrix& matrix) {
  check_shape(matrix);
  return BarPicture(matrix).draw();
}

}  // namespace fovea

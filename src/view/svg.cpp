#include "view/svg.h"

#include <algorithm>
#include <cstdio>

#include "base/check.h"
#include "view/annotations_svg.h"
#include "view/bars.h"
#include "view/colour.h"
#include "view/drawing.h"
#include "view/label.h"

namespace fovea {
namespace {

constexpr double kPad = Drawing::kPad;
constexpr double kSlant = 0.7071;           // sin 45°: source words are slanted by 45°
constexpr double kValueCell = 28;           // if cells are this large, they show weights
constexpr size_t kEveryCellLimit = 40'000;  // if a map has more cells, blank cells are omitted

double cell_size(size_t words) {
  if (words <= 14) return 36;
  if (words <= 24) return 30;
  if (words <= 40) return 22;
  if (words <= 80) return 14;
  return 8;
}

double widest(const std::vector<std::string>& labels, double size) {
  double width = 0;
  for (const std::string& word : labels) width = std::max(width, text_width(word, size));
  return width;
}

std::vector<std::string> label_all(const std::vector<std::string>& words, int columns) {
  std::vector<std::string> labels;
  for (const std::string& word : words) labels.push_back(label(word, columns));
  return labels;
}

std::string square(const std::string& style, double x, double y, double side) {
  return "<rect class=\"" + style + "\" x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" +
         number(side) + "\" height=\"" + number(side) + "\"/>";
}

// The words at the left and upper edges of a map. (x, y) is the upper left corner of the first cell
// of the map.
struct Words {
  std::vector<std::string> source, target;
  double cell, size;

  Words(const AttentionMatrix& matrix, int columns, double cell_side)
      : source(label_all(matrix.source, columns)), target(label_all(matrix.target, columns)),
        cell(cell_side), size(std::clamp(cell_side * 0.42, std::min(9.0, cell_side * 0.62), 14.0)) {
  }

  double left() const { return widest(target, size) + 8; }
  double above() const { return widest(source, size) * kSlant + size; }
  double overhang() const {  // pixels of a slanted word right of the last column
    double reach = 0;
    for (size_t j = 0; j < source.size(); ++j) {
      const double from = (static_cast<double>(j) + 0.5) * cell;
      reach = std::max(reach, from + text_width(source[j], size) * kSlant + size);
    }
    return std::max(0.0, reach - cell * static_cast<double>(source.size()));
  }

  void draw_source(Drawing& drawing, double x, double y) const {
    for (size_t j = 0; j < source.size(); ++j)
      drawing.text(source[j], {.x = x + (static_cast<double>(j) + 0.5) * cell + size * 0.3,
                               .y = y - 6,
                               .size = size,
                               .turn = -45});
  }
  void draw_target(Drawing& drawing, double x, double y) const {
    for (size_t i = 0; i < target.size(); ++i)
      drawing.text(target[i], {.x = x - 7,
                               .y = y + (static_cast<double>(i) + 0.5) * cell + size * 0.35,
                               .size = size,
                               .anchor = "end"});
  }
};

// A picture with one large map.
class MapPicture {
 public:
  MapPicture(const AttentionMatrix& matrix, const std::string& caption)
      : matrix_(matrix), caption_(caption),
        cell_(cell_size(std::max(matrix.source.size(), matrix.target.size()))),
        words_(matrix, 24, cell_), top_(scale_top(matrix)) {}

  std::string draw() {
    const double across = cell_ * static_cast<double>(matrix_.source.size());
    const double down = cell_ * static_cast<double>(matrix_.target.size());
    const double width = std::max(280.0, 2 * kPad + words_.left() + across + words_.overhang());
    double y = drawing_.heading(matrix_.title, width) + (matrix_.title.empty() ? 0 : 6);
    const double left = kPad + words_.left(), top = y + words_.above();
    words_.draw_source(drawing_, left, top);
    words_.draw_target(drawing_, left, top);
    drawing_.add("<g transform=\"translate(" + number(left) + " " + number(top) +
                 ")\" stroke-width=\"" + (cell_ >= 12 ? "1" : "0.4") + "\">\n");
    cells();
    if (!matrix_.marks.has(MatrixSeries::Kind::chosen)) outlines();
    draw_marks(drawing_, matrix_, cell_);
    drawing_.add("</g>\n");
    y = footer(top + down + 16, width);
    return drawing_.finish({width, y + kPad - 6},
                           matrix_.title.empty() ? "Attention matrix" : matrix_.title,
                           description());
  }

 private:
  void cells() {
    const bool sparse = matrix_.weights.size() > kEveryCellLimit;
    for (size_t i = 0; i < matrix_.target.size(); ++i)
      for (size_t j = 0; j < matrix_.source.size(); ++j)
        if (!sparse || scale_step(matrix_.at(i, j), top_) > 0 || !drawable(matrix_.at(i, j)))
          cell(i, j);
  }

  void outlines() {
    const double inset = cell_ >= kValueCell ? 1.5 : 0.9;
    drawing_.add("<g stroke-width=\"" +
                 number(cell_ >= kValueCell ? 2
                        : cell_ >= 12       ? 1.2
                                            : 0.8) +
                 "\">\n");
    for (size_t i = 0; i < matrix_.target.size(); ++i)
      if (const size_t j = strongest(matrix_, i); j < matrix_.source.size())
        drawing_.add("<rect class=\"best\" pointer-events=\"none\" x=\"" +
                     number(column(j) + inset) + "\" y=\"" + number(column(i) + inset) +
                     "\" width=\"" + number(cell_ - 2 * inset) + "\" height=\"" +
                     number(cell_ - 2 * inset) + "\"/>\n");
    drawing_.add("</g>\n");
  }

  void cell(size_t i, size_t j) {
    const float weight = matrix_.at(i, j);
    const bool known = drawable(weight);
    const int step = known ? scale_step(weight, top_) : 0;
    drawing_.add("<g>");
    char value[32];
    std::snprintf(value, sizeof value, "%.4f", static_cast<double>(weight));
    drawing_.tooltip(words_.target[i] + " → " + words_.source[j] + ": " +
                     (known ? value : "no value"));
    drawing_.add(square(known ? "cell " + drawing_.paint(step) : "cell unknown", column(j),
                        column(i), cell_));
    if (known && cell_ >= kValueCell && weight >= 0.005f) {
      const std::string ink = weight < 0.05f ? "faint" : drawing_.ink_on(step);
      drawing_.text(short_weight(weight), {.x = column(j) + cell_ / 2,
                                           .y = column(i) + cell_ / 2 + cell_ * 0.115,
                                           .size = cell_ * 0.33,
                                           .style = ink.c_str(),
                                           .anchor = "middle"});
    }
    drawing_.add("</g>\n");
  }

  double column(size_t j) const { return cell_ * static_cast<double>(j); }

  double footer(double y, double width) {
    drawing_.rule(".fovea .cell{stroke:#e1e6ec}", ".fovea .cell{stroke:#262c36}");
    drawing_.scale_bar(kPad, y, 110, top_);
    if (!matrix_.marks.has(MatrixSeries::Kind::chosen)) {
      drawing_.add("<g stroke-width=\"2\">" + square("best", kPad + 131, y - 2, 11) + "</g>\n");
      drawing_.text("largest of its row",
                    {.x = kPad + 148, .y = y + 7.5, .size = 11, .style = "faint"});
    }
    const Drawing::Text first_sign{.x = kPad, .y = y + 42, .size = 11, .style = "faint"};
    y = draw_mark_legend(drawing_, matrix_.marks, first_sign, width - 2 * kPad) - 4;
    return drawing_.paragraph(caption_ + " " + matrix_.marks.note,
                              {.x = kPad, .y = y, .size = 11, .style = "faint"}, width - 2 * kPad,
                              10, 15) -
           10;
  }

  std::string description() const {
    std::string text;
    for (size_t i = 0; i < words_.target.size() && text.size() < 1500; ++i)
      if (const size_t j = strongest(matrix_, i); j < words_.source.size())
        text += words_.target[i] + " → " + words_.source[j] + " " + short_weight(matrix_.at(i, j)) +
                "; ";
    return text;
  }

  const AttentionMatrix& matrix_;
  const std::string& caption_;
  double cell_;
  Words words_;
  float top_;
  Drawing drawing_;
};

// Draws a map without words. All cells with the same step of the colour scale form one path, so
// that the file stays small if there are many maps.
void thumbnail(Drawing& drawing, const AttentionMatrix& matrix, double cell, float top) {
  std::vector<std::string> squares(kColourSteps + 1);
  const std::string side = number(cell), back = "h-" + side + "z";
  for (size_t i = 0; i < matrix.target.size(); ++i)
    for (size_t j = 0; j < matrix.source.size(); ++j) {
      const float weight = matrix.at(i, j);
      const int step = drawable(weight) ? scale_step(weight, top) : 0;
      if (step > 0)
        squares[static_cast<size_t>(step)] += "M" + number(static_cast<double>(j) * cell) + " " +
                                              number(static_cast<double>(i) * cell) + "h" + side +
                                              "v" + side + back;
    }
  for (int step = 1; step <= kColourSteps; ++step)
    if (const std::string& path = squares[static_cast<size_t>(step)]; !path.empty())
      drawing.add("<path class=\"" + drawing.paint(step) + "\" d=\"" + path + "\"/>\n");
}

float common_top(const AttentionGrid& grid) {
  float top = 0;
  for (const auto& heads : grid.layers)
    for (const AttentionMatrix& matrix : heads) top = std::max(top, scale_top(matrix));
  return top > 0 ? top : 1;
}

// A picture with thumbnails of the maps of all heads, at equal distances. If there is enough space,
// the words are at its left and upper edges.
class GridPicture {
 public:
  explicit GridPicture(const AttentionGrid& grid)
      : grid_(grid), first_(grid.layers[0][0]), cell_(cell_side(first_)), words_(first_, 14, cell_),
        legible_(cell_ >= 9), wide_(cell_ * static_cast<double>(first_.source.size())),
        high_(cell_ * static_cast<double>(first_.target.size())), scale_(common_top(grid)) {
    for (const auto& layer : grid.layers) heads_ = std::max(heads_, layer.size());
  }

  std::string draw() {
    left_ = kPad + 56 + (legible_ ? words_.left() : 0);
    const double right = x_of(heads_) - kGap;
    const double width = std::max(300.0, right + kPad + (legible_ ? words_.overhang() : 0));
    double y = drawing_.heading(grid_.title, width);
    top_ = y + 26 + (legible_ ? words_.above() : 4);
    for (size_t h = 0; h < heads_; ++h) {
      drawing_.text("head " + std::to_string(h), {.x = x_of(h) + wide_ / 2,
                                                  .y = y + 16,
                                                  .size = 12,
                                                  .style = "faint",
                                                  .anchor = "middle"});
      if (legible_) words_.draw_source(drawing_, x_of(h), top_);
    }
    for (size_t l = 0; l < grid_.layers.size(); ++l) draw_layer(l);
    y = y_of(grid_.layers.size());
    drawing_.scale_bar(kPad, y + 4, 110, scale_);
    const std::string name = "Attention of all layers and heads";
    return drawing_.finish(
        {width, y + 30 + kPad}, grid_.title.empty() ? name : grid_.title,
        std::to_string(grid_.layers.size()) + " layers of " + std::to_string(heads_) + " heads");
  }

 private:
  static constexpr double kGap = 14;

  static double cell_side(const AttentionMatrix& first) {
    const size_t words = std::max({first.source.size(), first.target.size(), size_t{1}});
    return std::clamp(132 / static_cast<double>(words), 1.0, 14.0);
  }

  double x_of(size_t head) const { return left_ + static_cast<double>(head) * (wide_ + kGap); }
  double y_of(size_t layer) const { return top_ + static_cast<double>(layer) * (high_ + kGap); }

  void draw_layer(size_t l) {
    drawing_.text("layer " + std::to_string(l),
                  {.x = kPad, .y = y_of(l) + high_ / 2 + 4, .size = 12, .style = "faint"});
    if (legible_) words_.draw_target(drawing_, left_, y_of(l));
    for (size_t h = 0; h < grid_.layers[l].size(); ++h) {
      drawing_.add("<g transform=\"translate(" + number(x_of(h)) + " " + number(y_of(l)) + ")\">");
      drawing_.tooltip("layer " + std::to_string(l) + ", head " + std::to_string(h));
      drawing_.add(box(drawing_.paint(0)));
      thumbnail(drawing_, grid_.layers[l][h], cell_, scale_);
      drawing_.add(box("frame") + "</g>\n");
    }
  }

  std::string box(const std::string& style) const {
    return "<rect class=\"" + style + "\" width=\"" + number(wide_) + "\" height=\"" +
           number(high_) + "\"/>\n";
  }

  const AttentionGrid& grid_;
  const AttentionMatrix& first_;
  double cell_;
  Words words_;
  bool legible_;
  double wide_, high_, left_ = 0, top_ = 0;
  float scale_;
  size_t heads_ = 0;
  Drawing drawing_;
};

}  // namespace

std::string svg_map(const AttentionMatrix& matrix, const std::string& caption) {
  check_shape(matrix);
  if (matrix.marks.rows == MatrixAnnotations::Rows::same && !matrix.target.empty())
    return svg_bars(matrix);
  return MapPicture(matrix, caption).draw();
}

std::string svg_grid(const AttentionGrid& grid) {
  check(!grid.layers.empty() && !grid.layers[0].empty(), ExitCode::data,
        "attention of no layer or no head cannot be drawn");
  const AttentionMatrix& first = grid.layers[0][0];
  for (const auto& layer : grid.layers)
    for (const AttentionMatrix& matrix : layer) {
      check_shape(matrix);
      check(matrix.source.size() == first.source.size() &&
                matrix.target.size() == first.target.size(),
            ExitCode::data, "attention matrices of different sizes cannot share a grid");
    }
  return GridPicture(grid).draw();
}

}  // namespace fovea

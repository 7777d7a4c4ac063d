#include "view/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "view/annotations_text.h"
#include "view/colour.h"
#include "view/label.h"

namespace fovea {
namespace {

constexpr const char* kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr const char* kAscii[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};
constexpr int kCell = 2;                        // columns of a cell; a character is narrow
constexpr int kWordColumns = 20;                // longer words are shortened with …
constexpr int kNarrowest = 20, kWidest = 1000;  // limits of the width of a terminal, in columns

std::string shade_of(int step, const TerminalOptions& options) {
  const int level = (step * 8 + kColourSteps - 1) / kColourSteps;
  return (options.shades == TerminalShades::ascii ? kAscii : kBlocks)[level];
}

// Returns the escape sequence that sets the background of a cell and the colour of the text on it.
std::string paint_of(int step, const TerminalOptions& options) {
  const Colour ground = scale_colour(step, options.dark_ground);
  const bool light_ink = ink_on(ground).red > 128;
  if (options.shades == TerminalShades::colours_256)
    return "\x1b[48;5;" + std::to_string(indexed_colour(step, options.dark_ground)) +
           (light_ink ? ";38;5;231m" : ";38;5;16m");
  return "\x1b[48;2;" + std::to_string(ground.red) + ";" + std::to_string(ground.green) + ";" +
         std::to_string(ground.blue) + (light_ink ? ";38;2;255;255;255m" : ";38;2;22;27;34m");
}

// Returns the text as a line: without trailing blanks, with a newline.
std::string line(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string spaces(int count) { return std::string(static_cast<size_t>(std::max(count, 0)), ' '); }

// Returns the text with direction marks around it. Without them, a terminal that reorders
// right-to-left text would move cells together with a word. `text` is a word, or one letter of a
// word whose letters are below each other.
std::string fixed_in_place(const std::string& text) {
  if (!right_to_left(text)) return text;
  return "\u200E" + text + "\u200E";
}

// Draws one attention map for one terminal.
class Map {
 public:
  Map(const AttentionMatrix& matrix, const TerminalOptions& options)
      : matrix_(matrix), options_(options), top_(scale_top(matrix)) {
    const int room = std::max(4, std::min(kWordColumns, options.width / 3));
    for (const auto& word : matrix.source) source_.push_back(label(word, room));
    for (const auto& word : matrix.target) target_.push_back(label(word, room));
    stairs_ = source_.size() <= 20 || std::ranges::any_of(source_, joined_script);
    for (const auto& word : target_) margin_ = std::max(margin_, columns(word));
    for (size_t i = 0; i < target_.size(); ++i) strongest_.push_back(strongest(matrix, i));
    signs_ = options.shades == TerminalShades::ascii ? MarkSigns::ascii() : MarkSigns::blocks();
  }

  std::string draw() const {
    std::string out;
    if (!matrix_.title.empty()) out += label(matrix_.title, std::max(options_.width, 8)) + "\n\n";
    for (size_t first = 0; first < source_.size();) {
      const size_t last = panel_end(first);
      if (first > 0 || last < source_.size()) {
        const std::string range = "words " + std::to_string(first + 1) + " to " +
                                  std::to_string(last) + " of " + std::to_string(source_.size());
        out += (first > 0 ? "\n" : "") + indent(columns(range)) + range + "\n";
      }
      out += header(first, last);
      for (size_t i = 0; i < target_.size(); ++i) out += row(i, first, last);
      first = last;
    }
    return out + legend();
  }

 private:
  int cells_width(size_t count) const { return margin_ + 1 + kCell * static_cast<int>(count); }

  // Returns the index after the last source word of the panel that begins with source word `first`.
  // A panel has as many columns as fit into the width, but at least one. If stairs_ is true, the
  // words above the columns must fit, too.
  size_t panel_end(size_t first) const {
    const auto words_fit = [&](size_t last) {
      for (size_t j = first; j < last; ++j)
        if (cells_width(j - first) + columns(source_[j]) > options_.width) return false;
      return true;
    };
    size_t last = first + 1;
    while (last < source_.size() && cells_width(last + 1 - first) <= options_.width &&
           (!stairs_ || words_fit(last + 1)))
      ++last;
    return last;
  }

  std::string header(size_t first, size_t last) const {
    return stairs_ ? stairs_header(first, last) : upright_header(first, last);
  }

  std::string stairs_header(size_t first, size_t last) const {
    const char* leader = options_.shades == TerminalShades::ascii ? "| " : "│ ";
    std::string out, leaders;
    for (size_t j = first; j < last; ++j) {
      out += spaces(margin_ + 1) + faint(leaders) + fixed_in_place(source_[j]) + "\n";
      leaders += leader;
    }
    return out;
  }

  std::string upright_header(size_t first, size_t last) const {
    std::vector<std::vector<std::string>> words;
    size_t height = 0;
    for (size_t j = first; j < last; ++j) {
      words.push_back(letters(source_[j]));
      height = std::max(height, words.back().size());
    }
    std::string out;
    for (size_t depth = 0; depth < height; ++depth) {
      std::string text = spaces(margin_ + 1);
      for (const auto& word : words) {
        const size_t above = height - word.size();  // so that words end directly above the cells
        const std::string letter = depth < above ? "" : word[depth - above];
        text += fixed_in_place(letter) + spaces(kCell - columns(letter));
      }
      out += line(text);
    }
    return out;
  }

  std::string row(size_t i, size_t first, size_t last) const {
    std::string out = spaces(margin_ - columns(target_[i])) + fixed_in_place(target_[i]) + " ";
    for (size_t j = first; j < last; ++j) out += cell(i, j);
    out += plain();
    const size_t best = strongest_[i];
    if (best >= first && best < last) {
      const std::string weight = short_weight(matrix_.at(i, best));
      const int used = cells_width(last - first) + 2 + 4 + columns(source_[best]);
      if (used <= options_.width)
        out += "  " + faint(weight + spaces(4 - columns(weight)) + fixed_in_place(source_[best]));
    }
    return line(out);
  }

  std::string cell(size_t i, size_t j) const {
    const float weight = matrix_.at(i, j);
    if (!drawable(weight)) return plain() + "??";
    const int step = scale_step(weight, top_);
    if (step == 0 && matrix_.marks.bars(i, j)) return barred();
    const bool best = j == strongest_[i];
    const std::string sign = signs_.at(matrix_.marks, i, j);
    if (!coloured()) return shade(step) + (!sign.empty() ? sign : best ? "<" : shade(step));
    return painted(step) + (best ? "[" : " ") + (!sign.empty() ? sign : best ? "]" : " ");
  }

  // Returns the sign of a cell to which the mechanism cannot attend.
  std::string barred() const { return plain() + faint(" " + signs_.barred); }

  std::string shade(int step) const { return shade_of(step, options_); }
  std::string painted(int step) const { return paint_of(step, options_); }

  std::string legend() const {
    std::string bar;
    for (int step = 0; step <= kColourSteps; step += kColourSteps / 16)
      bar += coloured() ? painted(step) + " " : shade(step);
    char top[16];
    std::snprintf(top, sizeof top, "%.3g", static_cast<double>(top_));
    const std::string mark = coloured() ? "[]" : shade(kColourSteps) + "<";
    const std::string scale = "0 " + bar + plain() + " " + top;
    const std::string meaning = "   " + mark + " largest of its row";
    constexpr int kScaleColumns = 25, kMeaningColumns = 24;             // maximum widths
    const bool chosen = matrix_.marks.has(MatrixSeries::Kind::chosen);  // its legend explains it
    const bool both = kScaleColumns + kMeaningColumns <= options_.width && !chosen;
    const int used = kScaleColumns + (both ? kMeaningColumns : 0);
    return "\n" + indent(used) + scale + (both ? meaning : "") + "\n" + mark_legend();
  }

  std::string mark_legend() const {
    constexpr int kReadable = 30;
    const bool indented = options_.width - margin_ - 1 >= kReadable;
    const int from = indented ? margin_ + 1 : 0;
    std::string out;
    for (const std::string& line : signs_.legend(matrix_.marks, options_.width - from))
      out += spaces(from) + line + "\n";
    return out;
  }

  // Returns the indentation that aligns a line of `used` columns with the cells. If the line does
  // not fit there, returns "".
  std::string indent(int used) const {
    return margin_ + 1 + used <= options_.width ? spaces(margin_ + 1) : "";
  }

  bool coloured() const { return options_.shades >= TerminalShades::colours_256; }
  std::string plain() const { return coloured() ? "\x1b[0m" : ""; }
  std::string faint(const std::string& text) const {
    return coloured() && !text.empty() ? "\x1b[2m" + text + "\x1b[0m" : text;
  }

  const AttentionMatrix& matrix_;
  const TerminalOptions& options_;
  std::vector<std::string> source_, target_;
  std::vector<size_t> strongest_;
  float top_;
  MarkSigns signs_;
  int margin_ = 0;
  // true: source words are horizontal, each on its own line, with a line down to its column (a
  // staircase). false: the letters of each word are below each other.
  bool stairs_ = false;
};

}  // namespace

TerminalOptions terminal_options(const Environment& environment, bool to_terminal) {
  const auto get = [&](const char* name) {
    const char* value = environment(name);
    return std::string(value ? value : "");
  };
  const auto holds = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  TerminalOptions options;
  std::string locale = get("LC_ALL");
  if (locale.empty()) locale = get("LC_CTYPE");
  if (locale.empty()) locale = get("LANG");
  const bool utf8 = holds(locale, "UTF-8") || holds(locale, "utf8") || holds(locale, "UTF8") ||
                    holds(locale, "utf-8");
  const std::string depth = get("COLORTERM"), term = get("TERM");
  options.shades = utf8 ? TerminalShades::blocks : TerminalShades::ascii;
  if (to_terminal && get("NO_COLOR").empty() && term != "dumb") {
    if (depth == "truecolor" || depth == "24bit")
      options.shades = TerminalShades::colours_24_bit;
    else if (holds(term, "256color"))
      options.shades = TerminalShades::colours_256;
  }
  const std::string ground = get("COLORFGBG");  // "15;0": foreground;background. 7 and 9 … 15 are
                                                // light.
  if (const size_t at = ground.rfind(';'); at != std::string::npos) {
    const int number = std::atoi(ground.c_str() + at + 1);
    options.dark_ground = number < 7 || number == 8;
  }
  if (const int width = std::atoi(get("COLUMNS").c_str()); width >= kNarrowest)
    options.width = std::min(width, kWidest);
  return options;
}

TerminalOptions standard_output_options() {
  const auto get = [](const char* name) -> const char* { return std::getenv(name); };
  const bool terminal = isatty(STDOUT_FILENO);
  TerminalOptions options = terminal_options(get, terminal);
  winsize size{};
  if (!get("COLUMNS") && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    options.width = std::clamp<int>(size.ws_col, kNarrowest, kWidest);
  return options;
}

std::string terminal_map(const AttentionMatrix& matrix, const TerminalOptions& options) {
  check_shape(matrix);
  if (matrix.source.empty() || matrix.target.empty()) return "(no words, no attention)\n";
  if (matrix.marks.rows == MatrixAnnotations::Rows::same) {
    AttentionMatrix once{matrix.source, {"every word"}, {}, matrix.title, {}};
    once.weights.assign(matrix.weights.begin(), matrix.weights.begin() + once.source.size());
    once.marks.note = matrix.marks.note;
    return Map(once, options).draw();
  }
  return Map(matrix, options).draw();
}

std::string shaded_words(const AttentionMatrix& matrix, size_t i, const TerminalOptions& options) {
  check_shape(matrix);
  const bool coloured = options.shades >= TerminalShades::colours_256;
  const float top = scale_top(matrix);
  std::string out;
  for (size_t j = 0; j < matrix.source.size(); ++j) {
    const std::string word = label(matrix.source[j], kWordColumns);
    const float weight = matrix.at(i, j);
    const int step = drawable(weight) ? scale_step(weight, top) : 0;
    out += j > 0 ? " " : "";
    if (step == 0)
      out += word;
    else if (coloured)
      out += paint_of(step, options) + word + "\x1b[0m";
    else
      out += word + shade_of(step, options);
  }
  return out;
}

}  // namespace fovea

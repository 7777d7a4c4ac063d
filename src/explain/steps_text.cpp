#include "explain/steps_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "view/label.h"

namespace fovea {
namespace {

constexpr size_t kInColumn = 3;  // maximum number of elements of a vector that a column shows
constexpr int kNumber = 7;       // terminal columns of a number, with a blank before it
constexpr int kGap = 2;          // blanks between two columns
constexpr int kBar = 8;
constexpr int kIndent = 3;
constexpr int kMostMargin = 14;

std::string number(double x) {
  const double size = std::abs(x);
  const int digits = size < 9.9995 ? 3 : size < 99.995 ? 2 : size < 999.95 ? 1 : -1;
  return digits < 0 ? fmt::format(" {:6.0e}", x) : fmt::format(" {:6.{}f}", x, digits);
}

std::string spaces(int count) { return std::string(static_cast<size_t>(std::max(count, 0)), ' '); }

std::string padded(const std::string& text, int width) {
  return text + spaces(width - columns(text));
}

// Returns the first `most` numbers of the row. If it has more numbers, `more` follows.
std::string vector_text(const std::vector<double>& row, size_t most, const std::string& more) {
  std::string text;
  for (size_t i = 0; i < std::min(most, row.size()); ++i) text += number(row[i]);
  return row.size() > most ? text + more : text;
}

class StepsText {
 public:
  StepsText(const ComputationSteps& steps, const std::vector<std::string>& words,
            const TerminalOptions& options)
      : all_(steps.all), options_(options), more_(ascii() ? " .." : " …") {
    for (const std::string& word : words) {
      words_.push_back(label(word, kMostMargin));
      margin_ = std::max(margin_, columns(words_.back()));
    }
  }

  std::string draw() {
    std::string out;
    for (size_t i = 0; i < all_.size();) {
      if (all_[i].of == ComputationStep::Of::query) {
        out += query(all_[i++]);
        continue;
      }
      const size_t end = table_end(i);
      for (size_t k = i; k < end; ++k) out += heading(all_[k]);
      out += "\n" + table(i, end) + "\n";
      i = end;
    }
    return out;
  }

 private:
  bool ascii() const { return options_.shades == TerminalShades::ascii; }

  std::string heading(const ComputationStep& step) {
    if (step.formula.empty()) return "";
    return fmt::format("{}  {}\n", ++number_, step.formula);
  }

  std::string query(const ComputationStep& step) {
    const std::string name = step.formula.empty() ? step.name + " " : "";
    const int room = options_.width - kIndent - columns(name) - columns(more_);
    const auto most = static_cast<size_t>(std::max(1, room / kNumber));
    return heading(step) + spaces(kIndent) + name + vector_text(step.rows.front(), most, more_) +
           "\n";
  }

  int width_of(const ComputationStep& step) const {
    const size_t size = step.rows.empty() ? 0 : step.rows.front().size();
    int width = kNumber * static_cast<int>(std::min(size, kInColumn));
    if (size > kInColumn) width += columns(more_);
    if (step.shown == ComputationStep::Display::share) width += 1 + kBar;
    return std::max(width, columns(step.name) + 1) + kGap;
  }

  // Beginning with step `first`, steps that fit into the width are columns of one table. Returns
  // the index after its last step; the table has at least one. If possible, a step with a formula
  // and the steps after it that have none stay in one table.
  size_t table_end(size_t first) const {
    int width = margin_;
    size_t step = first;  // the last step with a formula
    for (size_t end = first; end < all_.size() && all_[end].of == ComputationStep::Of::words;
         ++end) {
      if (!all_[end].formula.empty()) step = end;
      width += width_of(all_[end]);
      if (end > first && width > options_.width) return step > first ? step : end;
      if (end + 1 == all_.size() || all_[end + 1].of != ComputationStep::Of::words) return end + 1;
    }
    return first + 1;
  }

  std::string table(size_t first, size_t end) const {
    std::string head = spaces(margin_);
    for (size_t k = first; k < end; ++k) {
      const bool one = all_[k].rows.front().size() == 1;  // the name and the number are
                                                          // right-aligned
      const std::string lead = spaces(one ? std::max(1, kNumber - columns(all_[k].name)) : kGap);
      head += padded(lead + all_[k].name, width_of(all_[k]));
    }
    std::string out = line(head);
    for (size_t j = 0; j < words_.size() && j < all_[first].rows.size(); ++j) {
      std::string row = padded(words_[j], margin_);
      for (size_t k = first; k < end; ++k) row += padded(cell(all_[k], j), width_of(all_[k]));
      out += line(row);
    }
    return out;
  }

  std::string cell(const ComputationStep& step, size_t j) const {
    const std::string text = vector_text(step.rows[j], kInColumn, more_);
    return step.shown == ComputationStep::Display::share ? text + " " + bar(step.rows[j].front())
                                                         : text;
  }

  std::string bar(double share) const {
    const double length = std::clamp(share, 0.0, 1.0) * kBar;
    std::string text;
    for (int i = 0; i < static_cast<int>(std::lround(length)) && ascii(); ++i) text += '#';
    if (ascii()) return text;
    static constexpr const char* kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
    auto eighths = static_cast<size_t>(std::lround(length * 8));
    for (; eighths >= 8; eighths -= 8) text += kParts[8];
    return text + kParts[eighths];
  }

  static std::string line(std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  }

  const std::vector<ComputationStep>& all_;
  const TerminalOptions& options_;
  std::string more_;
  std::vector<std::string> words_;
  int margin_ = 0, number_ = 0;
};

}  // namespace

std::string terminal_steps(const ComputationSteps& steps, const std::vector<std::string>& words,
                           const TerminalOptions& options) {
  return StepsText(steps, words, options).draw();
}

}  // namespace fovea

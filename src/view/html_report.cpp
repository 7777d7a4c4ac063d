#include "view/html_report.h"

#include <algorithm>

#include "view/label.h"

namespace fovea {
namespace {

constexpr int kLongest = 2000;  // maximum number of terminal columns of a text

constexpr const char* kStyle =
    ":root{color-scheme:light dark}"
    "body{margin:0 "
    "auto;max-width:72rem;padding:1.5rem;background:#fff;color:#1f2328;"
    "font:15px/1.5 Inter,'Segoe UI','Helvetica Neue',Helvetica,Arial,'Noto "
    "Sans',sans-serif}"
    "h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.2rem}"
    ".wide{overflow-x:auto}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "th,td{padding:.3rem .8rem;border-bottom:1px solid "
    "#d1d9e0;text-align:right;"
    "white-space:nowrap}"
    "th{font-weight:600}th.t,td.t{text-align:left}"
    ".figures{display:grid;gap:2rem 1.5rem;align-items:start;"
    "grid-template-columns:repeat(auto-fill,minmax(min(100%,30rem),1fr))}"
    "figure{margin:0;min-width:0;overflow-x:auto}figure:only-child{grid-column:1/-1}"
    "figcaption{font-weight:600}figure p{margin:.2rem 0}"
    "svg{max-width:100%;height:auto}"
    "@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}"
    "th,td{border-color:#30363d}}";

std::string safe(const std::string& words) { return xml(label(words, kLongest)); }

// Returns an HTML element that contains the text. If the text is empty, returns "".
std::string element(const std::string& tag, const std::string& words) {
  return words.empty() ? "" : "<" + tag + ">" + safe(words) + "</" + tag + ">";
}

struct Html {
  std::string operator()(const PageHeading& heading) const {
    return "<h2>" + safe(heading.words) + "</h2>\n";
  }
  std::string operator()(const PageText& text) const { return "<p>" + safe(text.words) + "</p>\n"; }
  std::string operator()(const PageTable& table) const {
    std::string out = "<div class=\"wide\"><table>\n<thead>" + row(table, table.head, "th") +
                      "</thead>\n<tbody>\n";
    for (const auto& cells : table.rows) out += row(table, cells, "td") + "\n";
    return out + "</tbody></table></div>\n";
  }
  std::string operator()(const PageFigures& figures) const {
    std::string out = "<div class=\"figures\">\n";
    for (const auto& [title, svg, words] : figures.figures)
      out += "<figure>" + element("figcaption", title) + svg + element("p", words) + "</figure>\n";
    return out + "</div>\n";
  }

 private:
  static std::string row(const PageTable& table, const std::vector<std::string>& cells,
                         const std::string& tag) {
    std::string out = "<tr>";
    for (size_t k = 0; k < cells.size(); ++k)
      out += "<" + tag + (k < table.text_columns ? " class=\"t\">" : ">") + safe(cells[k]) + "</" +
             tag + ">";
    return out + "</tr>";
  }
};

// Escapes a text for Markdown, so that it is also safe in cells of tables.
std::string plain(const std::string& words) {
  std::string out;
  for (const char c : label(words, kLongest)) {
    if (c == '|' || c == '<' || c == '*' || c == '`') out += '\\';
    out += c;
  }
  return out;
}

struct Markdown {
  std::string operator()(const PageHeading& heading) const {
    return "## " + plain(heading.words) + "\n\n";
  }
  std::string operator()(const PageText& text) const { return plain(text.words) + "\n\n"; }
  std::string operator()(const PageTable& table) const {
    std::string out = row(table.head) + "|";
    for (size_t k = 0; k < table.head.size(); ++k) out += k < table.text_columns ? "---|" : "--:|";
    out += "\n";
    for (const auto& cells : table.rows) out += row(cells);
    return out + "\n";
  }
  std::string operator()(const PageFigures& figures) const {
    std::string out;
    for (const auto& [title, svg, words] : figures.figures)
      if (!words.empty()) out += "- " + plain(title) + ": " + plain(words) + "\n";
    return out.empty() ? "" : out + "\n";
  }

 private:
  static std::string row(const std::vector<std::string>& cells) {
    std::string out = "|";
    for (const std::string& cell : cells) out += " " + plain(cell) + " |";
    return out + "\n";
  }
};

}  // namespace

std::string html_page(const HtmlReport& page) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
      "<meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"/>\n<title>" +
      safe(page.title) + "</title>\n<style>" + kStyle + "</style></head>\n<body>\n<h1>" +
      safe(page.title) + "</h1>\n";
  for (const PageBlock& block : page.blocks) out += std::visit(Html{}, block);
  return out + "</body></html>\n";
}

std::string markdown_page(const HtmlReport& page) {
  std::string out = "# " + plain(page.title) + "\n\n";
  for (const PageBlock& block : page.blocks) out += std::visit(Markdown{}, block);
  return out;
}

}  // namespace fovea

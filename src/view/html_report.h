#pragma once

#include <string>
#include <variant>
#include <vector>

namespace fovea {

struct PageTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;  // cells; a row may be shorter than the head
  size_t text_columns = 1;                     // the first ones; the others are numbers, set right
};

// Pictures side by side where there is room.
struct PageFigures {
  struct Figure {
    std::string title;
    std::string svg;         // as Drawing::finish makes it; empty: only words
    std::string words = {};  // below it
  };
  std::vector<Figure> figures;
};

struct PageText {
  std::string words;
};

struct PageHeading {
  std::string words;
};

using PageBlock = std::variant<PageHeading, PageText, PageTable, PageFigures>;

// A page that is one file: no scripts, nothing from elsewhere, light or dark as
// the reader's system is. Every string but svg may hold any bytes.
struct HtmlReport {
  std::string title;
  std::vector<PageBlock> blocks;
};

// HTML that is well-formed XML as well.
std::string html_page(const HtmlReport& page);

// The same without the pictures' drawings, for reading as text.
std::string markdown_page(const HtmlReport& page);

}  // namespace fovea

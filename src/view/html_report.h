#pragma once

#include <string>
#include <variant>
#include <vector>

namespace fovea {

struct PageTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;  // a row may have fewer cells than the head
  size_t text_columns = 1;                     // the first columns; the others are right-aligned
};

// Pictures side by side if there is enough space.
struct PageFigures {
  struct Figure {
    std::string title;
    std::string svg;         // from Drawing::finish(); may be empty
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

// A page in one file: it has no scripts and loads nothing. It is light or dark as the reader's
// system. All strings except svg may have any bytes.
struct HtmlReport {
  std::string title;
  std::vector<PageBlock> blocks;
};

// The page as HTML that is also well-formed XML.
std::string html_page(const HtmlReport& page);

// The page as Markdown, without the pictures.
std::string markdown_page(const HtmlReport& page);

}  // namespace fovea

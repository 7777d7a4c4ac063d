#pragma once

#include <string>
#include <variant>
#include <vector>

namespace fovea {

struct PageTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;  // a row may have fewer cells than the heading
  size_t text_columns = 1;                     // first columns, left-aligned; others right-aligned
};

// Pictures that are side by side if the page is wide enough.
struct PageFigures {
  struct Figure {
    std::string title;
    std::string svg;         // from Drawing::finish(); may be empty
    std::string words = {};  // text below the picture
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

// A page in one file. It has no scripts and loads no other file. It is light or dark, as the
// reader's system is. All strings except `svg` may have any bytes.
struct HtmlReport {
  std::string title;
  std::vector<PageBlock> blocks;
};

// Returns the page as HTML that is also well-formed XML.
std::string html_page(const HtmlReport& page);

// Returns the page as Markdown, without the pictures.
std::string markdown_page(const HtmlReport& page);

}  // namespace fovea

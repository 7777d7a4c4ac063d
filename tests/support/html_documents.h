#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace fovea::testing {

using namespace std::string_view_literals;

// Parts of documents that browsers read differently than they look.
inline constexpr std::string_view kHostileParts[] = {
    // Comments, bogus comments, doctypes, CDATA sections.
    "<!-- x -->", "<!-->", "<!--->", "<!--", "-->", "--!>", "<!-- a --!>", "<!--<!-->", "<!---!>",
    "<!----!>", "</3", "</ ", "</>", "</\f>", "</", "<!x", "<!", "<?xml version='1'?>", "<?",
    "<!DOCTYPE html>", "<!doctype x \">\">", "<![CDATA[", "]]>", "<![CDATA[ a > b ]]>",
    "<![cdata[ x ]]>", "<![CDATA[ <img src=c onerror=c()> ]]>", "<!ENTITY x '<'>",
    // Attributes and blanks of all kinds.
    "<p title=\f\"", "<p title=\"", "<p title='", "<p title=`", "<i title=\"><b>\">", "\">", "'>",
    "<p =\">", "<p a='b\"c'd=\"e>f\">", "<p/title=\">", "<b a=b/>", "<b/>", "<a\vb=\">",
    "<a\rb=\">", "<p title=\t'>'>", "<p title\f=\f'>'>", "<p a\"=\">", "<p a<b>", "<p <b>", "<b",
    "<i a=", "<p\0a=\">"sv, "<p title=a\"b>", "<p title==\"a>\">", "<a href=javascript:x()>",
    "<P\nONCLICK=x>",
    // Raw text.
    "<script>", "</script>", "<script/>", "</script x=\">\">", "</scriptx>", "</script\f",
    "<script><!--<script>", "<script>var a = '&lt;b&gt;';</script>", "<style>", "</style>",
    "<style>a<b</style>", "<textarea>", "</textarea>", "<title>", "</title>", "<title><b>x</title>",
    "<title/>", "<xmp>", "</xmp>", "<noembed>", "</noembed>", "<noframes>", "</noframes>",
    "<iframe>", "</iframe>", "<noscript>", "</noscript>", "<noscript><p title=\"</noscript>\">",
    "<plaintext>", "<listing>\n", "<TEXTAREA\f>", "</TextArea/>",
    // Foreign content, and tags that end it.
    "<svg>", "</svg>", "<svg/>", "<math>", "</math>", "<math><mi>", "</mi>", "<mtext>", "</mtext>",
    "<svg><desc>", "</desc>", "<svg><title>", "<foreignObject>", "</foreignObject>",
    "<annotation-xml encoding='text/html'>", "</annotation-xml>", "<svg><style>",
    "<svg><path></svg>", "<svg><style><a title='</style><img src=s onerror=s()>'>",
    "<svg></p><style>", "<mglyph>", "<svg><script>a &lt; b</script></svg>", "<svg><p>",
    "<math><annotation-xml><svg>", "<path/>",
    // Elements that change how other elements are parsed.
    "<select>", "</select>", "<option>", "</option>", "<select><option>a", "<keygen>", "<table>",
    "</table>", "<tr>", "<td>", "</td>", "<col>", "<colgroup>", "<caption>", "<template>",
    "</template>", "<template><col>", "<frameset onload=f()>", "<frame src=f>", "</frameset>",
    "<head>", "</head>", "<head onclick=h()>", "<body onload=b()>", "</body>", "<html onclick=r()>",
    "</html>", "<form>", "</form>", "<button>", "</button>", "<object>", "</object>", "<marquee>",
    "<base href=q>", "<input>", "<input type=hidden>", "<input type=image src=i onerror=i()>",
    "<image src=j>", "<br/>", "</p>", "</br>", "<p>", "<div>", "</div>", "<li>", "<pre>", "</pre>",
    "<hr>", "<code>", "</code>",
    // Elements inside a sentence, nested or not.
    "<b>", "</b>", "<i>", "</i>", "<a href=1>", "</a>", "<a href=2>", "<span translate=no>",
    "</span>", "<u><s>", "</u></s>", "<nobr>", "<font color=red>", "</font>",
    "<sup><a href=3>[1]</a></sup>", "<sup><a></b>1<i></sup>", "<label>", "</label>", "<wbr>",
    "<img src=k>", "<em id=m>", "</em>",
    // Scripts that would run.
    "<img src=x onerror=\"x()\">", "<script>x()</script>", "<svg onload=x()>", "<a onclick='x()'>",
    "<iframe srcdoc='<script>x()</script>'></iframe>", "<style>*{background:url(x)}</style>",
    // Text that becomes markup if its references are decoded.
    "&lt;img src=x onerror=x()&gt;", "&lt;", "&#60;script&#62;", "&lt", "&#x3c", "&ltscript&gt",
    "&amp;lt;", "&quot;", "&apos;", "&#34;>", "&nope;", "&", "&#0;", "&rarr;", "&copy", "&not",
    "in;", "&LT;b&GT;", "<", ">", "<<", "< ", "1 < 2", "<3", "\"", "'", "=", "/", "`", "\0"sv, "\f",
    "\r", "\v", "\xEF\xBF\xBD", "\xC2\xA0", "\xE2\x80\xA8",
    "\xEF\xBC\x9C"
    "b\xEF\xBC\x9E"};

inline constexpr std::string_view kWords[] = {"dog",         "small",
                                              "The garden",  "one two three.",
                                              " ",           "\n",
                                              "! ",          "It runs.",
                                              "A. A. ",      "x",
                                              "3",           ", ",
                                              "caf\xC3\xA9", "\xE6\x88\x91",
                                              " and ",       "Who? ",
                                              "(see)",       "bed-and-breakfast",
                                              "-",           "a"};

// A generator of random documents, the same for each seed.
class HtmlDocuments {
 public:
  explicit HtmlDocuments(uint64_t seed) : random_(seed) {}

  std::string proper() {
    std::string html;
    if (one_in(3)) html += "<!DOCTYPE html><html><head><title>" + words() + "</title></head><body>";
    for (uint64_t n = 1 + random_.below(3); n > 0; --n) html += block(2);
    return html;
  }

  // Parts in any order, or a well-formed document with some parts inserted.
  std::string hostile() {
    std::string html = one_in(3) ? proper() : "";
    for (uint64_t n = 1 + random_.below(9); n > 0; --n) {
      std::string part(one_in(3) ? any(kWords) : any(kHostileParts));
      if (one_in(12) && !part.empty()) part.erase(random_.below(part.size()), 1);
      html.insert(one_in(3) ? boundary(html) : html.size(), part);
    }
    if (one_in(8)) html.resize(boundary(html));
    return html;
  }

  template <class Parts>
  std::string_view any(const Parts& parts) {
    return parts[random_.below(std::size(parts))];
  }
  bool one_in(uint64_t n) { return random_.below(n) == 0; }
  Random& random() { return random_; }

 private:
  size_t boundary(const std::string& html) {  // between two characters
    size_t at = random_.below(html.size() + 1);
    while (at < html.size() && (static_cast<unsigned char>(html[at]) & 0xC0) == 0x80) ++at;
    return at;
  }

  std::string words() {
    std::string text;
    for (uint64_t n = 1 + random_.below(4); n > 0; --n) text += std::string(any(kWords)) + " ";
    return text;
  }

  std::string element(const std::string& name, const std::string& content) {
    static constexpr std::string_view kAttributes[] = {
        "", " class=\"a b\"", " id=x", " title='a > b'", " href=\"?a=1&amp;b=2\"", " hidden"};
    return "<" + name + std::string(any(kAttributes)) + ">" + content + "</" + name + ">";
  }

  std::string phrase(int depth) {
    static constexpr std::string_view kNames[] = {"b", "i", "a", "span", "em", "sup", "u", "label"};
    static constexpr std::string_view kSmall[] = {"<img src=\"i.png\" alt=\"a dog\">",
                                                  "<br>",
                                                  "&amp;",
                                                  "&eacute;t&eacute;",
                                                  "&rarr;",
                                                  "<wbr>",
                                                  "<code>if (a &lt; b)</code>",
                                                  "<!-- note -->",
                                                  "<sup><a href=#f>[1]</a></sup>",
                                                  "1 &lt; 2",
                                                  "<svg width=1><path d=\"M0 0\"/></svg>",
                                                  "<i class=icon></i>",
                                                  "<input type=text>"};
    std::string html;
    for (uint64_t n = 1 + random_.below(4); n > 0; --n) {
      html += words();
      if (one_in(3)) html += any(kSmall);
      if (depth > 0 && one_in(2)) html += element(std::string(any(kNames)), phrase(depth - 1));
    }
    return html;
  }

  std::string block(int depth) {
    static constexpr std::string_view kNames[] = {"p", "h1", "div", "blockquote", "section"};
    static constexpr std::string_view kWhole[] = {"<script>if (a < b && c) d(\"<b>\");</script>",
                                                  "<style>p > b { color: red }</style>",
                                                  "<noscript><img src=\"n.png\"></noscript>",
                                                  "<hr>",
                                                  "<pre>  a\n  b</pre>",
                                                  "<template><p>x</p></template>",
                                                  "<textarea>a <b> c</textarea>",
                                                  "<iframe src=v></iframe>"};
    if (one_in(6)) return std::string(any(kWhole));
    if (one_in(6)) return "<ul>" + element("li", phrase(1)) + element("li", phrase(1)) + "</ul>";
    if (one_in(6))
      return "<table><tr>" + element("td", phrase(1)) + element("td", phrase(1)) + "</tr></table>";
    if (one_in(6)) return element("select", element("option", words()) + "<option>" + words());
    if (depth > 0 && one_in(3)) return element("div", block(depth - 1) + block(depth - 1));
    return element(std::string(any(kNames)), phrase(2));
  }

  Random random_;
};

}  // namespace fovea::testing

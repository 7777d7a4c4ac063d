#include "document/html_tokens.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ascii.h"

namespace fovea {
namespace {

// Note [Certain context]
// The end of an HTML token depends on its context, the elements around it. <style> contains raw
// text in HTML and markup in SVG. <![CDATA[ is a section in SVG; in HTML it is a comment that ends
// at the next '>'. <select> and <frameset> ignore most tags. Only a complete tree builder could
// determine the context. Instead, the tokenizer treats the context as certain only outside <svg>,
// <math>, <template>, <select> and <frameset>. If the tags inside one of them are not properly
// nested, the context remains uncertain to the end. In an uncertain context, and for <noscript>,
// the tokenizer follows both interpretations. If they agree on the end of the content, the content
// becomes an opaque token. Otherwise the rest of the document becomes an opaque token.

using Kind = HtmlToken::Kind;

constexpr size_t kNone = std::string_view::npos;
constexpr std::string_view kBlanks = " \t\r\n\f";
constexpr std::string_view kEndsName = " \t\r\n\f/>";
// Elements whose content is text only, even if it looks like markup.
constexpr std::string_view kRawText =
    " script style title textarea xmp iframe noembed noframes noscript plaintext ";
constexpr std::string_view kUncertain = " svg math template select frameset ";
constexpr std::string_view kForeign = " svg math ";
// Elements of SVG and MathML whose content may be HTML.
constexpr std::string_view kIntegration =
    " foreignobject desc title mi mo mn ms mtext annotation-xml ";
constexpr std::string_view kVoid =
    " area base br col embed hr img input link meta param source track wbr ";
constexpr std::string_view kOfSelect = " option optgroup hr ";

bool starts_at(std::string_view html, size_t at, std::string_view mark) {
  return html.substr(at).starts_with(mark);
}

size_t after_next(std::string_view html, char mark, size_t from) {
  const size_t at = html.find(mark, from);
  return at == kNone ? html.size() : at + 1;
}

// A tag, comment or other item that begins with '<'.
struct Item {
  enum class Kind { text, start_tag, end_tag, comment, cdata, unfinished };
  Kind kind;
  size_t end;
  std::string name = {};
  bool self_closing = false, translate_no = false;
};
using ItemKind = Item::Kind;

// Reads an attribute value, quoted or not. `at` follows the '='. Returns the value and the offset
// after it.
std::pair<std::string_view, size_t> attribute_value(std::string_view html, size_t at) {
  at = std::min(html.find_first_not_of(kBlanks, at), html.size());
  if (at == html.size() || html[at] == '>') return {{}, at};
  const bool quoted = html[at] == '"' || html[at] == '\'';
  const size_t begin = quoted ? at + 1 : at;
  const size_t end = std::min(
      quoted ? html.find(html[at], begin) : html.find_first_of(" \t\r\n\f>", begin), html.size());
  return {html.substr(begin, end - begin), std::min(quoted ? end + 1 : end, html.size())};
}

// Reads the attributes of a tag. `at` follows its name.
void read_attributes(std::string_view html, size_t at, Item& tag) {
  while (true) {
    const size_t next = std::min(html.find_first_not_of(" \t\r\n\f/", at), html.size());
    if (next == html.size()) break;
    if (html[next] == '>') {
      tag.self_closing = next > at && html[next - 1] == '/';
      tag.end = next + 1;
      return;
    }
    // An attribute's name may begin with '='.
    const size_t name_end = std::min(html.find_first_of(" \t\r\n\f/>=", next + 1), html.size());
    const std::string_view name = html.substr(next, name_end - next);
    at = name_end;
    const size_t sign = std::min(html.find_first_not_of(kBlanks, at), html.size());
    if (sign == html.size() || html[sign] != '=') continue;
    const auto [value, end] = attribute_value(html, sign + 1);
    at = end;
    if (name.size() == 9 && lower_ascii(name) == "translate" && value.size() == 2)
      tag.translate_no = tag.translate_no || lower_ascii(value) == "no";
  }
  tag = {ItemKind::unfinished, html.size()};
}

// Returns the end of a comment. It ends after --> or --!>. <!--> and <!---> are complete comments.
size_t end_of_comment(std::string_view html, size_t at) {
  const size_t content = at + 4;
  for (size_t dashes = html.find("--", at + 2); dashes != kNone;
       dashes = html.find("--", dashes + 1)) {
    if (starts_at(html, dashes + 2, ">")) return dashes + 3;
    if (dashes >= content && starts_at(html, dashes + 2, "!>")) return dashes + 4;
  }
  return html.size();
}

// Reads the item that begins with the '<' at `at`, without regard to its context.
Item item_at(std::string_view html, size_t at) {
  const char next = at + 1 < html.size() ? html[at + 1] : ' ';
  if (starts_at(html, at, "<!--")) return {ItemKind::comment, end_of_comment(html, at)};
  if (starts_at(html, at, "<![CDATA[")) return {ItemKind::cdata, at + 9};
  if (next == '!' || next == '?') return {ItemKind::comment, after_next(html, '>', at + 2)};
  const bool closing = next == '/';
  if (closing && at + 2 == html.size()) return {ItemKind::text, html.size()};
  const size_t name_at = closing ? at + 2 : at + 1;
  const bool named = name_at < html.size() && is_ascii_letter(html[name_at]);
  // </3 begins a comment; </> is ignored by browsers.
  if (closing && !named) return {ItemKind::comment, after_next(html, '>', at + 2)};
  if (!named) return {ItemKind::text, at + 1};
  const size_t name_end = std::min(html.find_first_of(kEndsName, name_at), html.size());
  Item tag{closing ? ItemKind::end_tag : ItemKind::start_tag, 0,
           lower_ascii(html.substr(name_at, name_end - name_at))};
  read_attributes(html, name_end, tag);
  return tag;
}

// Whether a tag of the element `name` begins at `at`. `mark` is "<" or "</".
bool is_tag_of(std::string_view html, size_t at, std::string_view mark, const std::string& name) {
  const size_t end = at + mark.size() + name.size();
  return end < html.size() && starts_at(html, at, mark) && kEndsName.find(html[end]) != kNone &&
         lower_ascii(html.substr(at + mark.size(), name.size())) == name;
}

// Returns the offset of the end tag of a script. Between <!-- and --> a script may contain complete
// script elements.
size_t end_of_script(std::string_view html, size_t from) {
  enum class State { plain, escaped, double_escaped } state = State::plain;
  for (size_t at = from; at < html.size(); ++at) {
    if (html[at] == '-' && state != State::plain && starts_at(html, at, "-->")) {
      state = State::plain;
      at += 2;
    }
    if (html[at] != '<') continue;
    if (is_tag_of(html, at, "</", "script")) {
      if (state != State::double_escaped) return at;
      state = State::escaped;
    } else if (state == State::plain && starts_at(html, at, "<!--")) {
      state = State::escaped;
      at += 1;  // <!--> and <!---> are complete comments
    } else if (state == State::escaped && is_tag_of(html, at, "<", "script")) {
      state = State::double_escaped;
    }
  }
  return kNone;
}

// Returns the offset of the end tag of an element with raw text. `from` follows the start tag.
size_t end_of_raw_text(std::string_view html, const std::string& name, size_t from) {
  if (name == "plaintext") return kNone;
  if (name == "script") return end_of_script(html, from);
  for (size_t at = html.find('<', from); at != kNone; at = html.find('<', at + 1))
    if (is_tag_of(html, at, "</", name)) return at;
  return kNone;
}

// Returns the end of an item that begins with <![CDATA[, which is a comment in HTML and a section
// in SVG and MathML. Returns nullopt if the context is uncertain and the two interpretations have
// different ends.
std::optional<size_t> end_of_cdata(std::string_view html, size_t at, bool is_certain) {
  const size_t comment = after_next(html, '>', at);
  for (size_t i = comment - 1; i < html.size() && html[i] != '<'; ++i)
    if (html[i] == '>' && html.substr(0, i).ends_with("]]")) return i + 1;
  if (is_certain) return comment;
  return std::nullopt;
}

// The stack of elements that were opened since the context became uncertain.
class Context {
 public:
  bool is_certain() const { return open_.empty() && !lost_; }
  void lose() { lost_ = true; }

  void start(const std::string& name, bool self_closing) {
    if (lost_ || (open_.empty() && !list_has(kUncertain, name)) || is_exempt(name)) return;
    const bool foreign = list_has(kForeign, name);
    const bool parent_foreign = !open_.empty() && open_.back().foreign;
    if (self_closing && (foreign || parent_foreign)) return;
    if (self_closing || name == "frameset") lost_ = true;
    const bool all_foreign = open_.empty() || open_.back().all_foreign;
    const bool content_foreign = foreign || (parent_foreign && !list_has(kIntegration, name));
    open_.push_back({name, content_foreign, all_foreign && content_foreign});
  }

  void end(const std::string& name) {
    if (lost_ || open_.empty() || is_exempt(name)) return;
    // </svg> also ends the elements of SVG that are open in it, unless one may hold HTML.
    while (open_.back().name != name) {
      if (!open_.back().all_foreign || !list_has(kForeign, name) || open_.size() == 1)
        return lose();
      open_.pop_back();
    }
    open_.pop_back();
  }

 private:
  struct Element {
    std::string name;
    bool foreign;      // its content is SVG or MathML, unless a tag inside ended that
    bool all_foreign;  // the content of all its ancestors is foreign, too
  };

  bool is_exempt(const std::string& name) const {
    const bool in_select = open_.size() == 1 && open_.back().name == "select";
    return list_has(kVoid, name) || (in_select && list_has(kOfSelect, name));
  }

  std::vector<Element> open_;
  bool lost_ = false;
};

// Whether a token also ends at `to`, the end of the raw text, if the bytes from `from` on are read
// as markup. If the tags between `from` and `to` are not properly nested, the context remains
// uncertain to the end.
bool readings_agree(std::string_view html, size_t from, size_t to, Context& context) {
  std::vector<std::string> open;
  size_t at = from;
  while (at < to) {
    at = std::min(html.find('<', at), html.size());
    if (at >= to) break;
    const Item item = item_at(html, at);
    std::optional<size_t> end = item.end;
    if (item.kind == ItemKind::cdata) end = end_of_cdata(html, at, false);
    if (!end || item.kind == ItemKind::unfinished) return false;
    at = *end;
    if (item.kind == ItemKind::start_tag && list_has(kRawText, item.name)) {
      const size_t next = html.find('<', at);
      if (next == kNone || !is_tag_of(html, next, "</", item.name)) return false;
    }
    if (list_has(kVoid, item.name)) continue;
    if (item.self_closing) context.lose();
    if (item.kind == ItemKind::start_tag) open.push_back(item.name);
    if (item.kind != ItemKind::end_tag) continue;
    if (open.empty() || open.back() != item.name) {
      context.lose();
      continue;
    }
    open.pop_back();
  }
  if (!open.empty()) context.lose();
  return at == to;
}

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view html) : html_(html) {}

  std::vector<HtmlToken> tokens() && {
    while (at_ < html_.size()) {
      const size_t next = std::min(html_.find('<', at_), html_.size());
      if (next > at_) add(Kind::text, next);
      if (at_ < html_.size()) add_item(item_at(html_, at_));
    }
    return std::move(tokens_);
  }

 private:
  HtmlToken& add(Kind kind, size_t end) {
    const std::string_view bytes = html_.substr(at_, end - at_);
    at_ += bytes.size();
    const bool joins = kind == Kind::text && !tokens_.empty() && tokens_.back().kind == kind;
    if (!joins) return tokens_.emplace_back(HtmlToken{kind, bytes});
    const std::string_view before = tokens_.back().bytes;
    tokens_.back().bytes = {before.data(), before.size() + bytes.size()};
    return tokens_.back();
  }

  void add_rest() { add(Kind::opaque, html_.size()); }

  void add_item(Item item) {
    switch (item.kind) {
      case ItemKind::text:
        add(Kind::text, item.end);
        break;
      case ItemKind::comment:
        add(Kind::opaque, item.end);
        break;
      case ItemKind::unfinished:
        add_rest();
        break;
      case ItemKind::cdata: {
        const auto end = end_of_cdata(html_, at_, context_.is_certain());
        add(Kind::opaque, end.value_or(html_.size()));
        break;
      }
      case ItemKind::start_tag:
        add_start_tag(std::move(item));
        break;
      case ItemKind::end_tag: {
        context_.end(item.name);
        add_tag(Kind::end_tag, std::move(item));
        break;
      }
    }
  }

  void add_tag(Kind kind, Item item) {
    HtmlToken& token = add(kind, item.end);
    token.name = std::move(item.name);
    token.self_closing = item.self_closing;
    token.translate_no = item.translate_no;
    token.in_certain_context = context_.is_certain();
  }

  void add_start_tag(Item item) {
    const std::string name = item.name;
    const bool is_certain = context_.is_certain();
    if (item.self_closing && !is_certain && list_has(kRawText, name)) context_.lose();
    context_.start(name, item.self_closing);
    add_tag(Kind::start_tag, std::move(item));
    if (!list_has(kRawText, name)) return;
    const size_t end = end_of_raw_text(html_, name, at_);
    if (end == kNone) return add_rest();
    const bool sure = is_certain && name != "noscript";
    if (!sure && !readings_agree(html_, at_, end, context_)) return add_rest();
    if (end > at_) add(sure && name == "title" ? Kind::text : Kind::opaque, end);
  }

  std::string_view html_;
  size_t at_ = 0;
  Context context_;
  std::vector<HtmlToken> tokens_;
};

}  // namespace

std::vector<HtmlToken> html_tokens(std::string_view html) { return Tokenizer(html).tokens(); }

}  // namespace fovea

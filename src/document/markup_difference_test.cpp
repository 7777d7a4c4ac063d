// Compares documents before and after translation with an independent HTML parser: for every
// translation, no element, attribute, script or comment appears or disappears.
#include <gtest/gtest.h>
#include <gumbo.h>

#include <map>
#include <memory>

#include "base/ascii.h"
#include "document/document.h"
#include "effort.h"
#include "support/html_documents.h"
#include "text/tokenization.h"

namespace fovea {
namespace {

using testing::HtmlDocuments;

// Elements that may be split when words move, or that parsers reopen by themselves.
constexpr std::string_view kSplit =
    " a abbr acronym b bdi bdo big cite code data del dfn em font i ins label mark nobr q s small "
    "span strike strong sub sup time tt u ";
constexpr std::string_view kRawText =
    " script style textarea xmp iframe noembed noframes noscript plaintext ";

bool in_list(std::string_view list, const std::string& name) {
  return list.find(" " + name + " ") != std::string_view::npos;
}

// The contents of a document besides text: the number of occurrences of each element with its
// attributes, each comment and each raw text. Elements that may be split count once.
struct Content {
  std::map<std::string, int> things;
  std::string text;  // without white space
  bool operator==(const Content& other) const { return things == other.things; }
};

std::string name_of(const GumboElement& element) {
  if (element.tag != GUMBO_TAG_UNKNOWN) return gumbo_normalized_tagname(element.tag);
  GumboStringPiece name = element.original_tag;
  gumbo_tag_from_original_text(&name);
  return name.data ? std::string(name.data, name.length) : "";
}

void add_element(const GumboElement& element, Content& content) {
  const std::string name = name_of(element);
  std::string thing = std::to_string(element.tag_namespace) + "<" + name;
  for (unsigned i = 0; i < element.attributes.length; ++i) {
    const auto& attribute = *static_cast<const GumboAttribute*>(element.attributes.data[i]);
    thing += std::string(" ") + attribute.name + "=[" + attribute.value + "]";
  }
  const bool splits = element.tag_namespace == GUMBO_NAMESPACE_HTML && in_list(kSplit, name);
  int& count = content.things[thing];
  count = splits ? 1 : count + 1;
  if (!in_list(kRawText, name)) return;
  std::string raw = "text of " + name + ": ";
  for (unsigned i = 0; i < element.children.length; ++i) {
    const auto* child = static_cast<const GumboNode*>(element.children.data[i]);
    if (child->type == GUMBO_NODE_TEXT || child->type == GUMBO_NODE_WHITESPACE)
      raw += child->v.text.text;
  }
  ++content.things[raw];
}

enum class Root { document, fragment };

Content content_of(const std::string& html, Root root) {
  GumboOptions options = kGumboDefaultOptions;
  if (root == Root::fragment) options.fragment_context = GUMBO_TAG_DIV;
  const auto destroy = [&](GumboOutput* output) { gumbo_destroy_output(&options, output); };
  const std::unique_ptr<GumboOutput, decltype(destroy)> output(
      gumbo_parse_with_options(&options, html.data(), html.size()), destroy);
  Content content;
  std::vector<const GumboNode*> left{output->document};
  const auto add_children = [&](const GumboVector& children) {
    for (unsigned i = children.length; i-- > 0;)
      left.push_back(static_cast<const GumboNode*>(children.data[i]));
  };
  while (!left.empty()) {
    const GumboNode& node = *left.back();
    left.pop_back();
    if (node.type == GUMBO_NODE_DOCUMENT) {
      add_children(node.v.document.children);
    } else if (node.type == GUMBO_NODE_ELEMENT || node.type == GUMBO_NODE_TEMPLATE) {
      add_element(node.v.element, content);
      add_children(node.v.element.children);
    } else if (node.type == GUMBO_NODE_COMMENT) {
      ++content.things[std::string("<!--") + node.v.text.text];
    } else {
      for (const char c : std::string_view(node.v.text.text))
        if (std::string_view(" \t\r\n\f").find(c) == std::string_view::npos) content.text += c;
    }
  }
  return content;
}

enum class Engine { identity, reversing, hostile, careless };

// A translation by one of three engines: the hostile one returns markup, another reverses the
// words, the careless one drops and repeats words.
Translation translated(const std::string& sentence, Engine engine, HtmlDocuments& documents) {
  Random& random = documents.random();
  const auto source = split_words(sentence);
  const auto any_word = [&] { return static_cast<int>(random.below(source.size() + 2)) - 1; };
  Alternative best;
  size_t words = source.size();
  if (engine == Engine::hostile) words = 1 + random.below(6);
  if (engine == Engine::careless) words = random.below(2 * source.size());
  for (size_t i = 0; i < words; ++i) {
    size_t from = i;
    if (engine == Engine::reversing) from = source.size() - 1 - i;
    if (engine == Engine::careless) from = random.below(source.size());
    if (i > 0) best.text += ' ';
    if (engine == Engine::hostile)
      best.text += documents.any(testing::kHostileParts);
    else
      best.text += source[from];
    best.alignment.emplace_back(engine == Engine::hostile ? any_word() : static_cast<int>(from), i);
    best.nearest.push_back(engine == Engine::hostile ? any_word() : static_cast<int>(i));
  }
  if (documents.one_in(4)) best.nearest.clear();
  if (engine == Engine::hostile && documents.one_in(3)) best.alignment.clear();
  if (engine == Engine::careless && documents.one_in(8)) return {};
  return {.text = best.text, .n_best = {best}, .source_ids = {}, .source_pieces = {}};
}

struct Trial {
  Engine engine;
  Root root;
  uint64_t seed;  // of the engine
};

std::string translation_of(const std::string& html, const Trial& trial) {
  HtmlDocuments documents(trial.seed);
  const auto document = html_document(html, "en");
  std::vector<Translation> translations;
  for (const std::string& sentence : document->sentences())
    translations.push_back(translated(sentence, trial.engine, documents));
  return document->render(translations, 0);
}

bool stays_inert(const std::string& html, const Trial& trial) {
  return content_of(translation_of(html, trial), trial.root) == content_of(html, trial.root);
}

// The document reduced as far as possible such that it still fails.
std::string smallest_failing(std::string html, const Trial& trial) {
  for (size_t size = html.size() / 2; size > 0; size /= 2)
    for (size_t at = 0; at + size <= html.size();) {
      std::string less = html;
      less.erase(at, size);
      if (stays_inert(less, trial))
        at += size;
      else
        html = less;
    }
  return html;
}

std::string difference(const std::string& html, const Trial& trial) {
  const std::string result = translation_of(html, trial);
  const Content before = content_of(html, trial.root), after = content_of(result, trial.root);
  std::string all = ::testing::PrintToString(html) + "\nbecame " + ::testing::PrintToString(result);
  for (const auto& [thing, count] : before.things)
    if (!after.things.contains(thing) || after.things.at(thing) != count) all += "\n- " + thing;
  for (const auto& [thing, count] : after.things)
    if (!before.things.contains(thing) || before.things.at(thing) != count) all += "\n+ " + thing;
  return all;
}

void expect_inert(const std::string& html, const Trial& trial) {
  if (stays_inert(html, trial)) return;
  ADD_FAILURE() << "engine " << static_cast<int>(trial.engine) << "\n"
                << difference(smallest_failing(html, trial), trial);
}

TEST(MarkupDifference, KnownAttacksStayInert) {
  for (const char* html :
       {"I see a dog </3 <img src=x onerror=\"x()\"> in the garden.",
        "one <p title=\f\"><img src=x onerror=x()>\"> two",
        "one <p =\"> two <img src=x onerror=x()> \"> three",
        "<svg><style><a title=\"</style>one &quot;><img src=x onerror=x()>\">",
        "<svg><desc></svg></desc><style><a title=\"</style> one &quot;><img src=x onerror=x()>\">",
        "<script/>a = \"one &quot;;x();//\";</script>",
        "<noscript><p title=\"</noscript> one <b>\">",
        "<select>one <img src=x onerror=x()> two <input> three", "one <frameset onload=x()>",
        "<pre><script></pre> a = \"one &quot;;x()//\" </script>", "<xmp><b></xmp>one</b>",
        "<![CDATA[ > one <img src=x onerror=x()> ]]>", "one <!x <b>two</b> > three",
        "<script><!--<script></script> one &lt; two --></script>", "<title><b>one</title> two</b>"})
    for (const Engine engine :
         {Engine::identity, Engine::reversing, Engine::hostile, Engine::careless})
      for (const Root root : {Root::document, Root::fragment})
        for (uint64_t seed = 0; seed < 8; ++seed) expect_inert(html, {engine, root, seed});
}

// gumbo 0.10 does not recognize that </svg > ends SVG, and treats vertical tabs as white space.
bool confuses_gumbo(std::string html) {
  html = lower_ascii(html);
  if (html.find('\v') != std::string::npos) return true;
  if (html.find("<svg") == std::string::npos && html.find("<math") == std::string::npos)
    return false;
  for (size_t at = html.find("</"); at != std::string::npos; at = html.find("</", at + 2)) {
    const size_t end = html.find_first_of(" \t\r\n\f/>", at + 2);
    if (end != std::string::npos && html[end] != '>') return true;
  }
  return false;
}

TEST(MarkupDifference, RandomDocumentsStayInert) {
  const int64_t rounds = repeats(20'000);
  HtmlDocuments documents(20);
  for (int64_t round = 0; round < rounds && !HasFailure(); ++round) {
    std::string html = round % 2 ? documents.hostile() : documents.proper();
    while (confuses_gumbo(html)) html = documents.hostile();
    const auto seed = static_cast<uint64_t>(round);
    const Root root = round / 2 % 2 ? Root::fragment : Root::document;
    expect_inert(html, {Engine::identity, root, seed});
    const Engine engines[] = {Engine::reversing, Engine::hostile, Engine::careless};
    expect_inert(html, {engines[round / 4 % 3], root, seed});
  }
}

// Text that the engine does not change is unchanged in the result.
TEST(MarkupDifference, UnchangedTextStaysUnchanged) {
  HtmlDocuments documents(21);
  for (int64_t round = 0; round < repeats(2000) && !HasFailure(); ++round) {
    const std::string html = documents.proper();
    const std::string result = translation_of(html, {Engine::identity, Root::document, 0});
    EXPECT_EQ(content_of(result, Root::document).text, content_of(html, Root::document).text)
        << html;
  }
}

}  // namespace
}  // namespace fovea

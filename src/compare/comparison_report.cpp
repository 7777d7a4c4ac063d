#include "compare/comparison_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/log.h"
#include "view/curve.h"
#include "view/html_report.h"
#include "view/svg.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kUnknown = "–";

std::string whole(double number) { return with_commas(std::llround(number)); }

std::string length_range(const LengthBucket& b) {
  return b.low == b.high ? fmt::format("{}", b.low) : fmt::format("{}–{}", b.low, b.high);
}

PageTable result_table(const ComparisonReport& c) {
  PageTable table{{"model", "perplexity", "BLEU", "chrF"}, {}, 1};
  if (c.aer) table.head.push_back("AER %");
  for (const char* name : {"parameters", "updates", "training words/s", "decoding words/s"})
    table.head.push_back(name);
  for (const ComparedModel& model : c.models) {
    std::vector<std::string> row{model.name};
    if (const auto& m = model.measured) {
      row.push_back(fmt::format("{:.2f}", m->ppl));
      row.push_back(fmt::format("{:.2f}", m->bleu));
      row.push_back(fmt::format("{:.2f}", m->chrf));
      if (c.aer) row.push_back(m->aer ? fmt::format("{:.2f}", 100 * *m->aer) : kUnknown);
    } else {
      row.push_back(model.failure.empty() ? "not finished" : model.failure);
      row.insert(row.end(), c.aer ? 3 : 2, kUnknown);
    }
    row.push_back(model.parameters > 0 ? with_commas(model.parameters) : kUnknown);
    row.push_back(model.updates > 0 ? with_commas(model.updates) : kUnknown);
    row.push_back(model.train_words_per_s ? whole(*model.train_words_per_s) : kUnknown);
    row.push_back(model.measured ? whole(model.measured->decode_words_per_s) : kUnknown);
    table.rows.push_back(std::move(row));
  }
  return table;
}

PageTable length_table(const ComparisonReport& c) {
  PageTable table{{"source words"}, {}, 1};
  std::vector<std::string> count{"sentences"};
  for (const LengthBucket& bucket : c.buckets) {
    table.head.push_back(length_range(bucket));
    count.push_back(with_commas(std::ssize(bucket.lines)));
  }
  table.rows.push_back(std::move(count));
  for (const ComparedModel& model : c.models) {
    if (!model.measured) continue;
    std::vector<std::string> row{model.name};
    for (const double bleu : model.measured->bucket_bleu)
      row.push_back(fmt::format("{:.1f}", bleu));
    table.rows.push_back(std::move(row));
  }
  return table;
}

PageTable settings_table(const ComparisonReport& c) {
  PageTable table{{"model", "settings"}, {}, 2};
  for (const ComparedModel& model : c.models)
    table.rows.push_back({model.name, fmt::format("{}", fmt::join(model.settings, ", "))});
  return table;
}

std::string length_chart(const ComparisonReport& c) {
  Chart chart{.title = "",  // the heading above has the title
              .x_name = "words of the source sentence (mean of each bucket)",
              .y_name = "BLEU",
              .curves = {}};
  for (const ComparedModel& model : c.models) {
    if (!model.measured) continue;
    Curve curve{model.name, {}, model.measured->bucket_bleu};
    for (const LengthBucket& bucket : c.buckets) curve.x.push_back(bucket.mean);
    chart.curves.push_back(std::move(curve));
  }
  return svg_chart(chart);
}

PageFigures attention_figures(const ComparisonReport& c) {
  PageFigures figures;
  for (const ComparedModel& model : c.models) {
    if (!model.measured) continue;
    const std::string words = "Its own translation: " + model.measured->translation;
    if (model.attention) {
      AttentionMatrix matrix = *model.attention;
      matrix.title.clear();  // the figure has the title
      figures.figures.push_back({model.name, svg_map(matrix, ""), words});
    } else {
      figures.figures.push_back(
          {model.name, "",
           "No attention: the decoder sees the encoder's last state alone. " + words});
    }
  }
  return figures;
}

HtmlReport page_of(const ComparisonReport& c, bool pictures) {
  HtmlReport page{c.title, {}};
  page.blocks.push_back(result_table(c));
  page.blocks.push_back(PageText{
      "Perplexity is per piece under teacher forcing; BLEU and chrF score the "
      "translation of the test text; "
      "words per second count target pieces; the training figure is the median "
      "of all log lines." +
      std::string(c.aer
                      ? " AER uses the largest attention weight of each target word, without </s>."
                      : "")});
  page.blocks.push_back(PageHeading{"BLEU by source length"});
  if (pictures) page.blocks.push_back(PageFigures{{{"", length_chart(c)}}});
  page.blocks.push_back(length_table(c));
  page.blocks.push_back(PageHeading{"Attention of one sentence"});
  page.blocks.push_back(PageText{fmt::format("Line {} of the test text: {}", c.line, c.sentence)});
  page.blocks.push_back(
      PageText{"Its reference, which every model is forced to produce here: " + c.reference});
  page.blocks.push_back(attention_figures(c));
  page.blocks.push_back(PageHeading{"Settings that differ from the common recipe"});
  page.blocks.push_back(settings_table(c));
  return page;
}

Json rounded(double value) {
  return std::isfinite(value) ? Json(std::round(value * 1e6) / 1e6) : Json();
}

Json model_json(const ComparedModel& model) {
  Json json{
      {"name", model.name},
      {"settings", model.settings},
      {"parameters", model.parameters},
      {"updates", model.updates},
      {"train_words_per_s", model.train_words_per_s ? rounded(*model.train_words_per_s) : Json()}};
  if (!model.failure.empty()) json["failure"] = model.failure;
  if (const auto& m = model.measured) {
    json["ppl"] = rounded(m->ppl);
    json["bleu"] = rounded(m->bleu);
    json["chrf"] = rounded(m->chrf);
    json["aer"] = m->aer ? rounded(*m->aer) : Json();
    json["decode_words_per_s"] = rounded(m->decode_words_per_s);
    json["bleu_by_length"] = Json::array();
    for (const double bleu : m->bucket_bleu) json["bleu_by_length"].push_back(rounded(bleu));
    json["translation"] = m->translation;
  }
  return json;
}

}  // namespace

std::string comparison_json(const ComparisonReport& c) {
  Json json{{"title", c.title},
            {"sentence", {{"line", c.line}, {"source", c.sentence}, {"reference", c.reference}}},
            {"lengths", Json::array()},
            {"models", Json::array()}};
  for (const LengthBucket& bucket : c.buckets)
    json["lengths"].push_back({{"from", bucket.low},
                               {"to", bucket.high},
                               {"mean", rounded(bucket.mean)},
                               {"sentences", bucket.lines.size()}});
  for (const ComparedModel& model : c.models) json["models"].push_back(model_json(model));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string comparison_markdown(const ComparisonReport& c) {
  return markdown_page(page_of(c, false));
}

std::string comparison_html(const ComparisonReport& c) { return html_page(page_of(c, true)); }

void write_comparison(const std::string& directory, const ComparisonReport& c) {
  write_atomically(directory + "/compare.json", comparison_json(c));
  write_atomically(directory + "/compare.md", comparison_markdown(c));
  write_atomically(directory + "/compare.html", comparison_html(c));
}

}  // namespace fovea

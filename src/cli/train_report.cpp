#include "cli/train_report.h"

#include <fmt/format.h>

#include "base/log.h"
#include "cli/model_options.h"

namespace fovea {

namespace {

std::string quoted(const std::string& path) {
  const char* quote = path.find(' ') == std::string::npos ? "" : "'";
  return quote + path + quote;
}

}  // namespace

std::string usage_of_adapter(const std::string& base, const std::string& adapter,
                             const std::string& sentence) {
  const std::string model = quoted(base), added = quoted(adapter);
  return fmt::format(
      "fovea translate -m {0} --adapter {1} \"{2}\"\n"
      "fovea average -o MERGED_DIR --adapter {1} {0}\n",
      model, added, sentence);
}

std::string usage_of_model(const std::string& directory, TaskKind task,
                           const std::string& sentence) {
  const std::string model = quoted(directory);
  switch (task) {
    case TaskKind::classify:
      return fmt::format("fovea classify -m {} --show \"A text.\"\n", model);
    case TaskKind::read:
      return fmt::format("fovea classify -m {} --show --question \"A question?\" \"A document.\"\n",
                         model);
    case TaskKind::translate:
      break;
  }
  return fmt::format("fovea translate -m {0} \"{1}\"\nfovea show -m {0} \"{1}\"\n", model,
                     sentence);
}

std::string estimate_text(const CostEstimate& cost, const TrainOptions& options) {
  constexpr double kMebibyte = 1 << 20;
  std::string text;
  const auto row = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<19} {}\n", name, value);
  };
  row("parameters", with_commas(cost.parameters));
  row("batches per epoch", with_commas(cost.batches));
  row("updates per epoch", with_commas(cost.updates));
  row("tokens per batch", with_commas(options.batch.tokens));
  row("words per update", with_commas(static_cast<int64_t>(cost.words)));
  row("words per second", with_commas(static_cast<int64_t>(cost.words_per_second)));
  row("seconds per update", fmt::format("{:.3f}", cost.update_seconds));
  row("memory", fmt::format("{:.0f} MiB", cost.memory_bytes / kMebibyte));
  row("checkpoint",
      fmt::format("{:.1f} MiB × {}", cost.checkpoint_bytes / kMebibyte, options.checkpoint.keep));
  const int64_t updates = options.train.updates;
  if (updates > 0)
    row("time", fmt::format("{} for {} updates, without validation",
                            short_duration(static_cast<double>(updates) * cost.update_seconds),
                            with_commas(updates)));
  return text;
}

std::string ways_to_shorten(const CostEstimate& cost, const TrainOptions& options, Device device) {
  constexpr double kLong = 3600;
  if (static_cast<double>(options.train.updates) * cost.update_seconds < kLong) return "";
  const bool on_host = device == Device{Cpu{}};
  std::string text;
  const auto way = [&](const std::string& way) { text += "shorter             " + way + "\n"; };
  if (options.train.precision == Precision::f32 && gains_from_bf16(device))
    way(std::string("--precision bf16") + (on_host ? ": saves a third of the time or more" : ""));
  if (on_host) way("--device cuda on a machine with a GPU: many times faster");
  way(fmt::format("--set train.updates=N with fewer than {}, or a smaller model.size",
                  with_commas(options.train.updates)));
  return text;
}

}  // namespace fovea

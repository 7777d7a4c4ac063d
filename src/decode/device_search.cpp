#include "decode/device_search.h"

#include <algorithm>

#include "base/check.h"

namespace fovea {

bool DeviceSearch::supports(const BeamRules& rules) {
  return rules.width <= kMostSteered && std::ssize(rules.banned) <= kMostBanned;
}

DeviceSearch::DeviceSearch(const DeviceDecodable& model, DecoderState& state,
                           const BeamRules& rules)
    : model_(model), state_(state) {
  model_.start_device_search(state_, rules);
  model_.device_step(state_, std::ssize(rules.max_lengths));
}

const BeamStepResult& DeviceSearch::step(int64_t rows) {
  result_ = &model_.device_step(state_, rows);
  return *result_;
}

void DeviceSearch::check_choices(std::span<const int32_t> words,
                                 std::span<const int32_t> parents) const {
  check(std::ranges::equal(result_->words, words) && std::ranges::equal(result_->parents, parents),
        ExitCode::unexpected,
        "the GPU continues with other hypotheses than the host; please report this");
}

}  // namespace fovea

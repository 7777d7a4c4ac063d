#include "decode/search.h"

#include <omp.h>

#include <algorithm>
#include <exception>
#include <mutex>

#include "decode/batch_search.h"
#include "ops/matmul.h"
#include "text/batch.h"

namespace fovea {
namespace {

using Results = std::vector<std::vector<Hypothesis>>;

Results search_whole(std::span<const Model* const> models, const Tokens& source,
                     std::span<const int64_t> numbers, const SearchOptions& options) {
  Results results(static_cast<size_t>(source.sentences()));
  BatchSearch batch(models, options);
  batch.add(source, numbers);
  while (!batch.empty())
    for (Found& found : batch.step())
      results[static_cast<size_t>(found.index)] = std::move(found.n_best);
  return results;
}

// Note [Shares]
// Threads that work on a step together wait for each other after each of its many small
// operations. So where there are sentences for most of them, each thread translates some of its
// own. Sentences of a batch stand in the order of their lengths: with n shares every n-th belongs
// to one, so that all have the same work.
struct Share {
  Packed source = {};
  std::vector<int64_t> numbers = {};
  Results results = {};
  std::exception_ptr failed = {};
};

int number_of_shares(std::span<const Model* const> models, int64_t sentences) {
  const bool on_host = std::ranges::all_of(models, [](const Model* model) {
    return std::holds_alternative<Cpu>(model->parameters().device());
  });
  const int threads = on_host && !omp_in_parallel() ? omp_get_max_threads() : 1;
  if (2 * sentences < threads) return 1;
  return static_cast<int>(std::min<int64_t>(threads, sentences));
}

// Who listens hears one thread at a time.
SearchOptions told_in_turn(SearchOptions options, std::mutex& turn) {
  for (auto* listener : {&options.each_step, &options.watch})
    if (*listener)
      *listener = [&turn, tell = std::move(*listener)](int64_t number, const Beam& beam) {
        const std::lock_guard hold(turn);
        tell(number, beam);
      };
  return options;
}

Results search_in_shares(std::span<const Model* const> models, const Tokens& source,
                         std::span<const int64_t> numbers, const SearchOptions& all_options) {
  const int n = number_of_shares(models, source.sentences());
  if (n <= 1) return search_whole(models, source, numbers, all_options);
  std::mutex turn;
  const SearchOptions options = told_in_turn(all_options, turn);
  std::vector<Share> shares(static_cast<size_t>(n));
  for (int64_t i = 0; i < source.sentences(); ++i) {
    const int32_t first = source.offsets[i], end = source.offsets[i + 1];
    shares[i % n].source.add(source.ids.subspan(first, end - first), Packed::Mark::none);
    shares[i % n].numbers.push_back(numbers[i]);
  }
  const Precision precision = PrecisionScope::current();
#pragma omp parallel for num_threads(n) schedule(static, 1)
  for (Share& share : shares) {
    try {
      const PrecisionScope scope(precision);
      const Tokens own{share.source.ids, share.source.offsets};
      share.results = search_whole(models, own, share.numbers, options);
    } catch (...) {
      share.failed = std::current_exception();
    }
  }
  for (const Share& share : shares)
    if (share.failed) std::rethrow_exception(share.failed);
  Results results;
  for (int64_t i = 0; i < source.sentences(); ++i)
    results.push_back(std::move(shares[i % n].results[i / n]));
  return results;
}

}  // namespace

void SearchOptions::check() const {
  const auto in_range = [](const char* option, double value, double low, double high) {
    fovea::check(value >= low && value <= high, Exit::usage, "--", option, ": ", value,
                 " is not between ", low, " and ", high);
  };
  in_range("beam", static_cast<double>(beam), 1, 1024);
  in_range("n-best", static_cast<double>(n_best), 1, 1024);
  in_range("length-penalty", length_penalty, -10, 10);
  in_range("coverage-penalty", coverage_penalty, 0, 100);
  in_range("max-length-factor", max_length_factor, 0, 1000);
  in_range("max-length", static_cast<double>(max_length), 0, 1e6);
  fovea::check(sampling || n_best <= beam, Exit::usage, "--n-best ", n_best,
               " asks for more translations than --beam ", beam, " keeps; set --beam ", n_best);
  if (!sampling) return;
  in_range("temperature", sampling->temperature, 1e-3, 1e3);
  in_range("top-k", static_cast<double>(sampling->top_k), 0, 1e9);
  in_range("top-p", sampling->top_p, 1e-6, 1);
}

std::vector<std::vector<Hypothesis>> search(std::span<const Model* const> models,
                                            const Tokens& source, std::span<const int64_t> numbers,
                                            const SearchOptions& options) {
  return search_in_shares(models, source, numbers, options);
}

}  // namespace fovea

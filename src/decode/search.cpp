#include "decode/search.h"

#include <fmt/format.h>
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

Results search_batch(std::span<const Model* const> models, const TokenBatch& source,
                     std::span<const int64_t> numbers, const SearchOptions& options) {
  Results results(static_cast<size_t>(source.sentences()));
  BatchSearch batch(models, options);
  batch.add(source, numbers);
  while (!batch.empty())
    for (SearchResult& result : batch.step())
      results[static_cast<size_t>(result.index)] = std::move(result.n_best);
  return results;
}

// Note [Shares]
// Threads that share one step wait for each other after each of its many small operations. So if
// there are sentences for at least half of the threads, each thread translates its own share. The
// sentences of a batch are sorted by length: with n shares, a share has every n-th sentence, so
// that all shares have about the same work.
struct Share {
  PackedSentences source = {};
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

// Serializes the callbacks: one thread at a time calls them.
SearchOptions with_serial_callbacks(SearchOptions options, std::mutex& mutex) {
  for (auto* callback : {&options.each_step, &options.watch})
    if (*callback)
      *callback = [&mutex, call = std::move(*callback)](int64_t number, const Beam& beam) {
        const std::lock_guard hold(mutex);
        call(number, beam);
      };
  return options;
}

Results search_in_shares(std::span<const Model* const> models, const TokenBatch& source,
                         std::span<const int64_t> numbers, const SearchOptions& all_options) {
  const int n = number_of_shares(models, source.sentences());
  if (n <= 1) return search_batch(models, source, numbers, all_options);
  std::mutex mutex;
  const SearchOptions options = with_serial_callbacks(all_options, mutex);
  std::vector<Share> shares(static_cast<size_t>(n));
  for (int64_t i = 0; i < source.sentences(); ++i) {
    const int32_t first = source.offsets[i], end = source.offsets[i + 1];
    shares[i % n].source.add(source.ids.subspan(first, end - first), PackedSentences::Mark::none);
    shares[i % n].numbers.push_back(numbers[i]);
  }
  const Precision precision = PrecisionScope::current();
#pragma omp parallel for num_threads(n) schedule(static, 1)
  for (Share& share : shares) {
    try {
      const PrecisionScope scope(precision);
      const TokenBatch own{share.source.ids, share.source.offsets};
      share.results = search_batch(models, own, share.numbers, options);
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
  const auto in_range = [](const char* name, double value, double low, double high) {
    fovea::check(value >= low && value <= high, ExitCode::usage,
                 fmt::format("`{}`: {} is not between {} and {}", name, value, low, high));
  };
  in_range("beam", static_cast<double>(beam), 1, 1024);
  in_range("n_best", static_cast<double>(n_best), 1, 1024);
  in_range("length_penalty", length_penalty, -10, 10);
  in_range("coverage_penalty", coverage_penalty, 0, 100);
  in_range("max_length_factor", max_length_factor, 0, 1000);
  in_range("max_length", static_cast<double>(max_length), 0, 1e6);
  fovea::check(sampling || n_best <= beam, ExitCode::usage, "`n_best` ", n_best,
               " is larger than `beam` ", beam, "; set `beam` ", n_best, " or more");
  if (!sampling) return;
  in_range("temperature", sampling->temperature, 1e-3, 1e3);
  in_range("top_k", static_cast<double>(sampling->top_k), 0, 1e9);
  in_range("top_p", sampling->top_p, 1e-6, 1);
}

std::vector<std::vector<Hypothesis>> search(std::span<const Model* const> models,
                                            const TokenBatch& source,
                                            std::span<const int64_t> numbers,
                                            const SearchOptions& options) {
  return search_in_shares(models, source, numbers, options);
}

}  // namespace fovea

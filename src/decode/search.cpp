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

// Note [Shares]
// A share is the group of sentences of a batch that one thread translates alone. If threads worked
// together on one step, they would wait for each other after each of its many small operations. So
// if there are sentences for at least half of the threads, each thread gets a share. The sentences
// of a batch are sorted by length. With n shares, each share gets every n-th sentence, so that all
// shares have about the same work.

int number_of_shares(std::span<const Model* const> models, int64_t sentences) {
  const bool on_host = std::ranges::all_of(models, [](const Model* model) {
    return std::holds_alternative<Cpu>(model->parameters().device());
  });
  const int threads = on_host && !omp_in_parallel() ? omp_get_max_threads() : 1;
  if (2 * sentences < threads) return 1;
  return static_cast<int>(std::min<int64_t>(threads, sentences));
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
  in_range("min_length", static_cast<double>(min_length), 0, 1e6);
  in_range("no_repeat_ngram", static_cast<double>(no_repeat_ngram), 0, 1e6);
  fovea::check(sampling || n_best <= beam, ExitCode::usage, "`n_best` ", n_best,
               " is larger than `beam` ", beam, "; set `beam` ", n_best, " or more");
  if (!sampling) return;
  in_range("temperature", sampling->temperature, 1e-3, 1e3);
  in_range("top_k", static_cast<double>(sampling->top_k), 0, 1e9);
  in_range("top_p", sampling->top_p, 1e-6, 1);
}

SearchOptions with_serial_callbacks(SearchOptions options, std::mutex& mutex) {
  for (auto* callback : {&options.each_step, &options.watch})
    if (*callback)
      *callback = [&mutex, call = std::move(*callback)](int64_t number, const Beam& beam) {
        const std::lock_guard hold(mutex);
        call(number, beam);
      };
  return options;
}

void in_shares(std::span<const Model* const> models, int64_t sentences,
               const std::function<void(std::span<const int64_t> share)>& act) {
  const int n = number_of_shares(models, sentences);
  std::vector<std::vector<int64_t>> shares(static_cast<size_t>(n));
  for (int64_t i = 0; i < sentences; ++i) shares[i % n].push_back(i);
  if (n == 1) return act(shares.front());
  std::vector<std::exception_ptr> failures(shares.size());
  const Precision precision = PrecisionScope::current();
#pragma omp parallel for num_threads(n) schedule(static, 1)
  for (size_t s = 0; s < shares.size(); ++s) {
    try {
      const PrecisionScope scope(precision);
      act(shares[s]);
    } catch (...) {
      failures[s] = std::current_exception();
    }
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

std::vector<std::vector<Hypothesis>> search(std::span<const Model* const> models,
                                            const TokenBatch& source,
                                            std::span<const int64_t> numbers,
                                            const SearchOptions& options,
                                            std::span<const SentenceConstraints> constraints) {
  std::vector<std::vector<Hypothesis>> results(static_cast<size_t>(source.sentences()));
  std::mutex mutex;
  const SearchOptions serial = with_serial_callbacks(options, mutex);
  in_shares(models, source.sentences(), [&](std::span<const int64_t> share) {
    PackedSentences own;
    std::vector<int64_t> own_numbers;
    std::vector<SentenceConstraints> own_constraints;
    for (const int64_t i : share) {
      const int32_t first = source.offsets[i], end = source.offsets[i + 1];
      own.add(source.ids.subspan(first, end - first), PackedSentences::Mark::none);
      own_numbers.push_back(numbers[i]);
      if (!constraints.empty()) own_constraints.push_back(constraints[i]);
    }
    BatchSearch batch(models, serial);
    batch.add({own.ids, own.offsets}, own_numbers, own_constraints);
    while (!batch.empty())
      for (SearchResult& result : batch.step())
        results[share[result.index]] = std::move(result.n_best);
  });
  return results;
}

}  // namespace fovea

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "serve/served_model.h"

namespace fovea {

// The outcome of a task. late: its deadline passed before all sentences were translated.
enum class TaskOutcome { done, abandoned, late, failed };

struct ClientQueue;

// A task of the batcher: the sentences of one request for a model, or another computation for a
// worker thread. Callbacks run on threads that call Batcher::work.
struct TranslationTask : std::enable_shared_from_this<TranslationTask> {
  using Clock = std::chrono::steady_clock;

  std::string client = {};  // an API key or a group of addresses
  std::shared_ptr<const ServedModel> model;
  DecodeOptions decoding;
  std::vector<std::string> sentences;
  std::function<bool()> abandoned;  // whether the client left; any thread may call it at any time
  Clock::time_point deadline;
  // If true, the task shares its batch with no other task. It may then have no sentences: its
  // computation is `finish`, of cost `cost`. All such tasks form one queue.
  bool alone = false;
  int64_t cost = 0;  // added to the cost of the sentences
  // If set, the batcher calls this before it translates the first sentence of a task with `alone`.
  // If it returns false, the client has been answered and the task ends.
  std::function<bool(TranslationTask& task)> prepare = nullptr;
  // If set, the batcher calls this with each sentence as soon as it is translated, in no particular
  // order. Calls of on_sentence and on_prefix are serialized. It may remove data that `finish` does
  // not need.
  std::function<void(size_t sentence, Translation& translation)> on_sentence = nullptr;
  // If set, the batcher calls this with words of a sentence that are final before its search ends
  // (see PrefixCallback).
  std::function<void(size_t sentence, const std::string& more)> on_prefix = nullptr;
  // The batcher calls this once, with the translations of all sentences if the outcome is done.
  std::function<void(TaskOutcome outcome, std::vector<Translation> translations)> finish;

  // Private to the batcher.
  std::shared_ptr<ClientQueue> queue = {};
  std::vector<Translation> translations = {};
  size_t taken = 0, under_way = 0;  // number of parts: taken so far; now in a batch
  uint64_t position = 0;            // position in the order of service
  std::atomic<size_t> left = 0;
  std::atomic<bool> failed = false, missed = false;
  Clock::time_point arrived = {};
  std::mutex callback_mutex = {};

  // Returns the number of parts, the units that batches take: sentences, or for a task without
  // sentences its computation.
  size_t parts() const { return alone && sentences.empty() ? 1 : sentences.size(); }
  int64_t cost_of(size_t part) const;
  // Returns the slots of a part in a batch: 1 up to the default beam, and above it in proportion to
  // the beam.
  int64_t slots() const;
};

// Returns an estimate of the number of source pieces of a sentence.
int64_t estimated_tokens(std::string_view sentence);
// Returns the cost of translating this number of pieces: 1 per piece up to the default beam, and
// above it in proportion to the beam.
int64_t translation_cost(int64_t tokens, const DecodeOptions& decoding);

}  // namespace fovea

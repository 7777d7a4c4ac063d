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

#include "serve/engine.h"

namespace fovea {

enum class Outcome { done, abandoned, late, failed };

struct ClientQueue;

// The sentences of one request on their way through a model, or another computation that needs a
// thread of the batcher. Callbacks run on a thread that calls Batcher::work.
struct Task : std::enable_shared_from_this<Task> {
  using Clock = std::chrono::steady_clock;

  std::string client = {};  // an API key or a group of addresses
  std::shared_ptr<const Engine> engine;
  Wish wish;
  std::vector<std::string> sentences;
  std::function<bool()> abandoned;  // the client left; may be asked at any time
  Clock::time_point deadline;
  // By itself: it shares its batch with no other request. It may have no sentences; then its turn
  // is its finish, which costs `cost`. All such tasks wait in one line.
  bool alone = false;
  int64_t cost = 0;  // in addition to the cost of its sentences
  // If set, called before the sentences of a task alone are translated. False: its client has
  // been answered, and nothing more is done.
  std::function<bool(Task& task)> prepare = nullptr;
  // If set, called with each sentence as soon as it is translated, in no particular order. Calls of
  // this and of grown are serialized. It may take away what finish does not need.
  std::function<void(size_t sentence, Translation& translation)> each = nullptr;
  // If set, called with words of a sentence that are certain before its search ends: see Grown.
  std::function<void(size_t sentence, const std::string& more)> grown = nullptr;
  // Called once, with the translations of all sentences if the outcome is done.
  std::function<void(Outcome outcome, std::vector<Translation> translations)> finish;

  // The batcher's own.
  std::shared_ptr<ClientQueue> queue = {};
  std::vector<Translation> translations = {};
  size_t taken = 0, under_way = 0;  // parts; those of a batch now
  uint64_t turn = 0;                // order among the tasks that wait
  std::atomic<size_t> left = 0;
  std::atomic<bool> failed = false, missed = false;
  Clock::time_point arrived = {};
  std::mutex telling = {};

  // The units that batches take: sentences, or the one computation of a task without any.
  size_t parts() const { return alone && sentences.empty() ? 1 : sentences.size(); }
  int64_t cost_of(size_t part) const;
  // Places that a part takes in a batch: 1 up to the default beam, then in proportion to the beam.
  int64_t places() const;
};

// Estimated source pieces of a sentence.
int64_t estimated_tokens(std::string_view sentence);
// The cost of translating so many pieces: 1 each up to the default beam, in proportion beyond it.
int64_t translation_cost(int64_t tokens, const Wish& wish);

}  // namespace fovea

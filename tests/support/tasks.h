#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/batcher.h"

namespace fovea {

// The result of a task.
struct Result {
  std::vector<std::string> texts;
  TaskOutcome outcome = TaskOutcome::failed;
  int finished = 0;
  std::atomic<bool> gone = false;
};

inline std::shared_ptr<TranslationTask> task_of(const std::shared_ptr<const ServedModel>& model,
                                                std::vector<std::string> sentences,
                                                Result& result) {
  auto task = std::make_shared<TranslationTask>();
  task->model = model;
  task->decoding.beam = 2;
  task->sentences = std::move(sentences);
  task->deadline = TranslationTask::Clock::now() + std::chrono::hours(1);
  task->abandoned = [&result] { return result.gone.load(); };
  task->finish = [&result](TaskOutcome outcome, std::vector<Translation> translations) {
    ++result.finished;
    result.outcome = outcome;
    for (const Translation& t : translations) result.texts.push_back(t.text);
  };
  return task;
}

// A task without a translation.
inline std::shared_ptr<TranslationTask> job_of(int64_t cost, Result& result) {
  auto task = task_of(nullptr, {}, result);
  task->alone = true;
  task->cost = cost;
  return task;
}

inline void run_out(Batcher& batcher) {
  while (batcher.work(std::chrono::milliseconds(0))) continue;
}

}  // namespace fovea

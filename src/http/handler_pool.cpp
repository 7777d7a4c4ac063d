#include "http/handler_pool.h"

#include <pthread.h>
#include <unistd.h>

#include <utility>

#include "base/log.h"

namespace fovea {

HandlerPool::HandlerPool(size_t threads, size_t capacity) : capacity_(capacity) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

bool HandlerPool::add(const std::string& client, Work work) {
  {
    const std::lock_guard hold(mutex_);
    if (stopping_ || size_ >= capacity_) return false;
    auto& queue = waiting_[client];
    if (queue.empty()) clients_in_order_.push_back(client);
    queue.push_back(std::move(work));
    ++size_;
  }
  arrived_.notify_one();
  return true;
}

HandlerPool::Work HandlerPool::next() {
  std::string client = std::move(clients_in_order_.front());
  clients_in_order_.pop_front();
  const auto queue = waiting_.find(client);
  Work work = std::move(queue->second.front());
  queue->second.pop_front();
  --size_;
  if (queue->second.empty())
    waiting_.erase(queue);
  else
    clients_in_order_.push_back(std::move(client));
  return work;
}

void HandlerPool::run() {
  pthread_setname_np(pthread_self(), "requests");
  [[maybe_unused]] const int lower = nice(5);  // only for this thread: translation has priority
  while (true) {
    try {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [this] { return stopping_ || !clients_in_order_.empty(); });
      if (stopping_) return;
      const Work work = next();
      lock.unlock();
      work();
    } catch (const std::exception& error) {
      log_error("a request failed: {}", error.what());
    }
  }
}

void HandlerPool::stop() {
  {
    const std::lock_guard hold(mutex_);
    stopping_ = true;
  }
  arrived_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  waiting_.clear();
  clients_in_order_.clear();
  size_ = 0;
}

}  // namespace fovea

#include "serve/service_runtime.h"

#include <malloc.h>
#include <omp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/files.h"
#include "base/log.h"
#include "gemm/gemm_kernel.h"
#include "serve/core_affinity.h"
#include "serve/load_models.h"
#include "serve/served_model.h"

namespace fovea {
namespace {

constexpr std::chrono::milliseconds kPatience{200};  // how long work() waits for a task
// The contribution of each worker thread to the defaults of --batch-sentences, --batch-tokens and
// --queue-tokens. The defaults are at least those of two threads.
constexpr BatcherOptions kPerThread{
    .batch_tokens = 512, .batch_sentences = 32, .queue_tokens = 8 << 10};

// Translates a sentence with each model: the first sentence of a thread is slow, because libraries
// initialize themselves.
void warm_up(const ServedModels& models, const RequestLimits& limits) {
  const std::string hello = "Hello.";
  for (const auto& model : models) {
    if (!model->loaded()) continue;
    TranslationSession greeting(model->package(), limits.decoding(*model),
                                [](int64_t) { return true; });
    greeting.add(std::vector<TranslationSession::Sentence>{{0, hello}});
    while (!greeting.empty()) greeting.step();
  }
}

// The worker threads besides the main thread. Each runs its own batches. The destructor stops them.
class Workers {
 public:
  Workers(const ServiceSetup& c, const ServedModels& models, Batcher& batcher)
      : batcher_(batcher), warm_(c.batcher.workers - 1) {
    const int each = std::max(1, omp_get_max_threads() / static_cast<int>(c.batcher.workers));
    for (int64_t i = 1; i < c.batcher.workers; ++i)
      threads_.emplace_back([&, each](const std::stop_token& stop) {
        const PrecisionScope precision(c.precision);
        omp_set_num_threads(each);
        try {
          warm_up(models, c.service.limits);
        } catch (const std::exception& error) {  // a persistent error appears in answers
          log_warning("a translation thread failed: {}", error.what());
        }
        warm_.count_down();
        const auto leave = [&stop] { return stop.stop_requested(); };
        while (!leave()) batcher_.work(kPatience, leave);  // does not throw
      });
    omp_set_num_threads(each);
    warm_.wait();
  }
  ~Workers() {
    for (std::jthread& thread : threads_) thread.request_stop();
    batcher_.wake();
  }

 private:
  Batcher& batcher_;
  std::latch warm_;
  std::vector<std::jthread> threads_;
};

// Raises the limit of open file descriptors for connections, and reserves some for files.
void allow_descriptors(size_t& max_connections) {
  constexpr rlim_t kForFiles = 32;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 1 << 16);
  setrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t left = limit.rlim_cur > 2 * kForFiles ? limit.rlim_cur - kForFiles : kForFiles;
  max_connections = std::min<size_t>(max_connections, left);
}

// Set by a SIGHUP during start-up, before the server handles signals.
volatile std::sig_atomic_t early_hangup = 0;

// Flags that the thread of the server sets when signals arrive. The main thread reads them.
struct SignalFlags {
  using Clock = std::chrono::steady_clock;
  std::atomic<bool> stop{false}, reload{false};
  std::atomic<Clock::time_point> stopped{Clock::time_point()};  // set before `stop`
};

// Reads the file of API keys. Throws ExitCode::data or ExitCode::usage if it is not valid.
ApiKeys read_keys(const ServiceSetup& c) {
  if (c.keys_file.empty()) return {};
  ApiKeys keys = ApiKeys::parse(read_file(c.keys_file, 16 << 20), c.keys_file,
                                c.service.access.requests_per_minute);
  check(!c.service.access.keys_required || !keys.empty(), ExitCode::usage, c.keys_file,
        ": contains no key, but `require_api_key` needs one; add a line with a key");
  if (keys.empty())
    log_warning("`api_keys` {}: contains no key: requests without a key are accepted", c.keys_file);
  return keys;
}

void reload(const char* what, const std::function<void()>& act) {
  try {
    act();
    log_info("reloaded the {}", what);
  } catch (const std::exception& error) {
    log_error("cannot reload the {}, the old ones stay in use: {}", what, error.what());
  }
}

void reload_models(const ServiceSetup& c, Service& service) {
  ServedModels models = load_served_models(c.directories, c.device);
  warm_up(models, c.service.limits);
  service.replace(std::move(models));
  malloc_trim(0);  // returns the memory of the old models to the system
}

// Translates until a signal stops the service. Then answers pending requests.
void run(const ServiceSetup& c, HttpServer& server, Service& service, SignalFlags& signals) {
  size_t cut = 0;
  const auto late = [&] {  // if true, no client waits any more, so running batches end
    const std::chrono::duration<double> since = SignalFlags::Clock::now() - signals.stopped.load();
    if (!signals.stop || since.count() < c.drain) return false;
    if (cut == 0 && (cut = server.connections()) > 0) server.cut();
    return true;
  };
  const auto signalled = [&] { return late() || signals.stop || signals.reload; };
  while (!signals.stop) {
    if (signals.reload.exchange(false)) {
      if (!c.keys_file.empty())  // first: it is fast, and revoked keys must become invalid soon
        reload("API keys", [&] { service.replace_keys(read_keys(c)); });
      service.batcher().pause([&] { reload("models", [&] { reload_models(c, service); }); });
    }
    service.batcher().work(kPatience, signalled);
  }
  if (!late() && (service.batcher().waiting() > 0 || server.connections() > 0))
    log_info("shutting down: answering pending requests; a second signal exits immediately");
  while (!late() && (service.batcher().waiting() > 0 || server.connections() > 0))
    service.batcher().work(std::chrono::milliseconds(5), late);
  if (cut > 0)
    log_warning("closed {} connections that were still open after {} s", cut, c.drain);
  else
    log_info("shut down");
}

// Returns the names that are allowed in the Host header, or an empty list if any is allowed.
std::vector<std::string> allowed_hosts(const ServiceSetup& c) {
  std::vector<std::string> names = default_hosts(c.server.host);
  if (c.hosts.empty() && (names.empty() || c.service.access.proxies > 0)) return {};
  if (names.empty()) names = default_hosts("localhost");
  for (const std::string& name : c.hosts) names.push_back(host_name(name));
  return names;
}

// Checks the options and sets the options that depend on other options.
void complete_options(ServiceSetup& c) {
  check(!c.service.access.keys_required || !c.keys_file.empty(), ExitCode::usage,
        "`require_api_key`: no keys are given; name a file of keys with `api_keys`");
  c.service.access.keys = read_keys(c);
  c.service.timeout = std::chrono::milliseconds(static_cast<int64_t>(c.timeout * 1000));
  const bool on_host = std::holds_alternative<Cpu>(c.device);
  c.batcher.workers = c.workers > 0 ? c.workers : on_host ? omp_get_max_threads() : 1;
  check(on_host || c.batcher.workers == 1, ExitCode::usage,
        "`workers`: on a GPU a single thread translates; omit the option");
  c.batcher.interrupts = on_host;
  const int64_t least = std::max<int64_t>(2, c.batcher.workers);
  const auto by_default = [least](int64_t& value, int64_t each) {
    if (value == 0) value = least * each;
  };
  by_default(c.batcher.batch_sentences, kPerThread.batch_sentences);
  by_default(c.batcher.batch_tokens, kPerThread.batch_tokens);
  by_default(c.batcher.queue_tokens, kPerThread.queue_tokens);
  c.server.proxies = c.service.access.proxies;
  c.server.hosts = allowed_hosts(c);
  c.batcher.delay = std::chrono::microseconds(static_cast<int64_t>(1000 * c.delay));
}

void announce(const ServedModels& models) {
  const auto gallery = std::ranges::count_if(models, [](const auto& e) { return e->of_gallery(); });
  for (const auto& model : models)
    if (!model->of_gallery())
      log_info("{}: {} to {}", model->name(), model->source(), model->target());
  if (gallery > 0) log_info("gallery: {} tiny models, one per attention mechanism", gallery);
}

}  // namespace

void run_service(ServiceSetup c) {
  std::signal(SIGHUP, [](int) { early_hangup = 1; });
  complete_options(c);
  allow_descriptors(c.server.max_connections);
  Service* answering = nullptr;
  c.server.costly = [&](const HttpRequest& head) { return answering->is_costly(head); };
  c.server.screen = [&](const HttpRequest& head) { return answering->screen(head); };
  c.server.refused = [&](int status) { answering->count_refused(status); };
  // Batches have many different sizes, and each size needs its own prepared product. 512 cached
  // products take 32 MiB, and each thread has its own cache.
  kernel::keep_products(std::max(64, 512 / static_cast<int>(c.batcher.workers)));
  HttpServer server(c.server, [&](HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
    answering->handle(std::move(request), std::move(exchange));
  });
  const PrecisionScope precision(c.precision);
  ServedModels models = load_served_models(c.directories, c.device);
  warm_up(models, c.service.limits);
  announce(models);
  c.service.connections = [&] { return server.connections(); };
  Service service(c.service, c.batcher, models);
  answering = &service;
  SignalFlags signals;
  server.on_signal([&](int signal) {
    if (signal == SIGHUP) {
      signals.reload = true;
    } else {
      if (signals.stop) _exit(128 + signal);
      signals.stopped = SignalFlags::Clock::now();
      signals.stop = true;
      service.drain();
      server.drain();
    }
    service.batcher().wake();
  });
  if (early_hangup) signals.reload = true;
  struct Stop {  // stops the server before the service is destroyed, also after an exception
    HttpServer& server;
    ~Stop() { server.stop(); }
  } const stop{server};
  std::optional<Workers> others;
  {
    const OnAllCores start_there;
    others.emplace(c, models, service.batcher());
    models.clear();  // a reload must be able to release them
    server.start();
  }
  const bool bracketed = c.server.host.find(':') != std::string::npos;  // an IPv6 address
  log_info("listening on http://{}:{}", bracketed ? "[" + c.server.host + "]" : c.server.host,
           server.port());
  run(c, server, service, signals);
}

}  // namespace fovea

#include "cli/serve.h"

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

#include "base/files.h"
#include "base/log.h"
#include "cli/on_all_cores.h"
#include "cli/options.h"
#include "cli/serve_models.h"
#include "cli/session.h"
#include "ops/matmul_kernel.h"
#include "serve/engine.h"
#include "serve/server.h"
#include "serve/service.h"
#include "text/language.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  Serve the bundled models on this machine only:
    fovea serve
    curl -d q="A small dog." -d source=en -d target=de http://127.0.0.1:5000/translate

  Serve two models on all network addresses; the name of the second does not state its languages:
    fovea serve -m models/en-de -m de-en=my-model --host 0.0.0.0

  Show the training of a model too (keep checkpoints with 'fovea train --set checkpoint.keep=100'):
    fovea serve --run en-de=my-model

  With API keys (one line each: key, requests per minute); 20 requests per minute without a key:
    fovea serve --api-keys keys.txt --req-limit 20

The server implements the LibreTranslate API, and the DeepL API for texts. docs/serve.md and
/openapi.json describe every endpoint. On SIGTERM or SIGINT it answers pending requests and exits;
on SIGHUP it reloads the models and the file of --api-keys. It never opens outgoing connections.)";

constexpr std::chrono::milliseconds kPatience{200};  // of a thread that has nothing to do
// What each thread that translates adds to the defaults of --batch-sentences, --batch-tokens and
// --queue-tokens. No default is below that of two threads.
constexpr BatcherOptions kOfAThread{
    .batch_tokens = 512, .batch_sentences = 32, .queue_tokens = 8 << 10};

struct ServeCommand {
  std::vector<std::string> models, runs, hosts;
  ModelChoice choice;
  ServerOptions server;
  ServiceOptions service;
  // 0: the default for this number of workers
  BatcherOptions batcher{.batch_tokens = 0, .batch_sentences = 0, .queue_tokens = 0};
  int64_t workers = 0;  // 0: as many as there are threads, one on a GPU
  std::string keys_file;
  double timeout = 60, drain = 30, delay = 5;
  bool no_files = false;
};

// The first sentence of a thread pays for what libraries prepare when they are first used.
void warm_up(const Engines& engines, const Wish& wish) {
  const std::string hello = "Hello.";
  for (const auto& engine : engines) {
    if (!engine->loaded()) continue;
    Translating greeting(engine->package(), wish, [](int64_t) { return true; });
    greeting.add(std::vector<Translating::Sentence>{{0, hello}});
    while (!greeting.empty()) greeting.step();
  }
}

// Threads that translate beside this one, each on batches of its own, until it goes.
class Workers {
 public:
  Workers(const ServeCommand& c, const Engines& engines, Batcher& batcher)
      : batcher_(batcher), warm_(c.batcher.workers - 1) {
    const int each = std::max(1, omp_get_max_threads() / static_cast<int>(c.batcher.workers));
    for (int64_t i = 1; i < c.batcher.workers; ++i)
      threads_.emplace_back([&, each](const std::stop_token& stop) {
        const PrecisionScope precision(c.choice.numbers());
        omp_set_num_threads(each);
        try {
          warm_up(engines, c.service.wish);
        } catch (const std::exception& error) {  // requests will tell, if it stays so
          log_warning("a translation thread failed: {}", error.what());
        }
        warm_.count_down();
        const auto leave = [&stop] { return stop.stop_requested(); };
        while (!leave()) batcher_.work(kPatience, leave);  // which does not throw
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

// Connections are descriptors: raises the limit of the system, and keeps some for files.
void allow_descriptors(size_t& max_connections) {
  constexpr rlim_t kForFiles = 32;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 1 << 16);
  setrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t left = limit.rlim_cur > 2 * kForFiles ? limit.rlim_cur - kForFiles : kForFiles;
  max_connections = std::min<size_t>(max_connections, left);
}

// A SIGHUP that comes before there is a server to see it: while models are being loaded.
volatile std::sig_atomic_t early_hangup = 0;

// The signals that the server's thread has seen, for the first thread.
struct Requests {
  using Clock = std::chrono::steady_clock;
  std::atomic<bool> stop{false}, reload{false};
  std::atomic<Clock::time_point> stopped{Clock::time_point()};  // set before stop
};

// Exit::data or Exit::usage if the file cannot be used.
ApiKeys read_keys(const ServeCommand& c) {
  if (c.keys_file.empty()) return {};
  ApiKeys keys =
      ApiKeys::parse(read_file(c.keys_file, 16 << 20), c.keys_file, c.service.requests_per_minute);
  check(!c.service.keys_required || !keys.empty(), Exit::usage, c.keys_file,
        ": contains no key, but --require-api-key needs one; add a line with a key");
  if (keys.empty())
    log_warning("--api-keys {}: contains no key: requests without a key are accepted", c.keys_file);
  return keys;
}

void reload_keys(const ServeCommand& c, Service& service) {
  if (c.keys_file.empty()) return;
  try {
    service.replace_keys(read_keys(c));
    log_info("reloaded the API keys");
  } catch (const std::exception& error) {
    log_error("cannot reload the API keys, the old ones stay in use: {}", error.what());
  }
}

void reload(const ServeCommand& c, Service& service) {
  try {
    Engines engines = load_engines(c.models, c.runs, c.choice);
    warm_up(engines, c.service.wish);
    service.replace(std::move(engines));
    malloc_trim(0);  // the room of the old ones goes back to the system
    log_info("reloaded the models");
  } catch (const std::exception& error) {
    log_error("cannot reload the models, the old ones stay in use: {}", error.what());
  }
}

// Translates until a signal comes, then what was asked before it.
void run(const ServeCommand& c, Server& server, Service& service, Requests& requests) {
  size_t cut = 0;
  const auto late = [&] {  // then nobody waits for the batches under way, and they end
    const std::chrono::duration<double> since = Requests::Clock::now() - requests.stopped.load();
    if (!requests.stop || since.count() < c.drain) return false;
    if (cut == 0 && (cut = server.connections()) > 0) server.cut();
    return true;
  };
  const auto signalled = [&] { return late() || requests.stop || requests.reload; };
  while (!requests.stop) {
    if (requests.reload.exchange(false)) {
      reload_keys(c, service);  // first: it is quick, and revoked keys must not wait
      service.batcher().pause([&] { reload(c, service); });
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

// Names that Host may have; empty: any. A proxy passes on the names of its own, which are known
// only if they are given.
std::vector<std::string> allowed_hosts(const ServeCommand& c) {
  std::vector<std::string> names = default_hosts(c.server.host);
  if (c.hosts.empty() && (names.empty() || c.service.proxies > 0)) return {};
  if (names.empty()) names = default_hosts("localhost");
  for (const std::string& name : c.hosts) names.push_back(host_name(name));
  return names;
}

// What options mean beside the fields they fill.
void settle_options(ServeCommand& c) {
  check(!c.service.keys_required || !c.keys_file.empty(), Exit::usage,
        "--require-api-key: no keys are given; name a file of keys with --api-keys");
  c.service.keys = read_keys(c);
  c.service.files = !c.no_files;
  c.service.timeout = std::chrono::milliseconds(static_cast<int64_t>(c.timeout * 1000));
  const bool on_host = std::holds_alternative<Cpu>(device_of(c.choice));
  c.batcher.workers = c.workers > 0 ? c.workers : on_host ? omp_get_max_threads() : 1;
  check(on_host || c.batcher.workers == 1, Exit::usage,
        "--workers: on a GPU a single thread translates; omit the option");
  c.batcher.interrupts = on_host;
  const int64_t least = std::max<int64_t>(2, c.batcher.workers);
  const auto by_default = [least](int64_t& value, int64_t each) {
    if (value == 0) value = least * each;
  };
  by_default(c.batcher.batch_sentences, kOfAThread.batch_sentences);
  by_default(c.batcher.batch_tokens, kOfAThread.batch_tokens);
  by_default(c.batcher.queue_tokens, kOfAThread.queue_tokens);
  c.server.proxies = c.service.proxies;
  c.server.hosts = allowed_hosts(c);
  c.batcher.delay = std::chrono::microseconds(static_cast<int64_t>(1000 * c.delay));
}

void announce(const Engines& engines) {
  const auto gallery =
      std::ranges::count_if(engines, [](const auto& e) { return e->of_gallery(); });
  for (const auto& engine : engines)
    if (!engine->of_gallery())
      log_info("{}: {} to {}", engine->name(), engine->source(), engine->target());
  if (gallery > 0) log_info("gallery: {} tiny models, one per attention mechanism", gallery);
}

void serve(ServeCommand& c) {
  std::signal(SIGHUP, [](int) { early_hangup = 1; });
  settle_options(c);
  allow_descriptors(c.server.max_connections);
  Service* answering = nullptr;
  c.server.costly = &Service::is_costly;
  c.server.screen = [&](const Request& head) { return answering->screen(head); };
  c.server.refused = [&](int status) { answering->count_refused(status); };
  // Clients bring batches of all sizes; 512 products take 32 MiB, and each thread has its own.
  kernel::keep_products(std::max(64, 512 / static_cast<int>(c.batcher.workers)));
  Server server(c.server, [&](Request request, std::shared_ptr<Exchange> exchange) {
    answering->handle(std::move(request), std::move(exchange));
  });
  const PrecisionScope precision(c.choice.numbers());
  Engines engines = load_engines(c.models, c.runs, c.choice);
  warm_up(engines, c.service.wish);
  announce(engines);
  c.service.connections = [&] { return server.connections(); };
  Service service(c.service, c.batcher, engines);
  answering = &service;
  Requests requests;
  server.on_signal([&](int signal) {
    if (signal == SIGHUP) {
      requests.reload = true;
    } else {
      if (requests.stop) _exit(128 + signal);
      requests.stopped = Requests::Clock::now();
      requests.stop = true;
      service.drain();
      server.drain();
    }
    service.batcher().wake();
  });
  if (early_hangup) requests.reload = true;
  struct Stop {  // before the service goes, whatever ends the program
    Server& server;
    ~Stop() { server.stop(); }
  } const stop{server};
  std::optional<Workers> others;
  {
    const OnAllCores start_there;
    others.emplace(c, engines, service.batcher());
    engines.clear();  // models that were loaded again take their place
    server.start();
  }
  const bool bracketed = c.server.host.find(':') != std::string::npos;  // an address of IPv6
  log_info("listening on http://{}:{}", bracketed ? "[" + c.server.host + "]" : c.server.host,
           server.port());
  run(c, server, service, requests);
}

void add_limits(Command& command, ServeCommand& c) {
  Command group = command.group("Limits");
  group.option("--char-limit", c.service.char_limit, "Maximum characters per request; 0: no limit")
      .within(0, 1 << 30)
      .with_default();
  group
      .option("--req-limit", c.service.requests_per_minute,
              "Maximum requests per minute of one address (IPv6: one /64 network), or of a key "
              "without its own number; 0: no limit")
      .within(0, 1 << 30)
      .with_default();
  group
      .option("--proxies", c.service.proxies,
              "Number of reverse proxies in front of this server: --req-limit counts by the "
              "address that "
              "the first of them adds to X-Forwarded-For")
      .within(0, 16)
      .with_default();
  group
      .option("--api-keys", c.keys_file,
              "File of keys, one per line: KEY [REQUESTS PER MINUTE]; SIGHUP reloads it")
      .takes("FILE");
  group.flag("--require-api-key", c.service.keys_required, "Reject requests without a key");
  group.flag("--disable-files-translation", c.no_files, "Disable /translate_file");
  group.option("--max-body", c.server.max_body, "Maximum bytes per request")
      .within(1024, 1 << 30)
      .with_default();
  group.option("--max-connections", c.server.max_connections, "Maximum number of open connections")
      .within(1, 1 << 20)
      .with_default();
  group
      .option(
          "--max-connections-per-client", c.server.max_connections_per_client,
          "Maximum number of open connections per address (IPv6: per /64 network); 0: no limit; "
          "ignored with --proxies")
      .within(0, 1 << 20)
      .with_default();
  group.option("--timeout", c.timeout, "Timeout of a request in seconds")
      .within(0.1, 86400.0)
      .with_default();
  group.option("--drain", c.drain, "Maximum seconds after SIGTERM to answer pending requests")
      .within(0.0, 86400.0)
      .with_default();
}

void add_batches(Command& command, ServeCommand& c) {
  Command group = command.group("Batches");
  group
      .option("--workers", c.workers,
              "Number of translation threads, each with its own batches; they share the threads of "
              "--threads; default: the same number, on a GPU one")
      .within(1, 512)
      .from_environment("FOVEA_WORKERS");
  group
      .option(
          "--batch-sentences", c.batcher.batch_sentences,
          "Maximum number of sentences of one client translated at the same time; proportionally "
          "fewer with a beam above 4; default: 32 per worker, at least 64")
      .within(1, 1 << 20);
  group
      .option("--batch-tokens", c.batcher.batch_tokens,
              "Maximum number of source pieces of one client translated at the same time; "
              "proportionally fewer with a beam above 4; default: 512 per worker, at least 1024")
      .within(1, 1 << 20);
  group
      .option(
          "--batch-delay", c.delay,
          "Maximum milliseconds that the first sentence of a closed batch waits for more, a fifth "
          "if none arrive; batches are closed for recurrent models and on a GPU")
      .within(0.0, 1000.0)
      .with_default();
  group
      .option(
          "--queue-tokens", c.batcher.queue_tokens,
          "Maximum number of queued source pieces per client, for all clients four times as many; "
          "with a beam above 4 each counts more; beyond the limit requests get status 429; "
          "default: 8192 per worker, at least 16384")
      .within(1, 1 << 30);
  group.option("-b,--beam", c.service.wish.beam, "Beam if the request does not set one")
      .within(1, 16)
      .with_default();
  group
      .option("--length-penalty", c.service.wish.length_penalty,
              "Length penalty if the request does not set one")
      .within(-10.0, 10.0)
      .with_default();
}

}  // namespace

void add_serve(Command& program) {
  Command command = program.command("serve", "Serve translations over HTTP");
  auto shared = std::make_shared<ServeCommand>();
  ServeCommand& c = *shared;
  command
      .option("-m,--model", c.models,
              "Model directory, or FROM-TO=DIR if neither its config.yml nor its name states the "
              "languages, or the name of a bundled model; can be repeated; default: all bundled "
              "models")
      .takes("DIR")
      .one_by_one()
      .from_environment("FOVEA_MODEL");
  command
      .option(
          "--run", c.runs,
          "Like -m, for a directory of 'fovea train': the page also shows the training curves and "
          "the attention at each kept checkpoint and snapshot")
      .takes("DIR")
      .one_by_one();
  command.option("--host", c.server.host, "Address to listen on; 0.0.0.0: all addresses")
      .with_default()
      .from_environment("FOVEA_HOST");
  command.option("--port", c.server.port, "Port to listen on; 0: any free port")
      .within(0, 65535)
      .with_default()
      .from_environment("FOVEA_PORT");
  command
      .option(
          "--allow-host", c.hosts,
          "Accept this name in the Host header, besides localhost, 127.0.0.1 and [::1]; can be "
          "repeated. Other names are rejected if this option is given, or if --host is a loopback "
          "address and --proxies is 0")
      .takes("NAME")
      .one_by_one();
  add_device_option(command, c.choice.device);
  add_precision_option(command, c.choice.precision);
  command.flag(
      "--log-requests", c.service.log_requests,
      "Log one line per request: method, path, status, bytes, milliseconds, identifier; with "
      "--log-format json as fields");
  add_limits(command, c);
  add_batches(command, c);
  command.footer(kExamples);
  command.runs([shared] { serve(*shared); });
}

}  // namespace fovea

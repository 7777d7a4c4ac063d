#include "cli/serve.h"

#include <malloc.h>
#include <omp.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <latch>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/log.h"
#include "cli/options.h"
#include "cli/session.h"
#include "cli/training_run.h"
#include "ops/matmul_kernel.h"
#include "serve/engine.h"
#include "serve/language.h"
#include "serve/server.h"
#include "serve/service.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  The models that come along, for this machine alone:
    fovea serve
    curl -d q="A small dog." -d source=en -d target=de http://127.0.0.1:5000/translate

  Two models, the second with a name that does not tell its languages, for the whole network:
    fovea serve -m models/en-de -m de-en=my-model --host 0.0.0.0

  A model with the story of its training (kept by --set checkpoint.keep=100 of 'fovea train'):
    fovea serve --run en-de=my-model

  With keys (a line each: the key, the requests it may make in a minute), 20 a minute without:
    fovea serve --api-keys keys.txt --req-limit 20

It speaks LibreTranslate's language, and DeepL's for texts; docs/serve.md describes every endpoint,
/openapi.json as well. SIGTERM and SIGINT let it answer what it was asked and end; SIGHUP loads the
models again. It never opens a connection of its own.)";

constexpr std::chrono::milliseconds kPatience{200};  // of a thread that has nothing to do

struct ServeCommand {
  std::vector<std::string> models, runs;
  ModelChoice choice;
  ServerOptions server;
  ServiceOptions service;
  BatcherOptions batcher;
  int64_t workers = 0;  // 0: as many as there are threads, one on a GPU
  std::string keys_file;
  double timeout = 60, drain = 30, delay = 5;
  bool no_files = false;
};

// While one lives, this thread may run wherever those of OpenMP may, and so may threads it starts:
// with OMP_PROC_BIND each has a core of its own, this one the first.
class OnAllCores {
 public:
  OnAllCores() {
    known_ = sched_getaffinity(0, sizeof own_, &own_) == 0;
    cpu_set_t all = own_;
#pragma omp parallel
    {
      cpu_set_t here = {};
      const bool known = sched_getaffinity(0, sizeof here, &here) == 0;
#pragma omp critical
      {
        CPU_OR(&all, &all, &here);
        known_ = known_ && known;
      }
    }
    if (known_) sched_setaffinity(0, sizeof all, &all);
  }
  ~OnAllCores() {
    if (known_) sched_setaffinity(0, sizeof own_, &own_);
  }
  OnAllCores(const OnAllCores&) = delete;
  OnAllCores& operator=(const OnAllCores&) = delete;

 private:
  cpu_set_t own_ = {};
  bool known_ = false;  // of more than 1,024 cores nothing is
};

// The model that comes along and those that stand beside it, of other pairs of languages.
std::vector<EngineSpec> default_models() {
  namespace fs = std::filesystem;
  const std::string first = find_default_model();
  check(!first.empty(), Exit::model,
        "there is no default model; name one with -m DIR, or train one: fovea train --help");
  std::set<std::string> others;  // sorted
  std::error_code none;          // a folder that cannot be read has no others
  for (const auto& entry : fs::directory_iterator(fs::path(first).parent_path(), none))
    if (languages_of_folder(entry.path().string()) && fs::exists(entry.path() / kConfigFile))
      others.insert(entry.path().string());
  others.erase(first);
  std::vector<EngineSpec> models{parse_engine(first)};
  for (const std::string& directory : others) models.push_back(parse_engine(directory));
  return models;
}

// "en-de=NAME" and "NAME" where NAME is that of a model that comes along, too.
EngineSpec spec_of(const std::string& text) {
  if (text.find('=') != std::string::npos) {
    EngineSpec spec = parse_engine(text);
    spec.directory = model_directory(spec.directory);
    return spec;
  }
  const std::string found = model_directory(text);
  const auto pair = languages_of_model(found);
  if (pair) return {found, pair->first, pair->second};
  load_config(found);  // that there is no model in it comes before its languages
  return parse_engine(found);
}

// The second of two would never be asked.
void check_different(const std::vector<EngineSpec>& specs,
                     const std::vector<std::filesystem::path>& places) {
  for (size_t i = 0; i < specs.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      check(places[i] != places[j] || specs[i].source != specs[j].source ||
                specs[i].target != specs[j].target,
            Exit::usage, specs[i].directory, ": this model is named twice for ", specs[i].source,
            " to ", specs[i].target, "; name it once");
}

// What each model is called by: the name of its folder, behind as many of the folders around it as
// it takes to tell it from the others.
std::vector<std::string> names_of(const std::vector<EngineSpec>& specs) {
  namespace fs = std::filesystem;
  std::vector<fs::path> places, names;
  for (const EngineSpec& spec : specs) {
    const fs::path place = fs::absolute(spec.directory).lexically_normal();
    places.push_back(place.has_filename() ? place : place.parent_path());
    names.push_back(places.back().filename());
  }
  check_different(specs, places);
  const auto ambiguous = [&](size_t i) {
    for (size_t j = 0; j < places.size(); ++j)
      if (places[j] != places[i] && names[j] == names[i]) return true;
    return false;
  };
  for (bool any = true; any;) {
    std::vector<size_t> alike;
    for (size_t i = 0; i < names.size(); ++i)
      if (ambiguous(i)) alike.push_back(i);
    any = !alike.empty();
    for (const size_t i : alike) {
      const auto deep = std::distance(names[i].begin(), names[i].end()) + 1;
      fs::path longer;
      for (auto at = std::prev(places[i].end(), deep); at != places[i].end(); ++at) longer /= *at;
      names[i] = longer;
    }
  }
  return {names.begin(), names.end()};
}

Package load_engine(const std::string& directory, Device device) {
  Package package = load_package(directory, device);
  check(package.config.type != "reader", Exit::model, directory,
        ": this model labels texts and does not translate");
  package.model->settle();
  return package;
}

Engines load_engines(const ServeCommand& c) {
  const Device device = device_of(c.choice);
  Engines engines;
  const bool none = c.models.empty() && c.runs.empty();
  std::vector<EngineSpec> specs = none ? default_models() : std::vector<EngineSpec>();
  std::ranges::transform(c.models, std::back_inserter(specs), spec_of);
  const size_t first_run = specs.size(), first_of_gallery = first_run + c.runs.size();
  std::ranges::transform(c.runs, std::back_inserter(specs), spec_of);
  if (none) std::ranges::transform(find_gallery(), std::back_inserter(specs), spec_of);
  const std::vector<std::string> names = names_of(specs);
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto& [directory, source, target] = specs[i];
    if (i < first_of_gallery)
      engines.push_back(
          std::make_shared<Engine>(names[i], source, target, load_engine(directory, device),
                                   i < first_run ? nullptr : training_run(specs[i], device)));
    else
      engines.push_back(std::make_shared<Engine>(
          EngineName{names[i], source, target, true}, load_config(directory),
          [directory = directory, device] { return load_engine(directory, device); }));
  }
  return engines;
}

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
          log_warning("a thread could not translate: {}", error.what());
        }
        warm_.count_down();
        const auto leave = [&stop] { return stop.stop_requested(); };
        while (!leave()) batcher_.work(kPatience, leave);
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

// Connections are descriptors: as many as the system lets us have.
void allow_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 1 << 16);
  setrlimit(RLIMIT_NOFILE, &limit);
}

// A SIGHUP that comes before there is a server to see it: while models are being loaded.
volatile std::sig_atomic_t early_hangup = 0;

// The signals that the server's thread has seen, for the first thread.
struct Requests {
  using Clock = std::chrono::steady_clock;
  std::atomic<bool> stop{false}, reload{false};
  std::atomic<Clock::time_point> stopped{Clock::time_point()};  // set before stop
};

void reload(const ServeCommand& c, Service& service) {
  try {
    Engines engines = load_engines(c);
    warm_up(engines, c.service.wish);
    service.replace(std::move(engines));
    malloc_trim(0);  // the room of the old ones goes back to the system
    log_info("the models were loaded again");
  } catch (const std::exception& error) {
    log_error("the old models stay in use: {}", error.what());
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
    if (requests.reload.exchange(false)) service.batcher().pause([&] { reload(c, service); });
    service.batcher().work(kPatience, signalled);
  }
  if (!late() && (service.batcher().waiting() > 0 || server.connections() > 0))
    log_info("answering what was asked; a second signal ends the program at once");
  while (!late() && (service.batcher().waiting() > 0 || server.connections() > 0))
    service.batcher().work(std::chrono::milliseconds(5), late);
  if (cut > 0)
    log_warning("{} connections were cut after {} s", cut, c.drain);
  else
    log_info("ended");
}

// What options mean beside the fields they fill.
void settle_options(ServeCommand& c) {
  if (!c.keys_file.empty())
    c.service.keys = ApiKeys::parse(read_file(c.keys_file, 16 << 20), c.keys_file,
                                    c.service.requests_per_minute);
  check(!c.service.keys_required || !c.service.keys.empty(), Exit::usage,
        "--require-api-key: there are no keys; name a file of them with --api-keys");
  if (!c.keys_file.empty() && c.service.keys.empty())
    log_warning("--api-keys {}: there is no key in it: everybody is answered", c.keys_file);
  c.service.files = !c.no_files;
  c.service.timeout = std::chrono::milliseconds(static_cast<int64_t>(c.timeout * 1000));
  const bool on_host = std::holds_alternative<Cpu>(device_of(c.choice));
  c.batcher.workers = c.workers > 0 ? c.workers : on_host ? omp_get_max_threads() : 1;
  check(on_host || c.batcher.workers == 1, Exit::usage,
        "--workers: on a GPU one thread translates; leave it out");
  c.batcher.delay = std::chrono::microseconds(static_cast<int64_t>(1000 * c.delay));
}

void announce(const Engines& engines) {
  const auto gallery =
      std::ranges::count_if(engines, [](const auto& e) { return e->of_gallery(); });
  for (const auto& engine : engines)
    if (!engine->of_gallery())
      log_info("{}: {} to {}", engine->name(), engine->source(), engine->target());
  if (gallery > 0) log_info("gallery: {} tiny models, one for each mechanism", gallery);
}

void serve(ServeCommand& c) {
  std::signal(SIGHUP, [](int) { early_hangup = 1; });
  settle_options(c);
  allow_descriptors();
  Service* answering = nullptr;
  c.server.screen = [&](const Request& head) { return answering->screen(head); };
  c.server.refused = [&](int status) { answering->count_refused(status); };
  // Clients bring batches of all sizes; 512 products take 32 MiB, and each thread has its own.
  kernel::keep_products(std::max(64, 512 / static_cast<int>(c.batcher.workers)));
  Server server(c.server, [&](Request request, std::shared_ptr<Exchange> exchange) {
    answering->handle(std::move(request), std::move(exchange));
  });
  const PrecisionScope precision(c.choice.numbers());
  Engines engines = load_engines(c);
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
  group.option("--char-limit", c.service.char_limit, "Characters of a request; 0: no limit")
      .within(0, 1 << 30)
      .with_default();
  group
      .option("--req-limit", c.service.requests_per_minute,
              "Requests in a minute of an address, or of a key without a number; 0: no limit")
      .within(0, 1 << 30)
      .with_default();
  group
      .option(
          "--proxies", c.service.proxies,
          "Proxies before this server: --req-limit counts by the address that the first of them "
          "adds to X-Forwarded-For")
      .within(0, 16)
      .with_default();
  group.option("--api-keys", c.keys_file, "File of keys: KEY [REQUESTS PER MINUTE] a line")
      .takes("FILE");
  group.flag("--require-api-key", c.service.keys_required, "Nothing without a key");
  group.flag("--disable-files-translation", c.no_files, "No /translate_file");
  group.option("--max-body", c.server.max_body, "Bytes of a request")
      .within(1024, 1 << 30)
      .with_default();
  group.option("--max-connections", c.server.max_connections, "Clients at a time")
      .within(1, 1 << 20)
      .with_default();
  group.option("--timeout", c.timeout, "Seconds from question to answer")
      .within(0.1, 86400.0)
      .with_default();
  group.option("--drain", c.drain, "Seconds to answer what was asked before SIGTERM")
      .within(0.0, 86400.0)
      .with_default();
}

void add_batches(Command& command, ServeCommand& c) {
  Command group = command.group("Batches");
  group
      .option("--workers", c.workers,
              "Threads that translate, each with batches of its own; those of --threads are shared "
              "out among them; default: as many, one on a GPU")
      .within(1, 512)
      .from_environment("FOVEA_WORKERS");
  group
      .option("--batch-tokens", c.batcher.batch_tokens, "Source pieces translated at the same time")
      .within(1, 1 << 20)
      .with_default();
  group
      .option("--batch-delay", c.delay,
              "Milliseconds a sentence waits for others at most, a fifth of it where none come, if "
              "they cannot join it later: recurrent models, and on a GPU")
      .within(0.0, 1000.0)
      .with_default();
  group
      .option("--queue-tokens", c.batcher.queue_tokens,
              "Source pieces that may wait; requests beyond are answered 429")
      .within(1, 1 << 30)
      .with_default();
  group.option("-b,--beam", c.service.wish.beam, "Beam where a request does not say")
      .within(1, 16)
      .with_default();
  group
      .option("--length-penalty", c.service.wish.length_penalty,
              "Length penalty where a request does not say")
      .within(-10.0, 10.0)
      .with_default();
}

}  // namespace

void add_serve(Command& program) {
  Command command = program.command("serve", "Answer translation requests over HTTP");
  auto shared = std::make_shared<ServeCommand>();
  ServeCommand& c = *shared;
  command
      .option("-m,--model", c.models,
              "Model directory, or FROM-TO=DIR where neither its config.yml nor its name tells the "
              "languages, or the name of a model that comes along; may be given several times; "
              "default: all that come along")
      .takes("DIR")
      .one_by_one()
      .from_environment("FOVEA_MODEL");
  command
      .option("--run", c.runs,
              "The same, of a directory that 'fovea train' wrote: the page shows its curves "
              "and its attention at each checkpoint and snapshot that was kept")
      .takes("DIR")
      .one_by_one();
  command.option("--host", c.server.host, "Address to listen on; 0.0.0.0: all")
      .with_default()
      .from_environment("FOVEA_HOST");
  command.option("--port", c.server.port, "Port to listen on; 0: any that is free")
      .within(0, 65535)
      .with_default()
      .from_environment("FOVEA_PORT");
  add_device_option(command, c.choice.device);
  add_precision_option(command, c.choice.precision);
  command.flag("--log-requests", c.service.log_requests,
               "A line of the log for each request: method, path, status, bytes, milliseconds");
  add_limits(command, c);
  add_batches(command, c);
  command.footer(kExamples);
  command.runs([shared] { serve(*shared); });
}

}  // namespace fovea

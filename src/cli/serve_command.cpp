#include <memory>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "serve/service_runtime.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  Serve the bundled models on this machine only:
    fovea serve
    curl -d q="A small dog." -d source=en -d target=de http://127.0.0.1:5000/translate

  Serve two models on all network addresses, with the languages of the second:
    fovea serve -m models/en-de -m de-en=my-model --host 0.0.0.0

  Also show the training of a model (keep checkpoints with 'fovea train --set checkpoint.keep=100'):
    fovea serve --run en-de=my-model

  With API keys (each line: key, requests per minute), and 20 requests per minute without a key:
    fovea serve --api-keys keys.txt --req-limit 20

The server implements the LibreTranslate API and the text part of the DeepL API. docs/serve.md and
/openapi.json describe every endpoint. On SIGTERM or SIGINT it answers pending requests and exits;
on SIGHUP it reloads the models and the --api-keys file. It never opens outgoing connections.)";

struct ServeCommand {
  ServiceSetup setup;
  ModelChoice choice;
  bool no_files = false;
};

void serve(ServeCommand& c) {
  c.setup.device = device_of(c.choice);
  c.setup.precision = c.choice.matmul_precision();
  c.setup.service.files = !c.no_files;
  run_service(c.setup);
}

void add_limits(Command& command, ServiceSetup& c, bool& no_files) {
  Command group = command.group("Limits");
  group
      .option("--char-limit", c.service.limits.char_limit,
              "Maximum characters per request; 0: no limit")
      .within(0, 1 << 30)
      .with_default();
  group
      .option(
          "--req-limit", c.service.access.requests_per_minute,
          "Maximum requests per minute per address (IPv6: per /64 network), or per key without its "
          "own limit; 0: no limit")
      .within(0, 1 << 30)
      .with_default();
  group
      .option(
          "--proxies", c.service.access.proxies,
          "Number of reverse proxies in front of this server; --req-limit then counts per address "
          "that the first of them adds to X-Forwarded-For")
      .within(0, 16)
      .with_default();
  group
      .option("--api-keys", c.keys_file,
              "File of keys, one per line: KEY [REQUESTS PER MINUTE]; SIGHUP reloads it")
      .takes("FILE");
  group.flag("--require-api-key", c.service.access.keys_required, "Reject requests without a key");
  group.flag("--disable-files-translation", no_files, "Disable /translate_file");
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

void add_batches(Command& command, ServiceSetup& c) {
  Command group = command.group("Batches");
  group
      .option("--workers", c.workers,
              "Number of worker threads, each with its own batches; they divide the --threads; "
              "default: "
              "the number of --threads, on a GPU 1")
      .within(1, 512)
      .from_environment("FOVEA_WORKERS");
  group
      .option("--batch-sentences", c.batcher.batch_sentences,
              "Maximum number of sentences per client translated at the same time; proportionally "
              "fewer "
              "with a beam above 4; default: 32 per worker, at least 64")
      .within(1, 1 << 20);
  group
      .option(
          "--batch-tokens", c.batcher.batch_tokens,
          "Maximum number of source pieces per client translated at the same time; proportionally "
          "fewer with a beam above 4; default: 512 per worker, at least 1024")
      .within(1, 1 << 20);
  group
      .option(
          "--batch-delay", c.delay,
          "Maximum milliseconds that the first sentence of a closed batch waits for more; if none "
          "arrive, a fifth; batches are closed for recurrent models and on a GPU")
      .within(0.0, 1000.0)
      .with_default();
  group
      .option("--queue-tokens", c.batcher.queue_tokens,
              "Maximum number of queued source pieces per client; the limit for all clients is "
              "four times "
              "as high; with a beam above 4 each counts more; beyond the limit, requests get "
              "status 429; "
              "default: 8192 per worker, at least 16384")
      .within(1, 1 << 30);
  group
      .option("-b,--beam", c.service.limits.beam,
              "Beam size if the request does not set one; default: of the model (4)")
      .within(1, 16);
  group
      .option("--length-penalty", c.service.limits.length_penalty,
              "Length penalty if the request does not set one; default: of the model (0.6)")
      .within(-10.0, 10.0);
}

}  // namespace

void add_serve(Command& program) {
  Command command = program.command("serve", "Serve translations over HTTP");
  auto shared = std::make_shared<ServeCommand>();
  ServiceSetup& c = shared->setup;
  command
      .option("-m,--model", c.directories.models,
              "Model directory, or the name of a bundled model, or FROM-TO=DIR if neither "
              "config.yml nor "
              "the directory name states the languages; can be repeated; default: all bundled "
              "models")
      .takes("DIR")
      .one_value_each()
      .from_environment("FOVEA_MODEL");
  command
      .option(
          "--run", c.directories.runs,
          "Like -m, for a directory of 'fovea train'; the page also shows its training curves and "
          "the attention at each kept checkpoint and snapshot")
      .takes("DIR")
      .one_value_each();
  add_adapter_option(command, c.directories.adapter);
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
          "repeated; other names are rejected if this option is given, or if --host is a loopback "
          "address and --proxies is 0")
      .takes("NAME")
      .one_value_each();
  add_device_option(command, shared->choice.device);
  add_precision_option(command, shared->choice.precision);
  command.flag(
      "--log-requests", c.service.log_requests,
      "Log one line per request: method, path, status, bytes, milliseconds, identifier; as "
      "fields with --log-format json");
  add_limits(command, c, shared->no_files);
  add_batches(command, c);
  command.footer(kExamples);
  command.runs([shared] { serve(*shared); });
}

}  // namespace fovea

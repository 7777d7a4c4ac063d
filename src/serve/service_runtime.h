#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "http/server.h"
#include "ops/matmul.h"
#include "serve/load_models.h"
#include "serve/service.h"
#include "tensor/device.h"

namespace fovea {

// The options of `fovea serve`.
struct ServiceSetup {
  ServedDirectories directories;
  std::vector<std::string> hosts = {};  // allowed names in the Host header besides the default ones
  Device device = Cpu{};
  Precision precision = Precision::f32;
  ServerOptions server = {};
  ServiceOptions service = {};
  // In these limits, 0 stands for the default for this number of workers.
  BatcherOptions batcher = {.batch_tokens = 0, .batch_sentences = 0, .queue_tokens = 0};
  int64_t workers = 0;         // translation threads; 0: one per OpenMP thread, one on a GPU
  std::string keys_file = {};  // file of API keys; SIGHUP reloads it
  // timeout: seconds from a request to status 504. drain: seconds from SIGTERM until connections
  // are closed. delay: milliseconds that a closed batch waits for more sentences.
  double timeout = 60, drain = 30, delay = 5;
};

// Serves until SIGTERM or SIGINT, then answers pending requests and returns. SIGHUP reloads the
// models and the API keys. Throws ExitCode::usage or ExitCode::model if the setup cannot be served.
void run_service(ServiceSetup setup);

}  // namespace fovea

#include <memory>
#include <string>

#include "base/lines.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/model_description.h"
#include "decode/model_lookup.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  Show the configuration, parameters and files of a model:
    fovea inspect model

  The same as JSON; here, the number of parameters:
    fovea inspect model --json | jq .parameters

The command reads and checks the whole model: shapes, checksums, weights, vocabulary. If the model
is damaged, the error names the file and the tensor, and the exit code is 4.)";

struct InspectCommand {
  std::string directory;
  bool json = false;
};

void inspect(const InspectCommand& c) {
  const std::string directory =
      c.directory.empty() ? find_default_model() : model_directory(c.directory);
  check(!directory.empty(), ExitCode::model,
        "there is no bundled default model; give a model directory");
  const nlohmann::ordered_json description = describe_model(directory);
  OutputFile out("-");
  out.write(c.json ? description.dump(2) + "\n" : description_text(description));
  out.close();
}

}  // namespace

void add_inspect(Command& program) {
  Command command = program.command("inspect", "Show and check the contents of a model directory");
  auto shared = std::make_shared<InspectCommand>();
  command
      .option("directory", shared->directory,
              "Model directory, or the name of a bundled model; default: en-de")
      .takes("DIR");
  command.flag("--json", shared->json, "Print JSON");
  command.footer(kExamples);
  command.runs([shared] { inspect(*shared); });
}

}  // namespace fovea

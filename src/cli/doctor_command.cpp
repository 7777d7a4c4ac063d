#include <fmt/format.h>
#include <link.h>
#include <omp.h>
#include <sys/utsname.h>
#include <unicode/uvernum.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/lines.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/flag_names.h"
#include "cli/model_options.h"
#include "decode/translator.h"
#include "gemm/onednn_version.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExamples = R"(Example:
    fovea doctor

Prints one line per check: "ok", "note" (works, but could be better) or "FAIL" with a remedy. The
exit code is 0 if no check failed, 1 otherwise.)";

enum class Verdict { ok, note, fail };

struct CheckResult {
  Verdict verdict;
  std::string name, text;
};

// Returns a property of the first processor from /proc/cpuinfo, or "" if it is not listed.
std::string processor_property(std::string_view name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name)) return line.substr(line.find(':') + 2);
  return "";
}

std::string processor() {
  if (std::string name = processor_property("model name"); !name.empty()) return name;
  utsname system{};
  return uname(&system) == 0 ? system.machine : "unknown";
}

// Returns the path of the loaded kernel library. The name of its folder is the instruction set
// level.
std::string kernel_library() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        const std::string name = info->dlpi_name;
        if (name.find("libfovea_kernels") != name.npos) *static_cast<std::string*>(out) = name;
        return 0;
      },
      &path);
  return path;
}

CheckResult instruction_set() {
  const std::string path = kernel_library();
  const std::string folder = fs::path(path).parent_path().filename().string();
  const bool has_level = folder.starts_with("x86-64-v");
  const char* best = __builtin_cpu_supports("avx512f") ? "x86-64-v4"
                     : __builtin_cpu_supports("avx2")  ? "x86-64-v3"
                                                       : "x86-64";
  const std::string used = has_level ? folder : "x86-64";
  return {used == best ? Verdict::ok : Verdict::note, "kernels",
          fmt::format("{} in use, the processor supports {} ({})", used, best,
                      path.empty() ? "linked in" : path)};
}

CheckResult precisions() {
  const std::string flags = processor_property("flags") + ' ';
  const bool has_vnni =
      std::ranges::any_of(std::array{" avx512_vnni ", " avx_vnni "},
                          [&](const char* f) { return flags.find(f) != flags.npos; });
  std::string fast, slow;
  const auto add = [&](const char* name, bool faster) {
    std::string& list = faster ? fast : slow;
    list += (list.empty() ? "" : " and ") + std::string(name);
  };
  add("bf16", gains_from_bf16(Cpu{}));
  add("int8 (translation only)", has_vnni);
  std::string text = "f32";
  if (!fast.empty()) text += "; faster with --precision " + fast;
  if (!slow.empty()) text += "; the processor has no faster instructions for " + slow;
  return {Verdict::ok, "precisions", text};
}

CheckResult memory() {
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
  const double all = page * static_cast<double>(sysconf(_SC_PHYS_PAGES));
  const double free = page * static_cast<double>(sysconf(_SC_AVPHYS_PAGES));
  return {all < 2000 ? Verdict::note : Verdict::ok, "memory",
          fmt::format("{:.0f} MiB, {:.0f} MiB free", all, free)};
}

CheckResult writing() {
  const char* const advice = "; set TMPDIR to a writable folder";
  std::error_code missing;
  const fs::path folder = fs::temp_directory_path(missing);
  if (missing)
    return {Verdict::fail, "files", "folder for temporary files: " + missing.message() + advice};
  const fs::path file = folder / fmt::format("fovea-doctor-{}", getpid());
  try {
    write_atomically(file.string(), "x");
    fs::remove(file);
    return {Verdict::ok, "files", "can write to " + folder.string()};
  } catch (const Error& error) {
    return {Verdict::fail, "files", std::string(error.what()) + advice};
  }
}

CheckResult default_model() {
  const std::string directory = find_default_model();
  if (directory.empty())
    return {Verdict::note, "model",
            "no default model next to the program or in $FOVEA_HOME; give a model with -m"};
  try {
    const ModelBundle bundle = load_package(directory);
    const Translator translator({bundle.model.get()}, bundle.source, bundle.target, {});
    const auto found = translator.translate(std::vector<std::string>{"Good morning."});
    return {Verdict::ok, "model",
            fmt::format("{}: \"Good morning.\" → \"{}\"", directory, found.front().text)};
  } catch (const Error& error) {
    return {Verdict::fail, "model", error.what()};
  }
}

// Reports the names of bundled models, which -m accepts.
CheckResult models(const char* name, const std::vector<std::string>& found) {
  std::string names;
  for (const std::string& directory : found)
    names += (names.empty() ? "" : ", ") + fs::path(directory).filename().string();
  return {Verdict::ok, name,
          found.empty() ? "none" : fmt::format("{} for -m: {}", found.size(), names)};
}

std::string libraries() {
  return fmt::format("oneDNN {}, fmt {}.{}.{}, nlohmann-json {}.{}.{}, CLI11 {}, ICU {}",
                     kernel::onednn_version(), FMT_VERSION / 10000, FMT_VERSION / 100 % 100,
                     FMT_VERSION % 100, NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                     NLOHMANN_JSON_VERSION_PATCH, cli11_version(), U_ICU_VERSION);
}

// Reports the devices that this program supports. If a device does not work on this machine, the
// result gives the reason.
CheckResult devices() {
  std::string found;
  Verdict verdict = Verdict::ok;
  for (const std::string& name : device_names()) {
    if (!found.empty()) found += "; ";
    try {
      const Device device = device_named(name);
      found += name + ": " + std::visit([](auto on) { return describe(on); }, device);
    } catch (const Error& error) {
      found += error.what();
      verdict = Verdict::note;
    }
  }
  if (std::ranges::count(device_names(), Cuda::kName) == 0)
    found += "; no cuda: the program was built without CUDA";
  return {verdict, "devices", found};
}

void run_checks() {
  const std::vector<CheckResult> findings{
      {Verdict::ok, "version", "fovea " FOVEA_VERSION},
      {Verdict::ok, "processor", processor()},
      instruction_set(),
      precisions(),
      {Verdict::ok, "cores",
       fmt::format("{}, {} threads in use", omp_get_num_procs(), omp_get_max_threads())},
      memory(),
      {Verdict::ok, "libraries", libraries()},
      devices(),
      writing(),
      default_model(),
      models("models", find_models()),
      models("gallery", find_gallery()),
  };
  OutputFile out("-");
  int failed = 0;
  for (const CheckResult& f : findings) {
    const char* mark = f.verdict == Verdict::ok     ? "ok  "
                       : f.verdict == Verdict::note ? "note"
                                                    : "FAIL";
    out.write_line(fmt::format("{}  {:<10} {}", mark, f.name, with_flags(f.text)));
    failed += f.verdict == Verdict::fail;
  }
  out.close();
  check(failed == 0, ExitCode::unexpected, failed, " of ", findings.size(), " checks failed");
}

}  // namespace

void add_doctor(Command& program) {
  Command command = program.command("doctor", "Check this machine and the installation");
  command.footer(kExamples);
  command.runs(run_checks);
}

}  // namespace fovea

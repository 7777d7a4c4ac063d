#include "tensor/device.h"

#include <thread>

#include "base/check.h"

namespace fovea {
namespace {

template <class... On>
std::vector<Device> one_of_each(const std::variant<On...>*) {
  return {Device{On{}}...};
}
const std::vector<Device>& all() {
  static const std::vector<Device> devices = one_of_each(static_cast<const Device*>(nullptr));
  return devices;
}

std::string name_of(const Device& device) {
  return std::visit([](auto on) { return std::string(on.kName); }, device);
}

}  // namespace

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const Device& device : all()) names.push_back(name_of(device));
  return names;
}

Device device_named(const std::string& name) {
  for (const Device& device : all())
    if (name_of(device) == name) {
      std::visit([](auto on) { describe(on); }, device);
      return device;
    }
  fail(ExitCode::usage, "`device` ", name,
       ": this program was built without CUDA; use `device` cpu, or build the CUDA program: "
       "cmake --preset cuda && cmake --build --preset cuda (HACKING.md)");
}

std::string describe(Cpu) {
  return std::to_string(std::thread::hardware_concurrency()) + " threads";
}

}  // namespace fovea

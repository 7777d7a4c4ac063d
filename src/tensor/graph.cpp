#include "tensor/graph.h"

#include <atomic>
#include <cassert>

namespace fovea {
namespace {

std::atomic<uint64_t> generation{0};

}  // namespace

Graph Graph::captured(Device device, const std::function<void()>& work) {
  Graph graph;
  graph.device_ = device;
  graph.forgotten_ = generation;
  graph.made_ = std::visit([&](auto on) { return graph::capture(on, work); }, device);
  return graph;
}

Graph::operator bool() const { return made_ && forgotten_ == generation; }
void forget_graphs() { ++generation; }

void Graph::replay() const {
  assert(*this);
  std::visit([&](auto on) { graph::replay(on, made_.get()); }, device_);
}

bool can_capture(Device device) {
  return std::visit([](auto on) { return graph::can_capture(on); }, device);
}

namespace graph {
bool can_capture(Cpu) { return false; }
std::shared_ptr<void> capture(Cpu, const std::function<void()>&) { return nullptr; }
void replay(Cpu, void*) {}
}  // namespace graph

}  // namespace fovea

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "tensor/device.h"

namespace fovea {

// Note [Replays]
// A GPU step launches hundreds of kernels, and small kernels end before the next one is launched. A
// Graph records such work once and replays it as a whole. A replay runs the same kernels with the
// same sizes at the same addresses; only the contents of the memory may differ. Therefore the
// recorded work may read memory whose contents change between replays. It must write its results to
// memory that existed before the capture.
//
// All memory that the recorded work allocates comes from a separate arena, which all graphs share.
// Sharing is correct because graphs run one after another in one stream. No graph needs its
// temporary memory after its replay.
//
// A handle to recorded work on a device. Copies share the work. After forget_graphs() the handle is
// absent.
class Graph {
 public:
  Graph() = default;  // absent

  // Records the device operations of `work`, which it calls once, and does not run them. Returns an
  // absent graph in three cases. The device cannot capture; then `work` is not called. `work`
  // throws an Error, for example because memory is exhausted. Or `work` uploads numbers from the
  // host or reads them there.
  static Graph captured(Device device, const std::function<void()>& work);

  void replay() const;
  explicit operator bool() const;  // false if absent or forgotten: see forget_graphs()

 private:
  Device device_;
  std::shared_ptr<void> made_;
  uint64_t forgotten_ = 0;
};
// Makes all existing graphs absent, so that the memory of graphs can be released.
void forget_graphs();

// The implementation of Graph for each kind of device. capture() returns the recorded work, and
// replay() runs it.
namespace graph {
bool can_capture(Cpu);
bool can_capture(Cuda on);
std::shared_ptr<void> capture(Cpu, const std::function<void()>& work);
std::shared_ptr<void> capture(Cuda on, const std::function<void()>& work);
void replay(Cpu, void* made);
void replay(Cuda on, void* made);
}  // namespace graph

// Whether the device can capture graphs.
bool can_capture(Device device);

}  // namespace fovea

#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "tensor/device.h"

namespace fovea {

// Note [Replays]
// A GPU step launches hundreds of kernels, and small kernels end before the next one is launched. A
// Graph records such work once and replays it as a whole. A replay runs the same kernels with the
// same sizes at the same addresses; only the contents of the memory may differ. Therefore the work
// may read memory that has new contents at each replay. It must write its results to memory that
// existed before the capture.
//
// All memory that the work allocates comes from a separate arena that all graphs share. Sharing is
// correct because graphs run one after another in one stream, and no graph needs its temporary
// memory after its replay.
//
// A handle to captured work on a device. Copies share it. It becomes absent when forget_graphs()
// runs.
class Graph {
 public:
  Graph() = default;  // absent

  // Calls `work` once, which records its device operations and does not run them. Returns an absent
  // graph in three cases: the device cannot capture (then it does not call `work`), `work` throws
  // an Error (for example without memory), or `work` depends on the host, because it uploads or
  // reads numbers.
  static Graph captured(Device device, const std::function<void()>& work);

  void replay() const;
  explicit operator bool() const;  // false if the memory of graphs has been released since

 private:
  Device device_;
  std::shared_ptr<void> made_;
  uint64_t forgotten_ = 0;
};
// Makes all existing graphs absent, so that their memory can be released.
void forget_graphs();

// The implementation of Graph for each kind of device. capture() returns the captured work, which
// replay() runs.
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

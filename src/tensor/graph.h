#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "tensor/device.h"

namespace fovea {

// Note [Replays]
// A GPU is told of hundreds of kernels for every step, and small ones end before the next is
// launched. A Graph is such a piece of work, told once and then done again as a whole. What it
// does again is the same kernels with the same sizes at the same addresses; only what stands there
// may differ. So the work may read what lies in memory when it is replayed, and must leave its
// results in memory that was there before it. All that it allocates itself comes from an arena
// that graphs alone have, and share: they run one after another in the one stream, and nothing of
// theirs is needed once a replay is over.
class Graph {
 public:
  Graph() = default;  // absent

  // Calls `work` once to note what it asks of the device, without doing it. Absent where the device
  // cannot do so (then work is not called at all), where work ends with an Error, as for lack of
  // memory, and where it hangs on the host: where it uploads numbers, or reads any.
  static Graph captured(Device device, const std::function<void()>& work);

  void replay() const;
  explicit operator bool() const;  // false where the memory of graphs was given back since

 private:
  Device device_;
  std::shared_ptr<void> made_;
  uint64_t forgotten_ = 0;
};
// All graphs that there are become absent: their memory may be given back.
void forget_graphs();

// What the class does on each kind of device.
namespace graph {
bool can_capture(Cpu);
bool can_capture(Cuda on);
std::shared_ptr<void> capture(Cpu, const std::function<void()>& work);
std::shared_ptr<void> capture(Cuda on, const std::function<void()>& work);
void replay(Cpu, void* made);
void replay(Cuda on, void* made);
}  // namespace graph

// Whether anything is ever captured there.
bool can_capture(Device device);

}  // namespace fovea

#include <exception>

#include "base/check.h"
#include "tensor/cuda.h"
#include "tensor/graph.h"

namespace fovea {
namespace {

thread_local bool noting = false;

struct NotCapturable : std::exception {};

// Ends a capture, however the work ended.
struct Capture {
  cudaStream_t of;
  cudaGraph_t made = nullptr;

  explicit Capture(cudaStream_t of) : of(of) {
    check_cuda(cudaStreamBeginCapture(of, cudaStreamCaptureModeRelaxed), "beginning a capture");
    noting = true;
  }
  ~Capture() {
    end();
    if (made) cudaGraphDestroy(made);
    cudaGetLastError();  // what became of a capture that was given up
  }
  cudaError_t end() {
    if (!noting) return cudaSuccess;
    noting = false;
    return cudaStreamEndCapture(of, &made);
  }
};

}  // namespace

bool capturing() { return noting; }
void refuse_while_capturing() {
  if (noting) throw NotCapturable();
}

namespace graph {

bool can_capture(Cuda) { return true; }

std::shared_ptr<void> capture(Cuda on, const std::function<void()>& work) {
  try {
    Capture capture(stream(on));
    work();
    check_cuda(capture.end(), "ending a capture");
    cudaGraphExec_t made = nullptr;
    check_cuda(cudaGraphInstantiate(&made, capture.made, 0), "preparing a graph");
    return {made, [](void* graph) { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)); }};
  } catch (const NotCapturable&) {
    return nullptr;
  } catch (const Error&) {  // nothing was done yet: whoever does it kernel by kernel meets it again
    return nullptr;
  }
}

void replay(Cuda on, void* made) {
  check_cuda(cudaGraphLaunch(static_cast<cudaGraphExec_t>(made), stream(on)), "replaying a graph");
}

}  // namespace graph
}  // namespace fovea

#include <exception>

#include "base/check.h"
#include "tensor/cuda.h"
#include "tensor/graph.h"

namespace fovea {
namespace {

thread_local bool recording = false;

struct NotCapturable : std::exception {};

// A capture of the stream. The destructor ends the capture, even if the work throws.
struct Capture {
  cudaStream_t of;
  cudaGraph_t made = nullptr;

  explicit Capture(cudaStream_t of) : of(of) {
    check_cuda(cudaStreamBeginCapture(of, cudaStreamCaptureModeRelaxed), "cannot begin a capture");
    recording = true;
  }
  ~Capture() {
    end();
    if (made) cudaGraphDestroy(made);
    cudaGetLastError();  // otherwise the next launch would report the cancelled capture
  }
  cudaError_t end() {
    if (!recording) return cudaSuccess;
    recording = false;
    return cudaStreamEndCapture(of, &made);
  }
};

}  // namespace

bool capturing() { return recording; }
void refuse_while_capturing() {
  if (recording) throw NotCapturable();
}

namespace graph {

bool can_capture(Cuda) { return true; }

std::shared_ptr<void> capture(Cuda on, const std::function<void()>& work) {
  try {
    Capture capture(stream(on));
    work();
    check_cuda(capture.end(), "cannot end a capture");
    cudaGraphExec_t made = nullptr;
    check_cuda(cudaGraphInstantiate(&made, capture.made, 0), "cannot instantiate a graph");
    return {made, [](void* graph) { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)); }};
  } catch (const NotCapturable&) {
    return nullptr;
  } catch (const Error&) {  // nothing has run; without a graph, the caller runs the work itself
    return nullptr;
  }
}

void replay(Cuda on, void* made) {
  check_cuda(cudaGraphLaunch(static_cast<cudaGraphExec_t>(made), stream(on)),
             "cannot replay a graph");
}

}  // namespace graph
}  // namespace fovea

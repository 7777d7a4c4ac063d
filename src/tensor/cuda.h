#pragma once

#include <cuda_runtime.h>

#include "tensor/device.h"

namespace fovea {

// The only stream (queue of work) of a device. All work on the device runs in it, in the order of
// the calls.
cudaStream_t stream(Cuda device);

// If `result` is an error, throws it: Error(ExitCode::memory) if memory is exhausted, otherwise
// Error(ExitCode::unexpected). `what` names the operation in the message.
void check_cuda(cudaError_t result, const char* what);
void check_launch(const char* kernel);  // throws if the last launch of a kernel failed

// Whether this thread captures a graph (tensor/graph.h). During a capture, the device records work
// and does not run it.
bool capturing();
// If a replay of the graph could not repeat an operation, the operation calls this function. It
// ends the capture.
void refuse_while_capturing();

}  // namespace fovea

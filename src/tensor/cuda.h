#pragma once

#include <cuda_runtime.h>

#include "tensor/device.h"

namespace fovea {

// The one stream of a device. All work on the device runs in it, in the order of the calls.
cudaStream_t stream(Cuda device);

// Throws Error(ExitCode::memory) if memory is exhausted and Error(ExitCode::unexpected) for other
// errors. `what` names the operation in the message.
void check_cuda(cudaError_t result, const char* what);
void check_launch(const char* kernel);  // throws if the last launch failed

// Whether this thread captures a graph. The device then records work and does not run it.
bool capturing();
// Ends the capture. An operation that a replay could not repeat calls this function.
void refuse_while_capturing();

}  // namespace fovea

#pragma once

#include <cuda_runtime.h>

#include "tensor/device.h"

namespace fovea {

// The one stream that everything on a device runs in, in the order it was asked for.
cudaStream_t stream(Cuda device);

// Throws Error(Exit::memory) for lack of memory, otherwise Error(Exit::unexpected), naming `what`.
void check_cuda(cudaError_t result, const char* what);
void check_launch(const char* kernel);  // of the launch just made

// Whether this thread captures a graph; then what is asked of the device is noted, not done.
bool capturing();
// For whatever a replay could not do again: it ends the capture.
void refuse_while_capturing();

}  // namespace fovea

# The CUDA compiler and libraries. Native code for Hopper, and PTX that the driver compiles for later
# ones.
find_program(NVCC nvcc PATHS ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
if(NOT CMAKE_CUDA_COMPILER AND NVCC)
  set(CMAKE_CUDA_COMPILER ${NVCC})
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90)
endif()
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
# 554: a conversion of Matrix<const T> to itself that is never needed.
set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} --expt-relaxed-constexpr -diag-suppress 554")
set(CMAKE_CUDA_FLAGS_RELEASE "-O3")
find_package(CUDAToolkit 12 REQUIRED)

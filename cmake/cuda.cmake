# The CUDA compiler and libraries. Native code for Hopper, and PTX for other GPUs from Ampere on,
# which the driver compiles.
find_program(NVCC nvcc PATHS ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
if(NOT CMAKE_CUDA_COMPILER AND NVCC)
  set(CMAKE_CUDA_COMPILER ${NVCC})
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90-real 80-virtual)
endif()
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc takes C++20
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
# 554: a conversion of Matrix<const T> to itself, which is never used.
set(CMAKE_CUDA_FLAGS
    "${CMAKE_CUDA_FLAGS} --expt-relaxed-constexpr -diag-suppress 554 -Xcompiler=-fopenmp")
set(CMAKE_CUDA_FLAGS_RELEASE "-O3")
find_package(CUDAToolkit 13 REQUIRED)

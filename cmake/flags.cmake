# Warnings, hardening and sanitizers of all targets.
add_library(fovea_flags INTERFACE)
target_include_directories(fovea_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(fovea_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion
  -fno-math-errno -fno-trapping-math
  -fstack-protector-strong -fcf-protection>)
# Some compilers predefine another level, which must be undefined first.
target_compile_options(fovea_flags INTERFACE
  $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2>)
if(FOVEA_WERROR)
  target_compile_options(fovea_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings> $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
target_compile_definitions(fovea_flags INTERFACE
  _GLIBCXX_ASSERTIONS
  FOVEA_VERSION="${PROJECT_VERSION}"
  $<$<BOOL:${FOVEA_CUDA}>:FOVEA_CUDA>)
target_link_options(fovea_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")  # enough for stack traces; kernels are optimised

# Kernels are inner loops: vectorised, contracted to fused multiply-add, without index checks.
set(FOVEA_KERNEL_FLAGS -O3 -ffp-contract=fast -fno-signed-zeros -mprefer-vector-width=512
    -U_GLIBCXX_ASSERTIONS -Wno-psabi
    $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)  # sanitized loops are not vectorised

if(FOVEA_SANITIZE)
  target_compile_options(fovea_flags INTERFACE
    -fsanitize=${FOVEA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(fovea_flags INTERFACE -fsanitize=${FOVEA_SANITIZE})
endif()
# The thread sanitizer supports the mutexes of Boost.Asio, but not its fences.
if(FOVEA_SANITIZE MATCHES thread)
  set_source_files_properties(src/http/server.cpp src/http/connection.cpp PROPERTIES
    COMPILE_DEFINITIONS BOOST_ASIO_DISABLE_FENCED_BLOCK)
endif()

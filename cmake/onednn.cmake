# Products of x86-64 processors with AVX-512 (weft/kernels/cpu/onednn). Without oneDNN, or where it was built for another
# runtime than OpenMP's (its threads could not be held to one), weft/kernels/cpu/no_onednn.cpp leaves them to OpenBLAS.
option(WEFT_ONEDNN "Compute products with oneDNN on x86-64 processors with AVX-512, where it is found" ON)
set(weft_onednn_found OFF)

# The CMake package of Debian's oneDNN stops where no OpenCL is installed for development; Weft needs none.
if(WEFT_ONEDNN AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  find_path(weft_onednn_folder dnnl.h)
  find_library(weft_onednn_library dnnl)
  if(weft_onednn_folder AND weft_onednn_library)
    include(CheckCXXSourceCompiles)
    set(CMAKE_REQUIRED_INCLUDES ${weft_onednn_folder})
    set(CMAKE_REQUIRED_LIBRARIES ${weft_onednn_library} gomp)
    check_cxx_source_compiles("
      #include <dnnl.h>
      #include <omp.h>
      #if DNNL_CPU_THREADING_RUNTIME != DNNL_RUNTIME_OMP
      #error
      #endif
      int main() {
        omp_set_num_threads(1);
        return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) +
               dnnl_sgemm('N', 'N', 0, 0, 0, 1, nullptr, 1, nullptr, 1, 0, nullptr, 1);
      }" weft_onednn_compiles)
    unset(CMAKE_REQUIRED_INCLUDES)
    unset(CMAKE_REQUIRED_LIBRARIES)
    set(weft_onednn_found ${weft_onednn_compiles})
  endif()
endif()

function(weft_onednn target)
  target_include_directories(${target} SYSTEM PRIVATE ${weft_onednn_folder})
  target_link_libraries(${target} PRIVATE ${weft_onednn_library} gomp)
endfunction()

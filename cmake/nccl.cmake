# Ranks on GPUs (weft/comm/nccl): a library of its own, libweft_nccl.so, that the program loads from beside itself
# when a run asks for runtime.backend=nccl (weft/comm/nccl_backend.cpp). So the program, and the CUDA device, start
# where no NCCL is installed.
option(WEFT_NCCL "Build the NCCL backend where NCCL and the CUDA toolkit are found" ON)
set(weft_nccl_found OFF)

if(WEFT_NCCL AND weft_cuda_found)
  find_path(weft_nccl_folder nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(weft_nccl_library nccl HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib)
  if(weft_nccl_folder AND weft_nccl_library)
    file(STRINGS ${weft_nccl_folder}/nccl.h weft_nccl_version REGEX "define NCCL_(MAJOR|MINOR|PATCH) ")
    string(REGEX REPLACE "[^0-9]*([0-9]+);[^0-9]*([0-9]+);[^0-9]*([0-9]+).*" "\\1.\\2.\\3" weft_nccl_version
      "${weft_nccl_version}")
    if(weft_nccl_version VERSION_LESS 2.18)
      message(STATUS "NCCL ${weft_nccl_version} is older than 2.18: no NCCL backend")
    else()
      set(weft_nccl_found ON)
    endif()
  endif()
endif()

function(weft_nccl_backend)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/weft/comm/nccl/*.cpp)
  add_library(weft_nccl SHARED EXCLUDE_FROM_ALL ${sources})
  target_include_directories(weft_nccl SYSTEM PRIVATE ${weft_nccl_folder} ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(weft_nccl PRIVATE weft_comm weft_cuda CUDA::cudart_static ${weft_nccl_library})
  target_link_options(weft_nccl PRIVATE -Wl,--no-undefined)
  weft_device_library(weft_nccl)
  set_target_properties(weft_nccl PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
endfunction()

# The CUDA device (weft/*/cuda): a library of its own, libweft_cuda.so, that the program loads from beside itself
# when a run asks for a GPU (weft/kernels/cuda_device.cpp). So the program starts where no CUDA is installed,
# and only those who want a GPU, and the tests, build it.
option(WEFT_CUDA "Build the CUDA device where the toolkit is found" ON)
set(WEFT_CUDA_ARCHITECTURES "90a" CACHE STRING "The GPUs to build for: 90a (Hopper); 80, and 100 from CUDA 12.8 on")
set(weft_cuda_found OFF)

# The sanitizers do not see what a GPU does, and stop at its driver.
if(WEFT_CUDA AND NOT WEFT_SANITIZE)
  find_program(weft_nvcc nvcc HINTS /usr/local/cuda/bin)
  if(weft_nvcc)
    set(CMAKE_CUDA_COMPILER ${weft_nvcc})
    set(CMAKE_CUDA_ARCHITECTURES ${WEFT_CUDA_ARCHITECTURES})
    enable_language(CUDA)
    # -O of nvcc is the host's part, which starts kernels; what runs on the GPU is optimised in any case.
    string(REPLACE "-O3" "-O1" CMAKE_CUDA_FLAGS_RELEASE "${CMAKE_CUDA_FLAGS_RELEASE}")
    # CMake knows nvcc's C++20 only from 3.26 on.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.4)
      message(STATUS "CUDA ${CMAKE_CUDA_COMPILER_VERSION} is older than 12.4: no CUDA device")
    else()
      find_package(CUDAToolkit REQUIRED)
      set(weft_cuda_found ON)
    endif()
  endif()
endif()

set(weft_cuda_options --expt-relaxed-constexpr
  -Xcompiler=-Wall,-Wextra,-Werror,-fPIC,-fno-semantic-interposition --Werror=all-warnings)

# nvcc reads the headers of a unit three times (4 s of a core, without fmt and what streams and pools are made of):
# several files compile as one. Each has what is its own in a namespace with its name. Where CMAKE_UNITY_BUILD is off,
# each is a unit.
function(weft_cuda_units result)
  set(files ${ARGN})
  if(CMAKE_UNITY_BUILD)
    set(written "")
    foreach(unit RANGE 2)
      set(text "")
      set(position 0)
      foreach(file ${files})
        math(EXPR turn "${position} % 3")
        if(turn EQUAL unit)
          string(APPEND text "#include \"${file}\"\n")
        endif()
        math(EXPR position "${position} + 1")
      endforeach()
      file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/cuda_units/unit_${unit}.cu CONTENT "${text}" @ONLY)
      list(APPEND written ${CMAKE_BINARY_DIR}/cuda_units/unit_${unit}.cu)
    endforeach()
    set(files ${written})
  endif()
  set(${result} ${files} PARENT_SCOPE)
endfunction()

function(weft_cuda_device)
  set(folders ${CMAKE_SOURCE_DIR}/weft/*/cuda ${CMAKE_SOURCE_DIR}/weft/*/cuda/*)
  list(TRANSFORM folders APPEND /*.cu OUTPUT_VARIABLE kernels)
  list(TRANSFORM folders APPEND /*.cpp OUTPUT_VARIABLE sources)
  file(GLOB kernels CONFIGURE_DEPENDS ${kernels})
  file(GLOB sources CONFIGURE_DEPENDS ${sources})
  list(APPEND sources ${CMAKE_SOURCE_DIR}/weft/kernels/hopper_tile.cpp)
  weft_cuda_units(units ${kernels})
  list(APPEND sources ${units})
  set_source_files_properties(${units} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  # cuDNN is loaded at run time; to build, its headers are enough.
  find_path(weft_cudnn_folder cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  if(weft_cudnn_folder)
    list(FILTER sources EXCLUDE REGEX "/no_cudnn\\.cpp$")
    list(APPEND sources ${CMAKE_SOURCE_DIR}/weft/kernels/cudnn_shapes.cpp)
  else()
    list(FILTER sources EXCLUDE REGEX "/cudnn_[^/]*\\.cpp$")
  endif()
  add_library(weft_cuda SHARED EXCLUDE_FROM_ALL ${sources})
  target_include_directories(weft_cuda PRIVATE ${CMAKE_SOURCE_DIR})
  if(weft_cudnn_folder)
    target_include_directories(weft_cuda SYSTEM PRIVATE ${weft_cudnn_folder})
  endif()
  target_link_libraries(weft_cuda PRIVATE
    weft_ground CUDA::cudart_static CUDA::cublasLt ${CMAKE_DL_LIBS})
  target_link_options(weft_cuda PRIVATE -Wl,--no-undefined)
  target_compile_definitions(weft_cuda PRIVATE WEFT_VERSION="${PROJECT_VERSION}")
  # Errors name what there are kernels for.
  string(REPLACE ";" " " built_for "${WEFT_CUDA_ARCHITECTURES}")
  set_source_files_properties(${CMAKE_SOURCE_DIR}/weft/tensor/cuda/cards.cpp PROPERTIES
    COMPILE_DEFINITIONS "WEFT_CUDA_ARCHITECTURES=\"${built_for}\"")
  target_compile_options(weft_cuda PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${weft_cuda_options}>")
  set_target_properties(weft_cuda PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
endfunction()

# Counts what a process asks of CUDA (tools/cuda_calls.sh): loaded by the driver, no part of the program.
function(weft_cuda_calls)
  set(extras ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI ${CUDAToolkit_TARGET_DIR}/extras/CUPTI)
  find_path(weft_cupti_folder cupti.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${extras} PATH_SUFFIXES include)
  find_library(weft_cupti cupti
    HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_TARGET_DIR} ${extras}
    PATH_SUFFIXES lib64 lib)
  if(NOT weft_cupti_folder OR NOT weft_cupti)
    add_custom_target(weft_cuda_calls COMMAND ${CMAKE_COMMAND} -E echo "no CUPTI: nothing to count with")
    return()
  endif()
  add_library(weft_cuda_calls SHARED EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tools/cuda_calls.cpp)
  target_include_directories(weft_cuda_calls SYSTEM PRIVATE
    ${weft_cupti_folder} ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(weft_cuda_calls PRIVATE ${weft_cupti})
  target_compile_options(weft_cuda_calls PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Werror)
  set_target_properties(weft_cuda_calls PROPERTIES
    UNITY_BUILD OFF LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
endfunction()

# How Weft is compiled: one static library a module, linked as weft/layers.txt says.

add_library(weft_flags INTERFACE)
target_include_directories(weft_flags INTERFACE ${CMAKE_SOURCE_DIR})
# The vectorised loops are marked with "omp simd"; no OpenMP runtime is used.
set(weft_cxx_options
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror -Werror=switch
  # Designated initialisers leave out what keeps its default.
  -Wno-missing-field-initializers
  # g++ 12 and 13 report these falsely inside std::string at -O3.
  -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict
  -fopenmp-simd -fno-math-errno -fno-trapping-math
  # The libraries of devices (cmake/cuda.cmake) are linked of the same objects as the program.
  -fPIC -fno-semantic-interposition)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # No search for garbage before the compiler has taken 1 GB: it finds little, and is a tenth of the time.
  list(APPEND weft_cxx_options --param=ggc-min-heapsize=1000000)
endif()
if(WEFT_NATIVE)
  list(APPEND weft_cxx_options -march=native)
endif()
target_compile_options(weft_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${weft_cxx_options}>")
if(WEFT_SANITIZE)
  target_compile_options(weft_flags INTERFACE
    -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE})
  # g++ 12 reports false maybe-uninitialized and tsan-fence warnings under the sanitizers.
  target_compile_options(weft_flags INTERFACE -Wno-maybe-uninitialized -Wno-tsan)
endif()

# Every module sees the same few heavy headers, compiled once for each level of optimisation (a compiled
# header serves only the level it was made for).
#
# -O3 is for where numbers are crunched: it doubles what compiling costs and gains nothing elsewhere. What
# only reads, judges and prints needs less than what plans and runs a step.
set(weft_crunching kernels comm tensor)
set(weft_reading config words rules derive checkpoint events measure report cli)
file(WRITE ${CMAKE_BINARY_DIR}/pch.cpp "")
foreach(level O1 O2)
  add_library(weft_pch_${level} STATIC ${CMAKE_BINARY_DIR}/pch.cpp)
  target_compile_options(weft_pch_${level} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-${level}>)
  target_link_libraries(weft_pch_${level} PUBLIC
    weft_flags fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)
  target_precompile_headers(weft_pch_${level} PUBLIC
    <algorithm> <array> <atomic> <cmath> <condition_variable> <cstdint> <filesystem> <functional> <map>
    <memory> <mutex> <optional> <span> <string> <string_view> <thread> <variant> <vector>
    <fmt/format.h> <fmt/ranges.h> <nlohmann/json.hpp>)
endforeach()

function(weft_target_name out module)
  string(REPLACE "/" "_" flat ${module})
  set(${out} weft_${flat} PARENT_SCOPE)
endfunction()

# Third-party libraries, by the one module that wraps each.
function(weft_libraries target module)
  if(module STREQUAL base)
    target_link_libraries(${target} PUBLIC spdlog::spdlog)
  elseif(module STREQUAL words)
    target_link_libraries(${target} PUBLIC yaml-cpp)
  elseif(module STREQUAL kernels)
    target_link_libraries(${target} PRIVATE PkgConfig::OPENBLAS)
  elseif(module STREQUAL comm AND MPI_CXX_FOUND)
    target_link_libraries(${target} PRIVATE MPI::MPI_CXX)
  elseif(module STREQUAL events AND weft_protobuf_found)
    target_link_libraries(${target} PRIVATE weft_event_messages)
  elseif(module STREQUAL report)
    weft_page(${target})
  elseif(module STREQUAL cli)
    target_link_libraries(${target} PUBLIC CLI11::CLI11)
    target_compile_definitions(${target} PRIVATE
      WEFT_VERSION="${PROJECT_VERSION}" WEFT_BUILD_TYPE="$<CONFIG>"
      WEFT_RECIPES_FOLDER="${CMAKE_SOURCE_DIR}/recipes")
  endif()
endfunction()

function(weft_optimize target module)
  set(level O2)
  if(module IN_LIST weft_reading)
    set(level O1)
    target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O1>)
  elseif(module IN_LIST weft_crunching)
    target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O3>)
  endif()
  target_precompile_headers(${target} REUSE_FROM weft_pch_${level})
endfunction()

# The part of a device library that is plain C++: it hands work to the card, and no numbers are crunched there.
function(weft_device_library target)
  target_precompile_headers(${target} REUSE_FROM weft_pch_O2)
endfunction()

# Of a template that several object files instantiate, the linker takes the first: that of the best compiled module, not
# that of a program's own file, or of a module that only reads and prints.
function(weft_link_engine_first target)
  set(archives "")
  foreach(module ${weft_engine})
    weft_target_name(library ${module})
    list(APPEND archives $<TARGET_FILE:${library}>)
  endforeach()
  target_link_options(${target} PRIVATE LINKER:--whole-archive ${archives} LINKER:--no-whole-archive)
endfunction()

function(weft_module module)
  weft_target_name(target ${module})
  set(folder ${CMAKE_SOURCE_DIR}/weft/${module})
  file(GLOB_RECURSE sources RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS ${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$|/cuda/|/nccl/")
  # A backend is a folder; where it is absent, the file no_<backend>.cpp stands in for it.
  if(MPI_CXX_FOUND)
    list(FILTER sources EXCLUDE REGEX "/no_mpi\\.cpp$")
  else()
    list(FILTER sources EXCLUDE REGEX "/mpi/[^/]*\\.cpp$")
  endif()
  if(weft_protobuf_found)
    list(FILTER sources EXCLUDE REGEX "/no_protobuf\\.cpp$")
  else()
    list(FILTER sources EXCLUDE REGEX "/protobuf/[^/]*\\.cpp$")
  endif()
  if(NOT sources)
    set(sources ${CMAKE_BINARY_DIR}/pch.cpp)
  endif()
  add_library(${target} STATIC ${sources})
  target_link_libraries(${target} PUBLIC
    weft_flags fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)
  foreach(dependency ${ARGN})
    weft_target_name(dependency_target ${dependency})
    target_link_libraries(${target} PUBLIC ${dependency_target})
  endforeach()
  weft_libraries(${target} ${module})
  weft_optimize(${target} ${module})
endfunction()

function(weft_modules layers)
  file(STRINGS ${layers} lines REGEX "^[a-z/]+:")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${layers})
  # The upper modules are the large ones, and ninja begins with the first: no core waits for one at the end.
  list(REVERSE lines)
  foreach(line ${lines})
    string(REGEX MATCH "^[a-z/]+" module ${line})
    string(REGEX REPLACE "^[a-z/]+: *" "" dependencies "${line}")
    separate_arguments(dependencies)
    weft_module(${module} ${dependencies})
    if(NOT module IN_LIST weft_reading)
      list(APPEND engine ${module})
    endif()
  endforeach()
  set(weft_engine ${engine} PARENT_SCOPE)
endfunction()

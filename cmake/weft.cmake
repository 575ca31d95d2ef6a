# How Weft is compiled: in units of several modules, linked as weft/layers.txt says.

# A test program takes four seconds of a core to link with ld, one with either of these.
include(CheckLinkerFlag)
foreach(linker lld mold)
  check_linker_flag(CXX -fuse-ld=${linker} weft_links_with_${linker})
  if(weft_links_with_${linker})
    add_link_options("$<$<LINK_LANGUAGE:CXX>:-fuse-ld=${linker}>")
    break()
  endif()
endforeach()

add_library(weft_flags INTERFACE)
target_include_directories(weft_flags INTERFACE ${CMAKE_SOURCE_DIR})
# The vectorised loops are marked with "omp simd"; no OpenMP runtime is used.
set(weft_cxx_options
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror -Werror=switch
  # Designated initialisers leave out what keeps its default.
  -Wno-missing-field-initializers
  # g++ 13 takes what a function returns from its own memory for a part of a temporary argument.
  -Wno-dangling-reference
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

# What compiles as one where CMAKE_UNITY_BUILD is on: units of several modules, with the level of optimisation of each
# (docs/decisions/0071-what-compiles-together.md). A unit is a static library as well; the libraries of devices link
# `ground` and `comm` alone. -O3 is for where numbers are crunched: it doubles what compiling costs and gains nothing
# elsewhere. What reads, judges and prints needs less than what makes and runs the order of a step: -Og, which leaves out
# what -O1 takes longest for, is enough where no step waits for it.
# The longest first: ninja begins with it, and no core waits for one at the end.
set(weft_units told engine ground decide plan comm kernels)
set(weft_unit_ground O3 base grid tensor)
set(weft_unit_comm O3 comm)
set(weft_unit_kernels O3 kernels)
set(weft_unit_engine O2 schedule data events model optim exec/real exec/sim)
set(weft_unit_decide O1 trace config block derive rules words)
set(weft_unit_plan O1 plan)
set(weft_unit_told Og checkpoint train measure report cli)

# In the other presets files compile alone, and see the same few heavy headers, compiled once for each level.
file(WRITE ${CMAKE_BINARY_DIR}/pch.cpp "")
function(weft_heavy_headers target level)
  if(CMAKE_UNITY_BUILD)
    return()
  endif()
  if(NOT TARGET weft_pch_${level})
    add_library(weft_pch_${level} STATIC ${CMAKE_BINARY_DIR}/pch.cpp)
    target_compile_options(weft_pch_${level} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-${level}>)
    target_link_libraries(weft_pch_${level} PUBLIC
      weft_flags fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)
    target_precompile_headers(weft_pch_${level} PUBLIC
      <algorithm> <array> <atomic> <cmath> <condition_variable> <cstdint> <filesystem> <functional> <map>
      <memory> <mutex> <optional> <span> <string> <string_view> <thread> <variant> <vector>
      <fmt/format.h> <fmt/ranges.h> <nlohmann/json.hpp>)
  endif()
  target_precompile_headers(${target} REUSE_FROM weft_pch_${level})
endfunction()

# Third-party libraries, by the one module that wraps each.
function(weft_libraries target module)
  if(module STREQUAL trace)
    target_link_libraries(${target} PRIVATE ZLIB::ZLIB)
  elseif(module STREQUAL words)
    target_link_libraries(${target} PUBLIC yaml-cpp)
  elseif(module STREQUAL kernels)
    target_link_libraries(${target} PRIVATE PkgConfig::OPENBLAS)
    if(weft_onednn_found)
      weft_onednn(${target})
    endif()
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

# Of a template that several object files instantiate, the linker takes the first: that of the best compiled unit, not
# that of a program's own file, or of a unit that only reads and prints.
function(weft_link_engine_first target)
  set(archives "")
  foreach(unit ground comm kernels engine)
    list(APPEND archives $<TARGET_FILE:weft_${unit}>)
  endforeach()
  target_link_options(${target} PRIVATE LINKER:--whole-archive ${archives} LINKER:--no-whole-archive)
endfunction()

function(weft_module_sources result module)
  file(GLOB_RECURSE sources RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/weft/${module}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$|/cuda/|/nccl/")
  # A backend is a folder; where it is absent, the file no_<backend>.cpp stands in for it.
  if(MPI_CXX_FOUND)
    list(FILTER sources EXCLUDE REGEX "/no_mpi\\.cpp$")
  else()
    list(FILTER sources EXCLUDE REGEX "/mpi/[^/]*\\.cpp$")
  endif()
  if(weft_onednn_found)
    list(FILTER sources EXCLUDE REGEX "/no_onednn\\.cpp$")
  else()
    list(FILTER sources EXCLUDE REGEX "/onednn/[^/]*\\.cpp$")
  endif()
  if(weft_protobuf_found)
    list(FILTER sources EXCLUDE REGEX "/no_protobuf\\.cpp$")
  else()
    list(FILTER sources EXCLUDE REGEX "/protobuf/[^/]*\\.cpp$")
  endif()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

# Units are linked as the modules in them may include each other: weft/layers.txt says so, a line a module.
function(weft_modules layers)
  file(STRINGS ${layers} lines REGEX "^[a-z/]+:")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${layers})
  foreach(unit ${weft_units})
    list(POP_FRONT weft_unit_${unit} level)
    add_library(weft_${unit} STATIC)
    target_compile_options(weft_${unit} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-${level}>)
    target_link_libraries(weft_${unit} PUBLIC
      weft_flags fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)
    weft_heavy_headers(weft_${unit} ${level})
    foreach(module ${weft_unit_${unit}})
      set(unit_of_${module} ${unit})
    endforeach()
  endforeach()
  foreach(line ${lines})
    string(REGEX MATCH "^[a-z/]+" module ${line})
    string(REGEX REPLACE "^[a-z/]+: *" "" dependencies "${line}")
    separate_arguments(dependencies)
    if(NOT DEFINED unit_of_${module})
      message(FATAL_ERROR "the module ${module} of ${layers} is in no unit of cmake/weft.cmake")
    endif()
    set(target weft_${unit_of_${module}})
    weft_module_sources(sources ${module})
    target_sources(${target} PRIVATE ${sources})
    weft_libraries(${target} ${module})
    foreach(dependency ${dependencies})
      if(NOT unit_of_${dependency} STREQUAL unit_of_${module})
        target_link_libraries(${target} PUBLIC weft_${unit_of_${dependency}})
      endif()
    endforeach()
  endforeach()
endfunction()

// Number of processes that a pasted line starts: torchrun, srun, mpirun and others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weft::words {

struct Launch {
  std::optional<std::int64_t> processes;  // total; nullopt: not given
  // Smaller than `processes` if torchrun may start with fewer machines (--nnodes=1:4).
  std::optional<std::int64_t> fewest;
  std::optional<std::int64_t> on_machine;  // per machine; nullopt: not given
  std::int64_t machines = 1;
  bool one_for_each_gpu = false;  // torchrun --nproc-per-node=gpu: one per GPU of a machine
  int place = 1;                  // word that says it, from 1 within the launch
};

// Last component of a path.
std::string_view file_name(std::string_view word);

// True for programs that start another one, or count as such here: torchrun, srun, uv, nohup,
// python3, a script.
bool is_program(std::string_view word);
bool is_script(std::string_view word);  // x.py

// True if `-m` after this program names a Python module.
bool takes_module(std::string_view program);
// True if the module starts processes itself, like torchrun.
bool is_launcher_module(std::string_view module);

// Launch described by the words before the script.
Launch launch_of(std::span<const std::string> start);

}  // namespace weft::words

// How many processes the start of a pasted line asks for: torchrun, srun, mpirun and their like.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weft::words {

struct Launch {
  std::optional<std::int64_t> processes;  // all of them; nullopt: the line does not say it
  // Fewer than `processes` where torchrun may start with fewer machines (--nnodes=1:4).
  std::optional<std::int64_t> fewest;
  std::optional<std::int64_t> on_machine;  // of one machine; nullopt: not said
  std::int64_t machines = 1;
  bool one_for_each_gpu = false;  // torchrun --nproc-per-node=gpu: as many as a machine has
  int place = 1;                  // the word that says it, from 1 within the start
};

// The last component of a path.
std::string_view file_name(std::string_view word);

// Whether a word is a program that starts another one, or counts as one here: torchrun, srun, uv,
// nohup, python3, a script.
bool is_program(std::string_view word);
bool is_script(std::string_view word);  // x.py

// Whether `-m` after this program names a Python module.
bool takes_module(std::string_view program);
// Whether the module starts processes itself, as torchrun does.
bool is_launcher_module(std::string_view module);

// Of the words before the script.
Launch launch_of(std::span<const std::string> start);

}  // namespace weft::words

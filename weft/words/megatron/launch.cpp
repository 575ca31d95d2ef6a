#include "weft/words/megatron/launch.h"

#include <algorithm>
#include <array>
#include <utility>

#include "weft/base/text.h"

namespace weft::words {
namespace {

enum class Program { Other, Torchrun, Slurm, Mpi, Accelerate };

constexpr std::pair<std::string_view, Program> kPrograms[] = {{"torchrun", Program::Torchrun},
                                                              {"srun", Program::Slurm},
                                                              {"salloc", Program::Slurm},
                                                              {"mpirun", Program::Mpi},
                                                              {"mpiexec", Program::Mpi},
                                                              {"orterun", Program::Mpi},
                                                              {"accelerate", Program::Accelerate},
                                                              {"uv", Program::Other},
                                                              {"python", Program::Other},
                                                              {"python3", Program::Other},
                                                              {"env", Program::Other},
                                                              {"nohup", Program::Other},
                                                              {"time", Program::Other},
                                                              {"timeout", Program::Other},
                                                              {"nice", Program::Other},
                                                              {"ionice", Program::Other},
                                                              {"stdbuf", Program::Other},
                                                              {"exec", Program::Other},
                                                              {"sudo", Program::Other},
                                                              {"bash", Program::Other},
                                                              {"sh", Program::Other},
                                                              {"numactl", Program::Other},
                                                              {"taskset", Program::Other},
                                                              {"nsys", Program::Other},
                                                              {"ncu", Program::Other},
                                                              {"singularity", Program::Other},
                                                              {"apptainer", Program::Other},
                                                              {"docker", Program::Other},
                                                              {"podman", Program::Other},
                                                              {"conda", Program::Other}};

constexpr std::array<std::string_view, 3> kLauncherModules{"torch.distributed.run",
                                                           "torch.distributed.launch",
                                                           "torch.distributed.elastic"};

bool is_python(std::string_view name) {
  return name.starts_with("python") && name.find_first_not_of("0123456789.", 6) == name.npos;
}

// Count from 1 to a million; nullopt: invalid.
std::optional<std::int64_t> count_of(std::string_view text) {
  constexpr double kMost = 1 << 20;
  const std::optional<double> number = base::parse_number(text);
  if (!number || !(*number >= 1 && *number <= kMost)) return std::nullopt;
  const auto count = static_cast<std::int64_t>(*number);
  return static_cast<double>(count) == *number ? std::optional(count) : std::nullopt;
}

// A number, or two separated by a mark.
struct CountRange {
  std::optional<std::int64_t> least, most;
};
CountRange range_of(std::string_view text, char mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return {.least = count_of(text), .most = count_of(text)};
  return {.least = count_of(text.substr(0, at)), .most = count_of(text.substr(at + 1))};
}

class LaunchReader {
 public:
  explicit LaunchReader(std::span<const std::string> start) : start_(start) {}

  Launch read() {
    for (at_ = 0; at_ < start_.size(); ++at_) read_word();
    Launch launch{.on_machine = each_, .one_for_each_gpu = each_gpu_, .place = place_};
    if (by_torchrun_) {
      const CountRange outer{.least = tasks_ ? tasks_ : nodes_.least,
                             .most = tasks_ ? tasks_ : nodes_.most};
      const CountRange machines = torch_nodes_.most ? torch_nodes_ : outer;
      launch.machines = machines.most.value_or(1);
      if (each_) launch.processes = *each_ * launch.machines;
      if (each_ && machines.least && machines.least != machines.most) {
        launch.fewest = *each_ * *machines.least;
      }
      return launch;
    }
    launch.machines = nodes_.most.value_or(1);
    if (tasks_) {
      launch.processes = tasks_;
      const bool even = nodes_.most && *tasks_ % *nodes_.most == 0;
      if (!each_ && even) launch.on_machine = *tasks_ / *nodes_.most;
    } else if (each_) {
      launch.processes = *each_ * launch.machines;
    }
    return launch;
  }

 private:
  void read_word() {
    const std::string& word = start_[at_];
    for (const auto& [name, program] : kPrograms) {
      if (name == file_name(word)) program_ = program;
    }
    if (is_launcher_module(word)) program_ = Program::Torchrun;
    if (program_ == Program::Torchrun && !by_torchrun_) {
      by_torchrun_ = true;
      each_.reset();
    }
    if (!word.starts_with('-')) return;
    const std::size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    std::ranges::replace(name, '_', '-');
    std::string value;
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (program_ == Program::Slurm && word.size() > 2 && word[1] != '-') {
      name = word.substr(0, 2);  // -N4
      value = word.substr(2);
    } else if (at_ + 1 < start_.size()) {
      value = start_[at_ + 1];
    }
    take(name, value);
  }

  void take(const std::string& name, const std::string& value) {
    const auto is = [&](std::initializer_list<std::string_view> names) {
      return std::ranges::find(names, name) != names.end();
    };
    switch (program_) {
      case Program::Other:
        return;
      case Program::Torchrun:
        if (is({"--nproc-per-node"})) take_each(value);
        if (is({"--nnodes"})) torch_nodes_ = range_of(value, ':');
        return;
      case Program::Slurm:
        if (is({"-n", "--ntasks"})) take_all(value);
        if (is({"--ntasks-per-node"})) take_each(value);
        if (is({"-N", "--nodes"})) nodes_ = range_of(value, '-');
        return;
      case Program::Mpi:
        if (is({"-n", "-np", "--np", "-c"})) take_all(value);
        if (is({"-N", "-npernode", "--npernode", "-ppn"})) take_each(value);
        return;
      case Program::Accelerate:
        if (is({"--num-processes"})) take_all(value);
        if (is({"--num-machines"})) nodes_ = range_of(value, ':');
        return;
    }
  }

  void take_all(const std::string& value) {
    if (const auto count = count_of(value)) {
      tasks_ = count;
      place_ = static_cast<int>(at_) + 1;
    }
  }

  void take_each(const std::string& value) {
    each_gpu_ = value == "gpu" || value == "auto";
    each_ = count_of(value);
    if (each_ || each_gpu_) place_ = static_cast<int>(at_) + 1;
  }

  std::span<const std::string> start_;
  std::size_t at_ = 0;
  Program program_ = Program::Other;
  bool by_torchrun_ = false, each_gpu_ = false;
  std::optional<std::int64_t> tasks_, each_;
  CountRange nodes_, torch_nodes_;
  int place_ = 1;
};

}  // namespace

std::string_view file_name(std::string_view word) { return word.substr(word.rfind('/') + 1); }

bool is_script(std::string_view word) { return word.ends_with(".py"); }

bool is_program(std::string_view word) {
  const std::string_view name = file_name(word);
  const auto named = [&](const auto& program) { return program.first == name; };
  return is_script(word) || is_python(name) || std::ranges::any_of(kPrograms, named);
}

bool takes_module(std::string_view program) {
  const std::string_view name = file_name(program);
  return is_python(name) || name == "torchrun" || name == "accelerate";
}

bool is_launcher_module(std::string_view module) {
  return std::ranges::any_of(kLauncherModules,
                             [&](std::string_view name) { return module.starts_with(name); });
}

Launch launch_of(std::span<const std::string> start) { return LaunchReader(start).read(); }

}  // namespace weft::words

// Starts the ranks of a run on the backend its config names, and gives them their device.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "weft/comm/launch.h"
#include "weft/kernels/device.h"
#include "weft/rules/judged_config.h"
#include "weft/tensor/device.h"

namespace weft::train {

using Report = std::function<void(const std::string& error)>;

// What a run that is spread over processes needs of this one; empty for all others.
struct Process {
  Report report = {};
  comm::Environment environment = {};  // see comm::nccl_variables()
};

// Thrown in place of an error that `report` has been called with already.
class ReportedError : public std::exception {
 public:
  enum class Cause { Input, Run };
  explicit ReportedError(Cause cause) : cause_(cause) {}
  Cause cause() const { return cause_; }
  const char* what() const noexcept override { return "an error that has been reported"; }

 private:
  Cause cause_;
};

// Sets the process up (BLAS on one thread) and runs `body` on every rank, over the emulated fabric
// and on the cores that the config asks for; see comm/launch.h for how failures come back. Under
// MPI and NCCL a rank that fails calls `report` before any rank leaves (the launcher may end a rank
// that waits with it) and throws ReportedError; otherwise the error itself is thrown.
void launch(const rules::JudgedConfig& config,
            const Process& process,
            const comm::RankFunction& body);

// The device that a rank of this run works on; each rank makes its own. `local_rank` is its number
// among those on the same machine.
std::unique_ptr<tensor::Device> make_device(const rules::JudgedConfig& config, int local_rank);
// One that takes the same memory and computes nothing (kernels::make_dry_device).
std::unique_ptr<tensor::Device> make_dry_device(
    const rules::JudgedConfig& config,
    kernels::DryRouting routing = kernels::DryRouting::Even);

// Cores that a rank may keep busy while nothing else runs, as at its start: its share of those that
// its process has, or that its machine has where each rank is a process.
std::int64_t share_of_cores(const config::Config& config);

}  // namespace weft::train

#include "weft/train/engine.h"

#include <algorithm>
#include <set>
#include <utility>

#include "weft/base/check.h"
#include "weft/comm/failure.h"
#include "weft/derive/derived.h"
#include "weft/derive/optimizer_offload.h"
#include "weft/schedule/plan_files.h"
#include "weft/train/launch.h"

namespace weft::train {
namespace {

constexpr std::int64_t kMostDrawingThreads = 32;

void check(const std::vector<schedule::RankPlan>& plans) {
  const std::vector<std::string> complaints = schedule::verify_plan(plans);
  CHECK(complaints.empty(), "the schedule is wrong: {}", fmt::join(complaints, "; "));
}

// An order from a file may be right and still call collectives in a way that only other backends
// run.
void check_calls(const std::vector<schedule::RankPlan>& plans) {
  const std::vector<std::string> complaints = schedule::verify_plan_calls(plans);
  if (complaints.empty()) return;
  throw base::ConfigError(base::text("runtime.backend=nccl needs one order of all collectives: {}",
                                     fmt::join(complaints, "; ")));
}

// This rank's graphs. All ranks make the same plans and verify them together before anything runs.
schedule::RankPlan plan_of(const config::Config& config, const Groups& groups, EngineSetup& setup) {
  if (setup.plan) return std::move(*setup.plan);
  std::vector<schedule::RankPlan> plans = verified_plans(config, setup.detail);
  schedule::note_sends_over(plans, groups.self.pp);
  return std::move(plans[static_cast<std::size_t>(groups.self.pp)]);
}

// What stages send each other, in one order on all ranks: both ranks of the first pair that is not
// connected come to it next.
void connect_stages(const schedule::Anatomy& anatomy, Groups& groups) {
  if (!groups.pp_forward) return;
  const int self = groups.self.pp;
  std::set<std::pair<int, int>> forward, backward;
  for (const schedule::Chunk& chunk : anatomy.chunks) {
    if (chunk.receives()) {
      forward.emplace(chunk.from, self);
      backward.emplace(self, chunk.from);
    }
    if (chunk.sends()) {
      forward.emplace(self, chunk.to);
      backward.emplace(chunk.to, self);
    }
  }
  for (const auto& [from, to] : forward) groups.pp_forward->connect(from, to);
  for (const auto& [from, to] : backward) groups.pp_backward->connect(from, to);
}

bool has_row_budget(const config::ModelConfig& model) {
  return schedule::row_counts_of(model, config::RowBudget::AsConfigured) !=
         schedule::row_counts_of(model, config::RowBudget::Lifted);
}

exec::Cores cores_of(const config::Config& config) {
  return config.runtime.pin_ranks ? exec::Cores::Own : exec::Cores::Shared;
}

std::unique_ptr<HostWorker> make_host_worker(const config::Config& config, tensor::Device& device) {
  if (!derive::optimizer_offload(config).is_on()) return nullptr;
  return std::make_unique<HostWorker>(device, static_cast<int>(share_of_cores(config)));
}

}  // namespace

model::Parameters make_parameters(tensor::Pool& pool,
                                  tensor::Stream& stream,
                                  const config::Config& config,
                                  const grid::Coordinate& self,
                                  InitialWeights weights) {
  model::Parameters parameters(
      pool,
      stream,
      config.model,
      model::holding_of(config.model, self.pp, derive::placement_of(config)),
      {.tp = self.tp, .ep = self.ep, .etp = self.etp},
      derive::buffer_scheme(config, self.pp));
  if (weights == InitialWeights::Undefined) return parameters;
  parameters.initialise(stream,
                        static_cast<std::uint64_t>(config.rng.seed),
                        static_cast<int>(std::min(share_of_cores(config), kMostDrawingThreads)));
  return parameters;
}

std::vector<schedule::RankPlan> verified_plans(const config::Config& config,
                                               const schedule::Detail& detail) {
  std::vector<schedule::RankPlan> plans = schedule::plan_step(config,
                                                              grid::Grid(derive::layout_of(config)),
                                                              config::RowBudget::AsConfigured,
                                                              detail);
  if (config.runtime.schedule.empty()) {
    check(plans);
  } else {
    schedule::take_orders_from(config.runtime.schedule, plans);
  }
  if (config.runtime.backend == config::CommBackend::Nccl) check_calls(plans);
  return plans;
}

Engine::Engine(const rules::JudgedConfig& config,
               comm::Endpoint& endpoint,
               const schedule::Detail& detail)
    : Engine(config, endpoint, detail, make_device(config, endpoint.local_rank())) {}

Engine::Engine(const rules::JudgedConfig& config,
               comm::Endpoint& endpoint,
               const schedule::Detail& detail,
               std::unique_ptr<tensor::Device> device,
               InitialWeights weights)
    : Engine(config, endpoint, std::move(device), {.detail = detail, .weights = weights}) {}

Engine::Engine(const rules::JudgedConfig& config,
               comm::Endpoint& endpoint,
               std::unique_ptr<tensor::Device> device,
               EngineSetup setup)
    : config_(config),
      rank_(endpoint.rank()),
      device_(std::move(device)),
      pool_(*device_, setup.watcher),
      groups_(join_groups(config_, endpoint)),
      plan_(plan_of(config_, groups_, setup)),
      host_(make_host_worker(config_, *device_)),
      lanes_(*device_, plan_.training, cores_of(config)),
      parameters_(make_parameters(pool_,
                                  lanes_[schedule::Lane::Compute],
                                  config_,
                                  groups_.self,
                                  setup.weights)),
      optimizers_(make_optimizers(pool_,
                                  lanes_[schedule::Lane::Compute],
                                  config_,
                                  parameters_,
                                  groups_,
                                  host_ ? &host_->stream() : nullptr)),
      program_(config_,
               plan_.anatomy,
               pool_,
               lanes_[schedule::Lane::Compute],
               groups_,
               parameters_,
               optimizers_,
               host_ ? &host_->stream() : nullptr),
      training_(plan_.training, lanes_, plan_.training_over),
      forward_(plan_.forward, lanes_, plan_.forward_over) {
  connect_stages(plan_.anatomy, groups_);
  if (has_row_budget(config_->model)) {
    std::vector<schedule::RankPlan> plans =
        schedule::plan_step(config_, groups_.grid, config::RowBudget::Lifted, setup.detail);
    check(plans);
    if (config_->runtime.backend == config::CommBackend::Nccl) check_calls(plans);
    schedule::note_sends_over(plans, groups_.self.pp);
    lifted_ = std::make_unique<Lifted>(std::move(plans[static_cast<std::size_t>(groups_.self.pp)]),
                                       lanes_);
  }
  lanes_.on_failure(
      [&endpoint](const std::exception_ptr& error) { endpoint.fail(comm::reason_of(error)); });
}

Share Engine::share() const {
  return {.micro_batch_size = config_->train.micro_batch_size,
          .micro_batches = derive::micro_batches(config_->train, groups_.grid.dp()),
          .dp = groups_.grid.dp(),
          .dp_rank = groups_.self.dp};
}

std::string Engine::label() const {
  std::string all =
      base::text("[PP{:02}-DP{:02}-EP{:02}", groups_.self.pp, groups_.self.dp, groups_.self.ep);
  const auto add = [&](const char* axis, int size, int rank) {
    if (size > 1) all += base::text("-{}{:02}", axis, rank);
  };
  add("TP", groups_.grid.tp(), groups_.self.tp);
  add("CP", groups_.grid.cp(), groups_.self.cp);
  add("ETP", groups_.grid.etp(), groups_.self.etp);
  return all + "]";
}

}  // namespace weft::train

#include "weft/train/engine.h"

#include <algorithm>
#include <set>
#include <utility>

#include "weft/base/text.h"
#include "weft/comm/failure.h"
#include "weft/derive/derived.h"
#include "weft/derive/memory/optimizer_offload.h"
#include "weft/train/launch.h"

namespace weft::train {
namespace {

constexpr std::int64_t kMostDrawingThreads = 32;

using Plan = std::shared_ptr<const schedule::RankPlan>;

// Graphs of this rank. All ranks have the same plans, verified together before anything runs.
Plan plan_of(const config::Config& config,
             const Groups& groups,
             const EngineSetup& setup,
             config::RowBudget budget) {
  if (setup.plan && budget == config::RowBudget::AsConfigured) {
    return std::make_shared<const schedule::RankPlan>(*setup.plan);
  }
  if (setup.plans != nullptr) return setup.plans->of(groups.self.pp, budget);
  return SharedPlans(config, setup.detail).of(groups.self.pp, budget);
}

// Connects the pipeline stages, in one order on all ranks: both ranks of the first unconnected pair
// reach it next.
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

Engine::Engine(const rules::JudgedConfig& config,
               comm::Endpoint& endpoint,
               const schedule::Detail& detail)
    : Engine(config, endpoint, detail, make_device(config, endpoint.local_rank())) {}

Engine::Engine(const rules::JudgedConfig& config, comm::Endpoint& endpoint, SharedPlans& plans)
    : Engine(config, endpoint, make_device(config, endpoint.local_rank()), {.plans = &plans}) {}

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
      plan_(plan_of(config_, groups_, setup, config::RowBudget::AsConfigured)),
      host_(make_host_worker(config_, *device_)),
      lanes_(*device_, plan_->training, cores_of(config)),
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
               plan_->anatomy,
               pool_,
               lanes_[schedule::Lane::Compute],
               groups_,
               parameters_,
               optimizers_,
               host_ ? &host_->stream() : nullptr),
      training_(plan_->training, lanes_, plan_->training_over),
      forward_(plan_->forward, lanes_, plan_->forward_over) {
  connect_stages(plan_->anatomy, groups_);
  // A given plan belongs to a dry step, whose rows stay within the budget.
  if (has_row_budget(config_->model) && !setup.plan) {
    lifted_ = std::make_unique<Lifted>(plan_of(config_, groups_, setup, config::RowBudget::Lifted),
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

// Engine of one rank: memory, streams, groups, parameters, optimizer and the graphs it runs.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/exec/real/executor.h"
#include "weft/exec/real/lanes.h"
#include "weft/model/parameters.h"
#include "weft/rules/judged_config.h"
#include "weft/schedule/plan.h"
#include "weft/tensor/pool.h"
#include "weft/train/batch.h"
#include "weft/train/groups.h"
#include "weft/train/host_worker.h"
#include "weft/train/optimizers.h"
#include "weft/train/program/program.h"
#include "weft/train/program/shared_plans.h"

namespace weft::train {

// Drawn: random from config.rng.seed. Undefined: not initialized.
enum class InitialWeights { Drawn, Undefined };

// Parameters of the rank at `self`, allocated from the pool.
model::Parameters make_parameters(tensor::Pool& pool,
                                  tensor::Stream& stream,
                                  const config::Config& config,
                                  const grid::Coordinate& self,
                                  InitialWeights weights);

struct EngineSetup {
  schedule::Detail detail = {};
  InitialWeights weights = InitialWeights::Drawn;
  std::optional<schedule::RankPlan> plan = {};  // plan of this rank, from verified_plans
  // Plans shared by ranks of this process; nullptr without `plan` too: plans itself.
  SharedPlans* plans = nullptr;
  tensor::PoolWatcher* watcher = nullptr;  // watches its memory; must outlive the engine
};

class Engine {
 public:
  // Every rank of the world makes its engine at the same time. Weights start from config.rng.seed.
  // Graphs are verified before anything runs. A failing stream tells the other ranks at once
  // through `endpoint`, which must outlive the engine.
  Engine(const rules::JudgedConfig& config,
         comm::Endpoint& endpoint,
         const schedule::Detail& detail = {});
  // Variant with plans that the ranks of this process share.
  Engine(const rules::JudgedConfig& config, comm::Endpoint& endpoint, SharedPlans& plans);
  // Variant on a given device.
  Engine(const rules::JudgedConfig& config,
         comm::Endpoint& endpoint,
         const schedule::Detail& detail,
         std::unique_ptr<tensor::Device> device,
         InitialWeights weights = InitialWeights::Drawn);
  Engine(const rules::JudgedConfig& config,
         comm::Endpoint& endpoint,
         std::unique_ptr<tensor::Device> device,
         EngineSetup setup);

  const config::Config& config() const { return config_; }
  const Groups& groups() const { return groups_; }
  const schedule::RankPlan& plan() const { return *plan_; }
  int rank() const { return rank_; }
  Share share() const;

  tensor::Device& device() { return *device_; }
  tensor::Pool& pool() { return pool_; }
  const model::Parameters& parameters() const { return parameters_; }
  std::vector<OptimizerShare>& optimizers() { return optimizers_; }
  const exec::Lanes& lanes() const { return lanes_; }
  // Host cores that update state in host memory; nullptr: nothing is offloaded.
  tensor::Stream* host() const { return host_ ? &host_->stream() : nullptr; }
  Program& program() { return program_; }
  // Executor of training steps: the plan's, or the one that train_by() installed.
  exec::Executor& training() { return *chosen_; }
  // Installs an executor over the same nodes; `order` must outlive its use.
  void train_by(exec::Executor& order) { chosen_ = &order; }
  exec::Executor& forward() { return forward_; }
  // Variants without a row budget; without a configured budget they are the usual ones.
  exec::Executor& lifted_training() { return lifted_ ? lifted_->training : *chosen_; }
  exec::Executor& lifted_forward() { return lifted_ ? lifted_->forward : forward_; }
  Groups& groups() { return groups_; }

  std::string label() const;  // "[PP00-DP01-EP02]", then tp, cp and etp if larger than 1

 private:
  const rules::JudgedConfig config_;
  const int rank_;
  const std::unique_ptr<tensor::Device> device_;
  tensor::Pool pool_;
  Groups groups_;
  const std::shared_ptr<const schedule::RankPlan> plan_;
  // Before the lanes, whose first threads have another priority; nullptr: nothing is offloaded.
  const std::unique_ptr<HostWorker> host_;
  exec::Lanes lanes_;
  model::Parameters parameters_;
  std::vector<OptimizerShare> optimizers_;
  Program program_;
  exec::Executor training_, forward_;
  exec::Executor* chosen_ = &training_;

  struct Lifted {
    Lifted(std::shared_ptr<const schedule::RankPlan> without, exec::Lanes& lanes)
        : plan(std::move(without)),
          training(plan->training, lanes, plan->training_over),
          forward(plan->forward, lanes, plan->forward_over) {}
    std::shared_ptr<const schedule::RankPlan> plan;
    exec::Executor training, forward;
  };
  std::unique_ptr<Lifted> lifted_;
};

}  // namespace weft::train

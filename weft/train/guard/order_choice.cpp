#include "weft/train/guard/order_choice.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/median.h"
#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/rules/validate.h"
#include "weft/tensor/transfer.h"
#include "weft/train/launch.h"
#include "weft/train/step.h"

namespace weft::train {
namespace {

constexpr std::size_t kTimedRounds = 3;  // after one warm-up round
// Nodes; a longer step has more buffers than the memory plan covers (tensor/step_memory.cpp).
constexpr std::size_t kMostRehearsed = 30000;

tensor::Rehearsal rehearse_with(const rules::JudgedConfig& config,
                                int rank,
                                const schedule::RankPlan& plan,
                                kernels::DryRouting routing) {
  tensor::Rehearsal rehearsal;
  const comm::LaunchOptions world{.world = static_cast<int>(derive::layout_of(config).world),
                                  .rank = rank};
  comm::run_fake(world, [&](comm::Endpoint& endpoint) {
    Engine engine(config,
                  endpoint,
                  make_dry_device(config, routing),
                  {.weights = InitialWeights::Undefined, .plan = plan});
    const Batch batch = blank_batch(engine.share(), config->model.seq_length);
    run_once(engine, engine.training(), {.batch = batch}, exec::Tracing::Off);
    engine.program().drop_states();
    rehearsal = engine.pool().rehearsal();
  });
  return rehearsal;
}

}  // namespace

tensor::Rehearsal rehearse(const rules::JudgedConfig& config,
                           int rank,
                           const schedule::RankPlan& plan) {
  using enum kernels::DryRouting;
  tensor::Rehearsal rehearsal = rehearse_with(config, rank, plan, Even);
  note_varying(rehearsal.step, rehearse_with(config, rank, plan, Lopsided).step);
  return rehearsal;
}

OrderChoice::OrderChoice(Engine& engine) : engine_(engine) {
  const config::CommOverlapConfig& asked = engine.config().comm_overlap;
  const bool is_given = !engine.config().runtime.schedule.empty();
  if (!asked.overlap_moe_expert_parallel_comm.automatic || is_given) return;
  is_decided_ = false;
  config::Config config = engine.config();
  config.comm_overlap.overlap_moe_expert_parallel_comm = false;
  config.comm_overlap.delay_wgrad_compute = false;
  add("plain", config);
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  add("overlap", config);
  config.comm_overlap.delay_wgrad_compute = true;
  add("overlap + delayed wgrad", config);
}

// Adds an order if the rules accept the config unchanged.
void OrderChoice::add(const char* name, const config::Config& config) {
  const rules::Verdict verdict = rules::judge(config);
  if (!verdict.runs()) return;
  const int pp_rank = engine_.groups().self.pp;
  std::vector<schedule::RankPlan> plans = verified_plans(verdict.config);
  schedule::note_sends_over(plans, pp_rank);
  auto plan =
      std::make_unique<schedule::RankPlan>(std::move(plans[static_cast<std::size_t>(pp_rank)]));
  auto executor =
      std::make_unique<exec::Executor>(plan->training, engine_.lanes(), plan->training_over);
  orders_.push_back(
      {.name = name, .plan = std::move(plan), .executor = std::move(executor), .seconds = {}});
}

void OrderChoice::rehearse(const rules::JudgedConfig& config) {
  const auto expect = [&](const schedule::RankPlan& plan, const exec::Executor& executor) {
    if (plan.training.entries.size() > kMostRehearsed) return;
    try {
      engine_.pool().expect(&executor, train::rehearse(config, engine_.rank(), plan));
    } catch (const base::SystemError&) {
      // A dry device has limits of its own (addresses, message sizes). The run continues without a
      // rehearsal of its first step.
    }
  };
  if (is_decided_) return expect(engine_.plan(), engine_.training());
  for (const Order& order : orders_) expect(*order.plan, *order.executor);
}

void OrderChoice::begin_step() {
  if (is_decided_) return;
  engine_.train_by(*orders_[steps_ % orders_.size()].executor);
}

std::optional<std::string> OrderChoice::end_step(double seconds) {
  if (is_decided_) return std::nullopt;
  if (steps_ >= orders_.size()) orders_[steps_ % orders_.size()].seconds.push_back(seconds);
  if (++steps_ < (kTimedRounds + 1) * orders_.size()) return std::nullopt;
  is_decided_ = true;
  const std::vector<double> medians = agreed_medians();
  // First minimum: an overlap without gain costs memory.
  const auto best = std::ranges::min_element(medians);
  const auto chosen = static_cast<std::size_t>(best - medians.begin());
  engine_.train_by(*orders_[chosen].executor);
  std::vector<std::string> words;
  for (std::size_t i = 0; i < orders_.size(); ++i) {
    words.push_back(base::text("{} {:.1f} ms", orders_[i].name, medians[i] * 1e3));
  }
  return base::text("order     {} from now on ({})", orders_[chosen].name, fmt::join(words, ", "));
}

// Medians of rank 0, used by all ranks.
std::vector<double> OrderChoice::agreed_medians() {
  std::vector<double> medians;
  for (const Order& order : orders_) {
    medians.push_back(engine_.rank() == 0 ? base::median(order.seconds) : 0);
  }
  tensor::Stream& stream = engine_.lanes()[schedule::Lane::Compute];
  tensor::Tensor numbers(engine_.pool(),
                         tensor::DType::F64,
                         {static_cast<std::int64_t>(medians.size())},
                         tensor::Tag::Workspace);
  tensor::upload<double>(stream, numbers, medians);
  engine_.groups().world->all_reduce(stream, numbers, comm::Reduce::Max);
  tensor::read<double>(stream, medians, numbers);
  return medians;
}

}  // namespace weft::train

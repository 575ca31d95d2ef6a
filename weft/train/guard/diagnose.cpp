#include "weft/train/guard/diagnose.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/base/text.h"
#include "weft/tensor/transfer.h"
#include "weft/train/log/gather_texts.h"

namespace weft::train {
namespace {

using tensor::Tensor;

bool all_finite(tensor::Stream& stream, const Tensor& t) {
  return std::ranges::all_of(tensor::read_floats(stream, t),
                             [](float x) { return std::isfinite(x); });
}

std::string place_of(const schedule::Node& node) {
  const std::string name = schedule::print(node);
  return node.layer == schedule::kNone ? name : base::text("{} (layer {})", name, node.layer);
}

// Finding of one rank, with its position between weights and gradients. Non-finite values spread to
// other ranks, so the earliest suspect is nearest to the cause.
struct Suspect {
  std::int64_t order = std::numeric_limits<std::int64_t>::max();
  std::string what;  // empty: none
};

Suspect look_at_weights(const Engine& engine) {
  tensor::Stream& stream = engine.lanes()[schedule::Lane::Compute];
  for (const model::Parameter& parameter : engine.parameters().all()) {
    if (!all_finite(stream, parameter.weight))
      return {.order = 0, .what = "the weights of " + parameter.spec.name + " are"};
  }
  return {};
}

// Position of a forward node in the model, independent of rank and schedule. Micro-batches are
// independent: each has its own cause, and the first one's is named.
std::int64_t order_of(const schedule::Anatomy& anatomy, const schedule::Node& node) {
  const std::int64_t layers = std::ssize(anatomy.layers);
  const std::int64_t layer = node.piece == anatomy.head.front().piece ? layers : node.layer;
  const auto piece = static_cast<std::int64_t>(node.piece) * schedule::kParts +
                     static_cast<std::int64_t>(node.part);
  return ((node.micro_batch + 1) * (layers + 2) + layer) * schedule::kPieces * schedule::kParts +
         piece;
}

// Earliest forward node of this rank with a non-finite output. All ranks take part. Routing
// repeats: random numbers depend on the step, and a lifted budget stays lifted.
Suspect look_at_forward(Engine& engine, const StepInput& step, const StepTotals& totals) {
  Suspect found;
  Program& program = engine.program();
  program.begin(
      {.batch = step.batch,
       .step = step.step,
       .budget = totals.repeated ? config::RowBudget::Lifted : config::RowBudget::AsConfigured});
  exec::Executor& forward = totals.repeated ? engine.lifted_forward() : engine.forward();
  forward.run(
      [&](const schedule::Node& node, tensor::Stream& stream) {
        program.run(node, stream);
        if (node.direction != schedule::Direction::F) return;
        const std::int64_t order = order_of(engine.plan().anatomy, node);
        if (order >= found.order) return;
        const Tensor output = program.output_of(node);
        if (!output.defined() || output.elements() == 0) return;
        if (!all_finite(stream, output))
          found = {.order = order, .what = "the output of " + place_of(node) + " is"};
      },
      exec::Tracing::Off);
  program.drop_states();
  return found;
}

Suspect look_at_gradients(const Engine& engine) {
  tensor::Stream& stream = engine.lanes()[schedule::Lane::Compute];
  for (const model::Parameter& parameter : engine.parameters().all()) {
    if (!parameter.spec.is_trained() || all_finite(stream, parameter.gradient)) continue;
    return {.order = std::numeric_limits<std::int64_t>::max() - 1,
            .what = "the gradient of " + parameter.spec.name + " is"};
  }
  return {};
}

}  // namespace

NotFinite find_not_finite(Engine& engine, const StepInput& step, const StepTotals& totals) {
  engine.program().gather_weights();
  Suspect own = look_at_weights(engine);
  const Suspect forward = look_at_forward(engine, step, totals);
  if (own.what.empty()) own = forward;
  if (own.what.empty()) own = look_at_gradients(engine);
  Suspect earliest;
  std::size_t where = 0;
  const std::vector<std::string> all =
      gather_texts(engine, base::text("{} {}", own.order, own.what));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::size_t space = all[rank].find(' ');
    const std::int64_t order =
        base::parse_integer(all[rank].substr(0, space)).value_or(earliest.order);
    if (order >= earliest.order) continue;
    earliest = {.order = order, .what = all[rank].substr(space + 1)};
    where = rank;
  }
  const auto shown = [](double x) {
    return std::isnan(x) ? std::string("nan") : base::text("{}", x);
  };
  const std::string numbers =
      base::text("loss {}, gradient norm {}", shown(totals.loss), shown(totals.gradient_norm));
  if (earliest.what.empty()) {
    return {.rank = 0,
            .what = base::text("{}: every value is finite, but their sums overflow", numbers)};
  }
  return {.rank = static_cast<int>(where),
          .what = base::text("{}: {} not finite", numbers, earliest.what)};
}

}  // namespace weft::train

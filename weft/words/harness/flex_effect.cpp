// --moe_flex_dispatcher_backend applies a backend; the key of that name only names one.
#include "weft/words/harness/flex_effect.h"

#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/derive/gpu.h"

namespace weft::words {

using namespace config;
namespace {

using base::text;

constexpr const char* kDispatcher = "model.moe_token_dispatcher_type";
constexpr const char* kBackend = "model.moe_flex_dispatcher_backend";

std::string where_it_runs(const HardwareConfig& hardware) {
  const derive::GpuFacts gpu = derive::gpu_facts(hardware);
  return text("{} (compute capability {})",
              gpu.name.empty() ? "a GPU without a name" : gpu.name,
              gpu.major.value_or(0));
}

void use_all_to_all(const Asked& asked, Ledger& ledger) {
  ledger.imply(asked, "H13", kDispatcher, "alltoall", "without a backend tokens go by alltoall");
  ledger.imply(asked, "H13", kBackend, "null", "no backend");
}

void fall_back(const Asked& asked, FlexBackend backend, const Config& last, Ledger& ledger) {
  const std::string why = text("{} runs on {} only, not on {}",
                               word(backend),
                               derive::supported_gpus(backend),
                               where_it_runs(last.hardware));
  const char* id = backend == FlexBackend::DeepEp ? "F3" : "F4";
  const std::string fix =
      backend == FlexBackend::DeepEp &&
              derive::supports(FlexBackend::HybridEp, last.hardware).value_or(false)
          ? "use --moe_flex_dispatcher_backend hybridep, or None for alltoall"
          : "use --moe_flex_dispatcher_backend None for alltoall";
  ledger.mend(asked, id, kDispatcher, "alltoall", why, fix);
  ledger.imply(asked, id, kBackend, "null", why);
}

void use_flex(const Asked& asked, FlexBackend backend, Ledger& ledger) {
  ledger.imply(asked, "H13", kDispatcher, "flex", "a backend is applied with the flex dispatcher");
  ledger.set(asked, kBackend, word(backend));
  ledger.imply(asked,
               "H13",
               "model.moe_shared_expert_overlap",
               "false",
               "flex dispatchers do not overlap shared experts");
}

}  // namespace

void apply_flex_backend(const Asked& asked, const Config& last, Ledger& ledger) {
  if (asked.text == "-1") return;  // keeps the recipe's value
  if (asked.text == "None" || asked.text == "none" || asked.text == "null") {
    return use_all_to_all(asked, ledger);
  }
  if (last.model.experts() == 0) {
    return ledger.warn("F1",
                       kBackend,
                       text("{}: a flex backend is only applicable to MoE models, and "
                            "model.num_moe_experts is {}; nothing is changed",
                            shown(asked.typed),
                            value_text(*find_field("model.num_moe_experts"), last)),
                       "set model.num_moe_experts, or leave the flag out");
  }
  const std::optional<FlexBackend> backend = WordCodec<FlexBackend>::parse(asked.text);
  if (!backend || *backend == FlexBackend::NcclEp) {
    return ledger.warn(
        "F5",
        kBackend,
        text("{}: the flag applies deepep and hybridep only; nothing is changed",
             shown(asked.typed)),
        text("use deepep, hybridep or None, or set {}=flex and {}", kDispatcher, kBackend));
  }
  if (!derive::supports(*backend, last.hardware).value_or(true)) {
    return fall_back(asked, *backend, last, ledger);
  }
  use_flex(asked, *backend, ledger);
}

}  // namespace weft::words

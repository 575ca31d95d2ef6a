// Megatron words whose meaning depends on others.
#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/words/harness/harness_effects.h"

namespace weft::words {

using namespace config;
namespace {

using base::text;

void say_nothing_changes(const Asked& asked, std::string_view why, Ledger& ledger) {
  ledger.warn("H14", "", text("{} changes nothing here: {}", shown(asked.typed), why), "");
}

void finish_unmodelled(const Asked& asked, Ledger& ledger) {
  const MegatronMeaning& meaning = asked.megatron->meaning;
  if (meaning.kind == MegatronMeaning::Kind::Unmodelled)
    return ledger.leave_out(asked, meaning.text);
  const Field* field = find_field(meaning.key);
  CHECK(field != nullptr, "'{}' is no key", meaning.key);
  if (meaning.kind == MegatronMeaning::Kind::AsKey) {
    if (value_text(*field, ledger.config()) != asked.text) ledger.leave_out(asked, meaning.text);
    return;
  }
  if (!is_default(*field, ledger.config())) return ledger.leave_out(asked, meaning.text);
  say_nothing_changes(asked, meaning.text, ledger);
}

// Equal weight decay from the first step to the last becomes optimizer.weight_decay.
void finish_weight_decay(std::span<const Asked> asked, Ledger& ledger) {
  const Asked* last = nullptr;
  std::optional<double> start, end;
  std::string style = "constant";
  for (const Asked& one : asked) {
    if (one.effect != Effect::WeightDecay) continue;
    last = &one;
    const std::optional<double> number = base::parse_number(one.text);
    if (one.typed.find("style") != std::string::npos) {
      style = one.text;
    } else if (!number) {
      ledger.complain(text("{}: it takes a number", place_text(one)));
    } else {
      (one.typed.find("start") != std::string::npos ? start : end) = number;
    }
  }
  if (last == nullptr) return;
  if (!start && !end) return ledger.leave_out(*last, "optimizer.weight_decay holds for all steps");
  const double decay = ledger.config().optimizer.weight_decay;
  if (start.value_or(decay) != end.value_or(decay)) {
    return ledger.leave_out(*last, "weight decay is the same in all steps");
  }
  const double held = start ? *start : *end;
  ledger.imply(*last,
               "H22",
               "optimizer.weight_decay",
               text("{}", held),
               "weight decay is the same from the first step to the last");
}

}  // namespace

void finish_megatron(std::span<const Asked> asked, Ledger& ledger) {
  for (const Asked& one : asked) {
    if (one.effect == Effect::Unmodelled) finish_unmodelled(one, ledger);
  }
  finish_weight_decay(asked, ledger);
}

}  // namespace weft::words

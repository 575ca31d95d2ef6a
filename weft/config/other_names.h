// Aliases of keys, such as the names of comm_overlap.* under model.*.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/config/codec.h"
#include "weft/config/finding.h"

namespace weft::config {

// Short names of layout keys: world, tp, pp, vpp, cp, ep, etp, mbs, gbs.
struct ShortName {
  std::string_view name, key;
};
std::span<const ShortName> short_names();

// Key behind an alias: comm_overlap.delay_wgrad_compute for model.delay_wgrad_compute,
// runtime.world_size for world; other keys stay.
std::string meant_key(std::string_view key);

// True if the key is the alias, model.*, of a key of comm_overlap.*.
bool is_other_name(std::string_view key);

// Effect of a value written under an alias. Overruled: the same file also has the key's own name,
// which wins in any order. A map has no order.
enum class NameStanding { Sets, Overruled };

// Finding that an alias was written (rule C4); nullopt: no alias.
std::optional<Finding> other_name_finding(std::string_view key,
                                          NameStanding standing = NameStanding::Sets);

// Alternative spellings of values. model.qk_layernorm=true is head, false is none.
// model.moe_layer_freq=([0]*1+[1]*3) is [0,1,1,1]. model.window_size=127,0 is 128. No evaluations,
// written as null, is 0.
Written meant_value(std::string_view key, Written value);

}  // namespace weft::config

// Keys that go by more than one name: keys of comm_overlap have another name on the model.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/config/codec.h"
#include "weft/config/finding.h"

namespace weft::config {

// Short names of the keys of a layout: world, tp, pp, vpp, cp, ep, etp, mbs, gbs.
struct ShortName {
  std::string_view name, key;
};
std::span<const ShortName> short_names();

// The key that is meant: comm_overlap.delay_wgrad_compute for model.delay_wgrad_compute,
// runtime.world_size for world, any other as it is.
std::string meant_key(std::string_view key);

// Says that another name was written (rule C4); nothing for other keys.
std::optional<Finding> other_name_finding(std::string_view key);

// Other words for a key's values: model.qk_layernorm=true is head, false is none;
// model.moe_layer_freq=([0]*1+[1]*3) is [0,1,1,1].
Written meant_value(std::string_view key, Written value);

}  // namespace weft::config

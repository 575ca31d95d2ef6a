// Keys that go by more than one name: those of comm_overlap.* have another name on the model.
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

// Whether the key is another name, model.*, of a key of comm_overlap.*.
bool is_other_name(std::string_view key);

// What became of a value that was written under another name: it sets the key, or the same file
// has the key under its own name too, which wins whatever the order. A map has none.
enum class NameStanding { Sets, Overruled };

// Says that another name was written (rule C4); nothing for other keys.
std::optional<Finding> other_name_finding(std::string_view key,
                                          NameStanding standing = NameStanding::Sets);

// Other words for a key's values: model.qk_layernorm=true is head, false is none;
// model.moe_layer_freq=([0]*1+[1]*3) is [0,1,1,1], model.window_size=127,0 is 128, and no
// evaluations (null) are 0.
Written meant_value(std::string_view key, Written value);

}  // namespace weft::config

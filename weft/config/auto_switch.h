// Switch that a run may decide itself.
#pragma once

namespace weft::config {

// As a bool: the value that the run is judged and planned with. `automatic`: the run measures both
// values in its first steps and keeps the faster one.
struct AutoSwitch {
  constexpr AutoSwitch(bool is_on = false) : on(is_on) {}
  static constexpr AutoSwitch left_to_the_run() {
    AutoSwitch choice(true);
    choice.automatic = true;
    return choice;
  }

  constexpr operator bool() const { return on; }

  bool on = false;
  bool automatic = false;
};

}  // namespace weft::config

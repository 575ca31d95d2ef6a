// Times and rates as text: four or five digits, without powers of ten.
#pragma once

#include <string>

namespace weft::plan {

// "0.4 ms", "83.12 ms", "19797 ms", "196.4 s".
std::string time_text(double ms);
// "83.12", "16703", "3065384".
std::string rate_text(double rate);

}  // namespace weft::plan

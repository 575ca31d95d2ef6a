// Errors told where they happened: the text of any exception, and the same kind of error with a
// place in front.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace weft::base {

// The text of any exception.
std::string reason_of(const std::exception_ptr& error);

// The same for who typed the command. What is no error of Weft's, of the system or want of memory
// is a bug, and is told as one.
std::string told(const std::exception_ptr& error);

// Throws the same kind of error with "<where>: " in front. What is none of the three errors becomes
// an InternalError, except want of memory, which is a SystemError.
[[noreturn]] void throw_at(std::string_view where, const std::exception_ptr& error);

}  // namespace weft::base

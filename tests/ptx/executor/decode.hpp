// decode() turns the text of a kernel into instructions.
#pragma once

#include "program.hpp"

namespace tally::ptx {

Kernel decode(const Program& program, const std::string& name, const Program::Body& body);

}  // namespace tally::ptx

// The machine's name, as files that several machines share record it.
#pragma once

#include <string>

namespace tessera {

std::string host_name();  // "unknown" when the system does not tell

}  // namespace tessera

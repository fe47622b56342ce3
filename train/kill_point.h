// Places where a test may end the process as a power cut would: TESSERA_KILL_AT=step:12 sends SIGKILL when the training step with
// global number 12 is done, save:3 inside the third save, factorise:1 inside the first factorisation, timing:2 when the second choice
// that a clock took is measured and not yet recorded.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

// Kills the process when the environment asks for this place and number; otherwise does nothing.
void kill_point(std::string_view place, std::int64_t number);

}  // namespace tessera

// Places where a test may end the process as a power cut would. TESSERA_KILL_AT=<place>:<number> sends SIGKILL:
//   step:12      when the training step with global number 12 is done;
//   saving:12    when the checkpoint of step 12 is written and does not have its name yet;
//   save:12      when the checkpoint of step 12 is safe, on the thread that saved it;
//   factorise:1  when the pass `factorise` of stage 1 has run and nothing of it is written; likewise admm:1;
//   timing:2     when the second choice that a clock took is measured and not yet recorded.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

// Kills the process when the environment asks for this place and number; otherwise does nothing.
void kill_point(std::string_view place, std::int64_t number);

}  // namespace tessera

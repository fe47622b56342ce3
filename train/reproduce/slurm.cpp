#include "train/reproduce/slurm.h"

#include "core/support/error.h"
#include "core/support/text.h"

namespace tessera {

std::string slurm_script(const SlurmJob& job, std::span<const std::string> cells) {
  std::string script = str("#!/bin/sh\n#SBATCH --job-name=", job.name, "\n#SBATCH --array=0-", cells.size() - 1,
                           "\n#SBATCH --output=", job.name, "-%A_%a.log\n#SBATCH --signal=B:TERM@120\n");
  if (job.processors > 0) script += str("#SBATCH --cpus-per-task=", job.processors, '\n');
  script += str("set -eu\ncd ", shell_word(job.folder), "\ncase \"$SLURM_ARRAY_TASK_ID\" in\n");
  for (std::size_t i = 0; i < cells.size(); ++i) script += str(i, ") cell=", shell_word(cells[i]), " ;;\n");
  script += str("*) echo \"there is no task $SLURM_ARRAY_TASK_ID\" >&2; exit 2 ;;\nesac\nexec ", job.command, " \"$cell\"\n");
  return script;
}

}  // namespace tessera

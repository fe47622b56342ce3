#include "train/run/run_context.h"

#include <utility>

#include "train/run/decisions_file.h"

namespace tessera {

RunContext::RunContext(Vfs& files, const ExperimentConfig& config, DataSplits data, RunFolder run_folder, SessionOptions asked)
    : vfs(files),
      folder(std::move(run_folder)),
      options(std::move(asked)),
      lock(folder.path()),
      saver(files, folder.checkpoints(), config.checkpoint, lock),
      leader(*options.ranks),
      state(config, std::move(data), *options.ranks),
      progress(options.out, options.terminal, folder.log()) {}

void RunContext::open_records(RunHistory history) {
  records = std::make_unique<RunRecords>(vfs, folder, state.position(), std::move(history));
  records->write_layers();
  write_report();
}

void RunContext::write_report() { records->write_report(config().name, config().seed, state.task().metrics().front()); }

void RunContext::save() {
  Position& position = state.position();
  if (saver.holds(position)) return;
  if (state.trainer()) state.trainer()->check_finite();
  if (state.trainer() && !position.stage_done) leader.gather_state(*state.trainer());
  records->sync(position);
  Value manifest = state.manifest();
  manifest.set("history", write(records->history()));
  if (!changes.empty()) manifest.set("changes", Value::list({changes.begin(), changes.end()}));
  manifest.set("decisions", to_value(decisions->taken()));
  saver.save(position, state.parts(), manifest);
  write_status("training");
}

void RunContext::finish_saving() {
  if (saver.finish()) write_status("training");
}

void RunContext::poll_saving() {
  if (saver.poll()) write_status("training");
}

void RunContext::write_status(const std::string& word) {
  const Position& position = state.position();
  RunStatus status;
  status.state = word;
  status.stage = stage().name;
  status.stage_step = position.stage_step;
  status.stage_steps = stage().train ? state.stage_steps() : 0;
  status.global_step = position.global_step;
  status.loss = last_loss;
  status.metric = state.task().metrics().front().key;
  if (position.best) status.best = position.best->value;
  status.seconds_left = progress.seconds_left(position.stage_step);
  status.last_checkpoint_step = saver.last_step();
  status.last_checkpoint_time = saver.last_time();
  status.ranks = options.ranks->size();
  records->write_status(status);
}

}  // namespace tessera

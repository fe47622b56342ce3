// What a run does about images that cannot be decoded: it ends, notes them, and tells the command that goes on without them.
#pragma once

#include <string>
#include <vector>

#include "core/io/vfs.h"
#include "core/support/error.h"
#include "train/data/left_out.h"
#include "train/run/run_context.h"
#include "train/run/run_folder.h"

namespace tessera {

// Whether a resolved config says data.on_bad_image: skip.
bool skips_bad_images(const Value& config);

// What broken_images.json of this run folder holds.
std::vector<BrokenImage> recorded_broken_images(Vfs& vfs, const RunFolder& folder);

// After `error` ended the run: adds the images that it could not decode to broken_images.json and gives the message to end with.
// Where the error is one of these images it ends with the command that goes on without it, unless SessionOptions::advise says no.
std::string explain_io_error(RunContext& run, const IoError& error);

// For the message of a run whose data is not as it was: names the recorded images that are not what the run began with, as in
// "; photos/train/cat/3.jpg, which ended this run, is gone: tessera resume RUN data.on_bad_image=skip goes on without it". ""
// where there is none.
std::string changed_images(Vfs& vfs, const RunFolder& folder, const ExperimentConfig& config);

// Where the resolved config `after` skips bad images: adds to its data.left_out each image that ended the run and is not whole
// again, and where `before` did not skip, all others that cannot be decoded; sets mean and std to what the run began with; and
// returns the added ones. Throws IoError where, beside them, the data is not what the run began with.
std::vector<BrokenImage> leave_out_broken_images(Vfs& vfs, const RunFolder& folder, const Value& before, Value& after);

}  // namespace tessera

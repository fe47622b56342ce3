// What a data set is loaded as.
#pragma once

#include "train/data/dataset.h"

namespace tessera {

struct DataSplits {
  Subset train;
  Subset val;  // part of the training set, or a set of its own; empty with val: 0
  Subset test;
};

}  // namespace tessera

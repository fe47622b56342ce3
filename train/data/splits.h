// What a data set is loaded as.
#pragma once

#include "core/config/value.h"
#include "train/data/dataset.h"

namespace tessera {

struct DataSplits {
  Subset train;
  Subset val;  // part of the training set, or a set of its own; empty with val: 0
  Subset test;
};

// What a checkpoint's manifest keeps of the data: the fingerprint of the training set as `data`, those of validation and test
// data that are sets of their own as `data_val` and `data_test`, and the training set's description.
Value manifest_keys(const DataSplits& splits);

// The keys of the manifest that a program needs to prepare samples for the network and to name its answers. A map, empty where
// the data set has none of them.
Value keys_of_export(const Value& manifest);

// Which data set of these manifest_keys() is not the one of the manifest: "the training data changed since the run began:
// fingerprint 1a2b, checkpoint has 3c4d". Empty where none is. A set whose key the manifest lacks is not compared.
std::string changed_since(const Value& manifest, const Value& keys);

}  // namespace tessera

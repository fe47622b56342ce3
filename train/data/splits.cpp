#include "train/data/splits.h"

#include <array>
#include <string>

#include "core/support/error.h"
#include "train/data/labelled_images.h"

namespace tessera {
namespace {

constexpr const char* kTraining = "data";
constexpr const char* kValidation = "data_val";
constexpr const char* kTest = "data_test";
constexpr const char* kText = "text";  // key of TextDataset::description()

struct Named {
  const char* key;
  const char* what;
};
constexpr std::array<Named, 3> kSets{{{kTraining, "training"}, {kValidation, "validation"}, {kTest, "test"}}};

}  // namespace

Value manifest_keys(const DataSplits& splits) {
  Value keys = Value::map();
  const Dataset* const training = splits.train.dataset.get();
  keys.set(kTraining, training->fingerprint());
  const auto add = [&](const Subset& split, const char* key) {
    if (split.dataset != nullptr && split.dataset.get() != training) keys.set(key, split.dataset->fingerprint());
  };
  add(splits.val, kValidation);
  add(splits.test, kTest);
  const Value description = training->description();
  for (const Value::Entry& entry : description.as_map()) keys.set(entry.key, entry.value);
  return keys;
}

Value keys_of_export(const Value& manifest) {
  Value keys = Value::map();
  for (const char* const key : {kClassesKey, kPreprocessingKey, kText}) {
    if (const Value* const value = manifest.find(key)) keys.set(key, *value);
  }
  return keys;
}

std::string changed_since(const Value& manifest, const Value& keys) {
  for (const auto& [key, what] : kSets) {
    const Value* const before = manifest.find(key);
    const Value* const now = keys.find(key);
    if (before == nullptr || now == nullptr || before->as_string() == now->as_string()) continue;
    return str("the ", what, " data changed since the run began: fingerprint ", now->as_string(), ", checkpoint has ",
               before->as_string());
  }
  return {};
}

}  // namespace tessera

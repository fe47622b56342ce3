#include "train/data/splits.h"

#include <string>
#include <vector>

#include "core/support/error.h"
#include "train/data/labelled_images.h"

namespace tessera {
namespace {

struct Fingerprint {
  const char* key;
  const char* what;
  std::string text;
};

std::vector<Fingerprint> fingerprints(const DataSplits& splits) {
  std::vector<Fingerprint> all{{"data", "training", splits.train.dataset->fingerprint()}};
  const auto add = [&](const Subset& split, const char* key, const char* what) {
    if (split.dataset != nullptr && split.dataset != splits.train.dataset)
      all.push_back({key, what, split.dataset->fingerprint()});
  };
  add(splits.val, "data_val", "validation");
  add(splits.test, "data_test", "test");
  return all;
}

}  // namespace

Value manifest_keys(const DataSplits& splits) {
  Value keys = Value::map();
  for (const Fingerprint& each : fingerprints(splits)) keys.set(each.key, each.text);
  const Value description = splits.train.dataset->description();
  for (const Value::Entry& entry : description.as_map()) keys.set(entry.key, entry.value);
  return keys;
}

Value keys_of_export(const Value& manifest) {
  Value keys = Value::map();
  for (const char* const key : {kClassesKey, kPreprocessingKey}) {
    if (const Value* const value = manifest.find(key)) keys.set(key, *value);
  }
  return keys;
}

std::string changed_since(const Value& manifest, const DataSplits& splits) {
  for (const Fingerprint& now : fingerprints(splits)) {
    const Value* const before = manifest.find(now.key);
    if (before == nullptr || before->as_string() == now.text) continue;
    return str("the ", now.what, " data changed since the run began: fingerprint ", now.text, ", checkpoint has ",
               before->as_string());
  }
  return {};
}

}  // namespace tessera

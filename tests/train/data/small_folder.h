// A small data set of files for tests: two classes of ten training images and of three test images, resized to 10 and cut to 8.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "core/support/log.h"
#include "tests/support/scopes.h"
#include "tests/train/data/image_tree.h"
#include "train/data/builtin.h"

namespace tessera::testing {

class SmallFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    images_.add_split("train", 10);
    images_.add_split("test", 3, 50);
    config_.root = images_.root().string();
    folder_.resize = 10;
    folder_.crop = 8;
    config_.batch = 4;
  }
  void TearDown() override { set_log_sink({}); }

  std::string path(const std::string& name) const { return images_.path(name); }

  ImageTree images_;
  DataConfig config_{.form = ImageFolderConfig()};
  ImageFolderConfig& folder_ = std::get<ImageFolderConfig>(config_.form);

 private:
  const VariableScope cache_{"TESSERA_CACHE", ""};
};

}  // namespace tessera::testing

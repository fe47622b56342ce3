// Which paths hold a network, and the error messages for other paths.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <thread>

#include "tests/capi/networks.h"
#include "tests/train/run/weights_files.h"
#include "train/run/network_file.h"
#include "train/run/run_settings.h"
#include "train/run/saved_model.h"
#include "train/run/saved_point.h"
#include "train/run/saved_use.h"

namespace tessera::capi::testing {
namespace {

namespace fs = std::filesystem;

// The message of a load that fails.
std::string refusal(tessera_status status, const std::string& path, const char* at = nullptr, const char* precision = nullptr) {
  auto* untouched = reinterpret_cast<tessera_network*>(8);
  tessera_network* network = untouched;
  const tessera_options options{sizeof(options), 1, at, precision};
  EXPECT_EQ(tessera_load(path.c_str(), &options, &network), status) << path << ": " << tessera_last_error();
  EXPECT_EQ(network, untouched);
  return tessera_last_error();
}

void expect_in(const std::string& text, const std::string& part) { EXPECT_NE(text.find(part), std::string::npos) << text; }

std::string checkpoint_of(const std::string& run, int step) { return run + "/checkpoints/step-0000000" + std::to_string(step); }

void flip_byte(const fs::path& path) {
  std::string bytes = real_vfs().read_file(path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(CLoad, TheVersionIsThatOfTheHeader) {
  EXPECT_EQ(tessera_abi_version(), TESSERA_ABI_VERSION);
  EXPECT_NE(std::string(tessera_version()), "");
}

TEST(CLoad, TakesARunACheckpointAndAFile) {
  const Loaded run(dense_run());
  EXPECT_EQ(run.description().at("origin").at("step").as_int(), 3);
  for (const char* end : {"", "/"}) {
    const Loaded checkpoint(checkpoint_of(dense_run(), 2) + end);
    const Value description = checkpoint.description();
    EXPECT_EQ(description.at("origin").at("step").as_int(), 2);
    EXPECT_EQ(description.at("origin").at("run").as_string(), dense_run());
    EXPECT_EQ(description.at("task").as_string(), "classification");
  }
  const TemporaryFolder folder;
  const auto model =
      build_model(tessera::testing::layers_config(R"(["flatten", {"linear": {"out": 3, "name": "fc"}}])"), {1, 2, 2, 1});
  initialize(*model, 1);
  write_network(real_vfs(), *model, {1, 2, 2, 1}, folder.path() / "net.safetensors");
  const Loaded file((folder.path() / "net.safetensors").string());
  EXPECT_TRUE(file.description().at("task").is_null());
  EXPECT_EQ(file.description().at("origin").at("file").as_string(), (folder.path() / "net.safetensors").string());
  Buffer<std::uint8_t> pixels({1, 2, 2, 1}, 0);
  Buffer<float> scores({1, 3}, 0);
  const tessera_tensor in = pixels.tensor(), out = scores.tensor();
  EXPECT_EQ(tessera_run(file.get(), &in, 1, &out, 1), TESSERA_BAD_ARGUMENT) << "this file knows no pixels";
  EXPECT_STREQ(tessera_last_error(), "tessera_run: input 'image' is uint8 [1, 2, 2, 1]; needs float32 [batch, 2, 2, 1]");
}

TEST(CLoad, AFileOfARunTellsWhatTheRunTells) {
  const TemporaryFolder folder;
  const RunFolder opened = RunFolder::open(real_vfs(), dense_run());
  const Checkpoint newest = load_newest(real_vfs(), opened);
  NetworkUse use = use_of_run(settings_of(opened, {}, {}, "test"), newest.manifest);
  const std::string path = (folder.path() / "net.safetensors").string();
  const auto write_with = [&](const char* precision) {
    use.precision = precision;
    write_network(real_vfs(), *evaluation_model(newest), input_of(newest.manifest), path, use);
  };
  write_with("f32");
  const Loaded run(dense_run()), file(path);
  for (const char* key : {"task", "precision", "inputs", "outputs", "classes", "preprocessing"}) {
    EXPECT_EQ(file.description().at(key), run.description().at(key)) << key;
  }
  Buffer<std::uint8_t> pixels({2, 28, 28, 1}, 9);
  EXPECT_EQ(scores_of(file, pixels), scores_of(run, pixels));
  write_with("f16");
  expect_in(refusal(TESSERA_BAD_ARGUMENT, path),
            str("tessera_load: ", path, ": f16 is not supported on cpu yet; supported: f32, bf16"));
  EXPECT_EQ(Loaded(path, 1, "f32").description().at("precision").as_string(), "f32");
}

// Each kind of inconsistency inside a file is reported with the file's name.
TEST(CLoad, AFaultOfAFileNamesTheFile) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "net.safetensors").string();
  const auto model =
      build_model(tessera::testing::layers_config(R"(["flatten", {"linear": {"out": 3, "name": "fc"}}])"), {1, 2, 2, 1});
  initialize(*model, 1);
  const auto expect_fault = [&](const Shape& input, const NetworkUse& use, const char* fault) {
    write_network(real_vfs(), *model, input, path, use);
    const std::string message = refusal(TESSERA_BAD_ARGUMENT, path);
    EXPECT_TRUE(message.starts_with(str("tessera_load: ", path, ": "))) << message;
    expect_in(message, fault);
  };
  const NetworkUse use{.task = "classification"};
  expect_fault({1, 2, 3, 1}, use, "linear");
  NetworkUse changed = use;
  changed.data = parse_json(R"({"preprocessing": {"mean": [0, 0], "std": [1, 1]}})", "test");
  expect_fault({1, 2, 2, 1}, changed, "images have 1 channels");
  changed.data = parse_json(R"({"preprocessing": {"mean": 7, "std": [1]}})", "test");
  expect_fault({1, 2, 2, 1}, changed, "expected a list");
  changed = use;
  changed.decisions = parse_json(R"({"version": 7, "decisions": {}})", "test");
  expect_fault({1, 2, 2, 1}, changed, "decisions: version is 7; this program reads 1");
  changed = use;
  changed.precision = "f99";
  expect_fault({1, 2, 2, 1}, changed, "'f99' is no precision; choices: ");
  changed.precision = "f32";
  write_network(real_vfs(), *model, {1, 2, 2, 1}, path, changed);
  EXPECT_TRUE(refusal(TESSERA_BAD_ARGUMENT, path, nullptr, "f99").starts_with("tessera_load: 'f99' is no precision"))
      << "a fault of the caller";
}

TEST(CLoad, TakesACheckpointThatWasCarriedElsewhere) {
  const TemporaryFolder folder;
  fs::copy(checkpoint_of(dense_run(), 3), folder.path() / "carried");
  const Loaded carried((folder.path() / "carried").string());
  const Loaded run(dense_run());
  EXPECT_TRUE(carried.description().at("task").is_null());
  EXPECT_EQ(carried.description().at("origin").at("checkpoint").as_string(), (folder.path() / "carried").string());
  Buffer<float> images = some_images(2);
  EXPECT_EQ(scores_of(carried, images), scores_of(run, images));
}

TEST(CLoad, TakesTheCheckpointThatAtNames) {
  tessera_network* network = nullptr;
  const tessera_options options{sizeof(options), 1, "2", "f32"};
  ASSERT_EQ(tessera_load(dense_run().c_str(), &options, &network), TESSERA_OK) << tessera_last_error();
  const char* json = nullptr;
  ASSERT_EQ(tessera_describe(network, &json), TESSERA_OK);
  EXPECT_EQ(parse_json(json, "json").at("origin").at("step").as_int(), 2);
  tessera_free(network);
  expect_in(refusal(TESSERA_BAD_ARGUMENT, dense_run(), "9"), "tessera_load: no checkpoint '9'; there are:");
  expect_in(refusal(TESSERA_BAD_ARGUMENT, checkpoint_of(dense_run(), 2), "2"), "is no run folder");
}

TEST(CLoad, RefusesWhatHoldsNoNetwork) {
  const TemporaryFolder folder;
  expect_in(refusal(TESSERA_BAD_ARGUMENT, (folder.path() / "none").string()), "tessera_load: there is no ");
  expect_in(refusal(TESSERA_BAD_ARGUMENT, folder.path().string()), "tessera_load: ");
  expect_in(refusal(TESSERA_BAD_ARGUMENT, ""), "tessera_load: there is no ");
  expect_in(refusal(TESSERA_BAD_FILE, std::string(5000, 'x')), "xxx: File name too long");
  SafetensorsFile tensors;
  tensors.tensors["fc.weight"] = Tensor::zeros({2, 2});
  tessera::testing::save(folder.path() / "tensors.safetensors", tensors);
  expect_in(refusal(TESSERA_BAD_ARGUMENT, (folder.path() / "tensors.safetensors").string()), "holds no network");
  std::ofstream(folder.path() / "text") << "no network";
  expect_in(refusal(TESSERA_BAD_FILE, (folder.path() / "text").string()), "text");
  expect_in(refusal(TESSERA_BAD_ARGUMENT, dense_run(), nullptr, "f64"), "tessera_load: 'f64' is no precision; choices: ");
}

TEST(CLoad, PassesOverADamagedCheckpointOfARunAndSaysSo) {
  const TemporaryFolder folder;
  fs::copy(dense_run(), folder.path() / "run", fs::copy_options::recursive);
  const std::string run = (folder.path() / "run").string();
  flip_byte(checkpoint_of(run, 3) + "/model.safetensors");
  const std::string message = refusal(TESSERA_BAD_FILE, checkpoint_of(run, 3));
  expect_in(message, "model.safetensors");
  const Loaded older(run);
  EXPECT_EQ(older.description().at("origin").at("step").as_int(), 2);
  ASSERT_EQ(older.description().at("passed_over").as_list().size(), 1u);
  expect_in(older.description().at("passed_over").as_list().front().as_string(), "model.safetensors");
  for (const int step : {1, 2}) flip_byte(checkpoint_of(run, step) + "/model.safetensors");
  expect_in(refusal(TESSERA_BAD_FILE, run), "model.safetensors");
}

TEST(CLoad, ARunOfAGpuInF16IsLoadedInAPrecisionOfTheCpu) {
  const TemporaryFolder folder;
  fs::copy(dense_run(), folder.path() / "run", fs::copy_options::recursive);
  const std::string run = (folder.path() / "run").string();
  std::string settings = real_vfs().read_file(run + "/config.resolved.yaml");
  for (const auto& [before, after] : {std::pair("device: cpu", "device: cuda"), std::pair("precision: f32", "precision: f16")}) {
    ASSERT_NE(settings.find(before), std::string::npos) << settings;
    settings.replace(settings.find(before), std::string_view(before).size(), after);
  }
  write_file_atomically(real_vfs(), run + "/config.resolved.yaml", settings);
  expect_in(refusal(TESSERA_BAD_ARGUMENT, run),
            str("tessera_load: ", run, ": f16 is not supported on cpu yet; supported: f32, bf16"));
  tessera_network* network = nullptr;
  const tessera_options options{sizeof(options), 1, nullptr, "f32"};
  ASSERT_EQ(tessera_load(run.c_str(), &options, &network), TESSERA_OK) << tessera_last_error();
  tessera_free(network);
}

TEST(CLoad, RefusesNullsAndOptionsThatCannotBe) {
  tessera_network* network = nullptr;
  EXPECT_EQ(tessera_load(nullptr, nullptr, &network), TESSERA_BAD_ARGUMENT);
  EXPECT_STREQ(tessera_last_error(), "tessera_load: path is null");
  EXPECT_EQ(tessera_load(dense_run().c_str(), nullptr, nullptr), TESSERA_BAD_ARGUMENT);
  EXPECT_STREQ(tessera_last_error(), "tessera_load: network is null");
  const tessera_options no_size{};
  EXPECT_EQ(tessera_load(dense_run().c_str(), &no_size, &network), TESSERA_BAD_ARGUMENT);
  expect_in(tessera_last_error(), "options->size is 0; must be sizeof(tessera_options), ");
  for (const std::int32_t threads : {-1, 1025}) {
    const tessera_options options{sizeof(options), threads, nullptr, nullptr};
    EXPECT_EQ(tessera_load(dense_run().c_str(), &options, &network), TESSERA_BAD_ARGUMENT);
    EXPECT_EQ(tessera_last_error(), str("tessera_load: threads is ", threads, "; must be 0, every processor, to 1024"));
  }
  tessera_options garbage{};
  garbage.size = std::size_t{1} << 60;
  EXPECT_EQ(tessera_load(dense_run().c_str(), &garbage, &network), TESSERA_BAD_ARGUMENT);
  tessera_free(nullptr);
  EXPECT_EQ(tessera_set_threads(nullptr, 1), TESSERA_BAD_ARGUMENT);
  EXPECT_STREQ(tessera_last_error(), "tessera_set_threads: network is null");
}

// A program with a later header passes a larger struct. The members that this library does not know must be 0.
TEST(CLoad, TakesTheOptionsOfALaterHeaderWhereTheyAskForNothingNew) {
  struct Later {
    tessera_options options;
    std::int64_t member;
  };
  Later later{{sizeof(Later), 1, "2", nullptr}, 0};
  tessera_network* network = nullptr;
  ASSERT_EQ(tessera_load(dense_run().c_str(), &later.options, &network), TESSERA_OK) << tessera_last_error();
  const char* json = nullptr;
  EXPECT_EQ(tessera_describe(network, &json), TESSERA_OK);
  EXPECT_EQ(parse_json(json, "json").at("origin").at("step").as_int(), 2) << "members of today are read";
  tessera_free(network);
  later.member = 1;
  EXPECT_EQ(tessera_load(dense_run().c_str(), &later.options, &network), TESSERA_BAD_ARGUMENT);
  expect_in(tessera_last_error(), "is set; needs a newer library");
}

// A file of a network whose weights are large enough for several threads to read them.
std::string file_of_a_large_network(const fs::path& folder) {
  const auto model =
      build_model(tessera::testing::layers_config(R"(["flatten", {"linear": {"out": 300, "name": "fc"}}])"), {1, 20, 20, 1});
  initialize(*model, 1);
  write_network(real_vfs(), *model, {1, 20, 20, 1}, folder / "large.safetensors");
  return (folder / "large.safetensors").string();
}

TEST(CLoad, LeavesTheThreadsOfTheCallerAlone) {
  const TemporaryFolder folder;
  const std::string path = file_of_a_large_network(folder.path());
  // A thread that has computed nothing has no OpenMP threads yet, so that any that OpenMP starts for it would be new.
  std::thread([&] {
    const std::set<std::string> before = threads_of_process();
    const Loaded network(path, 1);
    EXPECT_EQ(threads_since(before, 1).size(), 1U);
  }).join();
}

TEST(CLoad, AChildLoadsNetworksOfItsOwn) {
  const TemporaryFolder folder;
  const std::string path = file_of_a_large_network(folder.path());
  const Loaded of_parent(path, 2);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // ends a wait for threads that the child lacks
    tessera_network* network = nullptr;
    const tessera_options options{sizeof(options), 2, nullptr, nullptr};
    Buffer<float> images({4, 20, 20, 1}, 0.5f), scores({4, 300}, 0);
    const tessera_tensor in = images.tensor(), out = scores.tensor();
    const bool runs =
        tessera_load(path.c_str(), &options, &network) == TESSERA_OK && tessera_run(network, &in, 1, &out, 1) == TESSERA_OK;
    tessera_free(network);
    ::_exit(runs ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// The child of a fork has none of the parent's threads, and must not wait for one.
TEST(CLoad, AChildIsRefusedTheNetworksOfItsParent) {
  const Loaded network(dense_run());
  Buffer<float> images = some_images(1);
  Buffer<float> scores({1, 10}, 0);
  const tessera_tensor in = images.tensor(), out = scores.tensor();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = tessera_run(network.get(), &in, 1, &out, 1) == TESSERA_BAD_ARGUMENT &&
                         std::string(tessera_last_error()).find("loads its networks after the fork") != std::string::npos;
    tessera_free(network.get());
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(tessera_run(network.get(), &in, 1, &out, 1), TESSERA_OK) << tessera_last_error();
}

// The mask of the signals that a thread has blocked: bit n - 1 is signal n.
std::uint64_t blocked_by(const std::string& thread) {
  std::ifstream status("/proc/self/task/" + thread + "/status");
  for (std::string word; status >> word;) {
    if (word != "SigBlk:") continue;
    status >> word;
    return std::stoull(word, nullptr, 16);
  }
  return 0;
}

TEST(CLoad, SignalsAreLeftToTheThreadsOfTheProgram) {
  const std::string& run = dense_run();
  const std::set<std::string> before = threads_of_process();
  const Loaded network(run, 3);
  Buffer<float> images = some_images(4);
  scores_of(network, images);
  int own = 0;
  for (const std::string& thread : threads_since(before, 3)) {
    ++own;
    for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM}) {
      EXPECT_TRUE(blocked_by(thread) >> (number - 1) & 1) << "signal " << number;
    }
    EXPECT_FALSE(blocked_by(thread) >> (SIGSEGV - 1) & 1) << "a fault is its own";
  }
  EXPECT_EQ(own, 3) << "its own, and two that compute beside it";
}

}  // namespace
}  // namespace tessera::capi::testing

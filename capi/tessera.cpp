// The C functions of include/tessera.h. No exception leaves them.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "capi/arguments.h"
#include "capi/runner.h"
#include "core/support/error.h"
#include "include/tessera.h"
#include "train/checkpoint/manifest.h"
#include "train/compute_threads.h"
#include "train/run/environment.h"

using namespace tessera;

struct tessera_network {
  capi::Runner runner;
};

namespace {

constexpr const char* kNoWords = "out of memory, and none was left for words";

thread_local std::string last_error;
thread_local bool out_of_words = false;

tessera_status failed(tessera_status status, const char* function, const char* what) noexcept {
  const std::size_t length = std::strlen(function);
  const bool says_who = std::strncmp(what, function, length) == 0;
  try {
    last_error = says_who ? std::string(what) : std::string(function) + ": " + what;
    out_of_words = false;
  } catch (...) {
    out_of_words = true;
  }
  return status;
}

// Records the exception that is being handled and returns its status.
tessera_status failure(const char* function) noexcept {
  try {
    throw;
  } catch (const IoError& error) {
    return failed(TESSERA_BAD_FILE, function, error.what());
  } catch (const CheckpointVersionError& error) {
    return failed(TESSERA_BAD_FILE, function, error.what());
  } catch (const NumericError& error) {
    return failed(TESSERA_BAD_FILE, function, error.what());
  } catch (const OutOfMemoryError& error) {
    return failed(TESSERA_NO_MEMORY, function, error.what());
  } catch (const InternalError& error) {
    return failed(TESSERA_FAILED, function, error.what());
  } catch (const Error& error) {  // a wrong shape, dtype, path or option
    return failed(TESSERA_BAD_ARGUMENT, function, error.what());
  } catch (const std::bad_alloc&) {
    return failed(TESSERA_NO_MEMORY, function, "out of memory");
  } catch (const std::exception& error) {
    return failed(TESSERA_FAILED, function, error.what());
  } catch (...) {
    return failed(TESSERA_FAILED, function, "an exception that says nothing");
  }
}

template <class Body>
tessera_status guarded(const char* function, const Body& body) noexcept {
  try {
    body();
    return TESSERA_OK;
  } catch (...) {
    return failure(function);
  }
}

void check_given(const void* pointer, const char* name) { TESSERA_CHECK(pointer != nullptr, ConfigError, name, " is null"); }

std::int64_t checked_threads(std::int32_t threads) {
  TESSERA_CHECK(threads >= 0 && threads <= kMostComputeThreads, ConfigError, "threads is ", threads,
                "; must be 0, every processor, to ", kMostComputeThreads);
  return threads;
}

// A caller built with an older header passes fewer members, with a newer header more. Newer members are accepted if all are 0.
tessera_options read(const tessera_options* given) {
  constexpr std::size_t kOldest = offsetof(tessera_options, precision) + sizeof(tessera_options::precision);
  constexpr std::size_t kMost = 4096;
  tessera_options options{};
  if (given == nullptr) return options;
  TESSERA_CHECK(given->size >= kOldest && given->size <= kMost, ConfigError, "options->size is ", given->size,
                "; must be sizeof(tessera_options), ", sizeof(options));
  const std::span bytes(reinterpret_cast<const unsigned char*>(given), given->size);
  const std::span newer = bytes.subspan(std::min(bytes.size(), sizeof(options)));
  TESSERA_CHECK(std::ranges::all_of(newer, [](unsigned char byte) { return byte == 0; }), ConfigError, "options->size is ",
                given->size, ", and a member behind the ", sizeof(options),
                " bytes of this library's is set; needs a newer library");
  std::memcpy(&options, given, bytes.size() - newer.size());
  return options;
}

std::string text_or_nothing(const char* text) { return text == nullptr ? std::string() : text; }

}  // namespace

extern "C" {

std::int32_t tessera_abi_version(void) { return TESSERA_ABI_VERSION; }

const char* tessera_version(void) {
  try {
    static const std::string& version = *new std::string(version_text());  // never destroyed: the caller's statics may use it
    return version.c_str();
  } catch (...) {
    return "";
  }
}

const char* tessera_last_error(void) { return out_of_words ? kNoWords : last_error.c_str(); }

tessera_status tessera_load(const char* path, const tessera_options* options, tessera_network** network) {
  return guarded("tessera_load", [&] {
    check_given(network, "network");
    check_given(path, "path");
    const tessera_options asked = read(options);
    const std::int64_t threads = checked_threads(asked.threads);
    const capi::LoadOptions how{text_or_nothing(asked.at), text_or_nothing(asked.precision)};
    *network = new tessera_network{{[&] { return capi::load_trained(real_vfs(), path, how); }, threads}};
  });
}

void tessera_free(tessera_network* network) {
  // In the child of a forked process there is no thread to join, and its copies of locks may stay locked.
  if (network != nullptr && network->runner.is_of_this_process()) delete network;
}

tessera_status tessera_describe(const tessera_network* network, const char** json) {
  return guarded("tessera_describe", [&] {
    check_given(network, "network");
    check_given(json, "json");
    *json = network->runner.description().c_str();
  });
}

tessera_status tessera_set_threads(tessera_network* network, std::int32_t threads) {
  return guarded("tessera_set_threads", [&] {
    check_given(network, "network");
    network->runner.set_threads(checked_threads(threads));
  });
}

tessera_status tessera_run(tessera_network* network, const tessera_tensor* inputs, std::int32_t input_count,
                           const tessera_tensor* outputs, std::int32_t output_count) {
  return guarded("tessera_run", [&] {
    check_given(network, "network");
    network->runner.check_process();  // before anything is allocated: in a child the pool's lock may stay locked
    const Shape wanted = capi::check_output(outputs, output_count);
    const std::vector<NamedTensor> parts = capi::tensors_of(network->runner.inputs(), inputs, input_count);
    const Tensor answer = network->runner.run(parts, wanted);
    std::memcpy(outputs->data, answer.raw(), answer.bytes());
  });
}

tessera_status tessera_output_shape(tessera_network* network, const tessera_tensor* inputs, std::int32_t input_count,
                                    std::int64_t* shape, std::int32_t* rank) {
  return guarded("tessera_output_shape", [&] {
    check_given(network, "network");
    check_given(shape, "shape");
    check_given(rank, "rank");
    network->runner.check_process();
    const Shape answer = network->runner.output_shape(capi::check_inputs(network->runner.inputs(), inputs, input_count));
    *rank = answer.rank();
    std::copy(answer.begin(), answer.begin() + answer.rank(), shape);
  });
}

}  // extern "C"

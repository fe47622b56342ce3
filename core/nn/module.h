// A node of the model tree: named parameters, buffers and children. The dotted path ("layer1.0.conv2") is a module's identity in
// files, logs and selectors. A parent reaches a child by name at each forward, because a pass may have replaced it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/autograd/var.h"
#include "core/config/value.h"
#include "core/device/step_state.h"
#include "core/nn/cost.h"
#include "core/nn/forward_observer.h"
#include "core/nn/named_tensor.h"
#include "core/nn/parameter.h"
#include "core/support/error.h"

namespace tessera {

class AttentionCache;

// What a forward needs to know beside its input.
struct Context {
  bool training = false;
  std::uint64_t seed = 0;
  const StepState* step = nullptr;  // required when training: random numbers are keyed by the global step
  bool recompute = false;  // compressed layers keep nothing between their factors, and compute it again in the backward
  // All that a sample has: x first, as it came, then what is beside it. They are there until the backward is done.
  std::span<const NamedTensor> inputs = {};
  DType compute = DType::f32;  // of the activations that whole numbers become
  AttentionCache* cache = nullptr;  // in generation: x holds the positions behind those in it (core/nn/attention_cache.h)

  std::int64_t first_position() const;  // of x in its sequence
  const Tensor* find(std::string_view name) const;  // of `inputs`; null where none has the name
};

// State that is not trained: batch-norm statistics.
struct Buffer {
  std::string name;
  Tensor value;
};

class Module {
 public:
  virtual ~Module() = default;
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // The registry's name for this type, and the config that rebuilds it without its children and values.
  virtual std::string_view kind() const = 0;
  virtual Value config() const = 0;

  // What a module computes, for modules to implement. Callers write module(x, context), which names it in errors.
  virtual Var forward(const Var& x, const Context& context) = 0;
  Var operator()(const Var& x, const Context& context);
  // Shape of forward's result; checks the input's shape without computing. Appends to `trace` when given.
  virtual Shape output_shape(const Shape& input, Trace* trace = nullptr) const = 0;
  // Fresh random or constant parameters and buffers of this module alone, from (seed, path()).
  virtual void reset_parameters(std::uint64_t seed) { static_cast<void>(seed); }
  // Called when buffers got values from outside: derives anew what the module keeps of them. Throws IoError on invalid values.
  virtual void buffers_changed() {}
  // Names of children without which it computes nothing: those of a file are checked against them.
  virtual std::vector<std::string> needed_children() const { return {}; }
  // What x is made of: 0 for real numbers, else whole numbers (i64) in [0, this), as tokens are. Inputs that are made up follow
  // it.
  virtual std::int64_t input_limit() const { return 0; }
  // For modules that read others: throws ConfigError where the network lacks what this one reads. build_model() and rebuild() ask
  // every module of a whole network.
  virtual void check_placed() const {}
  // Positions of the longest sequence that this module takes; 0 where any length will do.
  virtual std::int64_t sequence_limit() const { return 0; }

  const std::string& path() const noexcept { return *path_; }  // "" for the root
  const Module* parent() const noexcept { return parent_; }  // null for the root

  bool has_child(std::string_view name) const;
  Module& child(std::string_view name) const;  // throws InternalError naming the path and the children there are
  Module& add_child(std::string name, std::unique_ptr<Module> child);
  std::unique_ptr<Module> replace_child(std::string_view name, std::unique_ptr<Module> replacement);  // returns the old one
  struct Child {
    std::string name;
    std::unique_ptr<Module> module;
  };
  const std::vector<Child>& children() const noexcept { return children_; }

  const std::vector<std::unique_ptr<Parameter>>& parameters() const noexcept { return parameters_; }
  const std::vector<std::unique_ptr<Buffer>>& buffers() const noexcept { return buffers_; }
  Parameter& parameter(std::string_view name) const;

 protected:
  Parameter& add_parameter(std::string name, Tensor value, ParameterRole role = ParameterRole::weight);
  Buffer& add_buffer(std::string name, Tensor value);
  // What `body` makes of x, computed as this module: observers see it, and errors name it.
  template <class Body>
  Var run(const Var& x, Body&& body) const {
    ForwardObserver::tell(*this, x);
    const ModuleScope scope(path_);
    try {
      return body();
    } catch (const OutOfMemoryError& error) {
      throw error.at(place(kind(), path_) + " forward");
    }
  }
  // Appends this leaf's row, in which its children's tensors count. Throws ShapeError when MACs of all rows are kUncounted.
  void trace_leaf(Trace* trace, const Shape& input, const Shape& output, std::int64_t macs) const;

 private:
  void set_path(const std::string& path);

  ModulePath path_ = keep_path("");
  Module* parent_ = nullptr;
  std::vector<Child> children_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

std::string join_path(std::string_view parent, std::string_view name);

// Depth first, parents before children, in order of addition.
void for_each_module(Module& root, const std::function<void(Module&)>& visit);
struct NamedParameter {
  std::string path;  // "layer1.0.conv2.weight"
  Parameter* parameter;
};
std::vector<NamedParameter> named_parameters(Module& root);
struct NamedBuffer {
  std::string path;
  Buffer* buffer;
};
std::vector<NamedBuffer> named_buffers(Module& root);

// The module at a dotted path below root; throws ConfigError naming the nearest paths.
Module& find_module(Module& root, std::string_view path);
// Replaces the module at a path; the root itself has no parent, so `root` may change.
std::unique_ptr<Module> replace_module(std::unique_ptr<Module>& root, std::string_view path, std::unique_ptr<Module> replacement);

void initialize(Module& root, std::uint64_t seed);  // every module's reset_parameters
// Parameters, masks and buffers; drops the gradients of what was elsewhere. The device of the first of them; the CPU without any.
void move_to(Module& root, Device device);
Device device_of(Module& root);
Cost total_cost(const Module& root, const Shape& input);

}  // namespace tessera

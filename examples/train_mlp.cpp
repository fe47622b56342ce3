// Trains a small perceptron on generated glyphs, with no experiment file: data, model, loss, gradients, optimiser.
// Expected output (the losses may differ in the last digit between machines):
//   epoch 1  mean loss 2.081
//   epoch 2  mean loss 1.326
//   epoch 3  mean loss 0.747
//   epoch 4  mean loss 0.440
//   epoch 5  mean loss 0.270
//   the loss fell: yes
#include <cstdio>
#include <exception>

#include "core/autograd/backward.h"
#include "core/ops/cross_entropy.h"
#include "layers/models/model.h"
#include "optim/builtin.h"
#include "train/data/builtin.h"

namespace {

int run() {
  using namespace tessera;
  constexpr std::uint64_t seed = 1;
  GlyphsConfig glyphs;
  glyphs.count = 1000;
  glyphs.test_count = 100;
  DataConfig data;
  data.batch = 50;
  data.form = glyphs;
  const DataSplits splits = load_data(data, seed);
  Loader loader(splits.train, training_options(data, seed, 1));

  const auto model = build_model({.form = models::Mlp{.hidden = {32}}}, sample_shape(splits));
  initialize(*model, seed);
  const auto parameters = named_parameters(*model);
  OptimizerConfig config;
  config.form = SgdConfig{.lr = 0.05};
  const auto optimizer = make_optimizer(config, parameters);

  StepState state;
  double first = 0;
  double mean = 0;
  for (int epoch = 1; epoch <= 5; ++epoch) {
    mean = 0;
    for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
      StepStateData values = state.host();
      values.lr = config.lr();
      state.set(values);
      const Batch batch = loader.next();
      const Context context{.training = true, .seed = seed, .step = &state};
      const Var loss = cross_entropy(model->forward(Var(batch.at("image")), context), batch.at("label"));
      backward(loss);
      optimizer->step(state);
      for (const NamedParameter& named : parameters) named.parameter->zero_grad();
      ++values.step;
      state.set(values);
      mean += loss.value().item() / static_cast<double>(loader.batches_per_epoch());
    }
    if (epoch == 1) first = mean;
    std::printf("epoch %d  mean loss %.3f\n", epoch, mean);
  }
  std::printf("the loss fell: %s\n", mean < first ? "yes" : "no");
  return mean < first ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_mlp: %s\n", error.what());
    return 1;
  }
}

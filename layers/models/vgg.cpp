#include "core/support/error.h"
#include "layers/activation.h"
#include "layers/dropout.h"
#include "layers/flatten.h"
#include "layers/models/chain.h"
#include "layers/models/networks.h"
#include "layers/pool2d.h"

namespace tessera::models {

namespace {

constexpr std::int64_t kPool = 0;  // marks a pooling layer in configuration D of the paper's table 1
constexpr std::int64_t kVgg16[] = {64,    64,  kPool, 128, 128,   kPool, 256, 256, 256,
                                   kPool, 512, 512,   512, kPool, 512,   512, 512, kPool};

std::unique_ptr<Module> features(Chain chain) {
  for (const std::int64_t out : kVgg16) {
    if (out == kPool) {
      chain.add<MaxPool2d>(str(chain.size()));
      continue;
    }
    chain.conv(str(chain.size()), {.out = out, .kernel = {3, 3}, .padding = {1, 1}});
    chain.batch_norm(str(chain.size())).add<Relu>(str(chain.size()));
  }
  return chain.finish();
}

std::unique_ptr<Module> classifier(Chain chain, std::int64_t width, std::int64_t classes) {
  for (int i = 0; i < 2; ++i) {
    chain.linear(str(chain.size()), width).add<Relu>(str(chain.size())).add<Dropout>(str(chain.size()));
  }
  return chain.linear(str(chain.size()), classes).finish();
}

}  // namespace

std::unique_ptr<Module> Vgg16::build(const Shape& input, std::int64_t classes) const {
  require_images(input, "vgg16");
  Chain chain(input);
  chain.add("features", features(Chain(input)));
  const bool original = chain.shape().dim(1) == 7 && chain.shape().dim(2) == 7;
  if (original) {
    chain.add<Flatten>("flatten");
  } else {
    chain.add<GlobalAvgPool>("avgpool");
  }
  const std::int64_t width = original ? 4096 : 512;
  return chain.add("classifier", classifier(Chain(chain.shape()), width, classes)).finish();
}

}  // namespace tessera::models

#include "layers/builtin.h"

#include "layers/activation.h"
#include "layers/batch_norm.h"
#include "layers/class_token.h"
#include "layers/conv2d.h"
#include "layers/cp_conv2d.h"
#include "layers/dropout.h"
#include "layers/embedding.h"
#include "layers/flatten.h"
#include "layers/layer_norm.h"
#include "layers/linear.h"
#include "layers/patches.h"
#include "layers/pool2d.h"
#include "layers/positions.h"
#include "layers/residual.h"
#include "layers/residual_block.h"
#include "layers/rms_norm.h"
#include "layers/segments.h"
#include "layers/self_attention.h"
#include "layers/sequential.h"
#include "layers/sparse_conv2d.h"
#include "layers/sparse_linear.h"
#include "layers/spatial_svd_conv2d.h"
#include "layers/svd_conv2d.h"
#include "layers/svd_linear.h"
#include "layers/tied_linear.h"
#include "layers/transformer_block.h"
#include "layers/tt_conv2d.h"
#include "layers/tt_embedding.h"
#include "layers/tt_garipov_conv2d.h"
#include "layers/tt_linear.h"
#include "layers/tucker2_conv2d.h"

namespace tessera {

Registry<Module> builtin_layers() {
  Registry<Module> layers("layer");
  layers.add<AvgPool2d>("avg_pool2d");
  layers.add<BasicBlock>("basic_block");
  layers.add<BatchNorm>("batch_norm");
  layers.add<Bottleneck>("bottleneck");
  layers.add<ClassToken>("class_token");
  layers.add<Conv2d>("conv2d");
  layers.add<CpConv2d>("cp_conv2d");
  layers.add<Dropout>("dropout");
  layers.add<Embedding>("embedding");
  layers.add<Flatten>("flatten");
  layers.add<Gelu>("gelu");
  layers.add<GlobalAvgPool>("global_avg_pool");
  layers.add<Identity>("identity");
  layers.add<LayerNorm>("layer_norm");
  layers.add<Linear>("linear");
  layers.add<MaxPool2d>("max_pool2d");
  layers.add<Patches>("patches");
  layers.add<Positions>("positions");
  layers.add<Relu>("relu");
  layers.add<Residual>("residual");
  layers.add<RmsNorm>("rms_norm");
  layers.add<Segments>("segments");
  layers.add<SelfAttention>("self_attention");
  layers.add<Sequential>("sequential");
  layers.add<Sigmoid>("sigmoid");
  layers.add<Silu>("silu");
  layers.add<SparseConv2d>("sparse_conv2d");
  layers.add<SparseLinear>("sparse_linear");
  layers.add<SpatialSvdConv2d>("spatial_svd_conv2d");
  layers.add<SvdConv2d>("svd_conv2d");
  layers.add<SvdLinear>("svd_linear");
  layers.add<Swiglu>("swiglu");
  layers.add<Tanh>("tanh");
  layers.add<TiedLinear>("tied_linear");
  layers.add<TokenPool>("token_pool");
  layers.add<TransformerBlock>("transformer_block");
  layers.add<TtConv2d>("tt_conv2d");
  layers.add<TtEmbedding>("tt_embedding");
  layers.add<TtGaripovConv2d>("tt_garipov_conv2d");
  layers.add<TtLinear>("tt_linear");
  layers.add<Tucker2Conv2d>("tucker2_conv2d");
  return layers;
}

}  // namespace tessera

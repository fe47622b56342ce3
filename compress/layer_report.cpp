#include "compress/layer_report.h"

#include "core/support/error.h"

namespace tessera {
namespace {

std::optional<Value> value_of(const std::optional<Ranks>& ranks) {
  return ranks ? std::optional<Value>(to_value(*ranks)) : std::nullopt;
}

std::optional<Ranks> read_ranks(const std::optional<Value>& value) {
  return !value || value->is_null() ? std::nullopt : std::optional<Ranks>(ranks_from(*value));
}

}  // namespace

void LayerReport::stay_dense(std::string why) {
  kind_after = kind_before;
  parameters_after = parameters_before;
  macs_after = macs_before;
  ranks.reset();
  relative_error = 0;
  decision = kDense;
  reason = std::move(why);
}

void LayerReport::fields(Fields& f) {
  f.add("path", path, {.help = "dotted path"});
  f.add("kind_before", kind_before, {.help = "module kind"});
  f.add("kind_after", kind_after, {.help = "module kind"});
  f.add("format", format, {.help = "form of the compressed weight"});
  f.add("ranks_asked", ranks_asked, {.help = "as the experiment file says"});
  std::optional<Value> reached = value_of(ranks);
  f.add("ranks", reached, {.help = "reached; none for a layer that stays dense"});
  ranks = read_ranks(reached);
  f.add("relative_error", relative_error, {.help = "of the weight"});
  f.add("parameters_before", parameters_before, {.help = "of the layer"});
  f.add("parameters_after", parameters_after, {.help = "of the layer"});
  f.add("macs_before", macs_before, {.help = "per sample"});
  f.add("macs_after", macs_after, {.help = "per sample"});
  f.add("phase", phase, {.help = "in which it was timed: inference, decode or training"});
  f.add("speed", speed, {.help = "as timed beside its dense original"});
  f.add("network_share", network_share, {.help = "of the dense network's time", .clock = true});
  f.add("decision", decision, {.help = "what became of it: dense, factored"});
  f.add("reason", reason, {.help = "why it stays dense, or that it is not faster"});
}

void PassReport::fields(Fields& f) {
  f.add("pass", pass, {.help = "its name"});
  f.add("layers", layers, {.help = "matched layers"});
  f.add("parameters_before", before.parameters, {.help = "of the network"});
  f.add("parameters_after", after.parameters, {.help = "of the network"});
  f.add("macs_before", before.macs, {.help = "of the network, per sample"});
  f.add("macs_after", after.macs, {.help = "of the network, per sample"});
  f.add("weight_bytes_before", before.weight_bytes, {.help = "of the network"});
  f.add("weight_bytes_after", after.weight_bytes, {.help = "of the network"});
  f.add("speed", speed, {.help = "of the network after the pass, over the one before"});
  f.add("recalibrated", recalibrated, {.help = "training batches that batch norms were measured anew on"});
  f.add("latency", latency, {.help = "where ranks were chosen by the network's time"});
  f.add("timed_at", timed_at, {.help = "batch, phase and threads"});
  f.add("other_phases", other_phases, {.help = "the network's speed in phases that did not decide"});
}

}  // namespace tessera

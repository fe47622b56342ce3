#include "compress/patterns/channel.h"

#include "compress/patterns/units.h"

namespace tessera {

std::string ChannelPattern::why_not(const Shape& weight) const { return weight.rank() < 2 ? "is no matrix" : ""; }

void ChannelPattern::choose(std::span<const Tensor> scores, std::int64_t kept, std::span<const Tensor> masks) const {
  const std::vector<std::int64_t> outputs = all_outputs(scores);
  std::vector<Unit> units = output_units(scores, outputs);
  std::vector<Unit*> best(scores.size(), nullptr);  // of each weight
  for (Unit& unit : units) {
    Unit*& own = best[unit.weight];
    if (own == nullptr || unit.score > own->score) own = &unit;
  }
  for (Unit* const unit : best) {
    if (unit != nullptr) unit->must = true;
  }
  keep_best(std::move(units), kept, scores, masks);
}

}  // namespace tessera

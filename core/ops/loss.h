// loss.h: what losses of two tensors and losses of classes share.
#pragma once

#include "core/ops/family.h"

#include <string_view>

namespace yoke {

// Raises YOKE_E_VALUE unless the text is "mean", "sum" or "none", or "batchmean" where a loss takes it.
void check_reduction(std::string_view text, const char *call, bool takes_batchmean = false);

}  // namespace yoke

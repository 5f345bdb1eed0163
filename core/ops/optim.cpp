// optim.cpp: shape rules of the optimizers' multi-tensor steps. core/optim has checked the tensors.
#include "core/ops/family.h"

namespace yoke {

void infer_sgd(SgdArgs, Plan &) {}

}  // namespace yoke

// inventory.h: a card's fields as a dict, for what takes an inventory and for what samples one device.
#pragma once

#include "yoke/inventory.h"

#include <pybind11/pybind11.h>

namespace yoke_python {

// None stands for what is not known.
pybind11::dict card_dict(const yoke_card_info &card);

}  // namespace yoke_python

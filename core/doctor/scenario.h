// scenario.h: a machine as a scenario, the form in which tests state one (tests/fakes/edge).
#pragma once

#include "core/doctor/facts.h"

#include <nlohmann/json_fwd.hpp>

namespace yoke::doctor {

// Everything that the inventory knows; what it does not is left out.
nlohmann::ordered_json scenario_of(const Facts &facts);

}  // namespace yoke::doctor

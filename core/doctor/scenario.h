// scenario.h: a machine as a scenario, the form of tests (tests/fakes/edge).
#pragma once

#include "core/doctor/facts.h"

#include <nlohmann/json_fwd.hpp>

namespace yoke::doctor {

// Returns the machine's facts as a scenario: everything known to the inventory. Unknown facts are left out.
nlohmann::ordered_json scenario_of(const Facts &facts);

}  // namespace yoke::doctor

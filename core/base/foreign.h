// foreign.h: variables of NCCL, Gloo and PyTorch in job scripts, and their effect here.
//
// Some variables decide an unset setting of Yoke: core/base/config asks the table for them. NCCL reads other
// variables. Each variable has a text with its effect, or with the reason for having no effect. The table is
// core/base/foreign.def.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// Variable of the environment that decides a setting of Yoke.
struct ForeignSetting {
    const char *variable;
    const char *text;     // as it stands there
    const char *allowed;  // if the text cannot be read: the allowed values; else null
    std::string value;    // new value of the setting
};
// Returns the first variable of the table that is set and concerns the setting; nothing if there is no such variable.
std::optional<ForeignSetting> foreign_setting(std::string_view setting);

struct ForeignVariable {
    // The order is that of YOKE_VARIABLE_* in yoke/comm.h.
    enum Effect { kNothing, kSets, kOverruled, kAlways, kUnknown, kUnreadable, kPassed };
    std::string name, text;  // text in the environment
    Effect effect = kUnknown;
    std::string setting;  // setting of Yoke decided, or overruled: "YOKE_COMM_SHM=0"; else ""
    std::string says;     // for people
};
// Returns the name of an effect: "nothing", "sets", …
const char *effect_name(ForeignVariable::Effect effect);
// Returns the variables of these libraries that are set and not empty, sorted by name.
std::vector<ForeignVariable> foreign_variables();

}  // namespace yoke

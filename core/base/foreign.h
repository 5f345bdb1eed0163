// foreign.h: variables of NCCL, Gloo and PyTorch, which job scripts set, and what they do here.
//
// Some decide a setting of ours where that is set by nobody: core/base/config asks the table for them. Others are read
// by NCCL itself. Every one has a text which says so, or why it does nothing. The table is core/base/foreign.def.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// A variable of the environment that decides a setting of ours.
struct ForeignSetting {
    const char *variable;
    const char *text;     // as it stands there
    const char *allowed;  // where that cannot be read: what can be; else null
    std::string value;    // what the setting becomes
};
// The first one of the table that says something of it.
std::optional<ForeignSetting> foreign_setting(std::string_view setting);

struct ForeignVariable {
    // The order is that of YOKE_VARIABLE_* in yoke/comm.h.
    enum Effect { kNothing, kSets, kOverruled, kAlways, kUnknown, kUnreadable, kPassed };
    std::string name, text;  // as it stands in the environment
    Effect effect = kUnknown;
    std::string setting;  // of ours that it decides, or would: "YOKE_COMM_SHM=0"; else ""
    std::string says;     // for people
};
// "nothing", "sets", …
const char *effect_name(ForeignVariable::Effect effect);
// All that are set, by their names.
std::vector<ForeignVariable> foreign_variables();

}  // namespace yoke

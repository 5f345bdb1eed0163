// Variables of NCCL, Gloo and PyTorch, and what each does here.
#include "yoke/comm.h"

#include "capi/src/guard.h"
#include "capi/src/structs.h"
#include "core/rendezvous/interfaces.h"

#include <vector>

using namespace yoke;
using namespace yoke::capi;

static thread_local std::vector<ForeignVariable> found_variables;

int32_t yoke_comm_variable_count(void)
{
    return guard_value("yoke_comm_variable_count", int32_t{0}, [] {
        found_variables = comm_variables();
        return static_cast<int32_t>(found_variables.size());
    });
}

yoke_status yoke_comm_variable_get(int32_t index, yoke_comm_variable *variable)
{
    constexpr const char *call = "yoke_comm_variable_get";
    return guard(call, [&] {
        need(variable, call, "variable");
        if (index < 0 || static_cast<size_t>(index) >= found_variables.size())
            fail(
                YOKE_E_INDEX,
                "%s: argument 'index' is %d; this thread's last comm_variable_count found %zu variables, counted from 0",
                short_name(call), index, found_variables.size());
        const ForeignVariable &found = found_variables[static_cast<size_t>(index)];
        yoke_comm_variable out{};
        out.effect = found.effect;
        out.name = found.name.c_str();
        out.value = found.text.c_str();
        out.setting = found.setting.c_str();
        out.text = found.says.c_str();
        out.word = effect_name(found.effect);
        write_struct(variable, out, call, "variable");
    });
}

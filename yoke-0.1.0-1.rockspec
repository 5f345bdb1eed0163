-- LuaRocks: builds the Lua module alone, against a libyoke that is installed (YOKE_DIR names its prefix).
rockspec_format = "3.0"
package = "yoke"
version = "0.1.0-1"
source = { url = "git+file://." }
description = {
    summary = "Drives any number of GPUs from Lua through one small library, libyoke",
    license = "MIT",
}
dependencies = { "lua >= 5.4, < 5.5" }
external_dependencies = {
    YOKE = { header = "yoke/yoke.h", library = "yoke" },
}
build = {
    type = "builtin",
    modules = {
        ["yoke"] = "bindings/lua/yoke/init.lua",
        ["yoke.backends"] = "bindings/lua/yoke/backends.lua",
        ["yoke.carried"] = "bindings/lua/yoke/carried.lua",
        ["yoke.checkpoint"] = "bindings/lua/yoke/checkpoint.lua",
        ["yoke.comm"] = "bindings/lua/yoke/comm.lua",
        ["yoke.data"] = "bindings/lua/yoke/data.lua",
        ["yoke.dtypes"] = "bindings/lua/yoke/dtypes.lua",
        ["yoke.format"] = "bindings/lua/yoke/format.lua",
        ["yoke.habits"] = "bindings/lua/yoke/habits.lua",
        ["yoke.manager"] = "bindings/lua/yoke/manager.lua",
        ["yoke.nn"] = "bindings/lua/yoke/nn/init.lua",
        ["yoke.nn.activation"] = "bindings/lua/yoke/nn/activation.lua",
        ["yoke.nn.attention"] = "bindings/lua/yoke/nn/attention.lua",
        ["yoke.nn.containers"] = "bindings/lua/yoke/nn/containers.lua",
        ["yoke.nn.layers"] = "bindings/lua/yoke/nn/layers.lua",
        ["yoke.nn.loss"] = "bindings/lua/yoke/nn/loss.lua",
        ["yoke.nn.module"] = "bindings/lua/yoke/nn/module.lua",
        ["yoke.nn.norm"] = "bindings/lua/yoke/nn/norm.lua",
        ["yoke.nn.conv"] = "bindings/lua/yoke/nn/conv.lua",
        ["yoke.nn.description"] = "bindings/lua/yoke/nn/description.lua",
        ["yoke.nn.schemes"] = "bindings/lua/yoke/nn/schemes.lua",
        ["yoke.optim"] = "bindings/lua/yoke/optim.lua",
        ["yoke.options"] = "bindings/lua/yoke/options.lua",
        ["yoke.own_card"] = "bindings/lua/yoke/own_card.lua",
        ["yoke.random"] = "bindings/lua/yoke/random.lua",
        ["yoke.select"] = "bindings/lua/yoke/select.lua",
        ["yoke.timer"] = "bindings/lua/yoke/timer.lua",
        ["yoke.parallel"] = "bindings/lua/yoke/parallel.lua",
        ["yoke.sampler"] = "bindings/lua/yoke/sampler.lua",
        ["yoke.scaler"] = "bindings/lua/yoke/scaler.lua",
        ["yoke.schedule"] = "bindings/lua/yoke/schedule.lua",
        ["yoke.spawn"] = "bindings/lua/yoke/spawn.lua",
        ["yoke.state"] = "bindings/lua/yoke/state.lua",
        ["yoke.tree"] = "bindings/lua/yoke/tree.lua",
        ["yoke.types"] = "bindings/lua/yoke/types.lua",
        ["yoke.core"] = {
            sources = {
                "bindings/lua/src/autograd.c", "bindings/lua/src/checkpoint.c", "bindings/lua/src/checkpoints.c", "bindings/lua/src/comm.c", "bindings/lua/src/comm_init.c",
                "bindings/lua/src/device.c",
                "bindings/lua/src/device_fields.c", "bindings/lua/src/doctor.c", "bindings/lua/src/graph.c", "bindings/lua/src/index.c",
                "bindings/lua/src/inventory.c", "bindings/lua/src/jobs.c", "bindings/lua/src/library.c", "bindings/lua/src/list.c",
                "bindings/lua/src/log.c", "bindings/lua/src/memory.c", "bindings/lua/src/modes.c",
                "bindings/lua/src/module.c", "bindings/lua/src/ops.c", "bindings/lua/src/optim.c", "bindings/lua/src/parallel.c", "bindings/lua/src/preempt.c", "bindings/lua/src/relief.c",
                "bindings/lua/src/runtime/arguments.c", "bindings/lua/src/runtime/class.c",
                "bindings/lua/src/runtime/error.c", "bindings/lua/src/runtime/flat.c", "bindings/lua/src/runtime/interrupt.c", "bindings/lua/src/runtime/other_names.c", "bindings/lua/src/runtime/poll.c", "bindings/lua/src/runtime/relief.c", "bindings/lua/src/runtime/scope.c", "bindings/lua/src/runtime/store.c",
                "bindings/lua/src/runtime/script.c", "bindings/lua/src/schedules.c",
                "bindings/lua/src/select.c", "bindings/lua/src/state.c", "bindings/lua/src/stream.c", "bindings/lua/src/tensor_fields.c",
                "bindings/lua/src/training.c", "bindings/lua/src/values/arg_type.c", "bindings/lua/src/values/convert.c",
                "bindings/lua/src/values/group.c", "bindings/lua/src/values/handles.c", "bindings/lua/src/values/op_call.c", "bindings/lua/src/values/pressure.c", "bindings/lua/src/values/shape.c",
                "bindings/lua/src/values/tensor.c",
            },
            incdirs = { ".", "$(YOKE_INCDIR)" },
            libdirs = { "$(YOKE_LIBDIR)" },
            libraries = { "yoke" },
        },
    },
    copy_directories = {},
}

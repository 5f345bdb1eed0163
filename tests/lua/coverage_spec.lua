-- Every function of the C API is bound in Lua, or stands here with the reason why it is not.
local yoke = require "yoke"

local NOT_BOUND = {
    yoke_group_empty = "yoke_group_empty_on is the same with a device",
    yoke_group_all_reduce = "yoke_group_all_reduce_in is the same with a dtype of the sum",
    yoke_alloc = "a raw pointer is of no use to a script; yoke.empty gives memory as a tensor",
    yoke_free = "goes with yoke_alloc",
    yoke_tensor_from_memory = "Lua has no memory of its own to share; yoke.frombuffer copies from a string",
    yoke_tensor_to_dlpack = "Lua has no DLPack capsule that would call the deleter; tobytes() copies",
    yoke_tensor_from_dlpack = "goes with yoke_tensor_to_dlpack; yoke.frombuffer copies",
    yoke_autocast_current = "a scope is the one owner of its region, and the coroutine's scopes tell which is in force",
    yoke_autocast_retain = "goes with yoke_autocast_current",
    yoke_checkpoint_retain = "each Lua scope is the one owner of its handle",
    yoke_graph_retain = "each Lua graph is the one owner of its handle",
    yoke_inventory_retain = "each Lua inventory is the one owner of its handle",
    yoke_path_label = "links carry their label",
    yoke_event_retain = "each Lua event is the one owner of its handle",
    yoke_doctor_record = "yoke_doctor_record_v2 is the same with a deadline",
    yoke_log_set_callback = "it is the host program's; a state's callback stands beside it",
    yoke_tensor_storage_offset = "for pickling, which Lua has not; slices and strides serve views",
    yoke_tensor_view_storage = "goes with yoke_tensor_storage_offset",
    yoke_optimizer_get_state = "yoke_optimizer_state gives all of it",
    yoke_optimizer_set_state = "yoke_optimizer_load_state takes all of it",
    yoke_optimizer_state_name = "yoke_optimizer_state has them",
    yoke_grad_scaler_set_state = "yoke_grad_scaler_load_state takes it",
    yoke_work_retain = "each Lua work is the one owner of its handle",
    yoke_group_retain = "each Lua group is the one owner of its handle",
    yoke_comm_init_threads = "a Lua state is for one thread: its ranks are processes",
    yoke_state_retain = "each Lua state is the one owner of its handle",
    yoke_state_set_none = "a new node is none",
    yoke_state_set = "tables are gone through entry by entry",
    yoke_state_get = "tables are gone through entry by entry",
    yoke_rng_state = "random.lua packs these 16 bytes, for Generators too",
    yoke_rng_load_state = "goes with yoke_rng_state",
    yoke_preempt_watch = "it is the host program's; a script's registrations stand beside it",
    yoke_preempted = "goes with yoke_preempt_watch",
    yoke_preempt_number = "yoke_preempt_add takes names",
    yoke_remove_garbage_collector = "the binding's stays as long as the process",
    yoke_grad = "yoke_grad_v2 is the same with unused inputs",
    yoke_get_detect_anomaly = "the coroutine's scopes tell which mode is in force",
    yoke_set_weak_zero_dim = "for scripts written for PyTorch, which are Python",
    yoke_set_default_dtype = "goes with yoke_set_weak_zero_dim",
    yoke_get_default_dtype = "goes with yoke_set_weak_zero_dim",
    yoke_schedule_apply = "schedules of Lua set the rates, by functions of scripts too",
}

local function read(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read "a"
    file:close()
    return text
end

local function sources()
    local parts = {}
    local pipe = assert(io.popen "ls bindings/lua/src/*.[ch] bindings/lua/src/*/*.[ch]")
    for path in pipe:lines() do parts[#parts + 1] = read(path) end
    pipe:close()
    return table.concat(parts)
end

describe("the C API", function()
    local text, ops = sources(), yoke.ops()
    local names = {}
    for name in read("capi/slots.txt"):gmatch "yoke_[%w_]+" do names[#names + 1] = name end

    it("is read from the list of its functions", function() assert.is_true(#names > 100) end)

    it("is called by the binding, function by function, or says why not", function()
        local missing = {}
        for _, name in ipairs(names) do
            -- A function of an op, with an op's scalar variants, is reached through yoke_op_invoke.
            local op = name:gsub("^yoke_", "")
            local is_op = ops[op] or ops[op:gsub("_scalar(_?)$", "%1")]
            local is_called = text:find(name .. "%f[^%w_]")
            if not is_op and not is_called and not NOT_BOUND[name] then missing[#missing + 1] = name end
            if is_called and NOT_BOUND[name] then missing[#missing + 1] = name .. " (bound after all)" end
        end
        assert.same({}, missing)
    end)

    it("has no reasons for functions that are gone", function()
        local known = {}
        for _, name in ipairs(names) do known[name] = true end
        for name in pairs(NOT_BOUND) do assert.is_true(known[name], name) end
    end)

    it("offers every op as a function, and as a method where its first argument is a tensor", function()
        local x <close> = yoke.zeros({ 1 })
        for name, op in pairs(ops) do
            assert.is_function(yoke[name], name)
            local first = op.signature:match "%(%w+: ([%w?]+)"
            if first == "tensor" or first == "mut" or first == "operand" then
                assert.equal(yoke[name] ~= nil, x[name] ~= nil, name)
            end
        end
    end)
end)

describe("the file for editors", function()
    it("describes every function of the module and every method and field of a tensor", function()
        local text = read "bindings/lua/yoke/meta.lua" .. read "bindings/lua/yoke/api.lua"
            .. read "bindings/lua/yoke/api_memory.lua" .. read "bindings/lua/yoke/api_streams.lua" .. read "bindings/lua/yoke/api_devices.lua"
            .. read "bindings/lua/yoke/api_state.lua" .. read "bindings/lua/yoke/api_habits.lua" .. read "bindings/lua/yoke/api_comm.lua"
            .. read "bindings/lua/yoke/dtypes.lua" .. read "bindings/lua/yoke/api_types.lua"
            .. read "bindings/lua/yoke/api_autograd.lua"
        local missing = {}
        for name, value in pairs(yoke) do
            local found = text:find("function yoke%." .. name .. "%f[^%w_]") or text:find("%-%-%-@field " .. name .. " ")
            if not found then missing[#missing + 1] = name end
        end
        for name in pairs(require "yoke.core".tensor_methods) do
            local found = text:find("function Tensor:" .. name .. "%f[^%w_]") or text:find("%-%-%-@field " .. name .. " ")
            if not found and name ~= "__format" then missing[#missing + 1] = "Tensor." .. name end
        end
        table.sort(missing)
        assert.same({}, missing)
    end)
end)

describe("the rockspec", function()
    it("names every source file and script", function()
        local spec = {}
        assert(load(read "yoke-0.1.0-1.rockspec", "rockspec", "t", spec))()
        local named = {}
        for _, path in ipairs(spec.build.modules["yoke.core"].sources) do named[path] = true end
        for _, module in pairs(spec.build.modules) do
            if type(module) == "string" then named[module] = true end
        end
        -- Files for editors only are not installed.
        for _, name in ipairs { "meta", "api", "api_memory", "api_streams", "api_devices", "api_state", "api_habits", "api_comm", "api_types", "api_autograd" } do
            named["bindings/lua/yoke/" .. name .. ".lua"] = true
        end
        local pipe = assert(io.popen "ls bindings/lua/src/*.c bindings/lua/src/*/*.c bindings/lua/yoke/*.lua bindings/lua/yoke/*/*.lua")
        for path in pipe:lines() do assert.is_true(named[path], path) end
        pipe:close()
    end)
end)

-- The run of tests/python/state_run.py, in Lua: the same steps, the same files.
--
--     state_run.lua begin OUT STEPS | go IN OUT STEPS | copy IN OUT | show IN
local yoke = require "yoke"
local optim = yoke.optim

-- ---- The run ------------------------------------------------------------------------------------------------------

local function make(seed)
    yoke.manual_seed(seed)
    local run = { x = yoke.rand { 4 }:requires_grad_(), y = yoke.rand { 2, 3 }:requires_grad_() }
    run.optimizer = optim.AdamW({ { params = { run.x } }, { params = { run.y }, lr = 0.25 } }, { lr = 0.125, weight_decay = 0.5 })
    run.scaler = yoke.GradScaler { init_scale = 8.0, growth_interval = 2 }
    run.ema = optim.EMA({ run.x, run.y }, { decay = 0.75 })
    run.schedule = optim.schedule.cosine(run.optimizer, 10, { min_lr = 0.0625, warmup_steps = 2 })
    run.plain = {
        none = yoke.none, ["true"] = true, ["false"] = false, most = math.maxinteger, least = math.mininteger, three = 3,
        ["three.0"] = 3.0, ["-0.0"] = -0.0, nan = string.unpack(">d", "\x7f\xf8\0\0\0\0\0\0"), inf = math.huge, ["-inf"] = -math.huge,
        tiny = 5e-324, text = "ü\n\"\\$", [""] = "", list = { 1, { 2.5, yoke.list {} }, yoke.none }, empty = {},
        keys = { [5] = "five", [-1] = "one", ["5"] = "text", ["a/b~c.d"] = {} }, ["one to two"] = yoke.dict { "a", "b" },
        ["$dict"] = { { ["$"] = 1 } }, half = yoke.tensor(1.5, { dtype = "bfloat16" }), nothing = yoke.zeros({ 0, 3 }, { dtype = "int64" }),
    }
    return run
end

local function go_on(run, steps)
    for _ = 1, steps do
        local product = run.x * yoke.rand { 4 }
        local loss = (product * product):sum() + (run.y * run.y):sum()
        run.optimizer:zero_grad()
        run.scaler:scale(loss):backward()
        run.scaler:step(run.optimizer)
        run.scaler:update()
        run.schedule:step()
        run.ema:update()
    end
end

local function save(run, path)
    assert(yoke.save(path, {
        x = run.x, again = { run.x }, y = run.y, optimizer = run.optimizer, scaler = run.scaler, ema = run.ema,
        schedule = run.schedule, rng = yoke.get_rng_state(), plain = run.plain,
    }))
end

local function load(run, path)
    local state = assert(yoke.load(path))
    assert(rawequal(state.again[1], state.x))
    local _ <close> = yoke.no_grad()
    run.x:copy_(state.x)
    run.y:copy_(state.y)
    for _, name in ipairs { "optimizer", "scaler", "ema", "schedule" } do run[name]:load_state_dict(state[name]) end
    yoke.set_rng_state(state.rng)
    run.plain = state.plain
end

-- ---- Content of a file --------------------------------------------------------------------------------------------

local function hex(bytes) return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end

local function scalar(value)
    if type(value) == "boolean" then return "bool " .. (value and 1 or 0) end
    if math.type(value) == "integer" then return ("int %d"):format(value) end
    if math.type(value) == "float" then return "float " .. hex(string.pack(">d", value)) end
    return "string " .. hex(value)
end

local function kind_of(value)
    if value == yoke.none then return "none" end
    if type(value) == "userdata" then return "tensor" end
    if type(value) ~= "table" then return "scalar" end
    local mark = getmetatable(value)
    if mark then return mark.__name:match "%.(%a+)$" end
    return #value > 0 and "list" or "dict"
end

local function sorted(dict)
    local keys = {}
    for key in pairs(dict) do keys[#keys + 1] = key end
    table.sort(keys, function(a, b)
        if type(a) ~= type(b) then return type(a) == "number" end
        return a < b
    end)
    return keys
end

local function show(value, path, tensors)
    local kind = kind_of(value)
    if kind == "none" then
        print(path .. " none")
    elseif kind == "tensor" then
        if not tensors[value] then
            tensors[value], tensors.count = tensors.count, tensors.count + 1
        end
        local shape = table.concat(value.shape, " ")
        print(("%s tensor %d %s %s %s"):format(path, tensors[value], value.dtype, shape, hex(value:tobytes())))
    elseif kind == "list" or kind == "tuple" then
        print(("%s %s %d"):format(path, kind, #value))
        for i, each in ipairs(value) do show(each, ("%s/%d"):format(path, i - 1), tensors) end
    elseif kind == "dict" then
        local keys = sorted(value)
        print(("%s dict %d"):format(path, #keys))
        for _, key in ipairs(keys) do show(value[key], path .. "/" .. scalar(key), tensors) end
    else
        print(path .. " " .. scalar(value))
    end
end

local mode = arg[1]
if mode == "show" then
    show(assert(yoke.load(arg[2])), "", { count = 0 })
elseif mode == "copy" then
    assert(yoke.save(arg[3], assert(yoke.load(arg[2]))))
else
    local run = make(mode == "begin" and 5 or 99)
    if mode == "go" then load(run, arg[2]) end
    go_on(run, tonumber(arg[#arg]))
    save(run, arg[#arg - 1])
end

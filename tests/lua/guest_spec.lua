-- Acts of a careless or hostile script against the binding: takes metatables apart, calls finalizers by hand, passes
-- strings with a NUL, and builds modules that hold themselves. The script gets errors; the host program goes on.
local yoke = require "yoke"
local core = require "yoke.core"
local nn = yoke.nn
local support = dofile "tests/lua/support.lua"
local it = support.leak_free(it)
local fails = support.fails

-- Returns an object of each class that scripts can hold.
local function objects()
    local parameter = yoke.zeros({ 2 }):requires_grad_()
    local optimizer = core.optimizer("SGD", { lr = 0.1 })
    optimizer:add_group({ parameter }, { lr = 0.1 })
    return {
        tensor = parameter,
        device = yoke.device "cpu",
        stream = yoke.current_stream(),
        event = yoke.Event(),
        graph = yoke.Graph(),
        optimizer = optimizer,
        scaler = core.grad_scaler { scale = 2, growth_factor = 2, backoff_factor = 0.5, growth_interval = 2 },
        ema = core.ema({ parameter }, 0.9),
        no_grad = yoke.no_grad(),
        autocast = yoke.autocast(),
        topology = yoke.topology(),
    }
end

-- Scopes that objects() opened would hold for the tests behind.
local function close(all)
    for _, name in ipairs { "autocast", "no_grad" } do all[name]:close() end
    all.tensor:close()
end

describe("a guest", function()
    it("protects the metatable of every class", function()
        local all = objects()
        all.error = select(2, pcall(yoke.add))
        for name, object in pairs(all) do
            local seen = getmetatable(object)
            if type(seen) ~= "string" then error(name .. " shows a " .. type(seen) .. " for its metatable", 0) end
        end
        close(all)
    end)

    it("checks what metamethods and methods are given", function()
        local all = objects()
        local others = { 7, "text", {}, print, io.stdout, coroutine.create(print), false }
        for class, object in pairs(all) do
            local metatable = debug.getmetatable(object)
            local functions = {}
            for _, place in ipairs { metatable, type(metatable.__index) == "table" and metatable.__index or {} } do
                for name, value in pairs(place) do
                    if type(value) == "function" then functions[name] = value end
                end
            end
            for _, fn in pairs(functions) do
                pcall(fn)
                for i = 1, #others do pcall(fn, others[i], others[i], others[i]) end
                for other, value in pairs(all) do
                    if other ~= class and class ~= "topology" and not (class == "no_grad" or class == "autocast") then
                        pcall(fn, value)
                    end
                end
            end
        end
        close(all)
    end)

    it("lets finalizers run twice, and refuses what they left behind", function()
        local all = objects()
        local names = { "autocast", "no_grad", "ema", "scaler", "optimizer", "graph", "event", "stream", "tensor" }
        for _, name in ipairs(names) do
            local finalize = debug.getmetatable(all[name]).__gc
            finalize(all[name])
            finalize(all[name])
        end
        fails("closed", "closed", yoke.neg, all.tensor)
        fails("closed", "closed", all.event.query, all.event)
        fails("closed", "closed", all.optimizer.step, all.optimizer)
        fails("closed", "closed", all.graph.replay, all.graph)
        assert.is_true(yoke.is_grad_enabled())
        assert.is_false(yoke.is_autocast_enabled())
    end)

    it("finds a device again whose userdata was finalized by hand", function()
        local device = yoke.device "cpu"
        debug.getmetatable(device).__gc(device)
        assert.are.equal("cpu", yoke.device("cpu").kind)
    end)

    it("keeps the list of scopes whole where one lost its finalizer", function()
        coroutine.wrap(function() -- the scopes stay with this coroutine for good
            for _ = 1, 100 do debug.setmetatable(yoke.no_grad(), nil) end
            collectgarbage()
            collectgarbage()
            assert.is_false(yoke.is_grad_enabled())
            local _ <close> = yoke.enable_grad()
            assert.is_true(yoke.is_grad_enabled())
        end)()
        assert.is_true(yoke.is_grad_enabled())
    end)

    it("shows strings that hold a NUL instead of cutting them", function()
        local x = yoke.zeros({ 2 })
        local cases = {
            { yoke.device, "cpu\0x" }, { yoke.zeros, { 2 }, "float32\0x" }, { yoke.zeros, { 2 }, { dtype = "float32\0x" } },
            { yoke.zeros, { 2 }, { device = "cpu\0x" } }, { yoke.read_idx, "/tmp/x\0y" }, { yoke.config_get, "YOKE_LOG\0x" },
            { yoke.config_set, "YOKE_LOG", "warn\0x" }, { yoke.doctor_record, "/tmp/x\0y" }, { yoke.explain, "auto\0x" },
            { yoke.is_available, "cpu\0x" }, { x.to, x, "float16\0x" }, { x.to, x, { ["dtype\0x"] = "float16" } },
            { yoke.softmax, x, { ["axis\0x"] = 0 } }, { yoke.autocast, { ["enabled\0x"] = true } }, { yoke.autocast, "float16\0x" },
            { yoke.doctor, { ["probe\0x"] = true } }, { yoke.tensor, { 1 }, { ["dtype\0x"] = "float32" } },
            { function() return x["shape\0x"] end }, { function() x["grad\0x"] = nil end },
            { function() return yoke.device("cpu")["kind\0x"] end },
            { function() return yoke.current_stream()["handle\0x"] end },
            { x.backward, x, { ["retain_graph\0x"] = true } }, { yoke.select, { ["min_free\0x"] = "1B" } },
        }
        for i, case in ipairs(cases) do
            if case[1] then
                local ok, err = pcall(table.unpack(case))
                if ok then error("case " .. i .. " was taken", 0) end
                if not tostring(err):find("\\0", 1, true) and not tostring(err):find("\0", 1, true) then
                    error("case " .. i .. " does not show the string: " .. tostring(err), 0)
                end
            end
        end
    end)
end)

describe("modes of overlapping coroutines", function()
    -- Runs two coroutines. Each opens a scope; the coroutine that began first ends first.
    local function overlap(open, ask)
        local seen = {}
        local function body(name)
            return coroutine.wrap(function()
                local _ <close> = open()
                coroutine.yield()
                seen[name] = ask()
            end)
        end
        local a, b = body "a", body "b"
        a() b()
        seen.between = ask()
        a()
        seen.after_a = ask()
        b()
        seen.after_b = ask()
        return seen
    end

    it("belong to each of them", function()
        local grad = overlap(yoke.no_grad, yoke.is_grad_enabled)
        assert.are.same({ a = false, b = false, between = true, after_a = true, after_b = true }, grad)
        local cast = overlap(yoke.autocast, yoke.is_autocast_enabled)
        assert.are.same({ a = true, b = true, between = false, after_a = false, after_b = false }, cast)
    end)

    it("end in any order within one", function()
        local first, second = yoke.no_grad(), yoke.enable_grad()
        first:close()
        assert.is_true(yoke.is_grad_enabled())
        second:close()
        assert.is_true(yoke.is_grad_enabled())
        first, second = yoke.no_grad(), yoke.no_grad()
        first:close()
        assert.is_false(yoke.is_grad_enabled())
        second:close()
        assert.is_true(yoke.is_grad_enabled())
    end)
end)

describe("a module that holds itself", function()
    local function cycle()
        local net, child = nn.Sequential(nn.Linear(2, 2)), nn.Sequential()
        net.child, child.parent = child, net
        return net
    end

    it("is walked once", function()
        local net = cycle()
        assert.are.equal(2, #net:parameters())
        local names, applied = {}, 0
        for name in net:named_modules() do names[#names + 1] = name end
        assert.are.same({ "0", "child" }, names)
        net:eval()
        assert.is_false(net.child.training)
        net:train():requires_grad_(false):to "float64"
        assert.are.equal("float64", net[0].weight.dtype)
        net:zero_grad()
        assert.is_truthy(tostring(net):find("Sequential", 1, true))
        net:apply(function() applied = applied + 1 end)
        assert.are.equal(3, applied)
        net:close()
    end)

    it("stands under two names where it is shared, and is entered once however often that is", function()
        local shared = nn.Linear(2, 2)
        local net = nn.Sequential(shared, shared)
        local names = {}
        for name in pairs(net:state_dict()) do names[#names + 1] = name end
        table.sort(names)
        assert.are.same({ "0.bias", "0.weight", "1.bias", "1.weight" }, names)
        for _ = 1, 60 do net = nn.Sequential(net, net) end -- 2^60 paths lead to a layer
        assert.are.equal(2, #net:parameters())
        net:eval():to "float64"
        assert.are.equal("float64", shared.weight.dtype)
        net:close()
    end)

    it("has no state_dict", function()
        local net = cycle()
        fails("value", { "state_dict", "child.parent" }, net.state_dict, net)
        fails("value", { "load_state_dict", "child.parent" }, net.load_state_dict, net, {})
        local own = nn.Sequential()
        own.me = own
        fails("value", "'me'", own.state_dict, own)
        net:close()
    end)
end)

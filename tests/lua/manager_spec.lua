-- yoke.CheckpointManager: kept and loaded checkpoints, effects and refusals of `into`, and errors about damaged
-- files.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails
local nn, optim = yoke.nn, yoke.optim

-- Calls `body` with a new folder and removes the folder afterwards.
local function in_folder(body)
    local path = os.tmpname()
    os.remove(path)
    local fine, problem = pcall(body, path)
    os.execute(("rm -rf '%s'"):format(path))
    if not fine then error(problem, 0) end
end

local function training(width, kind)
    local net = nn.Sequential(nn.Linear(4, width or 3), nn.Linear(width or 3, 2))
    local optimizer = optim[kind or "AdamW"](net:parameters(), { lr = 0.1 })
    local self = {
        net = net, optimizer = optimizer, schedule = optim.schedule.cosine(optimizer, 50),
        scaler = yoke.GradScaler { init_scale = 64, growth_interval = 2 }, ema = optim.EMA(net:parameters(), { decay = 0.9 }),
        mean = yoke.zeros { 2 },
    }
    local stream = yoke.Generator(nil, 3)
    local function with(more)
        local parts = { stream = more }
        for name, part in pairs(self) do parts[name] = part end
        return parts
    end
    return {
        parts = self, stream = stream,
        state = function() return with(stream:get_state()) end,
        into = function() return with(stream) end,
        step = function()
            local x <close> = yoke.ones { 2, 4 }
            self.scaler:scale(net(x):sum()):backward()
            self.scaler:step(optimizer)
            self.scaler:update()
            self.schedule:step()
            self.ema:update()
            optimizer:zero_grad()
        end,
    }
end

local function plain(value)
    if yoke.is_tensor(value) then return value:tolist() end
    if type(value) == "table" and value.state_dict then return plain(value:state_dict()) end
    if type(value) ~= "table" then return value end
    local copy = {}
    for key, each in pairs(value) do copy[key] = plain(each) end
    return copy
end

describe("a checkpoint manager", function()
    it("keeps the newest, and a training goes on from them", function()
        in_folder(function(folder)
            local manager <close> = yoke.CheckpointManager(folder, { keep = 2 })
            assert.is_nil(manager:latest())
            assert.same({}, manager:steps())
            local run = training()
            for _, step in ipairs { 7, 9, 8 } do
                run.step()
                local state = run.state()
                state.step = step
                assert.is_true(assert(manager:save(step, state, { metadata = { who = "me" } })):wait())
            end
            assert.same({ 9, 8 }, manager:steps())
            assert.equal(8, manager:latest())
            local at = plain(run.state())
            run.step()
            local after, other = plain(run.state()), training()
            local state = assert(manager:load { into = other.into() })
            assert.equal(8, state.step)
            assert.same(at, plain(other.state()))
            other.step()
            assert.same(after, plain(other.state()))
            assert.equal(9, assert(manager:load { step = 9, verify = false }).step)
            assert.equal("me", assert(yoke.load_info(folder .. "/step-8/state.safetensors")).metadata.who)
        end)
    end)

    it("changes nothing unless all of it fits", function()
        in_folder(function(folder)
            local manager <close> = yoke.CheckpointManager(folder)
            local run, other = training(), training(5, "SGD")
            run.step()
            assert(manager:save(1, run.state(), { blocking = true }))
            local before, into = plain(other.state()), other.into()
            into.more = yoke.ones { 1 }
            fails("value", { "no tensor was changed",
                "'net/0.weight' is a float32 tensor of shape [3, 4] in the state, but goes into a float32 tensor of shape [5, 4]",
                "'net/1.weight'", "'more' is missing", "'optimizer': ", "no option 'momentum'", "'ema': " },
                manager.load, manager, { into = into })
            assert.same(before, plain(other.state()))
            for _, wrong in ipairs { 3, { net = 3 }, { net = {} } } do
                fails("type", "into", manager.load, manager, { into = wrong })
            end
        end)
    end)

    it("passes over what is damaged and says what it found", function()
        in_folder(function(folder)
            local manager <close> = yoke.CheckpointManager(folder)
            for step = 1, 2 do assert(manager:save(step, { value = step }, { blocking = true })) end
            assert(io.open(folder .. "/step-2/MANIFEST.json", "w")):close()
            local said = {}
            yoke.set_log_callback(function(_, message) said[#said + 1] = message end)
            assert.equal(1, assert(manager:load()).value)
            yoke.poll()
            yoke.set_log_callback(nil)
            assert.equal(1, #said)
            assert.truthy(said[1]:find("step-1, and skips", 1, true) and said[1]:find("step-2/MANIFEST.json", 1, true))
            local none, problem = manager:load { step = 2 }
            assert.is_nil(none)
            assert.equal("checkpoint", problem.code)
            assert.truthy(problem.message:find("step 2 is not complete", 1, true))
            none, problem = manager:load { step = 5 }
            assert.truthy(not none and problem.message:find("there is no step 5", 1, true))
        end)
    end)

    it("writes alone, until it is closed", function()
        in_folder(function(folder)
            local first, second = yoke.CheckpointManager(folder), yoke.CheckpointManager(folder)
            assert(first:save(1, { value = 1 }, { blocking = true }))
            local none, problem = second:save(2, {})
            assert.is_nil(none)
            assert.equal("state", problem.code)
            assert.truthy(problem.message:find("(this one)", 1, true))
            first:close()
            assert(second:save(2, {}, { blocking = true }))
            assert.same({ 1, 2 }, second:steps())
            second:close()
            fails("closed", "closed", second.latest, second)
        end)
    end)

    it("goes on from no older step where the system refuses to read the newest", function()
        in_folder(function(folder)
            local manager <close> = yoke.CheckpointManager(folder)
            for step = 1, 2 do assert(manager:save(step, { value = step }, { blocking = true })) end
            local held = {}
            repeat
                local file = io.open "/dev/null"
                held[#held + 1] = file
            until not file or #held == 100000
            local none, problem = manager:load()
            local latest, other = manager:latest()
            for _, file in ipairs(held) do file:close() end
            if #held == 100000 then return end -- the limit is above the files that this test opens
            assert.is_nil(none)
            assert.equal("io", problem.code)
            assert.truthy(problem.message:find("Too many open files", 1, true))
            assert.is_nil(latest)
            assert.equal("io", other.code)
            assert.same({ value = 2 }, manager:load())
        end)
    end)

    it("refuses by name what it cannot take", function()
        in_folder(function(folder)
            fails("value", "'keep' is 0", yoke.CheckpointManager, folder, { keep = 0 })
            fails("value", "'folder' is empty", yoke.CheckpointManager, "")
            fails("value", "keeep", yoke.CheckpointManager, folder, { keeep = 1 })
            local manager <close> = yoke.CheckpointManager(folder)
            fails("value", "'step' is -1", manager.save, manager, -1, {})
            fails("type", "state", manager.save, manager, 1, { x = print })
            fails("value", "'step' is -1", manager.load, manager, { step = -1 })
            for _, truth in ipairs { true, false } do
                fails("type", { "'keep'", "a boolean" }, yoke.CheckpointManager, folder, { keep = truth })
                fails("type", { "'step'", "a boolean" }, manager.save, manager, truth, {})
                fails("type", { "'step'", "a boolean" }, manager.load, manager, { step = truth })
            end
            local none, problem = manager:load()
            assert.truthy(not none and problem.message:find("no step in", 1, true))
            assert.equal(2, problem.native_code)
        end)
    end)

    it("is named where its folder is loaded as a state", function()
        in_folder(function(folder)
            local manager <close> = yoke.CheckpointManager(folder)
            assert(manager:save(4, {}, { blocking = true }))
            for _, load in ipairs { yoke.load, yoke.load_info } do
                local none, problem = load(folder)
                assert.is_nil(none)
                assert.equal("checkpoint", problem.code)
                assert.equal(22, problem.native_code)
                assert.truthy(problem.message:find(("CheckpointManager('%s').load()"):format(folder), 1, true), problem.message)
            end
        end)
    end)

    it("and what it saves and loads fail where the script is that asked", function()
        in_folder(function(folder)
            local manager <close> = yoke.CheckpointManager(folder)
            local file = folder .. ".none/file"
            local calls = {
                function() yoke.save(file, { a = print }) end, function() yoke.save(file, {}, { blokking = true }) end,
                function() yoke.save(3, {}) end, function() assert(yoke.save(file, {})) end,
                function() yoke.load(file, { names = 3 }) end, function() yoke.load(file, 3) end,
                function() assert(yoke.load(file)) end, function() assert(yoke.load(file, { names = function() end })) end,
                function() assert(yoke.load_info(file)) end, function() yoke.list(3) end,
                function() yoke.CheckpointManager(folder, { keep = 0 }) end, function() yoke.CheckpointManager(3, { k = 0 }) end,
                function() manager:save(-1, {}) end, function() manager:save(1, { a = print }) end,
                function() manager:load { into = 3 } end, function() assert(manager:load()) end,
                function() yoke.Generator(nil, "x") end, function() yoke.data.read_idx() end,
                function() yoke.checkpoint(3) end, function() yoke.Timer(3) end,
            }
            for i, call in ipairs(calls) do
                local fine, problem = pcall(call)
                assert.is_false(fine, i)
                local line = debug.getinfo(call, "S").linedefined
                local shown = tostring(problem)
                assert.truthy(shown:find(("manager_spec.lua:%d: "):format(line), 1, true), i .. ": " .. shown)
            end
        end)
    end)
end)

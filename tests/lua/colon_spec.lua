-- A method called without ':' raises an error that says so and has the caller's line.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails

-- Checks that `call` raises for its missing ':', by the name `method`, at its own line.
local function refused(method, call)
    local err = fails("type", { method, "called without ':'", "'self'" }, call)
    local line = debug.getinfo(call, "S").linedefined
    assert(err.where:find(("colon_spec.lua:%d: "):format(line), 1, true), method .. ": " .. err.where)
    return err
end

describe("a call without ':'", function()
    it("is named for what trains", function()
        local x <close> = yoke.tensor({ 1., 2. }, { requires_grad = true })
        local optimizer <close> = yoke.optim.SGD({ x }, { lr = 1 })
        local schedule = yoke.optim.schedule.step(optimizer, 2)
        local ema <close> = yoke.optim.EMA({ x })
        local scaler <close> = yoke.GradScaler()
        local err = refused("optimizer:step", function() optimizer.step() end)
        assert.equal("optimizer:step: called without ':', so argument 'self' is nil; write optimizer:step(...)", err.message)
        refused("optimizer:set_lr", function() optimizer.set_lr(0.1) end)
        refused("optimizer:zero_grad", function() optimizer.zero_grad { set_to_none = false } end)
        refused("schedule:step", function() schedule.step() end)
        refused("ema:update", function() ema.update() end)
        refused("scaler:scale", function() scaler.scale(x) end)
        refused("scaler:step", function() scaler.step(optimizer) end)
    end)

    it("is named for modules, samplers and generators", function()
        local net = yoke.nn.Sequential(yoke.nn.Linear(2, 2))
        refused("module:parameters", function() net.parameters() end)
        refused("module:train", function() net.train(false) end)
        refused("module:to", function() net.to "cpu" end)
        assert.equal(net, yoke.nn.Module.train(net))
        net:close()
        local sampler <close> = yoke.data.DistributedSampler(4, { rank = 0, world_size = 1 })
        local generator = yoke.Generator("cpu", 3)
        refused("sampler:set_epoch", function() sampler.set_epoch(1) end)
        refused("generator:manual_seed", function() generator.manual_seed(1) end)
    end)

    it("is named for tensors, devices and streams", function()
        local x <close> = yoke.zeros(2)
        for _, name in ipairs { "cpu", "detach", "item", "tolist", "tobytes", "backward", "half", "size", "pin_memory" } do
            refused(name, function() x[name]() end)
        end
        refused("to", function() x.to "cpu" end)
        refused("to_", function() x.to_ { dtype = "float16" } end)
        refused("copy_from_string", function() x.copy_from_string "12345678" end)
        refused("sample", function() x.device.sample() end)
        local event <close> = yoke.Event()
        refused("record", function() event.record() end)
    end)

    it("is named for what is closed or removed", function()
        local event <close> = yoke.Event()
        refused("close", function() event.close() end)
        local scope <close> = yoke.no_grad()
        refused("close", function() scope.close() end)
        local handle <close> = yoke.on_out_of_memory(function() end)
        local err = refused("remove", function() handle.remove() end)
        assert.equal("remove: called without ':', so argument 'self' is missing; write handle:remove(...)", err.message)
        local preemption <close> = yoke.on_preempt(function() end)
        for _, name in ipairs { "hold", "release", "remove" } do refused(name, function() preemption[name](3) end) end
    end)

    it("is not confused with a wrong argument", function()
        local x <close> = yoke.zeros(2)
        fails("value", "0 arguments", x.to, x)
        fails("type", "'bytes'", x.copy_from_string, x)
    end)
end)

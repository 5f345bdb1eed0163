-- States that load_state_dict refuses: the error has the name, and the optimizer stays unchanged.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails
local optim = yoke.optim

local function parameter() return yoke.tensor({ 1., 2. }, { requires_grad = true }) end

local function stepped(kind, options)
    local x, y = parameter(), parameter()
    local optimizer = optim[kind]({ x, y }, options)
    x.grad = yoke.ones { 2 }
    optimizer:step()
    return optimizer
end

local function values(dict)
    local list = {}
    for number, entry in pairs(dict.state) do
        list[number] = {}
        for name, value in pairs(entry) do list[number][name] = value:tolist() end
    end
    return { list, dict.param_groups }
end

local function refused(optimizer, state, words, code)
    local before = values(optimizer:state_dict())
    fails(code or "value", "load_state_dict", optimizer.load_state_dict, optimizer, state)
    fails(code or "value", words, optimizer.load_state_dict, optimizer, state)
    assert.same(before, values(optimizer:state_dict()))
end

describe("load_state_dict of an optimizer", function()
    local function change(entry, value, words, code)
        local optimizer <close> = stepped("AdamW", { lr = 0.5 })
        local state = optimizer:state_dict()
        state.state[0][entry] = value
        state.param_groups[1].lr = 9
        refused(optimizer, state, words, code)
    end

    it("refuses a state that lacks something, has too much, or counts what no step counts", function()
        for _, name in ipairs { "exp_avg", "exp_avg_sq", "step" } do
            change(name, nil, { "parameter 0 of group 0", "has no '" .. name .. "'", "exp_avg, exp_avg_sq, step" })
        end
        for _, steps in ipairs { -1., 1.5, 0 / 0, 1 / 0 } do
            change("step", yoke.tensor(steps), { '"step" of parameter 0 of group 0', "AdamW", "finite whole number of at least 0" })
        end
        change("foo", yoke.ones { 2 }, { "parameter 0 of group 0", "'foo'", "AdamW has no such state" })
        change("exp_avg", 3, { "'exp_avg' of state[0], of parameter 0 of group 0", "3" }, "type")
        change("exp_avg", yoke.ones { 3 }, { '"exp_avg" of parameter 0 of group 0', "[3]" })
    end)

    it("refuses the options and states of another kind", function()
        local adamw <close> = stepped("AdamW", { lr = 0.5 })
        local sgd <close> = stepped("SGD", { lr = 0.5, momentum = 0.9 })
        refused(adamw, sgd:state_dict(), "no option 'betas'")
        refused(sgd, adamw:state_dict(), "no option 'momentum'")
        local state = adamw:state_dict()
        state.param_groups[1].amsgrad = true
        refused(adamw, state, { "group 0", "'amsgrad', true", "AdamW has no such option" })
        state.param_groups[1].amsgrad = false
        adamw:load_state_dict(state)
        local masters <close> = stepped("SGD", { lr = 0.5, momentum = 0.9 })
        state = masters:state_dict()
        state.state[0].momentum_buffer = nil -- the buffer begins with the next step
        masters:load_state_dict(state)
    end)

    it("refuses a state without its master", function()
        local x = yoke.tensor({ 1. }, { dtype = "float16", requires_grad = true })
        local optimizer <close> = optim.SGD({ x }, { lr = 0.5, momentum = 0.9, master_weights = true })
        x.grad = yoke.ones({ 1 }, { dtype = "float16" })
        optimizer:step()
        local state = optimizer:state_dict()
        state.state[0].master = nil
        refused(optimizer, state, { "parameter 0 of group 0", "has no 'master'" })
    end)

    it("names what is no state at all", function()
        local optimizer <close> = stepped("AdamW")
        refused(optimizer, nil, "'state_dict' is none", "type")
        refused(optimizer, {}, { "'param_groups' is missing", "param_groups, state" })
        refused(optimizer, { param_groups = 3, state = {} }, "'param_groups' is 3", "type")
        refused(optimizer, { param_groups = {}, state = {} }, { "groups of []", "of [2]" })
        local state = optimizer:state_dict()
        refused(optimizer, { param_groups = { 3 }, state = state.state }, "group 0 of the state is 3", "type")
        refused(optimizer, { param_groups = state.param_groups, state = { [0] = 3 } }, "state[0], of parameter 0 of group 0, is 3", "type")
        refused(optimizer, { param_groups = state.param_groups, state = { [2] = {} } }, { "parameter 2", "there are 2" })
    end)
end)

-- What load_state_dict refuses, by name and with nothing changed.
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
    for i, entry in ipairs(dict.state) do
        list[i] = {}
        for name, value in pairs(entry) do list[i][name] = value:tolist() end
    end
    return { list, dict.groups }
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
        state.state[1][entry] = value
        state.groups[1].lr = 9
        refused(optimizer, state, words, code)
    end

    it("refuses a state that lacks something, has too much, or counts what no step counts", function()
        for _, name in ipairs { "exp_avg", "exp_avg_sq", "step" } do
            change(name, nil, { "parameter 0 of group 0", "without '" .. name .. "'", "exp_avg, exp_avg_sq, step" })
        end
        for _, steps in ipairs { -1., 1.5, 0 / 0, 1 / 0 } do
            change("step", yoke.tensor(steps), { '"step" of parameter 0 of group 0', "AdamW", "finite whole number of at least 0" })
        end
        change("foo", yoke.ones { 2 }, { "parameter 0 of group 0", "'foo'", "AdamW lacks" })
        change("exp_avg", 3, { "'exp_avg' of parameter 0 of group 0", "3" }, "type")
        change("exp_avg", yoke.ones { 3 }, { '"exp_avg" of parameter 0 of group 0', "[3]" })
    end)

    it("refuses the options and states of another kind", function()
        local adamw <close> = stepped("AdamW", { lr = 0.5 })
        local sgd <close> = stepped("SGD", { lr = 0.5, momentum = 0.9 })
        refused(adamw, sgd:state_dict(), "'betas' is missing")
        refused(sgd, adamw:state_dict(), "'momentum' is missing")
        local state = adamw:state_dict()
        state.groups[1].amsgrad = true
        refused(adamw, state, { "group 0", "'amsgrad'", "AdamW lacks" })
        state.groups[1].amsgrad = false
        adamw:load_state_dict(state)
        local masters <close> = stepped("SGD", { lr = 0.5, momentum = 0.9 })
        state = masters:state_dict()
        state.state[1].momentum = nil -- it begins with the next step
        masters:load_state_dict(state)
    end)

    it("refuses a state without its master", function()
        local x = yoke.tensor({ 1. }, { dtype = "float16", requires_grad = true })
        local optimizer <close> = optim.SGD({ x }, { lr = 0.5, momentum = 0.9, master_weights = true })
        x.grad = yoke.ones({ 1 }, { dtype = "float16" })
        optimizer:step()
        local state = optimizer:state_dict()
        state.state[1].master = nil
        refused(optimizer, state, { "parameter 0 of group 0", "without 'master'" })
    end)

    it("names what is no state at all", function()
        local optimizer <close> = stepped("AdamW")
        refused(optimizer, nil, "'dict' is a nil", "type")
        refused(optimizer, {}, { "'groups' is missing", "groups, state" })
        refused(optimizer, { groups = 3, state = {} }, "'groups' is 3", "type")
        refused(optimizer, { groups = {}, state = {} }, "0 groups")
        local state = optimizer:state_dict()
        refused(optimizer, { groups = { 3 }, state = state.state }, "'groups[1]' is 3", "type")
        refused(optimizer, { groups = state.groups, state = { {}, 3 } }, "'state[2]' is 3", "type")
    end)
end)

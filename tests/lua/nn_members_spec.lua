-- Members of modules by name, and containers by key.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails
local nn = yoke.nn

local function names(iterator)
    local list = {}
    for name in iterator do list[#list + 1] = name end
    return list
end

describe("members of modules", function()
    it("are found by dotted names", function()
        local net = nn.Sequential(nn.Sequential(nn.Linear(2, 3)), nn.BatchNorm1d(3))
        assert.equal(net, net:get_submodule "")
        assert.equal(net[0][0], net:get_submodule "0.0")
        assert.equal(net[0][0].weight, net:get_parameter "0.0.weight")
        assert.equal(net[1].running_mean, net:get_buffer "1.running_mean")
        fails("value", { "get_submodule: ", "argument 'target' is '0.tail', but Sequential has no module 'tail'; there are 0" }, net.get_submodule, net, "0.tail")
        fails("value", "Linear has no parameter 'wieght'; did you mean 'weight'?", net.get_parameter, net, "0.0.wieght")
        fails("value", "Sequential has no buffer 'x'; there is none", net.get_buffer, net, "x")
        fails("type", "argument 'target' is 3; it takes a string", net.get_parameter, net, 3)
        assert.same({ "0", "1" }, names(net:named_children()))
    end)

    it("are added by name", function()
        local net = nn.Linear(1, 1)
        net:add_module("act", nn.ReLU())
        net:register_module("more", nn.Tanh())
        assert.same({ "act", "more" }, names(net:children()))
        fails("value", { "add_module", "'weight' is a parameter of this module" }, net.add_module, net, "weight", nn.ReLU())
        fails("value", "argument 'name' is 'a.b'; a name that is not empty and has no dot is needed", net.add_module, net, "a.b", nn.ReLU())
        fails("type", "argument 'module' is 3; it takes a module", net.add_module, net, "a", 3)
        fails("value", "'children' is a method or field of Linear; choose another name", net.add_module, net, "children", nn.ReLU())
        fails("type", "argument 'name' is 3; it takes a string", net.add_module, net, 3, nn.ReLU())
    end)
end)

describe("containers by key", function()
    it("keep names in the order that a list gives", function()
        local net = nn.Sequential { { "up", nn.Linear(2, 3) }, { "act", nn.ReLU() } }
        assert.same({ "up", "act" }, names(net:children()))
        assert.same({ 4, 3 }, net(yoke.ones(4, 2)).shape)
        fails("type", { "Sequential", "argument 0 is a table; it takes modules" }, nn.Sequential, {})
        fails("type", { "Sequential", "entry 1 is 3; it takes pairs of a name and a module" }, nn.Sequential, { { "a", nn.ReLU() }, 3 })
    end)

    it("hold modules", function()
        local heads = nn.ModuleDict { b = nn.Linear(2, 1), a = nn.ReLU() }
        assert.same({ "a", "b" }, names(heads:children()))
        heads.c = nn.Tanh()
        heads.a = nil
        assert.same({ "b", "c" }, names(heads:children()))
        assert.equal(2, #heads)
        assert.same({ 1, 2 }, heads.b.weight.shape)
        assert.same({ "x", "a" }, names(nn.ModuleDict({ { "x", nn.ReLU() }, { "a", nn.ReLU() } }):children()))
        fails("type", { "ModuleDict", "entry 'a' is 3; it takes a module" }, nn.ModuleDict, { a = 3 })
        fails("type", { "ModuleDict", "argument 'modules' is 3; it takes a table of modules" }, nn.ModuleDict, 3)
        fails("value", "has no dot", nn.ModuleDict, { ["a.b"] = nn.ReLU() })
        fails("unsupported", "ModuleDict", heads, yoke.ones(1))
    end)

    it("hold parameters", function()
        local scales = nn.ParameterList { yoke.ones(2), nn.Parameter(yoke.ones(3)) }
        scales:append(yoke.ones(1))
        assert.same({ "0", "1", "2" }, names(scales:named_parameters()))
        assert.same({ 3, { 2 }, true }, { #scales, scales[0].shape, scales[0].requires_grad })
        scales[0] = nn.Parameter(yoke.zeros(4))
        assert.same({ 4 }, scales[0].shape)
        local by_key = nn.ParameterDict { b = yoke.ones(1), a = yoke.ones(2) }
        assert.same({ "a", "b" }, names(by_key:named_parameters()))
        assert.equal(2, #by_key)
        assert.is_true(by_key.a.requires_grad)
        fails("type", { "ParameterList", "entry 0 is 3; it takes a tensor" }, nn.ParameterList, { 3 })
        fails("type", { "ParameterDict", "entry 'a' is 3; it takes a tensor" }, nn.ParameterDict, { a = 3 })
        fails("type", { "ParameterList", "argument 'values' is" }, nn.ParameterList, yoke.ones(1))
    end)
end)

describe("layers of shapes", function()
    it("do nothing, or cut an axis", function()
        local x = yoke.ones(2, 6)
        assert.equal(x, nn.Identity(54, { unused = true })(x))
        assert.same({ 2, 2, 3 }, nn.Unflatten(1, { 2, 3 })(x).shape)
        assert.same({ 2, 3, 2 }, nn.Unflatten(-1, { 3, -1 })(x).shape)
        assert.equal("Unflatten(dim=1, unflattened_size={2, 3})", tostring(nn.Unflatten(1, { 2, 3 })))
        fails("type", "argument 'unflattened_size' is 4; it takes a list of lengths", nn.Unflatten, 1, 4)
        fails("type", "argument 'dim' is 'a'; it takes an integer", nn.Unflatten, "a", { 4 })
        fails("value", "unflatten", nn.Unflatten(1, { 2, 2 }), x)
    end)
end)

-- Common behaviour of all classes of nn. The tests iterate over yoke.nn, so a new class is tested at once.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails
local nn, optim = yoke.nn, yoke.optim

-- Required arguments of each class.
local REQUIRED = {
    AdaptiveAvgPool2d = { 1 }, AvgPool2d = { 1 }, BatchNorm1d = { 4 }, BatchNorm2d = { 4 }, Conv1d = { 4, 4, 1 }, Conv2d = { 4, 4, 1 },
    ConvTranspose2d = { 4, 4, 1 }, Embedding = { 4, 4 }, GroupNorm = { 2, 4 }, LayerNorm = { 4 }, Linear = { 4, 4 }, MaxPool2d = { 1 },
    MultiheadAttention = { 4, 2 }, RMSNorm = { 4 }, TransformerBlock = { 4, 2 }, Unflatten = { 1, { 4 } },
}
-- Classes that take tables of members, or anything.
local CONTAINERS = { Sequential = true, ModuleList = true, ModuleDict = true, ParameterList = true, ParameterDict = true, Identity = true }

local function classes()
    local names = {}
    for name, class in pairs(nn) do
        if type(class) == "table" and class.extend and class ~= nn.Module then names[#names + 1] = name end
    end
    table.sort(names)
    assert(#names > 25)
    return ipairs(names)
end

local function made(name) return nn[name](table.unpack(REQUIRED[name] or {})) end

-- A layer, a tied parameter and a buffer.
local Holder = nn.Module:extend "Holder"
function Holder:init(layer)
    self.layer = layer
    self.own = nn.Parameter(yoke.ones { 3 })
    self.tied = self.own
    self:register_buffer("mean", yoke.zeros { 2 })
end

describe("each class of nn", function()
    it("refuses options that it does not know, and arguments that it has no room for", function()
        for _, name in classes() do
            local arguments = table.pack(table.unpack(REQUIRED[name] or {}))
            arguments[#arguments + 1] = { nonsense = 1 }
            if not CONTAINERS[name] then
                local ok, err = pcall(nn[name], table.unpack(arguments))
                -- A class without options takes no table.
                assert.is_false(ok, name)
                assert.is_truthy(err.message:find("'nonsense'", 1, true) or err.message:find("it takes at most", 1, true), name)
            end
            if name ~= "Sequential" and name ~= "Identity" then
                arguments = table.pack(table.unpack(REQUIRED[name] or {}))
                for i = #arguments + 1, 20 do arguments[i] = {} end
                fails("type", {}, nn[name], table.unpack(arguments))
            end
        end
        local Net, Bare = nn.Module:extend "Net", nn.Module:extend "Bare"
        function Net:init(width) self.width = width end
        fails("type", { "Net", "argument 2 is 3; it takes at most 1" }, Net, 2, 3)
        fails("type", { "Bare", "argument 1 is 'x'; it takes at most 0" }, Bare, "x")
        local x = yoke.ones { 1, 4, 4 }
        fails("type", { "Linear:forward", "argument 2 is", "it takes at most 1" }, yoke.nn.Linear(4, 2), x, x)
        fails("type", { "MultiheadAttention:forward", "argument 3 is", "it takes at most 2" }, yoke.nn.MultiheadAttention(4, 2), x, x, x)
        fails("type", { "ModuleList", "no argument 'nonsense'" }, yoke.nn.ModuleList, { nonsense = 1 })
        fails("type", { "ModuleList", "no argument '5'" }, yoke.nn.ModuleList, { yoke.nn.ReLU(), [5] = yoke.nn.ReLU() })
        assert.equal(2, Net(2, nil).width)
    end)

    it("keeps its parameters, buffers and modules from what is none", function()
        for _, name in classes() do
            local net = Holder(made(name))
            local owners = { net, net.layer }
            for _, module in net.layer:named_modules() do owners[#owners + 1] = module end
            local before = net:state_dict()
            local function assign(owner, key, value) owner[key] = value end
            for _, owner in ipairs(owners) do
                for key, parameter in owner:named_parameters() do
                    if not key:find(".", 1, true) then
                        for _, wrong in ipairs { yoke.ones { 2 }, 3, "text", nn.ReLU() } do
                            fails("type", { "as parameter '" .. key .. "'", "nn.Parameter(tensor)", "copy_" }, assign, owner, key, wrong)
                        end
                        assert.equal(parameter, owner[key])
                    end
                end
                for key in owner:children() do
                    fails("type", { "as module '" .. key .. "'", "float32 tensor of shape [2]", "assign a module, or nil" }, assign, owner, key, yoke.ones { 2 })
                end
                for key in owner:named_buffers() do
                    if not key:find(".", 1, true) then
                        fails("type", { "as buffer '" .. key .. "'", "assign a tensor, or nil" }, assign, owner, key, { 1 })
                    end
                end
            end
            for key, value in pairs(net:state_dict()) do
                assert.equal(before[key]:storage_id(), value:storage_id())
                value:close()
            end
            for _, value in pairs(before) do value:close() end
        end
    end)

    it("lets take their places what may", function()
        local net = Holder(nn.Linear(4, 4))
        net.own = nn.Parameter(yoke.zeros { 3 })
        assert.is_false(rawequal(net.own, net.tied))
        net.mean = nn.Parameter(yoke.ones { 2 })
        assert.equal(0, #net:buffers())
        assert.equal(5, #net:parameters())
        net.mean = nil
        fails("type", "as parameter 'mean'", function() net.mean = yoke.ones { 2 } end)
        net.layer = nil
        net.layer = "none"
        assert.equal("none", net.layer)
        local plain = nn.Linear(2, 2, { bias = false })
        assert.is_nil(plain.bias)
        fails("type", "as parameter 'bias'", function() plain.bias = yoke.ones { 2 } end)
        plain.bias = nn.Parameter(yoke.ones { 2 })
        assert.equal(2, #plain:parameters())
    end)

    it("takes as members what follows a plain value", function()
        local Late = nn.Module:extend("Late")
        function Late:init()
            self.head, self.scale, self.mean, self.gone, self[0] = false, 0, "none", 1, 7
            self.head = nn.Linear(2, 2)
            self.scale = nn.Parameter(yoke.ones { 2 })
            self:register_buffer("mean", yoke.zeros { 2 })
            self.gone = nil
            self[0] = nn.Linear(2, 1)
            self[0] = nn.Linear(2, 3)
        end
        local net = Late()
        assert.equal(5, #net:parameters())
        assert.equal(1, #net:buffers())
        assert.equal(2, #net)
        assert.is_nil(net.gone)
        assert.same({ 3, 2 }, net[0].weight.shape)
        assert.equal(net[0], net["0"])
        net.head = nil
        net.head = "none"
        assert.equal("none", net.head)
        assert.equal(3, #net:parameters())
        net.training = false
        assert.is_false(net.training)
    end)

    it("lets a frozen parameter be assigned and tied", function()
        local a, b = nn.Linear(2, 2), nn.Linear(2, 2)
        a:requires_grad_(false)
        b.weight = a.weight
        b.bias = b.bias
        a.bias = a.bias
        assert.equal(a.weight, b.weight)
        assert.equal(2, #b:parameters())
        local leaf = yoke.ones { 2 }
        fails("type", "module:register_parameter(name, tensor)", function() b.bias = leaf end)
        b:register_parameter("bias", leaf)
        a.bias = b.bias
        assert.equal(leaf, a.bias)
        local made = nn.Parameter(yoke.ones { 2 }):requires_grad_(false)
        a.bias = made
        assert.equal(made, a.bias)
        fails("type", "as parameter 'bias'", function() a.bias = made * 2 end)
    end)

    it("says what was assigned", function()
        local net = Holder(nn.Linear(2, 2))
        local function assign(key, value) net[key] = value end
        fails("type", "cannot assign a float32 tensor of shape [2, 3] as parameter 'own'", assign, "own", yoke.ones { 2, 3 })
        fails("type", "cannot assign a yoke.nn.Module as parameter 'own'", assign, "own", nn.ReLU())
        fails("type", "cannot assign a closed tensor as parameter 'own'", function()
            local gone = yoke.ones { 1 }
            gone:close()
            net.own = gone
        end)
        fails("type", "cannot assign a yoke.Device as buffer 'mean'", assign, "mean", yoke.device "cpu")
        fails("type", "cannot assign a table as module 'layer'", assign, "layer", {})
    end)

    it("moves with non_blocking", function()
        local net = Holder(nn.BatchNorm1d(2)):to { dtype = "float64", non_blocking = true }
        assert.same({ "float64", "float64", "float64" }, { net.own.dtype, net.mean.dtype, net.layer.running_mean.dtype })
        assert.equal("float32", net:to({ device = "cpu", dtype = "float32", non_blocking = false }).own.dtype)
        fails("type", { "to: ", "option 'non_blocking' is 1.5; it takes a boolean" }, net.to, net, { non_blocking = 1.5 })
        fails("value", "did you mean 'device'?", net.to, net, { devise = "cpu", non_blocking = true })
    end)

    it("keeps its parameters where it moves, so that an optimizer made before trains them", function()
        for _, name in classes() do
            local net = Holder(made(name))
            local optimizer = optim.SGD(net:parameters(), { lr = 0.5 })
            local before = {}
            for key, parameter in net:named_parameters() do
                before[key], parameter.grad = parameter, yoke.ones(parameter.shape)
            end
            for method, dtype in pairs { double = "float64", half = "float16", bfloat16 = "bfloat16", float = "float32" } do
                assert.equal(net, net[method](net))
                for key, parameter in net:named_parameters() do
                    assert.equal(before[key], parameter)
                    assert.same({ dtype, dtype, true }, { parameter.dtype, parameter.grad.dtype, parameter.requires_grad })
                end
                assert.equal(net.own, net.tied)
            end
            net:to { dtype = "float64" }:cpu()
            optimizer:zero_grad()
            local loss = (net.own * 2):sum()
            loss:backward()
            optimizer:step()
            assert.same({ 0.0, 0.0, 0.0 }, net.own:tolist())
        end
    end)
end)

describe("x:to_", function()
    it("moves a leaf itself, and refuses what was recorded before", function()
        local net = nn.Linear(3, 1)
        local loss = net(yoke.ones { 2, 3 }):sum()
        net:double()
        fails("state", { "used a parameter that has moved", "compute the loss again" }, loss.backward, loss)
        local x = yoke.ones { 2 }
        assert.equal(x, x:to_ "int32")
        assert.equal("int32", x.dtype)
        assert.equal("float64", x:to_({ device = "cpu", dtype = "float64" }).dtype)
        fails("state", { "to_", "write x = x.to" }, (net.weight * 2).to_, net.weight * 2, "float32")
        fails("value", "non_blocking", x.to_, x, { non_blocking = true })
    end)
end)

describe("nn.Flatten", function()
    it("joins the axes that it is told", function()
        local x = yoke.ones { 2, 3, 4, 5 }
        for _, case in ipairs { { {}, { 2, 60 } }, { { 0 }, { 120 } }, { { 2 }, { 2, 3, 20 } }, { { 0, 1 }, { 6, 4, 5 } }, { { 1, -2 }, { 2, 12, 5 } } } do
            assert.same(case[2], nn.Flatten(table.unpack(case[1]))(x).shape)
        end
        assert.same({ 24, 5 }, nn.Flatten({ start_dim = 0, end_dim = 2 })(x).shape)
        assert.same({ 1 }, nn.Flatten(0)(yoke.ones {}).shape)
        fails("index", "'start_dim' is 4; for x of 4 axes it must be -4 to 3", nn.Flatten(4), x)
        fails("value", "'start_dim' is 2 and 'end_dim' is 1", nn.Flatten(2, 1), x)
        fails("type", "'start_dim'", nn.Flatten, 1.5)
    end)
end)

describe("arguments that PyTorch has elsewhere", function()
    it("are given by name alone", function()
        local x, target = yoke.ones { 2, 3 }, yoke.zeros { 2, 3 }
        fails("type", { "var: argument 'keepdim' must be given by name", "such as {keepdim = ...}" }, x.var, x, 0, false)
        fails("type", "'keepdim'", yoke.std, x, 1, true)
        fails("type", { "mse_loss", "'reduction'", "{reduction = ...}" }, yoke.mse_loss, x, target, "sum")
        fails("type", "'reduction'", yoke.binary_cross_entropy, x, target, nil, "sum")
        assert.same({ 1, 3 }, x:var(0, { keepdim = true }).shape)
        assert.equal(6, yoke.mse_loss(x, target, { reduction = "sum" }):item())
    end)
end)

describe("what trains nothing", function()
    it("is said once, by schedules that step before their optimizer, losses of two shapes and clipping of nothing", function()
        local said = {}
        yoke.set_log_callback(function(_, message) said[#said + 1] = message end)
        local optimizer = optim.SGD({ nn.Parameter(yoke.ones { 2 }) }, { lr = 0.5 })
        local schedule = optim.schedule.step(optimizer, 2)
        for _ = 1, 2 do
            schedule:step()
            yoke.mse_loss(yoke.ones { 4, 1 }, yoke.zeros { 4 })
            yoke.clip_grad_norm_({}, 1.0)
        end
        yoke.poll()
        yoke.set_log_callback(nil)
        table.sort(said)
        assert.equal(3, #said)
        assert.is_truthy(said[1]:find("there is no tensor to clip", 1, true))
        assert.is_truthy(said[2]:find("[4, 1] and 'target' [4]", 1, true))
        assert.is_truthy(said[3]:find("call optimizer.step() before schedule.step()", 1, true))
    end)
end)

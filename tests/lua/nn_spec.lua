-- Layers, optimizers, schedules and data files: what the main job is made of.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails, close_to = support.leak_free(it), support.fails, support.close_to
local nn, optim = yoke.nn, yoke.optim

describe("nn.Linear", function()
    it("draws weight, then bias, uniform in one over the root of in_features", function()
        yoke.manual_seed(3)
        local layer = nn.Linear(16, 4)
        yoke.manual_seed(3)
        local bound = 1 / math.sqrt(16)
        local weight = yoke.rand({ 4, 16 }) * (2 * bound) - bound
        local bias = yoke.rand({ 4 }) * (2 * bound) - bound
        assert.same(weight:tolist(), layer.weight:tolist())
        assert.same(bias:tolist(), layer.bias:tolist())
        assert.is_true(layer.weight.requires_grad and layer.weight.is_leaf)
    end)

    it("multiplies by the transpose and adds the bias", function()
        local layer = nn.Linear(3, 2)
        local x = yoke.rand({ 5, 3 })
        local expected = x:matmul(layer.weight:transpose(0, 1)) + layer.bias
        assert.is_true(close_to(layer(x):tolist(), expected:tolist(), 1e-5))
        assert.is_nil(nn.Linear(3, 2, { bias = false }).bias)
        fails("value", { "Linear", "0" }, nn.Linear, 0, 2)
        fails("value", "linear", layer, yoke.zeros({ 2, 4 }))
    end)
end)

describe("nn.Module", function()
    local function make_net()
        local Net = nn.Module:extend("Net")
        function Net:init(width)
            self.hidden = nn.Linear(3, width)
            self.scale = nn.Parameter(yoke.ones({ 1 }))
            self.out = nn.Linear(width, 2)
            self.note = "plain"
            self:register_buffer("steps", yoke.zeros({ 1 }, "int64"))
        end
        function Net:forward(x) return self.out(self.hidden(x):relu()) * self.scale end
        return Net(4)
    end

    it("lists its own parameters, then those of the modules in it, in order", function()
        local names = {}
        for name in make_net():named_parameters() do names[#names + 1] = name end
        assert.same({ "scale", "hidden.weight", "hidden.bias", "out.weight", "out.bias" }, names)
        assert.equal(5, #make_net():parameters())
        assert.equal("plain", make_net().note)
    end)

    it("lets no member take the name of another kind", function()
        local net = make_net()
        fails("value", { "register_buffer", "'scale' is a parameter" }, net.register_buffer, net, "scale", yoke.ones({ 1 }))
        fails("value", { "register_parameter", "'steps' is a buffer" }, net.register_parameter, net, "steps", yoke.ones({ 1 }))
        net:register_buffer("steps", yoke.ones({ 1 }, "int64"))
        assert.equal(5, #net:parameters())
        net.scale = nil
        net:register_buffer("scale", yoke.ones({ 1 }))
    end)

    it("switches training and gradients below it", function()
        local net = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.5)))
        local x = yoke.ones({ 64 })
        assert.not_same(x:tolist(), net(x):tolist())
        assert.equal(net, net:eval())
        assert.same(x:tolist(), net(x):tolist())
        assert.is_true(net:train().training)
        local parameters = make_net():requires_grad_(false):parameters()
        assert.is_false(parameters[1].requires_grad)
    end)

    it("saves and loads, all or nothing", function()
        local a, b = make_net(), make_net()
        b:load_state_dict(a:state_dict())
        local x = yoke.rand({ 2, 3 })
        assert.same(a(x):tolist(), b(x):tolist())
        assert.is_not_nil(a:state_dict().steps)
        local before = b.scale:tolist()
        fails("value", { "missing out.bias", "unexpected extra" }, function()
            local dict = a:state_dict()
            dict["out.bias"], dict.extra = nil, yoke.ones({ 1 })
            b:load_state_dict(dict)
        end)
        for _, wrong in ipairs { "out.bais", "module.out.bias" } do
            fails("value", { "missing out.bias", "unexpected " .. wrong .. "; did you mean 'out.bias'?" }, function()
                local dict = a:state_dict()
                dict[wrong], dict["out.bias"] = dict["out.bias"], nil
                b:load_state_dict(dict)
            end)
        end
        fails("value", { "'scale' in the state has shape [2]; it must be [1]" }, function()
            local dict = a:state_dict()
            dict.scale = yoke.zeros({ 2 })
            b:load_state_dict(dict)
        end)
        assert.same(before, b.scale:tolist())
        b:load_state_dict({ scale = yoke.tensor({ 9. }) }, { strict = false })
        assert.same({ 9.0 }, b.scale:tolist())
    end)

    it("moves to a dtype as a whole and stays trainable", function()
        local net = make_net():to("float64")
        for _, parameter in net:named_parameters() do
            assert.equal("float64", parameter.dtype)
            assert.is_true(parameter.requires_grad and parameter.is_leaf)
        end
    end)

    it("reads as its layers, closes, and refuses misuse", function()
        local net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.GELU(), nn.Tanh())
        assert.equal([[Sequential(
  (0): Linear(in_features=3, out_features=4, bias=true)
  (1): ReLU()
  (2): GELU(approximate="none")
  (3): Tanh()
)]], tostring(net))
        net:close()
        fails("closed", "'weight'", net, yoke.zeros({ 1, 3 }))
        fails("type", "argument 1", nn.Sequential, nn.ReLU(), 5)
        fails("unsupported", "forward", nn.Module:extend("Empty")(), 1)
        fails("value", "2", nn.Dropout, 2)
    end)

    it("has the layers of Python", function()
        local x = yoke.rand({ 2, 3, 4 })
        assert.same({ 2, 12 }, nn.Flatten()(x).shape)
        assert.same(x:softmax(1):tolist(), nn.Softmax(1)(x):tolist())
        assert.same(x:log_softmax():tolist(), nn.LogSoftmax()(x):tolist())
        local loss = nn.CrossEntropyLoss { reduction = "sum" }
        local target = yoke.tensor({ 0, 1 })
        local logits = yoke.rand({ 2, 3 })
        assert.equal(yoke.cross_entropy(logits, target, { reduction = "sum" }):item(), loss(logits, target):item())
    end)
end)

describe("optim.SGD", function()
    local function parameter(value) return yoke.tensor({ value }, { dtype = "float64", requires_grad = true }) end

    local function one_step(optimizer, x)
        optimizer:zero_grad()
        local y = (x * x):sum()
        y:backward()
        optimizer:step()
    end

    it("steps with momentum, nesterov and weight decay as the formula says", function()
        for _, nesterov in ipairs { false, true } do
            local x, value, buffer = parameter(3.), 3., nil
            local optimizer = optim.SGD({ x }, { lr = 0.1, momentum = 0.9, weight_decay = 0.01, nesterov = nesterov })
            for _ = 1, 4 do
                one_step(optimizer, x)
                local g = 2 * value + 0.01 * value
                buffer = buffer and 0.9 * buffer + g or g
                value = value - 0.1 * (nesterov and g + 0.9 * buffer or buffer)
            end
            assert.is_true(close_to(x:item(), value, 1e-12))
        end
    end)

    it("has groups with options of their own, read and written in place", function()
        local a, b = parameter(1.), parameter(1.)
        local optimizer = optim.SGD({ { params = { a }, lr = 1 }, { params = { b } } }, { lr = 0.5 })
        one_step(optimizer, a)
        assert.equal(-1.0, a:item())
        optimizer.param_groups[2].lr = 0.25
        assert.equal(0.25, optimizer:get_lr(1))
        assert.equal(1.0, optimizer.param_groups[1].lr)
        assert.equal(1.0, optimizer.param_groups[2].params[1]:item())
        optimizer:set_lr(0.125)
        assert.same({ 0.125, 0.125 }, { optimizer:get_lr(0), optimizer:get_lr(1) })
        optimizer:add_param_group { params = { parameter(2.) }, momentum = 0.5 }
        assert.equal(0.5, optimizer.param_groups[3].momentum)
        fails("value", "speed", function() optimizer.param_groups[1].speed = 1 end)
        fails("index", "7", optimizer.get_lr, optimizer, 7)
    end)

    it("zeroes gradients or forgets them", function()
        local x = parameter(1.)
        local optimizer = optim.SGD({ x }, { lr = 0.1 })
        one_step(optimizer, x)
        optimizer:zero_grad { set_to_none = false }
        assert.same({ 0.0 }, x.grad:tolist())
        optimizer:zero_grad()
        assert.is_nil(x.grad)
    end)

    it("goes on from its state as if it had never stopped", function()
        local x, y = parameter(3.), parameter(3.)
        local options = { lr = 0.1, momentum = 0.9 }
        local whole, first = optim.SGD({ x }, options), optim.SGD({ y }, options)
        for _ = 1, 4 do one_step(whole, x) end
        for _ = 1, 2 do one_step(first, y) end
        local second = optim.SGD({ y }, { lr = 9 })
        second:load_state_dict(first:state_dict())
        for _ = 1, 2 do one_step(second, y) end
        assert.equal(x:item(), y:item())
        fails("value", "groups of []", second.load_state_dict, second, { param_groups = {}, state = {} })
    end)

    it("refuses what it cannot use, and lets go when closed", function()
        local x = parameter(1.)
        fails("value", "'lr'", optim.SGD, { x }, {})
        fails("value", "lr", optim.SGD, { x }, { lr = -1 })
        fails("value", "speed", optim.SGD, { x }, { lr = 1, speed = 2 })
        fails("value", "", optim.SGD, { x, x }, { lr = 1 })
        fails("type", "params", optim.SGD, x, { lr = 1 })
        fails("state", "is the result of an op", optim.SGD, { x * 2 }, { lr = 1 })
        fails("type", "int64", optim.SGD, { yoke.arange(2) }, { lr = 1 })
        fails("type", "item 1", optim.SGD, { "x" }, { lr = 1 })
        local optimizer = optim.SGD({ x }, { lr = 1 })
        optimizer:close()
        optimizer:close()
        fails("closed", "step", optimizer.step, optimizer)
    end)
end)

describe("optim.schedule.linear", function()
    it("falls from start to stop in equal steps and stays there", function()
        local optimizer = optim.SGD({ yoke.tensor({ 1. }, { requires_grad = true }) }, { lr = 5 })
        local schedule = optim.schedule.linear(optimizer, 0.1, 0, 4)
        local rates = { optimizer:get_lr() }
        for _ = 1, 6 do
            schedule:step()
            rates[#rates + 1] = optimizer:get_lr()
        end
        assert.is_true(close_to(rates, { 0.1, 0.075, 0.05, 0.025, 0, 0, 0 }, 1e-15))
        fails("value", "0", optim.schedule.linear, optimizer, 1, 0, 0)
    end)
end)

describe("data.read_idx", function()
    local header = string.pack(">BBBBI4I4", 0, 0, 8, 2, 2, 3)

    it("reads a file of bytes", function()
        local path = support.temporary_file(header .. "\1\2\3\4\5\6")
        local x = assert(yoke.data.read_idx(path))
        os.remove(path)
        assert.same({ { 1, 2, 3 }, { 4, 5, 6 } }, x:tolist())
        assert.equal("uint8", x.dtype)
    end)

    it("gives nil and an error that names the path for one that is missing, cut or damaged", function()
        local x, err = yoke.data.read_idx("/nowhere/at-all")
        assert.is_nil(x)
        assert.equal("io", err.code)
        assert.truthy(err.message:find("/nowhere/at-all", 1, true))
        for _, bytes in ipairs { header .. "\1\2\3", "", "\1\2\3\4", "\31\139\8\0damaged", header .. ("\1"):rep(7) } do
            local path = support.temporary_file(bytes)
            x, err = yoke.data.read_idx(path)
            os.remove(path)
            assert.is_nil(x)
            assert.truthy(err.message:find(path, 1, true), err.message)
        end
        fails("type", "path", yoke.data.read_idx, 5)
    end)
end)

describe("training", function()
    it("lowers the loss, and one seed gives the same losses bit for bit", function()
        local function losses()
            yoke.manual_seed(11)
            local net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
            local optimizer = optim.SGD(net:parameters(), { lr = 0.2, momentum = 0.9 })
            local x, target = yoke.randn({ 32, 4 }), yoke.randint(0, 3, { 32 })
            local list = {}
            for i = 1, 30 do
                local loss = yoke.cross_entropy(net(x), target)
                optimizer:zero_grad()
                loss:backward()
                optimizer:step()
                list[i] = loss:item()
            end
            return list
        end
        local first = losses()
        assert.is_true(first[30] < 0.7 * first[1])
        assert.same(first, losses())
    end)
end)

-- Habits of PyTorch users work, or the error says how Yoke writes the call.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails

local function x() return yoke.arange(6):reshape { 2, 3 } end

describe("shapes one by one", function()
    it("make tensors", function()
        for _, name in ipairs { "empty", "zeros", "ones", "rand", "randn" } do
            assert.same({ 2, 3 }, yoke[name](2, 3).shape)
            assert.same({ 2, 0, 3 }, yoke[name](2, 0, 3, { dtype = "float64" }).shape)
            assert.equal("float64", yoke[name](2, 3, "float64").dtype)
            assert.same({ 2 }, yoke[name](2, {}).shape)
        end
        assert.same({ 2, 3 }, yoke.randint(0, 9, 2, 3).shape)
        assert.same({ 4, 5 }, yoke.randint(0, 9, 4, 5, { dtype = "int32" }).shape)
    end)

    it("arrange them", function()
        assert.same(x():reshape({ 3, -1 }):tolist(), x():reshape(3, -1):tolist())
        assert.same({ 6, 1 }, yoke.view(x(), 6, 1).shape)
        assert.same({ 3, 1, 2 }, x():unsqueeze(0):permute(2, 0, 1).shape)
        assert.same({ 4, 2, 3 }, x():expand(4, 2, 3).shape)
        assert.same({ 4, 3 }, x():tile(2, 1).shape)
        assert.same({ { 5, 4, 3 }, { 2, 1, 0 } }, x():flip(0, 1):tolist())
        assert.same({ { 7, 0, 1, 2 }, { 7, 3, 4, 5 } }, x():pad(1, 0, "constant", 7):tolist())
        local scaled = yoke.layer_norm(x():float(), 2, 3, yoke.full({ 2, 3 }, 2.), { eps = 0.5 })
        assert.same(yoke.layer_norm(x():float(), { 2, 3 }, yoke.full({ 2, 3 }, 2.), { eps = 0.5 }):tolist(), scaled:tolist())
    end)

    it("leave alone what may be another argument", function()
        local parts = yoke.arange(10):reshape(2, 5):split(2, 1)
        assert.same({ 2, 2 }, parts[1].shape)
        assert.same({ 2, 1 }, parts[3].shape)
        assert.same({ 3, 0, 1, 2 }, yoke.arange(4):roll(1, 0):tolist())
    end)

    it("are refused where they do not fit", function()
        fails("type", { "zeros", "'dtype'" }, yoke.zeros, 2, 3.5)
        fails("value", "given twice", yoke.zeros, 2, 3, { shape = 3 })
        fails("value", "at most 4 arguments but 7 were given", yoke.full, 1, 2, 3, 4, 5, 6, 7)
        local many = {}
        for i = 1, 100 do many[i] = 1 end
        fails("value", "100 integers", yoke.ones, table.unpack(many))
    end)
end)

describe("a creator", function()
    it("takes requires_grad", function()
        for _, name in ipairs { "empty", "zeros", "ones", "rand", "randn" } do
            assert.is_true(yoke[name]({ 2 }, { requires_grad = true }).requires_grad)
            assert.is_false(yoke[name](2, 2, { requires_grad = false }).requires_grad)
        end
        assert.is_true(yoke.full({ 2 }, 1.5, { requires_grad = true }).requires_grad)
        assert.is_true(yoke.zeros_like(yoke.ones(2), { requires_grad = true }).requires_grad)
        assert.is_true(yoke.linspace(0, 1, 3, { requires_grad = true }).requires_grad)
        fails("type", "int64", yoke.randperm, 3, { requires_grad = true })
        fails("type", "'requires_grad' is a number", yoke.ones, 2, { requires_grad = 1 })
        fails("value", "there is no argument 'requires_grad'", yoke.relu, yoke.ones(2), { requires_grad = true })
    end)
end)

describe("an unknown keyword", function()
    it("names the one that was meant, and shows the signature", function()
        fails("value", { "there is no argument 'axes'; did you mean 'axis'?: sum(x, axis = nil, keepdim = false, dtype = nil)" }, yoke.sum, x(), { axes = 0 })
        fails("value", "did you mean 'dtype'?: zeros(shape, dtype = nil, device = nil, {requires_grad = false})", yoke.zeros, 2, 3, { dtpye = "float16" })
        fails("value", "did you mean 'requires_grad'?", yoke.zeros, 2, { require_grad = true })
        fails("value", "did you mean 'keepdim'?", yoke.sum, x(), 0, { keepdm = true })
        fails("value", "'colour': softmax(x, axis = -1", yoke.softmax, x(), { colour = 1 })
        fails("value", "did you mean 'device'?", x().to, x(), { devise = "cpu" })
        fails("value", "did you mean 'dtype'?", yoke.tensor, { 1 }, { type = "float16" })
        fails("value", "did you mean 'momentum'?", yoke.optim.SGD, { yoke.ones(1, { requires_grad = true }) },
            { lr = 1, momentun = 1 })
    end)
end)

describe("a signature in an error", function()
    it("is written as the script writes the call, without types", function()
        fails("type", "correction = 1})", yoke.var, x(), 0, 1)
        fails("value", "there is no argument 'ddof'; did you mean 'correction'?: var(x, axis = nil, {keepdim = false, correction = 1})", yoke.var, x(), { ddof = 1 })
        fails("value", "takes at most 1 argument but 2 were given: relu(x)", yoke.relu, x(), 1)
        fails("value", "gelu(x, approximate = \"none\")", yoke.gelu, x(), { mode = "tanh" })
    end)

    it("follows a missing argument", function()
        fails("value", "matmul: argument 'y' is missing: matmul(x, y)", yoke.matmul, x())
        fails("value", "relu: argument 'x' is missing: relu(x)", yoke.relu)
        fails("value", "add: argument 'y' is missing: add(x, y, {alpha = 1})", yoke.add, x())
        fails("value", "full: argument 'value' is missing: full(shape, value", yoke.full, 2)
        fails("value", "argument 'size' is missing: split(x, size, axis = 0)", yoke.split, x(), nil)
    end)

    it("has no type of the op table, for any op", function()
        for name in pairs(yoke.ops()) do
            local done, err = pcall(yoke[name], { nonsense = 1 }, { nonsense = 1 })
            assert.is_false(done)
            local signature = tostring(err):match("is missing: .*") or tostring(err):match("nonsense'.*: .*") or ""
            assert.is_nil(signature:match "%w: [a-z]+[,)?]", tostring(err))
        end
    end)
end)

describe("PyTorch's spellings", function()
    it("cast", function()
        local kinds = { half = "float16", bfloat16 = "bfloat16", float = "float32", double = "float64", int = "int32",
            long = "int64", bool = "bool" }
        for method, dtype in pairs(kinds) do
            local y = yoke.tensor { 0, 2.5 }
            assert.equal(dtype, y[method](y).dtype)
            assert.same(y:to(dtype):tolist(), y[method](y):tolist())
        end
    end)

    it("cast and move modules", function()
        local net = yoke.nn.Sequential(yoke.nn.Linear(2, 2), yoke.nn.BatchNorm1d(2))
        for method, dtype in pairs { half = "float16", bfloat16 = "bfloat16", double = "float64", float = "float32" } do
            assert.equal(net, net[method](net))
            for _, parameter in ipairs(net:parameters()) do assert.equal(dtype, parameter.dtype) end
        end
        assert.equal(net, net:cpu())
        if not yoke.is_available "cuda" then fails("unavailable", "cuda", net.cuda, net) end
        net:close()
    end)

    it("tell sizes and transpose", function()
        local y = yoke.zeros(2, 3, 4)
        assert.same({ 2, 3, 4 }, y:size())
        assert.same({ 2, 4, 3 }, { y:size(0), y:size(-1), y:dim() })
        fails("index", "axis 3 is out of range for a tensor of 3 axes", y.size, y, 3)
        fails("type", "'axis' is 1.5", y.size, y, 1.5)
        assert.same({ { 0, 3 }, { 1, 4 }, { 2, 5 } }, x().T:tolist())
        assert.same({ 4, 3, 2 }, y.T.shape)
        assert.same({ 2, 4, 3 }, y.mT.shape)
        fails("value", "has 1 axes; a matrix", function() return yoke.arange(3).mT end)
        local w = yoke.ones(2, 3, { requires_grad = true })
        yoke.matmul(w.T, yoke.ones(2)):sum():backward()
        assert.same({ 2, 3 }, w.grad.shape)
    end)

    it("fill, and say that a tensor is closed", function()
        local y = yoke.ones(2, 2)
        assert.equal(y, y:zero_())
        assert.same({ { 0, 0 }, { 0, 0 } }, y:tolist())
        y:close()
        for _, name in ipairs { "half", "size", "dim", "zero_", "cuda" } do fails("closed", "closed", y[name], y) end
        fails("closed", "closed", function() return y.T end)
        fails("closed", "closed", function() return y.mT end)
    end)
end)

describe("a device", function()
    it("is asked for by kind, or as any accelerator", function()
        assert.equal(yoke.is_available "cuda", yoke.is_available())
        fails("value", "did you mean 'cuda'?", yoke.is_available, "gpu")
        fails("value", "did you mean 'cpu'?", yoke.is_available, "cpy")
    end)

    it("is not confused with a misspelt dtype", function()
        fails("value", { "'flaot16'", "did you mean the dtype 'float16'?" }, x().to, x(), "flaot16")
    end)

    it("is never the CPU for a bare index", function()
        local before <const> = yoke.current_device()
        yoke.set_device "cpu"
        if yoke.is_available() then
            yoke.set_device(0)
            assert.not_equal("cpu", yoke.current_device().kind)
            assert.equal("cuda:0", tostring(x():cuda(0).device))
        else
            fails("unavailable", { "index 0 is not a device", "\"cpu\"", "cuda: " }, yoke.set_device, 0)
            fails("unavailable", yoke.why_unavailable "cuda", x().cuda, x())
            fails("unavailable", yoke.why_unavailable "cuda", x().cuda, x(), 1)
        end
        fails("value", "'device' is cpu", x().cuda, x(), "cpu")
        yoke.set_device(before)
    end)
end)

describe("keywords that nobody takes", function()
    it("are refused where an object is made", function()
        fails("value", "did you mean 'timing'", yoke.Event, { timingg = true })
        fails("value", "did you mean 'priority'", yoke.Stream, { priorty = 1 })
    end)

    it("are refused in a list", function()
        for _, make in ipairs { yoke.zeros, yoke.tensor } do
            fails("value", "is a list with the key 'dtype'; give keywords in a separate table", make,
                { 2, 3, dtype = "int32" })
        end
        assert.equal("int32", yoke.zeros({ 2, 3 }, { dtype = "int32" }).dtype)
    end)
end)

describe("a word of PyTorch's", function()
    it("leads to what to write", function()
        local x = yoke.ones(2, { requires_grad = true })
        fails("value", { "'is_grads_batched'; leave it out" }, yoke.grad, x:sum(), x, { is_grads_batched = true })
        fails("value", "an event belongs to one process", yoke.Event, { interprocess = true })
        fails("value", "runs no code of the script twice", yoke.checkpoint, { use_reentrant = false }, yoke.relu, x)
        fails("value", "applies to every device", yoke.autocast, { device_type = "cuda" })
        for _, device in ipairs { "cuda", "cuda:1", "cpu", "mps", "auto", yoke.device "cpu" } do
            local told = ("the first argument is the device '%s'; leave it out, as "):format(device)
            fails("type", { "autocast", told .. "autocast serves every device: autocast()" }, yoke.autocast, device)
            fails("type", told, yoke.autocast, device, function() end)
            fails("type", told, yoke.autocast, { device = device })
            fails("type", { "GradScaler", told .. "GradScaler serves every device: GradScaler()" }, yoke.GradScaler, device)
            fails("type", told, yoke.GradScaler, { device = device, init_scale = 2 })
        end
        fails("value", "'cudas'; it must be float64", yoke.autocast, "cudas")
        fails("value", "'mps', which names a device; it must be float64", yoke.zeros, 2, { dtype = "mps" })
        fails("value", "a waiting call lets other threads run", yoke.load, "nowhere", { blocking = true })
        fails("value", "'out'; did you mean 'output_padding'?", yoke.nn.ConvTranspose2d, 2, 2, 1, { out = 3 })
        fails("value", "which names a device", yoke.zeros, 2, { dtype = "cuda:1" })
        fails("value", "does not support this variant", yoke.optim.Adam, { x }, { amsgrad = true })
        fails("value", "are updated together", yoke.optim.SGD, { x }, { lr = 1, foreach = true })
        fails("type", { "cross_entropy", "'target' is float32 of shape [2]", "cast(target, int64)", "the shape of 'x', [2, 3]" }, yoke.cross_entropy,
            yoke.zeros(2, 3), yoke.zeros(2))
    end)

    it("in place of parameters is told", function()
        local net = yoke.nn.Linear(2, 2)
        for _, name in ipairs { "SGD", "Adam", "AdamW", "EMA" } do
            fails("type", "write net:parameters()", yoke.optim[name], net, name ~= "EMA" and { lr = 0.1 } or nil)
        end
        fails("type", { "SGD: ", "write net:parameters()" }, yoke.optim.SGD, net)
        fails("type", "write net:parameters()", yoke.optim.Adam, yoke.nn.Sequential(yoke.nn.Linear(2, 2)))
        fails("type", "write net:parameters()", yoke.optim.SGD, { { params = net } }, { lr = 0.1 })
        fails("type", "write net:parameters()", yoke.clip_grad_norm_, net, 1.0)
        net:close()
    end)
end)

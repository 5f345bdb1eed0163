-- Modules of PyTorch's names, and errors about names that are not there.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails

describe("a module of names", function()
    it("is read at its first use", function()
        for _, name in ipairs { "amp", "cuda", "utils" } do assert.is_table(yoke[name]) end
        assert.equal(yoke.relu, yoke.nn.functional.relu)
        assert.equal(yoke.clip_grad_norm_ or yoke.optim.clip_grad_norm_, yoke.nn.utils.clip_grad_norm_)
        assert.equal(yoke.DistributedDataParallel, yoke.nn.parallel.DistributedDataParallel)
    end)

    it("tells of CUDA devices", function()
        assert.equal(yoke.is_available "cuda", yoke.cuda.is_available())
        assert.equal(yoke.device_count "cuda", yoke.cuda.device_count())
        yoke.cuda.empty_cache()
        if yoke.cuda.is_available() then return end
        assert.equal(0, yoke.cuda.memory_allocated())
        assert.same({}, yoke.cuda.memory_stats())
        fails("unavailable", "cuda", yoke.cuda.current_device)
        fails("value", "'device' is cpu, which is not a CUDA device", yoke.cuda.synchronize, "cpu")
    end)

    it("seeds", function()
        yoke.cuda.manual_seed_all(3)
        local first = yoke.rand(2):tolist()
        yoke.manual_seed(3)
        assert.same(first, yoke.rand(2):tolist())
    end)

    it("has mixed precision", function()
        local x = yoke.ones(2, 2)
        local on = yoke.amp.autocast("cpu", { dtype = "bfloat16" }, function() return yoke.matmul(x, x).dtype end)
        local off = yoke.amp.autocast("cuda", function() return yoke.matmul(x, x).dtype end)
        assert.equal("bfloat16", on)
        if not yoke.is_available "cuda" then assert.equal("float32", off) end
        assert.equal(yoke.is_available "cuda", yoke.amp.GradScaler("cuda"):is_enabled())
    end)

    it("clips and gathers parameters", function()
        local utils = yoke.nn.utils
        local w = yoke.ones(3, { requires_grad = true })
        local loss = (w * 5):sum()
        loss:backward()
        utils.clip_grad_value_({ w }, 2)
        assert.same({ 2, 2, 2 }, w.grad:tolist())
        assert.same({ 7 }, utils.parameters_to_vector({ w, yoke.ones(2, 2) }).shape)
        utils.vector_to_parameters(yoke.arange(3):float(), { w })
        assert.same({ 0, 1, 2 }, w:tolist())
        fails("value", "give a tensor of shape [3]", utils.vector_to_parameters, yoke.ones(2), { w })
        fails("value", "'clip_value' is -1", utils.clip_grad_value_, { w }, -1)
    end)

    it("has schedules", function()
        local scheduler = yoke.optim.lr_scheduler
        local function rates(make)
            local w = yoke.ones(1, { requires_grad = true })
            local optimizer = yoke.optim.SGD({ w }, { lr = 1 })
            local schedule, found = make(optimizer), {}
            for i = 1, 3 do
                found[i] = optimizer:get_lr()
                w.grad = yoke.ones(1)
                optimizer:step()
                schedule:step()
            end
            optimizer:close()
            return found
        end
        assert.same({ 1, 0.1, 0.1 * 0.1 }, rates(function(o) return scheduler.StepLR(o, 1) end))
        assert.same({ 0.5, 0.5, 1 }, rates(function(o) return scheduler.ConstantLR(o, { factor = 0.5, total_iters = 2 }) end))
        assert.same({ 0.5, 0.75, 1 }, rates(function(o) return scheduler.LinearLR(o, { start_factor = 0.5, total_iters = 2 }) end))
        assert.equal(1, rates(function(o) return scheduler.CosineAnnealingLR(o, 4) end)[1])
        assert.is_true(math.abs(rates(function(o) return scheduler.OneCycleLR(o, 1, 10) end)[1] - 0.04) < 1e-12)
    end)

    it("recomputes", function()
        local w = yoke.ones(2, { requires_grad = true })
        yoke.utils.checkpoint.checkpoint(function(x) return x * x end, w):sum():backward()
        assert.same({ 2, 2 }, w.grad:tolist())
    end)
end)

describe("a name that is not there", function()
    it("is told with what to write", function()
        fails("value", "there is no 'clip'; write clamp(x, min, max)", function() return yoke.clip end)
        fails("value", "there is no 'LSTM'; there are no recurrent layers", function() return yoke.nn.LSTM end)
        fails("value", "there are SGD, Adam and AdamW", function() return yoke.optim.RMSprop end)
        fails("value", "a tensor has no field or method 'grad_fn'; write x.is_leaf", function() return yoke.ones(1).grad_fn end)
        fails("value", "'nvtx'", function() return yoke.cuda.nvtx end)
        assert.is_nil(yoke.no_such_name)
        assert.is_nil(yoke.nn.no_such_name)
    end)
end)

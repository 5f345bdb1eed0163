-- Convolution and pooling layers against the ops under them, and refused arguments.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails
local nn = yoke.nn

local function same(a, b) assert.same(b:tolist(), a:tolist()) end

describe("nn.Conv2d and its like", function()
    it("are their ops", function()
        local x = yoke.randn { 2, 4, 7, 6 }
        local layer = nn.Conv2d(4, 6, { 3, 2 }, { stride = 2, padding = { 1, 0 }, dilation = { 1, 2 }, groups = 2 })
        same(layer(x), yoke.conv2d(x, layer.weight, layer.bias, { stride = 2, padding = { 1, 0 }, dilation = { 1, 2 }, groups = 2 }))
        local row = x:reshape { 2, 4, 42 }
        layer = nn.Conv1d(4, 6, 3, { stride = 2, padding = 1, bias = false })
        assert.is_nil(layer.bias)
        same(layer(row), yoke.conv1d(row, layer.weight, { stride = 2, padding = 1 }))
        layer = nn.ConvTranspose2d(4, 6, 3, { stride = 2, padding = 1, output_padding = 1, groups = 2 })
        same(layer(x), yoke.conv_transpose2d(x, layer.weight, layer.bias, { stride = 2, padding = 1, output_padding = 1, groups = 2 }))
        assert.same({ 2, 6, 13, 12 }, layer(x, { 13, 12 }).shape)
        same(nn.MaxPool2d(3, { stride = 2, padding = 1, ceil_mode = true })(x), yoke.max_pool2d(x, 3, { stride = 2, padding = 1, ceil_mode = true }))
        same(nn.AvgPool2d(2)(x), yoke.avg_pool2d(x, 2))
        same(nn.AdaptiveAvgPool2d({ 1, 3 })(x), yoke.adaptive_avg_pool2d(x, { 1, 3 }))
    end)

    it("hang over the end, or are lengthened, by less than a stride or a dilation", function()
        local x = yoke.tensor { { { 1.0, 2.0 }, { 4.0, 3.0 } } }
        assert.same({ { { 4 } } }, nn.MaxPool2d(3, { ceil_mode = true })(x):tolist())
        assert.same({ { { 2.5 } } }, nn.AvgPool2d(3, { ceil_mode = true })(x):tolist())
        fails("value", { "max_pool2d", "a window of [5, 5]", "which ceil_mode may exceed by less than the stride, [3, 3]" }, yoke.max_pool2d, x, 5, { stride = 3, ceil_mode = true })
        local one = yoke.conv_transpose2d(x, yoke.ones { 1, 1, 2, 2 }, { dilation = 2, output_padding = 1 })
        assert.same({ { { 1, 2, 1, 2, 0 }, { 4, 3, 4, 3, 0 }, { 1, 2, 1, 2, 0 }, { 4, 3, 4, 3, 0 }, { 0, 0, 0, 0, 0 } } }, one:tolist())
        fails("value", { "conv_transpose2d", "'output_padding' is [2, 2]", "below 'dilation' [2, 2]" }, yoke.conv_transpose2d, x, yoke.ones { 1, 1, 2, 2 },
            { dilation = 2, output_padding = 2 })
    end)

    it("draw the weight, then the bias", function()
        yoke.manual_seed(7)
        local layer = nn.Conv2d(6, 4, { 3, 2 }, { groups = 2 })
        yoke.manual_seed(7)
        local bound = 1 / math.sqrt(18)
        same(layer.weight, yoke.rand { 4, 3, 3, 2 } * (2 * bound) - bound)
        same(layer.bias, yoke.rand { 4 } * (2 * bound) - bound)
        assert.same({ 6, 2, 3, 3 }, nn.ConvTranspose2d(6, 4, 3, { groups = 2 }).weight.shape)
    end)

    it("keep sizes, or pad as they are told", function()
        local x = yoke.randn { 2, 3, 7, 8 }
        for _, mode in ipairs { "zeros", "reflect", "replicate", "circular" } do
            local layer = nn.Conv2d(3, 5, { 2, 4 }, { padding = "same", padding_mode = mode })
            local padded = yoke.pad(x, { 1, 2, 0, 1 }, { mode = mode == "zeros" and "constant" or mode })
            same(layer(x), yoke.conv2d(padded, layer.weight, layer.bias))
        end
        assert.same({ 2, 5, 5, 6 }, nn.Conv2d(3, 5, 3, { padding = "valid" })(x).shape)
    end)

    it("say what they are, and what is wrong", function()
        assert.equal("Conv2d(1, 8, kernel_size={3, 3}, stride={1, 1})", tostring(nn.Conv2d(1, 8, 3)))
        assert.equal("Conv2d(4, 8, kernel_size={3, 3}, stride={1, 1}, padding={1, 1}, dilation={2, 2}, groups=2, padding_mode='circular', bias=false)",
            tostring(nn.Conv2d(4, 8, 3, { padding = 1, dilation = 2, groups = 2, bias = false, padding_mode = "circular" })))
        assert.equal("Conv1d(1, 8, kernel_size={3}, stride={1}, padding='same')", tostring(nn.Conv1d(1, 8, 3, { padding = "same" })))
        assert.equal("ConvTranspose2d(4, 8, kernel_size={3, 3}, stride={2, 2}, output_padding={1, 0})",
            tostring(nn.ConvTranspose2d(4, 8, 3, { stride = 2, output_padding = { 1, 0 } })))
        assert.equal("AvgPool2d(kernel_size={2, 2}, stride={2, 2}, padding={0, 0}, count_include_pad=false, divisor_override=3)",
            tostring(nn.AvgPool2d(2, { count_include_pad = false, divisor_override = 3 })))
        assert.equal("MaxPool2d(kernel_size={2, 2}, stride={2, 2}, padding={0, 0}, dilation={1, 1}, ceil_mode=false)", tostring(nn.MaxPool2d(2)))
        fails("value", { "Conv2d", "'out_channels' is 6 and 'groups' is 4" }, nn.Conv2d, 4, 6, 1, { groups = 4 })
        fails("value", { "Conv2d", "'kernel_size' is nil" }, nn.Conv2d, 8, 8)
        fails("value", { "Conv1d", "'kernel_size' is nil" }, nn.Conv1d, 8, 8)
        fails("value", { "MaxPool2d", "'kernel_size' is nil" }, nn.MaxPool2d)
        fails("value", { "AdaptiveAvgPool2d", "'output_size' is nil" }, nn.AdaptiveAvgPool2d)
        fails("value", { "Conv2d", "'stride' is a boolean" }, nn.Conv2d, 8, 8, 3, { stride = false })
        fails("value", { "Conv2d", "'padding' is a boolean" }, nn.Conv2d, 8, 8, 3, { padding = false })
        fails("value", { "MaxPool2d", "'stride' is a boolean" }, nn.MaxPool2d, 2, { stride = false })
        fails("value", { "Conv2d", "'kernel_size' is '3'" }, nn.Conv2d, 8, 8, "3")
        local transposed = nn.ConvTranspose2d(4, 4, 3)
        fails("value", { "conv_transpose2d", "shape [3]" }, transposed, yoke.ones { 3 }, 5)
        fails("type", { "ConvTranspose2d", "it takes a tensor" }, transposed, 5, 5)
        fails("value", { "ConvTranspose2d", "'output_size' is a boolean" }, transposed, yoke.ones { 1, 4, 3, 3 }, false)
        fails("value", { "Conv2d", "'kernel_size' has 3 numbers" }, nn.Conv2d, 1, 1, { 3, 3, 3 })
        fails("value", { "Conv2d", "'stride' is 0" }, nn.Conv2d, 1, 1, 3, { stride = 0 })
        fails("value", { "'padding' is 'SAME'" }, nn.Conv2d, 1, 1, 3, { padding = "SAME" })
        fails("value", { "'padding' is 'same' and 'stride' is {2, 2}" }, nn.Conv2d, 1, 1, 3, { stride = 2, padding = "same" })
        fails("value", { "'padding_mode' is 'mirror'" }, nn.Conv2d, 1, 1, 3, { padding_mode = "mirror" })
        fails("value", { "AdaptiveAvgPool2d", "'output_size' is 0" }, nn.AdaptiveAvgPool2d, 0)
        fails("value", { "'output_size' is {20, 20}", "[2, 4, 7, 6]", "{13, 11}", "{14, 12}" },
            nn.ConvTranspose2d(4, 6, 3, { stride = 2, padding = 1 }), yoke.ones { 2, 4, 7, 6 }, 20)
    end)
end)

--- Convolution and pooling layers. Weight and bias start uniform in ±1/√fan_in, weight first; all convolutions take
--- {bias = true, dtype =, device =} beside their own options. One number stands for height and width.
local core = require "yoke.core"
local base = require "yoke.nn.module"
local shown_value = require "yoke.options".shown

local conv = {}
local Module, none = base.Module, base.none
local MODES = { zeros = "constant", reflect = "reflect", replicate = "replicate", circular = "circular" }

-- Returns a whole number of `least` or more for each axis; a single number stands for all; `default` if absent.
local function sizes(call, name, value, least, axes, default)
    local list = {}
    if value == nil then value = default end
    if type(value) == "table" then
        if #value ~= axes then
            core.raise("value", call, ("argument '%s' has %d numbers; give one, or %d"):format(name, #value, axes))
        end
        for i = 1, axes do list[i] = value[i] end
    else
        for i = 1, axes do list[i] = value end
    end
    for i = 1, axes do
        if math.type(list[i]) ~= "integer" or list[i] < least then
            core.raise("value", call, ("argument '%s' is %s; a whole number of at least %d is needed"):format(name, shown_value(list[i]), least))
        end
    end
    return list
end

local function is_each(list, value)
    for _, each in ipairs(list) do
        if each ~= value then return false end
    end
    return true
end

local function shown(list) return "{" .. table.concat(list, ", ") .. "}" end

-- Sets the numbers, the weight and the bias common to all convolutions.
local function take(self, in_channels, out_channels, kernel_size, options)
    local call, groups = self.class_name, options.groups
    base.positive(call, { "in_channels", in_channels }, { "out_channels", out_channels }, { "groups", groups })
    for _, pair in ipairs { { "in_channels", in_channels }, { "out_channels", out_channels } } do
        if pair[2] % groups ~= 0 then
            core.raise("value", call, ("argument '%s' is %d and 'groups' is %d; 'groups' must divide the channels evenly"):format(pair[1], pair[2], groups))
        end
    end
    self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
    self.kernel_size = sizes(call, "kernel_size", kernel_size, 1, self.axes)
    self.stride = sizes(call, "stride", options.stride, 1, self.axes, 1)
    self.dilation = sizes(call, "dilation", options.dilation, 1, self.axes, 1)
end

-- Draws weight [first, second, kernel_size]; fan_in is the product of all lengths but the first.
local function draw(self, first, second, options)
    local shape, fan_in = { first, second }, second
    for _, length in ipairs(self.kernel_size) do
        shape[#shape + 1], fan_in = length, fan_in * length
    end
    local bound = 1 / math.sqrt(fan_in)
    local function uniform(of)
        return base.Parameter(core.rand(of, { dtype = options.dtype, device = options.device }) * (2 * bound) - bound)
    end
    self.weight = uniform(shape)
    self:register_parameter("bias", options.bias ~= false and uniform { self.out_channels } or nil)
end

-- Returns the text of the numbers; options with their default value are left out.
local function extra(self)
    local text = { ("%d, %d, kernel_size=%s, stride=%s"):format(self.in_channels, self.out_channels, shown(self.kernel_size), shown(self.stride)) }
    local function tell(is_usual, name, value)
        if not is_usual then text[#text + 1] = name .. "=" .. value end
    end
    if type(self.padding) == "string" then
        tell(false, "padding", shown_value(self.padding))
    else
        local padding = self.before or self.padding
        tell(is_each(padding, 0), "padding", shown(padding))
    end
    tell(is_each(self.dilation, 1), "dilation", shown(self.dilation))
    if self.output_padding then tell(is_each(self.output_padding, 0), "output_padding", shown(self.output_padding)) end
    tell(self.groups == 1, "groups", self.groups)
    if self.padding_mode then tell(self.padding_mode == "zeros", "padding_mode", shown_value(self.padding_mode)) end
    tell(self.bias, "bias", "false")
    return table.concat(text, ", ")
end

-- ---- Conv1d, Conv2d -------------------------------------------------------------------------------------

local Forward = Module:extend("Conv")

-- Returns how many elements are added before and behind each axis.
local function ends_of(self, padding)
    local call, before, behind = self.class_name, {}, {}
    if type(padding) ~= "string" then
        before = sizes(call, "padding", padding, 0, self.axes)
        return before, before
    end
    if padding ~= "same" and padding ~= "valid" then
        core.raise("value", call, ("argument 'padding' is '%s'; it must be a number, a pair, 'same' or 'valid'"):format(padding))
    end
    if padding == "same" and not is_each(self.stride, 1) then
        core.raise("value", call, ("argument 'padding' is 'same' and 'stride' is %s; 'stride' must be 1, because 'same' keeps sizes")
            :format(shown(self.stride)))
    end
    for i = 1, self.axes do
        local span = padding == "same" and self.dilation[i] * (self.kernel_size[i] - 1) or 0
        before[i], behind[i] = span // 2, span - span // 2
    end
    return before, behind
end

function Forward:init(in_channels, out_channels, kernel_size, options)
    options = base.options(self.class_name, options, { stride = none, padding = none, dilation = none, groups = 1,
        bias = true, padding_mode = "zeros", dtype = none, device = none })
    take(self, in_channels, out_channels, kernel_size, options)
    if not MODES[options.padding_mode] then
        core.raise("value", self.class_name, ("argument 'padding_mode' is '%s'; it must be one of 'zeros', 'reflect', 'replicate', 'circular'")
            :format(options.padding_mode))
    end
    self.padding_mode, self.padding = options.padding_mode, options.padding
    if self.padding == nil then self.padding = 0 end
    self.before, self.behind = ends_of(self, self.padding)
    draw(self, out_channels, in_channels // self.groups, options)
end

-- x, and the padding that is left to the convolution.
local function padded(self, x)
    local ends, none_left, is_even, is_any = {}, {}, true, false
    for i = self.axes, 1, -1 do
        ends[#ends + 1], ends[#ends + 2] = self.before[i], self.behind[i]
        none_left[#none_left + 1] = 0
        is_even = is_even and self.before[i] == self.behind[i]
        is_any = is_any or self.before[i] + self.behind[i] > 0
    end
    if self.padding_mode == "zeros" and is_even then return x, self.before end
    return is_any and core.pad(x, ends, { mode = MODES[self.padding_mode] }) or x, none_left
end

Forward.extra = extra

--- nn.Conv1d(in_channels, out_channels, kernel_size, {stride = 1, padding = 0, dilation = 1, groups = 1, padding_mode =
--- "zeros"}): of x [N, in_channels, L], or without N. padding is also "same" (sizes stay, with stride 1) or "valid";
--- padding_mode also "reflect", "replicate" or "circular".
conv.Conv1d = Forward:extend("Conv1d")
conv.Conv1d.axes = 1

function conv.Conv1d:forward(x)
    local more, padding = padded(self, x)
    return core.conv1d(more, self.weight, self.bias,
        { stride = self.stride[1], padding = padding[1], dilation = self.dilation[1], groups = self.groups })
end

--- nn.Conv2d, of x [N, in_channels, H, W], or without N; its numbers may be pairs. Results lie in memory as [N, H, W,
--- C].
conv.Conv2d = Forward:extend("Conv2d")
conv.Conv2d.axes = 2

function conv.Conv2d:forward(x)
    local more, padding = padded(self, x)
    return core.conv2d(more, self.weight, self.bias,
        { stride = self.stride, padding = padding, dilation = self.dilation, groups = self.groups })
end

-- ---- ConvTranspose2d ------------------------------------------------------------------------------------

--- nn.ConvTranspose2d(in_channels, out_channels, kernel_size, {stride = 1, padding = 0, output_padding = 0, groups = 1,
--- dilation = 1}): the gradient of Conv2d by its input, as a layer; weight is [in_channels, out_channels / groups,
--- height, width]. forward(x, output_size) takes a height and width in place of output_padding.
conv.ConvTranspose2d = Module:extend("ConvTranspose2d")
conv.ConvTranspose2d.axes = 2

function conv.ConvTranspose2d:init(in_channels, out_channels, kernel_size, options)
    options = base.options("ConvTranspose2d", options, { stride = none, padding = none, output_padding = none,
        groups = 1, bias = true, dilation = none, dtype = none, device = none })
    take(self, in_channels, out_channels, kernel_size, options)
    self.padding = sizes("ConvTranspose2d", "padding", options.padding, 0, 2, 0)
    self.output_padding = sizes("ConvTranspose2d", "output_padding", options.output_padding, 0, 2, 0)
    draw(self, in_channels, out_channels // self.groups, options)
end

local function more_for(self, x, output_size)
    local wanted, shape, more = sizes("ConvTranspose2d", "output_size", output_size, 1, 2), base.need_tensor("ConvTranspose2d", x).shape, {}
    if #shape < 3 then return self.output_padding end -- the op says what is wrong
    local least, most, fits = {}, {}, true
    for i = 1, 2 do
        local length = shape[#shape - 2 + i]
        least[i] = (length - 1) * self.stride[i] - 2 * self.padding[i] + self.dilation[i] * (self.kernel_size[i] - 1) + 1
        most[i] = least[i] + self.stride[i] - 1
        more[i] = wanted[i] - least[i]
        fits = fits and more[i] >= 0 and wanted[i] <= most[i]
    end
    if not fits then
        core.raise("value", "ConvTranspose2d", ("argument 'output_size' is %s; for x of shape [%s] it must be between %s and %s")
            :format(shown(wanted), table.concat(shape, ", "), shown(least), shown(most)))
    end
    return more
end

function conv.ConvTranspose2d:forward(x, output_size)
    return core.conv_transpose2d(x, self.weight, self.bias, { stride = self.stride, padding = self.padding, groups = self.groups,
        output_padding = output_size ~= nil and more_for(self, x, output_size) or self.output_padding, dilation = self.dilation })
end

conv.ConvTranspose2d.extra = extra

-- ---- Pooling --------------------------------------------------------------------------------------------

local function take_window(self, kernel_size, options)
    self.kernel_size = sizes(self.class_name, "kernel_size", kernel_size, 1, 2)
    self.stride = sizes(self.class_name, "stride", options.stride, 1, 2, self.kernel_size)
    self.padding = sizes(self.class_name, "padding", options.padding, 0, 2, 0)
end

local function window(self)
    return ("kernel_size=%s, stride=%s, padding=%s"):format(shown(self.kernel_size), shown(self.stride), shown(self.padding))
end

--- nn.MaxPool2d(kernel_size, {stride = kernel_size, padding = 0, dilation = 1, ceil_mode = false}), of x [N, C, H, W],
--- or without N.
conv.MaxPool2d = Module:extend("MaxPool2d")

function conv.MaxPool2d:init(kernel_size, options)
    options = base.options("MaxPool2d", options, { stride = none, padding = none, dilation = none, ceil_mode = false })
    take_window(self, kernel_size, options)
    self.dilation, self.ceil_mode = sizes("MaxPool2d", "dilation", options.dilation, 1, 2, 1), options.ceil_mode
end

function conv.MaxPool2d:forward(x)
    return core.max_pool2d(x, self.kernel_size,
        { stride = self.stride, padding = self.padding, dilation = self.dilation, ceil_mode = self.ceil_mode })
end

function conv.MaxPool2d:extra()
    return ("%s, dilation=%s, ceil_mode=%s"):format(window(self), shown(self.dilation), self.ceil_mode)
end

--- nn.AvgPool2d(kernel_size, {stride = kernel_size, padding = 0, ceil_mode = false, count_include_pad = true,
--- divisor_override =}), of x [N, C, H, W], or without N.
conv.AvgPool2d = Module:extend("AvgPool2d")

function conv.AvgPool2d:init(kernel_size, options)
    options = base.options("AvgPool2d", options,
        { stride = none, padding = none, ceil_mode = false, count_include_pad = true, divisor_override = none })
    take_window(self, kernel_size, options)
    if options.divisor_override then base.positive("AvgPool2d", { "divisor_override", options.divisor_override }) end
    self.ceil_mode, self.count_include_pad, self.divisor_override = options.ceil_mode, options.count_include_pad, options.divisor_override
end

function conv.AvgPool2d:forward(x)
    return core.avg_pool2d(x, self.kernel_size, { stride = self.stride, padding = self.padding, ceil_mode = self.ceil_mode,
        count_include_pad = self.count_include_pad, divisor_override = self.divisor_override })
end

function conv.AvgPool2d:extra()
    local text = window(self)
    if self.ceil_mode then text = text .. ", ceil_mode=true" end
    if not self.count_include_pad then text = text .. ", count_include_pad=false" end
    if self.divisor_override then text = text .. ", divisor_override=" .. self.divisor_override end
    return text
end

--- nn.AdaptiveAvgPool2d(output_size), of x [N, C, H, W], or without N: windows share height and width out evenly.
conv.AdaptiveAvgPool2d = Module:extend("AdaptiveAvgPool2d")

function conv.AdaptiveAvgPool2d:init(output_size) self.output_size = sizes("AdaptiveAvgPool2d", "output_size", output_size, 1, 2) end

function conv.AdaptiveAvgPool2d:forward(x) return core.adaptive_avg_pool2d(x, self.output_size) end

function conv.AdaptiveAvgPool2d:extra() return "output_size=" .. shown(self.output_size) end

return conv

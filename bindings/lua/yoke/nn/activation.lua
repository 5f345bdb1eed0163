--- Activations as modules.
local core = require "yoke.core"
local base = require "yoke.nn.module"

local activation = {}

--- max(x, 0); 1 / (1 + exp(-x)); x times sigmoid(x); the hyperbolic tangent.
for name, op in pairs { ReLU = "relu", Sigmoid = "sigmoid", SiLU = "silu", Tanh = "tanh" } do
    activation[name] = base.Module:extend(name)
    activation[name].init = function(_, ...) base.read(name, {}, ...) end
    activation[name].forward = function(_, x) return core[op](x) end
end

--- nn.GELU{approximate = "none"}: "tanh" is the faster formula.
activation.GELU = base.Module:extend("GELU")

function activation.GELU:init(options)
    self.approximate = base.options("GELU", options, { approximate = "none" }).approximate
end

function activation.GELU:forward(x) return core.gelu(x, self.approximate) end

function activation.GELU:extra() return 'approximate="' .. self.approximate .. '"' end

--- nn.Softmax{axis = -1} and nn.LogSoftmax{axis = -1}, or with the axis alone.
for name, op in pairs { Softmax = "softmax", LogSoftmax = "log_softmax" } do
    local class = base.Module:extend(name)
    activation[name] = class
    function class:init(...)
        self.axis = base.read(name, { { "axis", -1 } }, ...)
        if not math.tointeger(self.axis) then
            core.raise("type", name, ("option 'axis' is %s; it takes an integer"):format(self.axis))
        end
    end

    function class:forward(x) return core[op](x, self.axis) end

    function class:extra() return "axis=" .. self.axis end
end

return activation

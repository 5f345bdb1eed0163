--- Activations as modules.
local core = require "yoke.core"
local base = require "yoke.nn.module"

local activation = {}

--- max(x, 0); 1 / (1 + exp(-x)); x times sigmoid(x); the hyperbolic tangent.
for name, op in pairs { ReLU = "relu", Sigmoid = "sigmoid", SiLU = "silu", Tanh = "tanh" } do
    activation[name] = base.Module:extend(name)
    activation[name].forward = function(_, x) return core[op](x) end
end

--- nn.GELU{approximate = "none"}: "tanh" is the faster formula.
activation.GELU = base.Module:extend("GELU")

function activation.GELU:init(options)
    self.approximate = base.options("GELU", options, { approximate = "none" }).approximate
end

function activation.GELU:forward(x) return core.gelu(x, self.approximate) end

function activation.GELU:extra() return 'approximate="' .. self.approximate .. '"' end

--- nn.Softmax(axis = -1) and nn.LogSoftmax(axis = -1).
for name, op in pairs { Softmax = "softmax", LogSoftmax = "log_softmax" } do
    local class = base.Module:extend(name)
    activation[name] = class
    function class:init(axis) self.axis = axis or -1 end

    function class:forward(x) return core[op](x, self.axis) end

    function class:extra() return "axis=" .. self.axis end
end

return activation

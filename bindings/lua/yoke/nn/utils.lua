--- Helpers for parameters, under PyTorch's names.
local core = require "yoke.core"
local missing = require "yoke.missing"
local options = require "yoke.options"

local methods = core.tensor_methods
local utils = { clip_grad_norm_ = core.clip_grad_norm_ }

local function listed(call, parameters)
    if core.is_tensor(parameters) then return { parameters } end
    if type(parameters) ~= "table" or getmetatable(parameters) then
        core.raise("type", call, ("argument 'parameters' is %s; it takes a list of tensors"):format(options.shown(parameters)))
    end
    return parameters
end

--- Holds each element of all gradients between -clip_value and clip_value.
function utils.clip_grad_value_(parameters, clip_value)
    if type(clip_value) ~= "number" or not (clip_value >= 0) then
        core.raise("value", "clip_grad_value_", ("argument 'clip_value' is %s; it must be a number of 0 or more"):format(options.shown(clip_value)))
    end
    local _ <close> = core.no_grad()
    for _, parameter in ipairs(listed("clip_grad_value_", parameters)) do
        local grad <close> = parameter.grad
        if grad then methods.clamp_(grad, -clip_value, clip_value) end
    end
end

--- Returns all elements of the parameters as one axis, recorded for gradients.
function utils.parameters_to_vector(parameters)
    local parts = {}
    for i, parameter in ipairs(listed("parameters_to_vector", parameters)) do parts[i] = methods.reshape(parameter, -1) end
    if #parts == 0 then core.raise("value", "parameters_to_vector", "argument 'parameters' is empty; give at least one tensor") end
    return core.cat(parts)
end

--- Writes the elements of `vec` into the parameters, in the order of parameters_to_vector().
function utils.vector_to_parameters(vec, parameters)
    local count, place = 0, 0
    for _, parameter in ipairs(listed("vector_to_parameters", parameters)) do count = count + parameter.numel end
    if not core.is_tensor(vec) or vec.ndim ~= 1 or vec.numel ~= count then
        core.raise("value", "vector_to_parameters", ("argument 'vec' is %s; give a tensor of shape [%d], as many as the parameters have"):format(
            options.shown(vec), count))
    end
    for _, parameter in ipairs(listed("vector_to_parameters", parameters)) do
        local part = methods.slice(methods.detach(vec), 0, place, place + parameter.numel)
        methods.copy_(parameter.data, methods.reshape(part, parameter.shape))
        place = place + parameter.numel
    end
end

return missing.module("nn.utils", utils)

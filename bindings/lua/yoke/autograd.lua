--- PyTorch's place of gradients: yoke.autograd. Function makes ops of a script with a backward of their own.
local core = require "yoke.core"
local options = require "yoke.options"

local autograd = { grad = core.grad, no_grad = core.no_grad, enable_grad = core.enable_grad, inference_mode = core.no_grad }

-- YOKE_OUTPUT_*
local fresh, constant, written = 0, 1, 2

local function is_tensor(value) return core.is_tensor(value) end

--- What a call passes from its forward to its backward. A script may set further fields.
local context = {}
context.__index = context

--- Keeps tensors of forward for backward, which finds them in ctx.saved_tensors; nil stays nil.
function context:save_for_backward(...)
    self._saved = table.pack(...)
    for i = 1, self._saved.n do
        local value = self._saved[i]
        if value ~= nil and not is_tensor(value) then
            core.raise("type", "save_for_backward", ("argument %d is %s; it takes tensors and nil, set other values as fields of ctx"):format(i, options.shown(value)))
        end
    end
end

--- Notes inputs that forward has changed in place; forward returns each of them.
function context:mark_dirty(...) self._written = table.pack(...) end

--- Notes outputs without a gradient.
function context:mark_non_differentiable(...) self._constant = table.pack(...) end

--- Sets whether backward gets zeros for an output without a gradient, as at first, or nil.
function context:set_materialize_grads(value) self._keeps_null = not value end

local function is_among(value, list)
    for i = 1, list.n do
        if rawequal(value, list[i]) then return true end
    end
    return false
end

-- Returns the function that the library calls: the number of saved tensors, these, then the gradients of the outputs.
local function backward_of(class, ctx, count)
    return function(saved_count, ...)
        local all = table.pack(...)
        local outer = rawget(ctx, "saved_tensors")
        ctx.saved_tensors = table.pack(table.unpack(all, 1, saved_count))
        local made = table.pack(class.backward(ctx, table.unpack(all, saved_count + 1, all.n)))
        ctx.saved_tensors = outer
        if made.n ~= count then
            core.raise("value", "backward", ("%s returned %d gradients for %d arguments of its forward; return one for each, nil where there is none"):format(
                class.name, made.n, count))
        end
        for i = 1, count do
            if made[i] == nil then made[i] = false end
        end
        return made
    end
end

-- Returns what forward returned, with the tensors replaced by those that are recorded.
local function record(class, ctx, args, results)
    local outputs, kinds, places = {}, {}, {}
    for i = 1, results.n do
        if is_tensor(results[i]) then
            outputs[#outputs + 1], places[#places + 1] = results[i], i
            kinds[#kinds + 1] = is_among(results[i], ctx._written) and written or is_among(results[i], ctx._constant) and constant or fresh
        end
    end
    for i = 1, ctx._written.n do
        if not is_among(ctx._written[i], args) then
            core.raise("value", "mark_dirty", class.name .. " marks a tensor that is none of its inputs; mark only inputs")
        elseif not is_among(ctx._written[i], results) then
            core.raise("value", "mark_dirty", class.name .. " marks an input that its forward does not return; return it, so that the result has its gradient")
        end
    end
    local saved = ctx._saved
    ctx._saved, ctx._written, ctx._constant = { n = 0 }, { n = 0 }, { n = 0 } -- the results would hold their own history
    local made = core._record_function(class.name, backward_of(class, ctx, args.n), ctx._keeps_null, kinds, outputs, saved, saved.n, args, args.n)
    for k, i in ipairs(places) do
        if kinds[k] ~= written then results[i] = made[k] end
    end
end

local function apply(class, ...)
    local args = table.pack(...)
    local ctx = setmetatable({ needs_input_grad = {}, _saved = { n = 0 }, _written = { n = 0 }, _constant = { n = 0 }, _keeps_null = false }, context)
    for i = 1, args.n do ctx.needs_input_grad[i] = is_tensor(args[i]) and args[i].requires_grad end
    local results
    if class.setup_context then
        results = table.pack(core.no_grad(class.forward, ...))
        core.no_grad(class.setup_context, ctx, args, results)
    else
        results = table.pack(core.no_grad(class.forward, ctx, ...))
    end
    record(class, ctx, args, results)
    return table.unpack(results, 1, results.n)
end

--- Returns a function with its own gradient from {forward =, backward =, name =, setup_context =}. Its apply(...) runs
--- forward(ctx, ...) without recording, and records the call as one op. backward(ctx, ...) gets a gradient for each
--- result, and returns a gradient or nil for each argument of forward. With setup_context(ctx, inputs, outputs),
--- forward takes no ctx. There are no second-order gradients.
function autograd.Function(given)
    local named = options.named("Function", given, { forward = options.none, backward = options.none, name = "Function", setup_context = options.none })
    for _, name in ipairs { "forward", "backward" } do
        if type(named[name]) ~= "function" then
            core.raise("type", "Function", ("argument '%s' is %s; it takes a function"):format(name, options.shown(named[name])))
        end
    end
    local class = { name = named.name, forward = named.forward, backward = named.backward, setup_context = named.setup_context }
    function class.apply(...) return apply(class, ...) end
    return setmetatable(class, { __call = function(_, ...) return apply(class, ...) end })
end

--- Adds the gradients of a tensor to the leaves behind it: tensor:backward(...).
function autograd.backward(tensor, ...) return core.tensor_methods.backward(tensor, ...) end

--- Finds the first NaN of backward: ops note the line of the script, and backward raises with the op, its argument and
--- the line. autograd.detect_anomaly([{check_nan = true}] [, fn, ...]) runs fn in the scope; without fn, returns the
--- scope.
function autograd.detect_anomaly(given, ...)
    if type(given) == "function" then return autograd.detect_anomaly({}, given, ...) end
    local named = options.named("detect_anomaly", given, { check_nan = true })
    core._comm_tell_lines()
    return core._detect_anomaly(named.check_nan and 2 or 1, ...)
end

return require "yoke.missing".module("autograd", autograd)

--- Hooks of modules in backward: two nodes of the tape around a call, one behind its arguments and one before its
--- results.
local autograd = require "yoke.autograd"
local core = require "yoke.core"
local options = require "yoke.options"

local backward_hooks = {}

-- Returns its tensors; backward passes the list of their gradients through `fn`.
local Node = autograd.Function {
    name = "hooks",
    forward = function(ctx, fn, keeps_nil, ...)
        ctx.fn = fn
        ctx:set_materialize_grads(not keeps_nil)
        local constant = {}
        for _, each in ipairs { ... } do
            if not each.requires_grad then constant[#constant + 1] = each end
        end
        ctx:mark_non_differentiable(table.unpack(constant))
        return ...
    end,
    backward = function(ctx, ...)
        local given = ctx.fn(table.pack(...))
        return nil, nil, table.unpack(given, 1, given.n)
    end,
}

-- Returns the values with their tensors behind a node, and the places of the tensors; nil if none is recorded.
local function recorded(values, fn, keeps_nil)
    local places, tensors, is_needed = {}, {}, false
    for i = 1, values.n do
        if core.is_tensor(values[i]) then
            places[#places + 1], tensors[#tensors + 1] = i, values[i]
            is_needed = is_needed or values[i].requires_grad
        end
    end
    if not is_needed or not core.is_grad_enabled() then return values, nil end
    local found = table.move(values, 1, values.n, 1, { n = values.n })
    for i, tensor in ipairs { Node.apply(fn, keeps_nil, table.unpack(tensors)) } do found[places[i]] = tensor end
    return found, places
end

-- Returns a list with the gradients at their places.
local function spread(places, gradients, count)
    local found = { n = count }
    for i, place in ipairs(places) do found[place] = gradients[i] end
    return found
end

-- Returns the gradients at the places.
local function gathered(places, found)
    local gradients = { n = #places }
    for i, place in ipairs(places) do gradients[i] = found[place] end
    return gradients
end

local function shape_text(x) return "[" .. table.concat(x.shape, ", ") .. "]" end

-- Returns the gradients that a hook returned, or those before if it returned nothing.
local function replaced(where, before, of, ...)
    local given = table.pack(...)
    if given.n == 0 or given.n == 1 and given[1] == nil then return before end
    if given.n ~= before.n then
        core.raise("value", where, ("a hook in backward returned %d gradients for %d %ss; return nothing, or a gradient or nil for each %s"):format(given.n, before.n, of, of))
    end
    for i = 1, given.n do
        if given[i] ~= nil and not core.is_tensor(given[i]) then
            core.raise("type", where, ("a hook in backward returned %s for %s %d; return a tensor or nil"):format(options.shown(given[i]), of, i))
        elseif given[i] and before[i] and shape_text(given[i]) ~= shape_text(before[i]) then
            core.raise("value", where, ("a hook in backward returned a gradient of shape %s for %s %d; it must have shape %s"):format(
                shape_text(given[i]), of, i, shape_text(before[i])))
        end
    end
    return given
end

--- Returns two functions for a call of a module with the hooks of `all`: the first takes the arguments, the second the
--- results; each returns the list to use in its place.
function backward_hooks.around(module, all)
    local before, after, where = all.before_backward, all.after_backward, module.class_name
    local count, inputs, results_count, results, outputs
    local function of_results(gradients)
        local found = spread(results, gradients, results_count)
        for _, entry in ipairs(before) do found = replaced(where, found, "result", entry.fn(module, found)) end
        outputs = found
        if not inputs then
            for _, entry in ipairs(after) do
                local given = replaced(where, { n = count }, "argument", entry.fn(module, { n = count }, found))
                if next(given) ~= "n" or next(given, "n") then
                    core.raise("value", where, "a hook in backward returned a gradient, but no argument of the call requires one; return nothing")
                end
            end
            outputs = nil
        end
        return gathered(results, found)
    end
    local function of_inputs(gradients)
        local of_these = outputs
        outputs = nil
        if not of_these then return gradients end -- they did not come from the results
        local found = spread(inputs, gradients, count)
        for _, entry in ipairs(after) do found = replaced(where, found, "argument", entry.fn(module, found, of_these)) end
        return gathered(inputs, found)
    end
    return function(args)
        count = args.n
        args, inputs = recorded(args, of_inputs, false)
        return args
    end, function(values)
        results_count = values.n
        values, results = recorded(values, of_results, true)
        return values
    end
end

return backward_hooks

--- Hooks of modules: functions of scripts that run before and after forward.
---
---     local handle = net.out:register_forward_hook(function(module, args, result) print(result.shape) end)
---     handle:remove()                    -- or local handle <close> = …
---
--- `args` is a list of the call's arguments, with their number n. A hook that returns nothing changes nothing.
local core = require "yoke.core"
local lists = require "yoke.nn.members"
local options = require "yoke.options"

local hooks = {}

local Handle = { __name = "yoke.nn.Handle" }
Handle.__index = Handle

-- Lists of hooks are replaced, never changed: a call that runs goes on with the list that it has.
local function without(list, entry)
    local rest = {}
    for _, each in ipairs(list) do
        if each ~= entry then rest[#rest + 1] = each end
    end
    return rest
end

--- Takes the hook out; nothing happens if it is out already.
function Handle:remove()
    local all = self.hooks
    all[self.place] = without(all[self.place], self.entry)
end

function Handle:__close() self:remove() end

local function is_callable(value)
    local class = getmetatable(value)
    return type(value) == "function" or type(class) == "table" and class.__call ~= nil
end

-- Adds a hook at a place of the module's calls; returns its handle.
local function register(call, module, place, fn, given, known)
    if not is_callable(fn) then
        core.raise("type", call, ("argument 'hook' is %s; it takes a function"):format(options.shown(fn)))
    end
    local named = options.named(call, given, known)
    local own = lists.of[module]
    own.hooks = own.hooks or { before = {}, after = {}, before_backward = {}, after_backward = {} }
    own.is_around = true
    local entry = { fn = fn, always_call = named.always_call }
    local list = without(own.hooks[place])
    table.insert(list, named.prepend and 1 or #list + 1, entry)
    own.hooks[place] = list
    return setmetatable({ hooks = own.hooks, place = place, entry = entry }, Handle)
end

local function forward(module, ...)
    options.refuse_more(module.class_name .. ":forward", module.forward, ...)
    return module:forward(...)
end

-- Returns what a hook returned in place of `values`, or `values` if the hook returned nothing.
local function replaced(values, ...)
    local given = table.pack(...)
    if given.n == 0 or given.n == 1 and given[1] == nil then return values end
    return given
end

-- Runs the hooks behind forward that `done` does not have; returns the results.
local function after(module, all, args, results, done)
    for _, entry in ipairs(all.after) do
        done[entry] = true
        results = replaced(results, entry.fn(module, args, table.unpack(results, 1, results.n)))
    end
    return results
end

-- Runs the hooks with always_call behind a call that failed. An error of such a hook is logged, because the call has
-- one.
local function after_failure(module, all, args, results, done)
    for _, entry in ipairs(all.after) do
        if entry.always_call and not done[entry] then
            local given = table.pack(pcall(entry.fn, module, args, table.unpack(results, 1, results.n)))
            if given[1] then
                results = replaced(results, table.unpack(given, 2, given.n))
            else
                warn("yoke: a forward hook of ", module.class_name, " raised ", tostring(given[2]), "; the call had failed before, and raises its own error")
            end
        end
    end
end

local function same(values) return values end

local function call_with_hooks(module, all, ...)
    local call = { args = table.pack(...), results = { n = 0 }, done = {} }
    local take_args, take_results = same, same
    if #all.before_backward + #all.after_backward > 0 then
        take_args, take_results = require("yoke.nn.backward_hooks").around(module, all)
    end
    local function run()
        for _, entry in ipairs(all.before) do call.args = replaced(call.args, entry.fn(module, call.args)) end
        call.args = take_args(call.args)
        call.results = table.pack(forward(module, table.unpack(call.args, 1, call.args.n)))
        call.results = take_results(after(module, all, call.args, call.results, call.done))
    end
    local always = false
    for _, entry in ipairs(all.after) do always = always or entry.always_call end
    if always then
        local is_fine, problem = pcall(run)
        if not is_fine then
            after_failure(module, all, call.args, call.results, call.done)
            error(problem, 0)
        end
    else
        run()
    end
    return table.unpack(call.results, 1, call.results.n)
end

local function call(module, own, ...)
    if own.hooks then return call_with_hooks(module, own.hooks, ...) end
    return forward(module, ...)
end

-- Returns whether all hooks have been removed.
local function is_empty(all)
    return #all.before + #all.after + #all.before_backward + #all.after_backward == 0
end

--- Calls a module with a scope or hooks. Hooks run inside the scope.
function hooks.call(module, own, ...)
    if own.hooks and is_empty(own.hooks) then
        own.hooks, own.is_around = nil, own.checkpoint ~= nil
    end
    if own.checkpoint then return core.checkpoint(own.checkpoint, call, module, own, ...) end
    return call(module, own, ...)
end

local Hooked = {}

--- Calls hook(module, args) before each forward(). The hook may return other arguments for forward(). Returns a handle
--- with remove(). {prepend = true}: before the hooks that are there.
function Hooked:register_forward_pre_hook(hook, given)
    return register("register_forward_pre_hook", self, "before", hook, given, { prepend = false })
end

--- Calls hook(module, args, result) after each forward(), with as many results as forward() has. The call returns what
--- the hook returns, unless the hook returns nothing. {always_call = true}: also after an error, without results.
function Hooked:register_forward_hook(hook, given)
    return register("register_forward_hook", self, "after", hook, given, { prepend = false, always_call = false })
end

--- Calls hook(module, grad_input, grad_output) in backward, when the gradients of the call's arguments are there. Both
--- are lists with a number n, and nil for values that need no gradient. What the hook returns, a gradient for each
--- argument, takes the place of grad_input. If no argument requires a gradient, the hook is called with the gradients
--- of the results.
function Hooked:register_full_backward_hook(hook, given)
    return register("register_full_backward_hook", self, "after_backward", hook, given, { prepend = false })
end

--- Calls hook(module, grad_output) in backward, before the gradients pass the module. What the hook returns, a gradient
--- for each result, takes the place of grad_output.
function Hooked:register_full_backward_pre_hook(hook, given)
    return register("register_full_backward_pre_hook", self, "before_backward", hook, given, { prepend = false })
end

--- Gives a class these methods.
function hooks.add_to(class)
    for name, method in pairs(Hooked) do class[name] = method end
end

return hooks

-- Run in a folder: a stopped run continues from the newest state there, saved by any of the languages.
--
--     local saved = SavedRun("gpt", options.save, options.every, { seed = options.seed })
--     for step in saved:steps(300, { net = net, optimizer = optimizer }) do … end
--
-- saved_run.py and saved_run.c do the same. A state has the parts under their names, "step", the number of finished
-- steps, "rng", and the run's "program" and "options". In a group all ranks load the state, and rank 0 alone saves.
local yoke = require "yoke"

local ENOENT <const> = 2 -- for a folder without saves

local SavedRun = {}
SavedRun.__index = SavedRun

-- Saves a run every `every` steps, and when a signal asks the process to end. Without a folder there are no saves.
local function new(program, folder, every, options, group)
    if every and not folder then
        error(("--every is %d, and there is no folder to save to; give --save FOLDER too"):format(every), 0)
    end
    if every and every < 1 then error(("--every is %d; it must be at least 1"):format(every), 0) end
    local self = setmetatable({ program = program, folder = folder, every = every or 100, options = options, group = group }, SavedRun)
    self.is_first = not group or group.rank == 0
    self.manager = folder and yoke.CheckpointManager(folder)
    self.first = 0 -- the step that this process began with
    return self
end

-- An error unless the program has the options that the saved run was begun with.
function SavedRun:check(state)
    local program = type(state) == "table" and state.program
    if program ~= self.program then
        error(("%s holds a run of %s; name another folder with --save"):format(self.folder, program or "another program"), 0)
    end
    local was, is = {}, {}
    for name, value in pairs(self.options) do
        local saved = state.options[name]
        if value ~= saved then was[#was + 1], is[#is + 1] = ("--%s %s"):format(name, saved), ("--%s %s"):format(name, value) end
    end
    if #was > 0 then
        error(("the run in %s was begun with %s, not with %s; give the options of the run, or name another folder with --save")
            :format(self.folder, table.concat(was, " "), table.concat(is, " ")), 0)
    end
end

-- Puts parts and random numbers to the last saved state; returns the number of its steps.
function SavedRun:load(total, parts)
    local state, problem = self.manager:load()
    -- Any other failure, also damaged or unreadable steps, is raised, so that no new run overwrites the folder.
    if not state and problem.code == "checkpoint" and problem.native_code == ENOENT then return 0 end
    if not state then error(problem, 0) end
    self:check(state)
    assert(self.manager:load { step = state.step, into = parts, verify = false })
    yoke.set_rng_state(state.rng)
    if self.is_first then io.stderr:write(("%s: %d of %d steps are done\n"):format(self.folder, state.step, total)) end
    return state.step
end

function SavedRun:save(step, parts, blocking)
    local state = { program = self.program, options = self.options, step = step, rng = yoke.get_rng_state() }
    for name, part in pairs(parts) do state[name] = part end
    assert(self.manager:save(step, state, { blocking = blocking }))
end

function SavedRun:save_if_due(step, total, parts)
    -- The first save takes the folder, and shows at once whether the folder is writable; later saves run in the
    -- background of the steps.
    local blocking = step == self.first or step == total
    if blocking or step % self.every == 0 then self:save(step, parts, blocking) end
end

-- Counts the remaining steps of `total`, from 0. `parts` are whole only between steps. A part is a tensor changed in
-- place, or has a state_dict().
function SavedRun:steps(total, parts)
    local step = -1
    if not self.manager then
        return function() step = step + 1; return step < total and step or nil end
    end
    self.first = self:load(total, parts)
    if self.group then assert(self.group:barrier()) end -- all ranks have finished reading before rank 0 writes
    if not self.is_first then
        step = self.first - 1
        return function() step = step + 1; return step < total and step or nil end
    end
    if self.first == total then return function() end end
    local is_begun, done = false, self.first
    local preemption = yoke.on_preempt(function() self:save(done, parts, true) end)
    local function next_step()
        if is_begun then done = done + 1 end
        is_begun = true
        preemption:release()
        yoke.poll() -- saves if a signal arrived within the step, and then ends the process
        self:save_if_due(done, total, parts)
        preemption:hold() -- a poll within the step, as in work:wait(), would save a half-done step
        return done < total and done or nil
    end
    return next_step, nil, nil, preemption -- closed by `for`, also on break and on errors
end

return new

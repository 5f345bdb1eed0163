--- How long a function takes: local median, iqr, runs = yoke.Timer(fn):run()
local core = require "yoke.core"
local options = require "yoke.options"

local Timer = {}
Timer.__index = Timer

local function quantile(ordered, part)
    local place = 1 + part * (#ordered - 1)
    local below = math.floor(place)
    local above = math.min(below + 1, #ordered)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
end

local function time(self, calls)
    local fn <const> = self.fn
    core.synchronize(self.device)
    local start = core.clock()
    for _ = 1, calls do fn() end
    core.synchronize(self.device)
    return core.clock() - start
end

--- Calls the function `warmup` times unmeasured, then in runs until `seconds` have passed, at least five. The device is
--- waited for before and after each run. A run is as many calls as take a tenth of a millisecond.
--- Returns seconds a call: the median, the distance of the quartiles, and how many runs there were.
function Timer:run()
    for _ = 1, self.warmup do self.fn() end
    local calls = 1
    while time(self, calls) < 1e-4 and calls < 1 << 20 do calls = calls * 2 end
    local times, finish = {}, core.clock() + self.seconds
    while #times < 5 or core.clock() < finish do times[#times + 1] = time(self, calls) / calls end
    table.sort(times)
    return quantile(times, 0.5), quantile(times, 0.75) - quantile(times, 0.25), #times
end

return function(fn, given)
    if type(fn) ~= "function" then
        core.raise("type", "Timer", ("argument 'fn' is %s; it takes a function without arguments"):format(options.shown(fn)))
    end
    local timer = options.named("Timer", given, { device = options.none, seconds = 0.5, warmup = 3 })
    timer.fn = fn
    if not ((timer.seconds or -1) >= 0 and (timer.warmup or -1) >= 0) then
        core.raise("value", "Timer", ("options 'seconds' and 'warmup' are %s and %s; both must be 0 or more"):format(timer.seconds, timer.warmup))
    end
    return setmetatable(timer, Timer)
end

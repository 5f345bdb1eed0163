-- on_preempt: actions of a script after a signal, in yoke.poll(). Each test runs in its own process, because the
-- signal may end the process.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails

local HEAD = [[
    local yoke = require "yoke"
    local function send(signal) os.execute("kill -" .. signal .. " $PPID") end
    local function say(what) return function() io.write(what, " ") io.flush() end end
]]

--- Runs a script. Returns the printed text and how the process ended: "exit 0", "signal 15". `ignored` names signals
--- that the process inherits as ignored, `variables` sets its environment.
local function run(script, ignored, variables)
    local path = support.temporary_file(HEAD .. script)
    local command = ("trap '' %s; %s exec lua5.4 %s 2>&1"):format(ignored or "WINCH", variables or "", path)
    local pipe = assert(io.popen(command))
    local output = pipe:read "a"
    local _, how, code = pipe:close()
    os.remove(path)
    return output, how .. " " .. code
end

local function prints(output, ending, script, ...)
    assert.same({ output, ending }, { run(script, ...) })
end

describe("a function for preemption", function()
    it("runs in poll() and not before, and then the signal ends the process", function()
        prints("sent saved ", "signal 15", [[
            yoke.on_preempt(say "saved")
            assert(yoke.poll() == 0)
            send "TERM"
            say "sent" ()
            yoke.poll()
            say "went on" ()
        ]])
    end)

    it("runs for each signal, where the former disposition ignores it", function()
        prints("saved saved ", "exit 0", [[
            yoke.on_preempt(say "saved", { signals = "USR1" })
            for _ = 1, 2 do
                send "USR1"
                assert(yoke.poll() == 1 and yoke.poll() == 0)
            end
        ]], "USR1")
    end)

    it("is one of several, of which the newest runs first", function()
        prints("third second first ", "signal 15", [[
            yoke.on_preempt(say "first")
            yoke.on_preempt(say "second", { signals = { "SIGTERM", "USR1" } })
            yoke.on_preempt(say "third")
            send "TERM"
            yoke.poll()
        ]])
    end)

    it("does not run once it is removed, and then the former disposition is back", function()
        prints("one ", "signal 15", [[
            local one = yoke.on_preempt(say "one", { signals = "USR1" })
            do
                local two <close> = yoke.on_preempt(say "two", { signals = "USR1" })
            end
            send "USR1"
            assert(yoke.poll() == 1)
            one:remove()
            one:remove()
            send "USR1"
            assert(yoke.poll() == 0)
            yoke.on_preempt(say "never"):remove()
            send "TERM"
            say "went on" ()
        ]], "USR1")
    end)

    it("waits amid a step that is held, and for the poll after it", function()
        prints("held released saved ", "signal 15", [[
            local handle = yoke.on_preempt(say "saved")
            handle:hold()
            send "TERM"
            assert(yoke.poll() == 0)
            yoke.save(os.tmpname(), { 1 }, { blocking = false }):wait()
            say "held" ()
            handle:release()
            say "released" ()
            yoke.poll()
        ]])
    end)

    it("may remove itself", function()
        prints("once ", "exit 0", [[
            local handle
            handle = yoke.on_preempt(function() say "once" () handle:remove() end, { signals = "USR1" })
            for _ = 1, 2 do
                send "USR1"
                yoke.poll()
            end
        ]], "USR1")
    end)

    it("that raises keeps the signal from its former disposition, and is not called again", function()
        prints("fails no space older ", "signal 15", [[
            yoke.on_preempt(say "older", { signals = "USR1" })
            yoke.on_preempt(function() say "fails" () error({ message = "no space" }) end, { signals = { "TERM", "USR1" } })
            send "USR1"
            local _, err = pcall(yoke.poll)
            say(err.message) ()
            yoke.poll()
            send "TERM"
            say "went on" ()
        ]], "USR1")
    end)

    it("that raises leaves the process alive", function()
        prints("false true ", "signal 15", [[
            yoke.on_preempt(function() error "no" end)
            send "TERM"
            say(tostring((pcall(yoke.poll)))) ()
            say(tostring((pcall(yoke.poll)))) ()
            send "TERM" -- has its former effect from now on
            say "went on" ()
        ]])
    end)

    it("may end the program its own way, and close the state with it", function()
        prints("", "exit 85", [[
            yoke.on_preempt(function() os.exit(85, true) end)
            send "TERM"
            yoke.poll()
        ]])
    end)

    it("is not called a second time while it runs", function()
        prints("begins ends ", "signal 15", [[
            yoke.on_preempt(function()
                say "begins" ()
                send "TERM"
                assert(yoke.poll() == 0)
                say "ends" ()
            end)
            send "TERM"
            yoke.poll()
        ]])
    end)

    it("is not disturbed by another one's", function()
        prints("begins ends other ", "exit 0", [[
            yoke.on_preempt(say "other", { signals = "USR2" })
            yoke.on_preempt(function()
                say "begins" ()
                send "USR2"
                assert(yoke.poll() == 0)
                say "ends" ()
            end, { signals = "USR1" })
            send "USR1"
            assert(yoke.poll() == 2)
        ]], "USR1 USR2")
    end)

    it("outlives the coroutine that registered it", function()
        prints("saved ", "signal 15", [[
            coroutine.wrap(function() yoke.on_preempt(say "saved") end)()
            collectgarbage()
            collectgarbage()
            send "TERM"
            yoke.poll()
        ]])
    end)

    it("goes with its state, which loses no signal", function()
        prints("", "signal 15", [[
            yoke.on_preempt(say "never")
            send "TERM"
        ]])
    end)

    it("runs while a script waits for a device", function()
        prints("enough", "exit 0", [[
            require "yoke.core"._select = function() return nil, { code = "timeout", message = "later" } end
            yoke.on_preempt(function() error("enough", 0) end)
            send "TERM"
            io.write(select(2, pcall(yoke.select, 1, { wait = 3600 })))
        ]])
    end)
end)

describe("poll", function()
    it("hands the log over before a signal ends the process", function()
        prints("logged saved ", "signal 15", [[
            yoke.on_preempt(say "saved")
            yoke.set_log_callback(say "logged")
            yoke.zeros(1)
            send "TERM"
            yoke.poll()
        ]], nil, "YOKE_NUM_THREAD=2") -- warns: no setting has this name
    end)
end)

describe("what on_preempt does not take", function()
    it("is refused by name", function()
        local call = yoke.on_preempt
        fails("value", "on_preempt", call)
        fails("type", { "on_preempt", "'fn' is a number", "a function" }, call, 5)
        fails("type", { "on_preempt", "'options' is a string" }, call, print, "TERM")
        fails("value", { "on_preempt", "'signal'", "did you mean 'signals'", "on_preempt(fn, {signals" }, call, print,
            { signal = "TERM" })
        fails("type", { "on_preempt", "'signals' is a boolean" }, call, print, { signals = true })
        fails("type", { "on_preempt", "'signals' is the number 1" }, call, print, { signals = { "TERM", 1.5 } })
        fails("value", { "on_preempt", "'signals' names no signal" }, call, print, { signals = {} })
        fails("value", { "'TREM' is not a signal", "use one of TERM, INT" }, call, print, { signals = "TREM" })
        fails("value", { "can catch signal 'KILL'", "use one of TERM, INT" }, call, print, { signals = { "TERM", "KILL" } })
        fails("value", { "'SEGV' reports a fault", "use one of TERM, INT" }, call, print, { signals = "SEGV" })
        assert.equal(0, yoke.poll())
    end)
end)

-- Choosing devices, leases and switching off: runs on any machine.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"

describe("choosing devices", function()
    it("names a constraint that is not understood", function()
        local devices, err = yoke.select(1, { min_fre = "8GiB" })
        assert.is_nil(devices)
        assert.are.equal("value", err.code)
        assert.is_truthy(err.message:find("did you mean 'min_free'", 1, true))
        assert.has_error(function() yoke.select(0) end)
        assert.has_error(function() yoke.select(1, { name = "a,b" }) end)
        local _, of_spec = pcall(yoke.select, "auto:kind=cpu")
        assert.is_truthy(tostring(of_spec):find('yoke.device("auto:kind=cpu")', 1, true), tostring(of_spec))
    end)

    it("names every device that does not fit", function()
        local devices, err = yoke.select { min_cc = 99 }
        assert.is_nil(devices)
        assert.are.equal("unavailable", err.code)
        assert.is_truthy(err.message:find("no CPU can meet min_cc", 1, true))
        devices, err = yoke.select { min_cc = 99, wait = "50ms" }
        assert.is_nil(devices)
        assert.are.equal("unavailable", err.code)
    end)

    it("gives the cpu where it is asked for", function()
        local devices = yoke.select { kind = "cpu", min_free = 1024 }
        assert.are.equal(1, #devices)
        assert.are.equal("cpu", devices[1].spec)
        assert.are.equal(devices[1], yoke.device("cpu"))
    end)

    it("explains without opening a device", function()
        local verdicts = yoke.explain("auto:min_cc=99")
        assert.are_not.equal("", verdicts.problem)
        assert.are.equal("", verdicts.visible)
        for _, verdict in ipairs(verdicts) do assert.is_false(verdict.accepted) end
        assert.are.equal("cpu", yoke.explain("cpu")[1].device)
    end)

    it("tells what a device is", function()
        local cpu = yoke.device("cpu")
        assert.are.equal("", cpu.uuid)
        assert.are.equal("", cpu.pci)
        assert.is_nil(cpu.compute_capability)
        assert.is_nil(cpu.lease)
        assert.is_false(cpu.is_egpu)
        assert.is_true(cpu:sample().memory_total > 0)
        local lease, err = cpu:take_lease()
        assert.is_nil(lease)
        assert.are.equal("unsupported", err.code)
        assert.is_false(pcall(yoke.lease_holder, "GPU-no-such-card"))
    end)

    it("writes numbers as a spec has them", function()
        assert.are.equal(1, #yoke.select { kind = "cpu", min_free = 2.0 ^ 20, wait = 1e-5 })
        local _, err = yoke.select { min_cc = { 99, 0 } }
        assert.is_truthy(err.message:find("min_cc=99.0", 1, true))
    end)

    it("says where a script asked for what cannot be", function()
        local _, err = pcall(function() yoke.select { name = "a,b" } end)
        assert.is_truthy(err.where:find("select_spec.lua:", 1, true), err.where)
        _, err = yoke.select { bogus = 1 }
        assert.is_truthy(err.where:find("select_spec.lua:", 1, true), err.where)
    end)

    it("waits for devices in steps that Ctrl-C ends", function()
        -- Runs in a separate process, in which no device ever fits.
        local script = support.temporary_file [[
            local core = require "yoke.core"
            core._select = function() return nil, { code = "timeout", message = "later" } end
            local yoke = require "yoke"
            local interrupts = io.popen "sleep 0.5; kill -INT $PPID"
            yoke.select(1, { wait = 20 })]]
        local interpreter, from = arg[0], os.time()
        for i = -1, -9, -1 do interpreter = arg[i] or interpreter end
        local pipe = io.popen(("'%s' '%s' 2>&1"):format(interpreter, script))
        local told = pipe:read "a"
        pipe:close()
        os.remove(script)
        assert.is_truthy(told:find("interrupted!", 1, true), told)
        assert.is_true(os.time() - from < 15)
    end)

    it("waits as long as it was told, and names what did not fit", function()
        local devices, err = yoke.device "auto:min_cc=99,wait=50ms"
        assert.is_nil(devices)
        assert.are.equal("unavailable", err.code) -- waiting does not help
        devices, err = yoke.device "auto:min_cc=99,wait=50"
        assert.is_nil(devices)
        assert.are.equal("value", err.code)
    end)

    it("switches a kind off until a scope ends", function()
        local before = yoke.why_unavailable("cuda")
        local kept
        do
            local scope <close> = yoke.disabled("cuda")
            kept = scope
            assert.is_truthy(yoke.why_unavailable("cuda"):find("disabled by yoke.disable('cuda')", 1, true))
        end
        assert.are.equal(before, yoke.why_unavailable("cuda"))
        yoke.disable("cuda")
        kept:close() -- a second close undoes no other call's disable
        assert.are_not.equal(before, yoke.why_unavailable("cuda"))
        yoke.enable("cuda")
        support.fails("type", "'fn'", yoke.disabled, "cuda", 1)
        assert.are.equal(before, yoke.why_unavailable("cuda"))
    end)

    it("switches a kind off and on again", function()
        local before = yoke.why_unavailable("cuda")
        local seen = yoke.disabled("cuda", function() return yoke.why_unavailable("cuda") end)
        assert.is_truthy(seen:find("disabled by yoke.disable('cuda')", 1, true))
        assert.has_error(function() yoke.disabled("cuda", error, "x") end)
        assert.are.equal(before, yoke.why_unavailable("cuda"))
        assert.has_error(function() yoke.disable("cpu") end)
    end)
end)

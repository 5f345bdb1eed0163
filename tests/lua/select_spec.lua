-- Choosing devices, leases and switching off: runs on any machine.
local yoke = require "yoke"

describe("choosing devices", function()
    it("names a constraint that is not understood", function()
        local devices, err = yoke.select(1, { min_fre = "8GiB" })
        assert.is_nil(devices)
        assert.are.equal("value", err.code)
        assert.is_truthy(err.message:find("did you mean 'min_free'", 1, true))
        assert.has_error(function() yoke.select(0) end)
        assert.has_error(function() yoke.select(1, { name = "a,b" }) end)
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
        assert.are.equal(0, yoke.lease_holder("GPU-no-such-card"))
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

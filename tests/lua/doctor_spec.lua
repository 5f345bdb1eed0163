-- yoke.doctor: a report of plain tables, options that are refused by name, recordings.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails

describe("the doctor", function()
    it("gives every check, in order, with evidence and a link", function()
        local report = yoke.doctor()
        assert.is_true(#report.checks >= 45)
        local failed, words = 0, { ok = true, warn = true, fail = true, skip = true }
        for number, check in ipairs(report.checks) do
            assert.equal(number, check.number)
            assert.is_true(words[check.status], check.status)
            assert.is_true(#check.id > 0 and #check.title > 0 and #check.evidence > 0)
            assert.truthy(check.url:find("^https://"))
            assert.equal(check.status == "warn" or check.status == "fail", check.remedy ~= "")
            if check.status == "fail" then failed = failed + 1 end
        end
        assert.equal(failed > 0 and 1 or 0, report.exit_code)
        assert.equal("gpu-present", report.checks[1].id)
    end)

    it("takes options by name and refuses others", function()
        assert.is_table(yoke.doctor({ redact = true, probe = false, deadline = 5 }).checks)
        fails("value", "'prob'", yoke.doctor, { prob = true })
        fails("type", "redact", yoke.doctor, { redact = 1 })
        fails("type", "options", yoke.doctor, "redact")
        fails("value", "'deadline' is -1", yoke.doctor, { deadline = -1 })
        fails("value", "'seconds'", yoke.doctor_record, "/tmp/x", { seconds = 1 })
    end)

    it("knows cards by the driver's name", function()
        local memory = 143771 << 20
        local h200 = yoke.catalog_find("NVIDIA H200", memory)
        assert.same({ "H200 SXM", 132, memory }, { h200.name, h200.multiprocessors, h200.memory })
        assert.is_nil(yoke.catalog_find("Abacus 1"))
        fails("type", "name", yoke.catalog_find, {})
    end)

    it("records into a folder, or says why it cannot", function()
        local folder = os.tmpname()
        os.remove(folder)
        assert.is_true(yoke.doctor_record(folder, { redact = true, deadline = 5 }))
        for _, name in ipairs { "scenario.json", "report.json", "environment" } do
            local file = assert(io.open(folder .. "/" .. name))
            file:close()
        end
        os.execute("rm -r '" .. folder .. "'")
        local done, err = yoke.doctor_record(folder, { deadline = -1 })
        assert.is_nil(done)
        assert.equal("value", err.code)
        done, err = yoke.doctor_record("/proc/yoke-cannot-be-here")
        assert.is_nil(done)
        assert.equal("io", err.code)
        assert.truthy(err.message:find("/proc/yoke-cannot-be-here", 1, true))
    end)
end)

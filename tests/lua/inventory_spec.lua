-- Inventory of the machine, as tables.
local yoke = require "yoke"

describe("an inventory", function()
    it("is taken of this machine", function()
        local machine = yoke.inventory()
        assert.equal("string", type(machine.facts.driver))
        assert.equal(#machine.cards, #machine.topology.links)
        for place, card in ipairs(machine.cards) do
            assert.equal(place - 1, card.index)
            assert.equal(card.usable, card.reason == "")
        end
    end)

    it("takes no arguments", function()
        local ok, problem = pcall(yoke.inventory, 1)
        assert.is_false(ok)
        assert.equal("value", problem.code)
    end)

    it("knows how cards are joined, as text too", function()
        assert.equal(yoke.topology().text, tostring(yoke.topology()))
    end)
end)

describe("the catalog", function()
    it("has figures with their sources", function()
        local entries = yoke.catalog()
        assert.is_true(#entries >= 24)
        for _, entry in ipairs(entries) do
            assert.is_true(#entry.source > 0, entry.name)
            assert.is_true(entry.memory_bandwidth > 1e10, entry.name)
        end
    end)
end)

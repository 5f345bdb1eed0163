--- How a tensor reads: like NumPy's arrays, with dtype and device.
local core = require "yoke.core"

local format = {}

local LINE_WIDTH, SUMMARY_ABOVE, EDGE, MOST_FRACTION = 75, 1000, 3, 8

-- ---- Numbers -------------------------------------------------------------------------------------------

-- Significant digits that distinguish the values of a dtype; a test whether the text gives the value back.
local DIGITS = require("yoke.dtypes").digits
local EXACT = {
    float64 = function(text, value) return tonumber(text) == value end,
    float32 = function(text, value) return string.unpack("f", string.pack("f", tonumber(text))) == value end,
}

-- "1.5e-03" of the shortest digits that give the value back, as sign, digits and exponent.
local function shortest(value, dtype)
    local most, exact = DIGITS[dtype], EXACT[dtype]
    local text
    for digits = exact and 1 or most, most do
        text = ("%." .. digits - 1 .. "e"):format(value)
        if exact and exact(text, value) then break end
    end
    local mantissa, exponent = text:match "^(.-)e(.*)$"
    return (mantissa:find "%." and mantissa:gsub("0+$", "") or mantissa), tonumber(exponent)
end

local function is_finite(value) return value == value and value ~= math.huge and value ~= -math.huge end

local function special(value)
    return value ~= value and "nan" or value > 0 and "inf" or "-inf"
end

-- NumPy's rule for all numbers of an array at once.
local function needs_exponent(values)
    local largest, smallest = 0, math.huge
    for _, value in ipairs(values) do
        local size = math.abs(value)
        if is_finite(value) and size > 0 then
            largest, smallest = math.max(largest, size), math.min(smallest, size)
        end
    end
    return largest > 0 and (largest >= 1e8 or smallest < 1e-4 or largest / smallest > 1000)
end

local function fixed(value, dtype)
    local mantissa, exponent = shortest(value, dtype)
    local fraction = math.max(0, #(mantissa:match "%.(%d*)" or "") - exponent)
    local text = ("%." .. math.min(fraction, MOST_FRACTION) .. "f"):format(value)
    if not text:find "%." then return text .. "." end
    return (text:gsub("0+$", ""))
end

local function scientific(value, dtype)
    local mantissa, exponent = shortest(value, dtype)
    if value == 0 then mantissa, exponent = "0", 0 end
    local fraction = #(mantissa:match "%.(%d*)" or "")
    if fraction > MOST_FRACTION then mantissa = ("%." .. MOST_FRACTION .. "f"):format(tonumber(mantissa)) end
    if not mantissa:find "%." then mantissa = mantissa .. "." end
    return ("%se%s%02d"):format(mantissa, exponent < 0 and "-" or "+", math.abs(exponent))
end

-- Pads so that points stand below each other; inf and nan, without a point, end where the numbers end.
local function align(texts)
    local left, right, width = 0, 0, 0
    for _, text in ipairs(texts) do
        local point = text:find(".", 1, true)
        if point then left, right = math.max(left, point), math.max(right, #text - point) end
        width = math.max(width, #text)
    end
    width = math.max(width, left + right)
    for i, text in ipairs(texts) do
        local point = text:find(".", 1, true)
        local after = point and right - (#text - point) or 0
        texts[i] = (" "):rep(width - #text - after) .. text .. (" "):rep(after)
    end
end

local function justify(texts)
    local width = 0
    for _, text in ipairs(texts) do width = math.max(width, #text) end
    for i, text in ipairs(texts) do texts[i] = (" "):rep(width - #text) .. text end
end

local function format_values(values, dtype)
    local texts = {}
    if not DIGITS[dtype] then
        for i, value in ipairs(values) do texts[i] = tostring(value) end
        justify(texts)
        return texts
    end
    local one = needs_exponent(values) and scientific or fixed
    for i, value in ipairs(values) do
        texts[i] = is_finite(value) and one(value, dtype) or special(value)
    end
    align(texts)
    return texts
end

-- ---- Nesting -------------------------------------------------------------------------------------------

local function flatten(list, values)
    if type(list) ~= "table" then
        values[#values + 1] = list
        return values
    end
    for _, item in ipairs(list) do flatten(item, values) end
    return values
end

-- Breaks rows of numbers where the line is full; deeper parts take separate lines.
local function join(parts, depth_below, indent)
    if depth_below > 0 then
        return "[" .. table.concat(parts, "," .. ("\n"):rep(depth_below) .. indent .. " ") .. "]"
    end
    local lines, line = {}, ""
    for i, part in ipairs(parts) do
        local text = part .. (i < #parts and "," or "")
        if line ~= "" and #indent + #line + #text + 2 > LINE_WIDTH then
            lines[#lines + 1], line = line, text
        else
            line = line == "" and text or line .. " " .. text
        end
    end
    lines[#lines + 1] = line
    return "[" .. table.concat(lines, "\n" .. indent .. " ") .. "]"
end

local function nest(list, ndim, cut, texts, at, indent)
    if ndim == 0 then return texts[at], at + 1 end
    local parts = {}
    for i, item in ipairs(list) do
        if cut[#cut - ndim + 1] and i == EDGE + 1 then parts[#parts + 1] = "..." end
        parts[#parts + 1], at = nest(item, ndim - 1, cut, texts, at, indent .. " ")
    end
    return join(parts, ndim - 1, indent), at
end

-- The edges of a large tensor, and which axes were cut.
local function summarize(x)
    local large, cut = x.numel > SUMMARY_ABOVE, {}
    for axis, size in ipairs(x.shape) do
        cut[axis] = large and size > 2 * EDGE
        if cut[axis] then
            x = core.cat({ x:slice(axis - 1, 0, EDGE), x:slice(axis - 1, size - EDGE) }, axis - 1)
        end
    end
    return x, cut
end

--- The text of a tensor.
function format.tensor(x)
    local tail = (", dtype=%s, device=%s"):format(x.dtype, x.device)
    if x.requires_grad then tail = tail .. ", requires_grad=true" end
    if x.numel == 0 then
        return ("tensor([], shape=(%s)%s)"):format(table.concat(x.shape, ", "), tail)
    end
    local edges, cut = summarize(x:detach())
    local list = edges:tolist()
    local texts = format_values(flatten(list, {}), x.dtype)
    return "tensor(" .. nest(list, x.ndim, cut, texts, 1, (" "):rep(7)) .. tail .. ")"
end

return format

---@meta yoke
-- For editors (LuaLS): what is wrong with a machine's GPUs.

---One question about the machine and its answer.
---@class yoke.Check
---@field number integer
---@field id string "driver-library-match"
---@field title string
---@field status "ok"|"warn"|"fail"|"skip" skip: it does not apply here, the evidence says why
---@field evidence string what was seen
---@field remedy string commands, one a line; "" when all is well
---@field url string where it is written up
---@field card integer the card it is about, -1: the machine

---@class yoke.Report
---@field checks yoke.Check[]
---@field exit_code 0|1|2 0: none failed; 1: one did; 2: one could not be run

---Examines the machine; never raises for what is wrong with it. `probe`: also what runs work on a device, each in a child
---process that is ended after `deadline` seconds (10). `redact`: no names of hosts, users and processes, no UUIDs.
---@param options? {probe?: boolean, redact?: boolean, deadline?: number}
---@return yoke.Report
function yoke.doctor(options) end

---Writes what a report rests on, and the report, into a folder: scenario.json, root/, environment, report.json.
---@param folder string
---@param options? {probe?: boolean, redact?: boolean}
---@return true? done
---@return yoke.Error? err
function yoke.doctor_record(folder, options) end

hs = {status = "Progressing", message = "has not been synced yet"}
local s = obj.status
if s == nil or s.sync == nil then
  return hs
end
local broken = {ComparisonError = true, InvalidSpecError = true, SyncError = true, UnknownError = true}
for _, c in ipairs(s.conditions or {}) do
  if broken[c.type] then
    return {status = "Degraded", message = c.type .. ": " .. (c.message or "")}
  end
end
local op = s.operationState
if op ~= nil and s.sync.status ~= "Synced" and (op.phase == "Failed" or op.phase == "Error" or (op.retryCount or 0) > 0) then
  return {status = "Degraded", message = "its sync failed: " .. (op.message or "")}
end
local policy = obj.spec.syncPolicy or {}
local automated = policy.automated ~= nil and policy.automated.enabled ~= false
if s.health == nil or s.health.status == nil then
  return hs
end
if s.sync.status == "Synced" or s.health.status ~= "Healthy" or not automated then
  hs.status = s.health.status
  hs.message = s.health.message or ""
else
  hs.message = "is " .. (s.sync.status or "not compared yet")
end
return hs

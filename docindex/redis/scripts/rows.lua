-- rows returns crawls: whether with levels, how many names, the names. If there are 0 names, it lists crawls by name:
-- the name after which to begin ('': from the first), the prefix of the names, most.
-- It returns of each crawl: name; documents scheduled, at the slots, at calls, completed, purged of the completed,
-- ended by the stop but not reported, dropped, sent, expired of the purged; expiry, place of the put that set it,
-- round, kind of the refusal, since when nothing is open here, pairs of priority and domain with their pending
-- documents, number of the crawl. After the crawls it returns the same counts of all crawls together.
local deep, names = arg() == '1', {}
for i = 1, num() do names[i] = arg() end

local function range(behind, prefix, most)
  local from = behind ~= '' and '(' .. behind or '[' .. prefix
  for i, name in ipairs(call('ZRANGEBYLEX', base .. ':kn', from, '+', 'LIMIT', 0, most)) do
    if string.sub(name, 1, #prefix) ~= prefix then break end
    names[i] = name
  end
end
if #names == 0 then range(arg(), arg(), num()) end

local FIELDS = { LINED, ATSLOTS, ATCALLS, FINISHED, PURGED, UNTOLD, DROPPED, SENT, LATE, 'till', 'said', 'round' }

local function row(name)
  local no = numberOf(name)
  local n = no and call('HMGET', crawlKey(no), unpack(FIELDS)) or {}
  local out = { name }
  for i = 1, #FIELDS do out[i + 1] = n[i] or '0' end
  out[14] = whyOf(name) or ''
  out[15] = call('ZSCORE', base .. ':kf', name) or ''
  out[16] = deep and no and call('HGETALL', crawlKey(no) .. ':d') or {}
  out[17] = no or ''
  return out
end

local out = {}
for i, name in ipairs(names) do out[i] = row(name) end
return done({ out, call('HGETALL', base .. ':kt') })

-- set_alias sets the hosts of an alias. A reservation that covers one of the former or new hosts, or its group, covers
-- all of them from now on. All of them get the latest next allowed fetch time of any.
local function set_alias(alias, hosts)
  local names, from, moved = { alias }, { alias }, {}
  local function also(list, name) list[#list + 1] = name end
  local seen = {} -- a group may be that of many hosts
  local function members(group)
    if seen[group] then return end
    seen[group] = true
    for _, host in ipairs(call('ZRANGE', DUE .. group, 0, -1)) do also(moved, host) end
  end
  members(alias)
  for _, host in ipairs(call('SMEMBERS', ALIASED .. alias)) do
    also(names, host)
    also(from, host)
  end
  for _, host in ipairs(hosts) do
    local group = group_of(host)
    also(names, host)
    also(from, host)
    also(from, group)
    members(host)
    members(group)
  end
  local longest, ids = 0, {}
  for _, name in ipairs(from) do
    longest = math.max(longest, next_of(name))
    for _, id in ipairs(covering(name)) do ids[id] = true end
  end
  for _, host in ipairs(call('SMEMBERS', ALIASED .. alias)) do call('HDEL', ALIAS, host) end
  call('DEL', ALIASED .. alias)
  call('SREM', ALIASES, alias)
  for _, host in ipairs(hosts) do
    local former = call('HGET', ALIAS, host)
    if former then
      call('SREM', ALIASED .. former, host)
      if call('EXISTS', ALIASED .. former) == 0 then call('SREM', ALIASES, former) end
    end
    call('HSET', ALIAS, host, alias)
    call('SADD', ALIASED .. alias, host)
    call('SADD', ALIASES, alias)
  end
  for _, name in ipairs(names) do
    raise(name, longest)
    for id in pairs(ids) do cover(id, name) end
  end
  for _, host in ipairs(moved) do rehome(host) end
  for _, name in ipairs(names) do
    rehome(name)
    requeue(name)
    settle(name)
  end
end

-- clash returns a name that would be both a host and an alias; or nil.
local function clash(alias, hosts)
  if call('HEXISTS', KNOWN, alias) == 1 then return alias end
  for _, host in ipairs(hosts) do
    if call('SISMEMBER', ALIASES, host) == 1 then return host end
  end
end

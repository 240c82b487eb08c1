-- Links on pages wait in branches by the shapes of their URLs, as package shapes says; its Table has the same rules.
-- A scheduled document in branch NO has NO / SCALE as its due time, which is
-- its score in the order of its queue: it is due at any time, and no document outside the branches has such a score. A
-- queue with a table has the number of its branches in q.i.
local function defineBranches() -- a Lua function may have 200 locals
  local MOST, ENOUGH, SCALE = 1000, 4, 2048
  local USUAL, DEARER, DEAREST, PATTERN = 4, 2, 8, 2
  local HASH, PATH, SHAPE, TRAPS, DEAR, FIRST, SAME, START, HAS = 1, 2, 3, 4, 5, 6, 7, 8, 9 -- of a branch
  local REST = string.rep('\0', 8) -- hash of the branch that the shapes without one share
  local tables, changed = {}, {}

  local function key(q) return base .. ':e:' .. q.id end

  local function add(t, hash, path, kind, traps)
    local no = #t.list + 1
    local b = { hash, path, kind, traps, USUAL, no, 1, t.now - 2 ^ USUAL, false }
    for _, one in ipairs(t.list) do
      if one[PATH] == path then
        local first = t.list[one[FIRST]]
        first[SAME] = first[SAME] + 1
        b[FIRST], b[START] = one[FIRST], t.now
        break
      end
    end
    t.list[no], t.numbers[hash] = b, no
    return no
  end

  -- of returns the table of a queue. If it lacks branches that q.i counts, of adds them without a shape, marked as
  -- having documents.
  local function of(q)
    local t = tables[q.id]
    if t then return t end
    t = broken.unpack(key(q), call('GET', key(q))) or { now = 0, list = {}, page = '', was = 0, own = false, other = false }
    tables[q.id], t.numbers = t, {}
    for no, b in ipairs(t.list) do t.numbers[b[HASH]] = no end
    while #t.list < q.i do
      local no = add(t, 'none' .. #t.list, 'none' .. #t.list, '', 0)
      t.list[no][HAS] = true
    end
    return t
  end

  local function change(q) changed[q.id] = q end

  -- number returns the branch that a document waits in; nil: it waits in none.
  local function number(q, doc)
    if q.i and doc[DUE] > 0 and doc[DUE] < 1 then return doc[DUE] * SCALE end
  end

  -- mark records that a document was scheduled in a branch.
  function branches.mark(q, doc)
    local no = number(q, doc)
    if not no then return end
    local b = of(q).list[no]
    if b and not b[HAS] then
      b[HAS] = true
      change(q)
    end
  end

  function branches.drop(q)
    if not q.i then return end
    call('UNLINK', key(q))
    q.i, tables[q.id], changed[q.id] = nil, nil, nil
  end

  -- learn records that a page of a shape has brought a new document of a branch.
  local function learn(t, page, shape, brought)
    local no = t.numbers[shape] or t.numbers[REST]
    if not no then return end
    local first = t.list[t.list[no][FIRST]]
    if t.page ~= page then t.page, t.was, t.own, t.other = page, first[DEAR], false, false end
    if t.other then return end
    if t.list[brought][SHAPE] ~= t.list[no][SHAPE] then
      t.other, first[DEAR] = true, 0
    elseif not t.own then
      t.own, first[DEAR] = true, min(t.was + DEARER, DEAREST)
    end
  end

  -- enter puts a new document that is to be scheduled into a branch, if it is a link. link is what shapes.Links says
  -- of it; '': it is none.
  function branches.enter(q, doc, link)
    if link == '' then return end
    if q.n[SCHEDULED] + q.n[TRANSIT] == 0 then branches.drop(q) end
    if not q.i and q.n[SCHEDULED] < ENOUGH then return end
    q.i = q.i or 0
    local t = of(q)
    local hash, path, kind, traps, teaches, page, shape = struct.unpack('c8c8c4BBc8c8', link)
    if not t.numbers[hash] and #t.list >= MOST then hash, path, kind, traps = REST, REST, '\0\0\0\0', 0 end
    local no = t.numbers[hash] or add(t, hash, path, kind, traps)
    if teaches == 1 then learn(t, page, shape, no) end
    q.i, doc[DUE] = #t.list, no / SCALE
    touch(q)
    change(q)
  end

  -- due returns when a branch has its turn. A branch cannot save turns up while it has nothing.
  local function due(t, b)
    local first = t.list[b[FIRST]]
    return max(t.now, b[START] + first[SAME] * 2 ^ (first[DEAR] + PATTERN * b[TRAPS]))
  end

  local function took(t, b)
    t.now = due(t, b)
    b[START] = t.now
  end

  -- took records that a branch has given a document.
  function branches.took(q, doc)
    local no = number(q, doc)
    if not no then return end
    local t = of(q)
    if t.list[no] then took(t, t.list[no]) end
    change(q)
  end

  -- back makes the slots ask again when they have half as many documents as they may have of a queue with branches.
  function branches.back(q, door)
    if not q.i or door == CALLS or q.n[SCHEDULED] == 0 then return end
    branches.room = branches.room or q.o[SLOTS] + q.o[LENT] == floor(branches.most / 2)
  end

  -- pages counts how many pages of a budget each document counts as that a queue gives.
  function branches.pages(q)
    local digits, dear, all = {}, false, 0
    local pages = {}
    function pages.add(doc)
      local no, n = number(q, doc), 1
      local b = no and of(q).list[no]
      if b and of(q).list[b[FIRST]][DEAR] >= DEAREST then n, dear = 8, true end
      digits[#digits + 1] = n
      if n > 1 then all = all + n end
    end
    function pages.text() return dear and table.concat(digits) or '' end
    function pages.rest()
      if all == 0 then return end
      local h = host(q.h)
      local gap = max(h.g, h.k or 0)
      q.r = max(q.r, now) + all * (gap > 0 and gap or slotGap)
      touch(q)
    end
    return pages
  end

  local function range(q, from, to, skip, most)
    return call('ZRANGEBYSCORE', order(q), from, to, 'LIMIT', skip, most)
  end

  -- head returns the next document of a branch; nil: there is none. ahead caches the first documents of branches.
  local function head(q, no, ahead)
    local a = ahead[no] or { at = 1, from = 0 }
    ahead[no] = a
    if not a.list or a.at > #a.list and #a.list == 16 then
      a.from = a.from + (a.list and 16 or 0)
      a.list, a.at = range(q, no / SCALE, no / SCALE, a.from, 16), 1
    end
    return a.list[a.at]
  end

  -- inTurn returns the branch whose turn it is, and its next document; nil: none has something.
  local function inTurn(q, t, ahead)
    while true do
      local best, at
      for no, b in ipairs(t.list) do
        if b[HAS] and not (ahead[no] and ahead[no].over) then
          local turn = due(t, b)
          if not best or turn < at then best, at = no, turn end
        end
      end
      if not best then return nil end
      local m = head(q, best, ahead)
      if m then return best, m end
      ahead[best].over = true
      if ahead[best].from == 0 and ahead[best].at == 1 then
        t.list[best][HAS] = false
        change(q)
      end
    end
  end

  -- take appends documents of branches to a list by their turns, and documents in no branch that are as urgent: the
  -- older one first. It returns the index of the next of the latter. It leaves the turns as they are; took changes
  -- them.
  local function take(q, t, list, most, zero, z)
    local ahead, undo, now0 = {}, {}, t.now
    while #list < most do
      local no, m = inTurn(q, t, ahead)
      if not no then break end
      if zero[z] and string.sub(zero[z], 1, 4) == string.sub(m, 1, 4) and string.sub(zero[z], 5, 12) < string.sub(m, 5, 12) then
        list[#list + 1], z = zero[z], z + 1
      else
        local b = t.list[no]
        undo[#undo + 1] = { b, b[START] }
        took(t, b)
        list[#list + 1], ahead[no].at = m, ahead[no].at + 1
      end
    end
    for i = #undo, 1, -1 do undo[i][1][START] = undo[i][2] end
    t.now = now0
    return z
  end

  -- first returns the first documents that are due of a queue with branches, as they are in its order.
  function branches.first(q, most)
    local t, list = of(q), range(q, '-inf', '(0', 0, most)
    local zero, z = range(q, 0, 0, 0, most), 1
    local usual = struct.pack('>I4', 2147483647) -- what documents without a priority begin with
    while zero[z] and #list < most and string.sub(zero[z], 1, 4) < usual do list[#list + 1], z = zero[z], z + 1 end
    local before = #list
    z = take(q, t, list, most, zero, z)
    if #list == before and before < most and range(q, '(0', '(1', 0, 1)[1] then -- a program from before branches has scheduled some
      for _, b in ipairs(t.list) do b[HAS] = true end
      z = take(q, t, list, most, zero, z)
    end
    while zero[z] and #list < most do list[#list + 1], z = zero[z], z + 1 end
    if #list < most then
      for _, m in ipairs(range(q, 1, floor(now / 1000), 0, most - #list)) do list[#list + 1] = m end
    end
    return list
  end

  -- keep writes the tables that have changed.
  function branches.keep()
    for _, q in pairs(changed) do
      local t = tables[q.id]
      if not broken.found[key(q)] then
        local numbers = t.numbers
        t.numbers = nil
        call('SET', key(q), cmsgpack.pack(t))
        t.numbers = numbers
      end
    end
  end
end
defineBranches()

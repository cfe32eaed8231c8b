-- One step through the memories of some places, in the order of seq. ARGV: tenant, a JSON text of
--   places, condition, after, skip, limit, step: how many of each place to look at, bytes: when to stop,
--   complete: whether no memory is ever dropped before its time,
--   answer: 'count', 'keys' (what relevance is sorted by, and the id) or 'memories', vectors.
-- Returns the seq to go on after ('' at the end), how many are still to be skipped, and what was found.

if is_behind() then return false end

local asked = cjson.decode(ARGV[2])

local tests = {}
local function holds(condition, row)
  return tests[condition[1]](condition, row)
end
tests['has'] = function(c, row) return row.tokens:find(',' .. c[2] .. ',', 1, true) ~= nil end
tests['<'] = function(c, row) return row.sorting:sub(c[2], c[3]) < c[4] end
tests['<='] = function(c, row) return row.sorting:sub(c[2], c[3]) <= c[4] end
tests['>'] = function(c, row) return row.sorting:sub(c[2], c[3]) > c[4] end
tests['>='] = function(c, row) return row.sorting:sub(c[2], c[3]) >= c[4] end
tests['not'] = function(c, row) return not holds(c[2], row) end
tests['and'] = function(c, row)
  for number = 2, #c do
    if not holds(c[number], row) then return false end
  end
  return true
end
tests['or'] = function(c, row)
  for number = 2, #c do
    if holds(c[number], row) then return true end
  end
  return false
end

-- Candidates by seq: complete as far as the place whose page ended first.
local candidates, bound = {}, math.huge
for _, place in ipairs(asked.places) do
  local key = prefix .. 's:' .. tenant .. ':' .. place
  local page = redis.call('ZRANGEBYSCORE', key, '(' .. asked.after, '+inf', 'WITHSCORES', 'LIMIT', 0, asked.step)
  for number = 1, #page, 2 do
    candidates[#candidates + 1] = { tonumber(page[number + 1]), page[number] }
  end
  if #page == 2 * asked.step then bound = math.min(bound, tonumber(page[#page])) end
end
table.sort(candidates, function(one, other) return one[1] < other[1] end)

local found, size, skip = {}, 0, asked.skip
local answer = {
  count = function() return 0 end,
  keys = function(id, row) return row.sorting:sub(1, 16) .. row.sorting:sub(33, 50) .. id, 0 end,
  memories = function(id)
    local memory = fetched(id, asked.vectors)
    return memory, #(memory[1] or '') + #(memory[3] or '')
  end,
}
for _, candidate in ipairs(candidates) do
  local seq, id = candidate[1], candidate[2]
  if seq > bound then break end
  local fields = redis.call('HMGET', index_key(tenant, id), 'k', 'a')
  local row = { sorting = fields[1], tokens = ',' .. (fields[2] or '') .. ',' }
  local is_there = row.sorting and (asked.complete or redis.call('EXISTS', memory_key(tenant, id)) == 1)
  if is_there and holds(asked.condition, row) then
    if skip > 0 then
      skip = skip - 1
    else
      local one, bytes = answer[asked.answer](id, row)
      found[#found + 1] = one
      size = size + (bytes or 0)
    end
  end
  if #found == asked.limit or size > asked.bytes then
    return { string.format('%.0f', seq), skip, found }
  end
end
return { bound < math.huge and string.format('%.0f', bound) or '', skip, asked.answer == 'count' and #found or found }

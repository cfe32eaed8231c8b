-- ARGV: tenant, a JSON text of what to do, then the values that it names by their number.

local todo = cjson.decode(ARGV[2])
local function value(number) return ARGV[number + 2] end

-- Before anything else is written, for this is where a full server refuses: it lets a script that has begun to
-- write go on. Who only deletes does not come by here.
local version = todo.writes and string.format('%.0f', redis.call('INCR', prefix .. 'clock'))

if is_behind() then return 'behind' end

for _, each in ipairs(todo.controls) do
  local found = redis.call('HGET', prefix .. 'c:' .. tenant, each.key)
  if (found and found:match('^%d+') or '') ~= each.version then return 'stale' end
end
for _, each in ipairs(todo.changes) do
  if (redis.call('HGET', memory_key(tenant, value(each.id)), 'n') or '') ~= each.version then return 'stale' end
end

for _, each in ipairs(todo.controls) do
  if each.value then
    redis.call('HSET', prefix .. 'c:' .. tenant, each.key, version .. ' ' .. value(each.value))
  end
end

local function enter(id, each)
  each_place(tenant, each.membership, function(key) redis.call('ZADD', key, each.seq, id) end)
  redis.call('ZADD', prefix .. 'd:' .. tenant, 0, digest_member(each.membership, id))
  if each.expires then
    redis.call('ZADD', prefix .. 'x:' .. tenant, each.expires, id)
  end
end

-- The server drops it this long after its instant, and no sooner than this long from now.
local function limit_life(id, each)
  local instant = each.drop and string.format('%.0f', math.max(tonumber(each.drop), milliseconds()) + todo.grace)
  for _, key in ipairs({ memory_key(tenant, id), index_key(tenant, id), history_key(tenant, id) }) do
    if instant then redis.call('PEXPIREAT', key, instant) else redis.call('PERSIST', key) end
  end
  if not instant then return end
  redis.call('ZADD', prefix .. 'due', instant, tenant .. each.membership .. id)
end

-- At once: the query engine reads the hash after every command.
local function set(key, fields, more)
  for field, number in pairs(fields) do
    more[#more + 1] = field
    more[#more + 1] = value(number)
  end
  if #more > 0 then redis.call('HSET', key, unpack(more)) end
end

for _, each in ipairs(todo.changes) do
  local id = value(each.id)
  local index = index_key(tenant, id)
  local key, history = memory_key(tenant, id), history_key(tenant, id)
  if each.forgets then redis.call('DEL', history) end
  local former = redis.call('HGET', key, 'p')
  if former then withdraw(tenant, former, id) end
  if not each.membership then
    redis.call('DEL', key, index, history)
  else
    if each.version == '' then redis.call('DEL', index) end
    set(key, each.record, { 'n', version })
    set(index, each.index, {})
    if #each.removed > 0 then redis.call('HDEL', index, unpack(each.removed)) end
    for _, number in ipairs(each.past) do redis.call('RPUSH', history, value(number)) end
    redis.call('LTRIM', history, -todo.kept, -1)
    enter(id, each)
    limit_life(id, each)
  end
end
for _, dimension in ipairs(todo.dimensions) do
  redis.call('SADD', prefix .. 'dimensions', dimension)
end
return 'done'

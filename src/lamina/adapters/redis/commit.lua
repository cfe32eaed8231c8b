-- ARGV: tenant, a JSON text of what to do, then the values that it names by their number.

if is_behind() then return 'behind' end

local todo = cjson.decode(ARGV[2])
local function value(number) return ARGV[number + 2] end

for _, each in ipairs(todo.controls) do
  local found = redis.call('HGET', prefix .. 'c:' .. tenant, each.key)
  if (found and found:match('^%d+') or '') ~= each.version then return 'stale' end
end
for _, each in ipairs(todo.changes) do
  if (redis.call('HGET', memory_key(tenant, value(each.id)), 'n') or '') ~= each.version then return 'stale' end
end

local clock
local function tick()  -- not before something is written: who only deletes may do so on a full server too
  clock = clock or string.format('%.0f', redis.call('INCR', prefix .. 'clock'))
  return clock
end

for _, each in ipairs(todo.controls) do
  if each.value then
    redis.call('HSET', prefix .. 'c:' .. tenant, each.key, tick() .. ' ' .. value(each.value))
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
  local key, history = memory_key(tenant, id), history_key(tenant, id)
  if not each.drop then
    redis.call('PERSIST', key)
    redis.call('PERSIST', history)
    return
  end
  local instant = string.format('%.0f', math.max(tonumber(each.drop), milliseconds()) + todo.grace)
  redis.call('PEXPIREAT', key, instant)
  redis.call('PEXPIREAT', history, instant)
  redis.call('ZADD', prefix .. 'due', instant, tenant .. each.membership .. id)
end

for _, each in ipairs(todo.changes) do
  local id = value(each.id)
  local key, history = memory_key(tenant, id), history_key(tenant, id)
  if each.forgets then redis.call('DEL', history) end
  local former = redis.call('HGET', key, 'p')
  if former then withdraw(tenant, former, id) end
  if not each.membership then
    redis.call('DEL', key, history)
  else
    local fields = { 'n', tick() }
    for field, number in pairs(each.fields) do
      fields[#fields + 1] = field
      fields[#fields + 1] = value(number)
    end
    redis.call('HSET', key, unpack(fields))  -- at once: the query engine reads the hash after every command
    for _, field in ipairs(each.removed) do redis.call('HDEL', key, field) end
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

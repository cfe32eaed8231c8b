-- Before every script. KEYS[1] is what all keys of the table begin with, ARGV[1] the tenant's token.
--
-- e:<tenant>:<id>         hash, the memory: see layout.py for its fields
-- i:<tenant>:<id>         hash, what it is found by, which reading and counting reads leaves alone
-- h:<tenant>:<id>         list, its former versions
-- s:<tenant>:<layer><place>  sorted set of ids by seq, for each place that a scope can name
-- d:<tenant>              sorted set, <layer><digest><owner><namespace><id>, in the order of bytes
-- x:<tenant>              sorted set of the ids that expire, by that instant in microseconds
-- due                     sorted set, <tenant><membership><id>, by when the server drops the hash, in milliseconds
-- c:<tenant>              hash, the controls: a version, a space, the value
-- dimensions, seq, clock, layout
--
-- A membership is what the sets file a memory under: layer (1), owner (32), namespace (32), digest (32).

local prefix, tenant = KEYS[1], ARGV[1]

local function memory_key(of, id)
  return prefix .. 'e:' .. of .. ':' .. id
end

local function index_key(of, id)
  return prefix .. 'i:' .. of .. ':' .. id
end

local function history_key(of, id)
  return prefix .. 'h:' .. of .. ':' .. id
end

local function each_place(of, membership, visit)
  local layer, owner, namespace = membership:sub(1, 1), membership:sub(2, 33), membership:sub(34, 65)
  local base = prefix .. 's:' .. of .. ':' .. layer
  visit(base .. 't')
  visit(base .. 'o' .. owner)
  visit(base .. 'n' .. namespace)
  visit(base .. 'p' .. owner .. namespace)
end

local function digest_member(membership, id)
  return membership:sub(1, 1) .. membership:sub(66, 97) .. membership:sub(2, 65) .. id
end

local function withdraw(of, membership, id)
  each_place(of, membership, function(key) redis.call('ZREM', key, id) end)
  redis.call('ZREM', prefix .. 'd:' .. of, digest_member(membership, id))
  redis.call('ZREM', prefix .. 'x:' .. of, id)
  redis.call('ZREM', prefix .. 'due', of .. membership .. id)
end

local function milliseconds()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- What the server has dropped by now leaves the sets; true if there may be more of it than one call should do.
-- A memory that is there all the same took the place of one that was evicted before its time.
local function is_behind()
  local due = redis.call('ZRANGEBYSCORE', prefix .. 'due', '-inf', '(' .. milliseconds(), 'LIMIT', 0, 1000)
  local done = 0
  for _, member in ipairs(due) do
    local of, membership, id = member:sub(1, 32), member:sub(33, 129), member:sub(130)
    local left = redis.call('PTTL', memory_key(of, id))
    if left == -2 then
      withdraw(of, membership, id)
      done = done + 1
    elseif left == -1 or left > 1000 then
      redis.call('ZREM', prefix .. 'due', member)
      done = done + 1
    end
  end
  return #due == 1000 and done > 0
end

local function fetched(id, with_vector)
  local fields = redis.call('HMGET', memory_key(tenant, id), 'd', 'n')
  local index = index_key(tenant, id)
  local field = with_vector and fields[1] and redis.call('HGET', index, 'f')
  return { fields[1], fields[2], field and redis.call('HGET', index, field) }
end

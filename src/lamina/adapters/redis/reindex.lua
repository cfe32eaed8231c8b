-- ARGV: tenant, then of each memory its id, the version that was read, and its words.

for number = 2, #ARGV, 3 do
  local id, index = ARGV[number], index_key(tenant, ARGV[number])
  if redis.call('HGET', memory_key(tenant, id), 'n') == ARGV[number + 1] and redis.call('EXISTS', index) == 1 then
    redis.call('HSET', index, 'w', ARGV[number + 2])
  end
end
return 'done'
